"""Judges whether everything that a writer may write satisfies a reader.

The search looks for a value that the writer may write and the reader refuses. Either it ends
without one, which is a proof, rule by rule; or the value that it finds is shown to the validator
and shrunk: what both schemas do not confirm is never reported. What it leaves open is put to the
library's prover, whose yes has no rules to show, and then to values that the schemas suggest.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from tallystick.canonical import MISSING, Json, Missing, pointer_join
from tallystick.compatibility.algebra.node import Algebra, Node
from tallystick.compatibility.algebra.reading import Reading
from tallystick.compatibility.budget import Budget, BudgetSpent
from tallystick.compatibility.forms.dialect import localised, modern
from tallystick.compatibility.forms.producer import close
from tallystick.compatibility.generation import values_to_try
from tallystick.compatibility.prover import PROVER, proves
from tallystick.compatibility.search.outcome import Closed, Found, Outcome, Stuck
from tallystick.compatibility.search.tableau import Search
from tallystick.compatibility.shrink import shrunk
from tallystick.compatibility.verdict import Judgement, Obstacle, Proof, Step, Witness
from tallystick.errors import TooLarge
from tallystick.schema import ANNOTATIONS, Validator
from tallystick.subschema import DRAFT_2020_12, REFERENCES, Subschemas, map_parts

SEARCH: Final = "tallystick"
BUDGET: Final = "budget"

_SAY_NOTHING: Final = ANNOTATIONS | {"default"}


@dataclass(frozen=True, eq=False)
class Side:
    """One schema as one party reads it.

    Args:
        schema: The schema.
        dialect: Its dialect, one of `DIALECTS`.
        assert_format: Whether `format` is more than an annotation.
        is_closed: Whether only what is declared counts, as for a `declared` producer.
    """

    schema: Json
    dialect: str = DRAFT_2020_12
    assert_format: bool = False
    is_closed: bool = False

    @cached_property
    def modern(self) -> Json:
        """The schema in 2020-12, open, with every reference a pointer."""
        return localised(modern(self.schema, self.dialect))

    @cached_property
    def effective(self) -> Json:
        """The schema in 2020-12 that says what this party means."""
        return close(self.modern) if self.is_closed else self.modern

    @cached_property
    def text(self) -> str:
        """The schema as written, as text: to Python, `0` and `false` are equal."""
        return json.dumps(self.schema, sort_keys=True)

    @cached_property
    def asserted(self) -> str:
        """What the schema as written asserts, as text, if it refers to itself.

        The structures of two such schemas are never one, however much they say the same. All others
        are read faster than they are copied.
        """
        refers = any(f'"{each}"' in self.text for each in REFERENCES)
        if not refers or _refers_into_annotations(self.schema):
            return self.text
        return json.dumps(_without_annotations(self.schema), sort_keys=True)

    @cached_property
    def validator(self) -> Validator:
        """What decides about a value: of the schema as it stands, unless it had to be closed."""
        if self.is_closed:
            return Validator.of(self.effective, DRAFT_2020_12, self.assert_format)
        return Validator.of(self.schema, self.dialect, self.assert_format)


def judge(writer: Side, reader: Side, budget: Budget | None = None) -> Judgement:
    """Judge whether everything that the writer may write satisfies the reader.

    Both are schemas that `check_schema` accepts. Nothing is raised: what costs more than the
    budget is undecided.
    """
    try:
        return _judged(writer, reader, budget or Budget())
    except (BudgetSpent, TooLarge):
        return Judgement.undecided(Obstacle("", "", BUDGET))


def _judged(writer: Side, reader: Side, budget: Budget) -> Judgement:
    if _says_the_same(writer, reader):
        return _identical("the same schema")
    algebra = Algebra()
    written, read = (
        _read(side, algebra, budget, document) for document, side in enumerate((writer, reader))
    )
    if written is read:
        return _identical("the same structure")
    search = Search(algebra, budget)
    try:
        outcome: Outcome = search.find((written, algebra.negate(read)))
    except BudgetSpent:
        outcome = Stuck("", BUDGET)
    if isinstance(outcome, Closed):
        return Judgement.compatible(Proof(SEARCH, tuple(search.steps)))
    if isinstance(outcome, Stuck) and _is_proven(writer, reader):
        step = Step("", "covers", "the reader's canonical form covers the writer's")
        return Judgement.compatible(Proof(PROVER, (step,)))
    found = [outcome.value] if isinstance(outcome, Found) else []
    witness = _confirmed(
        chain(found, values_to_try(writer.effective, reader.effective)), writer, reader
    )
    if witness is None:
        return Judgement.undecided(_obstacle(outcome))
    return Judgement.incompatible(witness)


def _identical(detail: str) -> Judgement:
    return Judgement.compatible(Proof(SEARCH, (Step("", "identity", detail),)))


def _obstacle(outcome: Found | Stuck) -> Obstacle:
    if isinstance(outcome, Found):
        return Obstacle("", "", "the validator does not confirm the witness")
    return Obstacle(pointer_join(*outcome.path), outcome.keyword, outcome.reason)


def _says_the_same(writer: Side, reader: Side) -> bool:
    return (
        writer.dialect == reader.dialect
        and writer.assert_format == reader.assert_format
        and (writer.is_closed or not reader.is_closed)
        and (writer.text == reader.text or writer.asserted == reader.asserted)
    )


def _without_annotations(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: map_parts(keyword, value, _without_annotations)
        for keyword, value in schema.items()
        if keyword not in _SAY_NOTHING
    }


def _refers_into_annotations(schema: Json) -> bool:
    """Tell whether a reference may lead to where no schema stands, such as an example.

    A property by the name of an annotation counts too, and whatever is written in another way.
    """
    references = (
        str(position.keywords.get(each, ""))
        for position in Subschemas(schema)
        for each in REFERENCES
    )
    return any("%" in each or not _SAY_NOTHING.isdisjoint(each.split("/")) for each in references)


def _read(side: Side, algebra: Algebra, budget: Budget, document: int) -> Node:
    formats = side.dialect if side.assert_format else None
    return Reading(
        side.effective, algebra, budget, document=document, format_dialect=formats
    ).root()


def _is_proven(writer: Side, reader: Side) -> bool:
    if reader.assert_format and not (writer.assert_format and _knows_formats(writer, reader)):
        return False
    return proves(writer.effective, reader.effective, assert_format=reader.assert_format)


def _knows_formats(writer: Side, reader: Side) -> bool:
    """Tell whether the formats of both are the prover's: earlier dialects assert fewer of them."""
    return writer.dialect == reader.dialect == DRAFT_2020_12


def _confirmed(values: Iterable[Json], writer: Side, reader: Side) -> Witness | None:
    """Return the first value, made smaller, that both validators say is a witness."""

    def is_witness(candidate: Json) -> bool:
        return writer.validator.is_valid(candidate) and not reader.validator.is_valid(candidate)

    try:
        value = next(filter(is_witness, values), MISSING)
    except ValueError:  # the validator takes no such schema
        return None
    if isinstance(value, Missing):
        return None
    smallest = shrunk(value, is_witness)
    return Witness(smallest, reader.validator.violations(smallest))
