"""Questions to the engine, each for one kind of answer."""

from typing import Any

from tallystick.canonical import Json
from tallystick.compatibility.algebra.membership import Known, Membership
from tallystick.compatibility.algebra.node import Algebra
from tallystick.compatibility.algebra.reading import Reading
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.judging import Side, judge
from tallystick.compatibility.verdict import Answer, Obstacle
from tallystick.subschema import DRAFT_2020_12


def rules(old: Any, new: Any, dialect: str = DRAFT_2020_12, **reading: Any) -> set[str]:
    """Return the rules of the proof that all that `old` accepts satisfies `new`."""
    said = judge(Side(old, dialect, **reading), Side(new, dialect, **reading))
    assert said.verdict is Answer.COMPATIBLE, said
    assert said.proof is not None
    return {step.rule for step in said.proof.steps}


def witness(old: Any, new: Any, dialect: str = DRAFT_2020_12, **reading: Any) -> Json:
    """Return the value that `old` accepts and `new` does not."""
    said = judge(Side(old, dialect, **reading), Side(new, dialect, **reading))
    assert said.verdict is Answer.INCOMPATIBLE, said
    assert said.witness is not None
    return said.witness.value


def obstacle(old: Any, new: Any, dialect: str = DRAFT_2020_12, **reading: Any) -> Obstacle:
    """Return what stopped the analysis."""
    said = judge(Side(old, dialect, **reading), Side(new, dialect, **reading))
    assert said.verdict is Answer.UNDECIDED, said
    assert said.obstacle is not None
    return said.obstacle


def holds(schema: Any, value: Json, steps: int = 10_000, dialect: str | None = None) -> Known:
    """Return whether a value is in the node of a schema; formats count if a dialect is named."""
    algebra, budget = Algebra(), Budget(steps)
    node = Reading(schema, algebra, budget, document=0, format_dialect=dialect).root()
    return Membership(algebra, budget).holds(node, value)
