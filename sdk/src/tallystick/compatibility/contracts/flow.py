"""What passes between the two sides of a change of contract, and whether it passes.

Four things flow: old calls to the new version, new results to old readers, and after a rollback new
calls to the old version, and old results to new readers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from tallystick.canonical import Json
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.judging import Side, judge
from tallystick.compatibility.verdict import Answer, Judgement, Producer
from tallystick.subschema import REFERENCES, Subschemas
from tallystick.tool_contract import Contract

ANYTHING: Final[dict[str, Json]] = {}
NOTHING: Final[dict[str, Json]] = {"not": {}}


class Flow(StrEnum):
    """What one version writes and the other one reads."""

    OLD_CALLS = "old_calls"
    """Arguments that are written for the old version, and read by the new one."""
    NEW_RESULTS = "new_results"
    """Results of the new version, for readers of the old one."""
    NEW_CALLS = "new_calls"
    """Arguments that are written for the new version, and read by the old one: after a rollback."""
    OLD_RESULTS = "old_results"
    """Results of the old version, for readers of the new one: after a rollback."""

    @property
    def is_result(self) -> bool:
        """Whether results flow, and not calls."""
        return self in (Flow.NEW_RESULTS, Flow.OLD_RESULTS)


@dataclass(frozen=True, slots=True)
class Passage:
    """Whether all that flows is accepted where it arrives.

    Args:
        declared: For a writer who writes only what the schema declares.
        any: For a writer who writes whatever the schema as written lets through.
        strict: For results alone: as `declared`, for a reader who refuses what is not declared.
    """

    declared: Judgement
    any: Judgement
    strict: Judgement | None = None

    def by(self, producer: Producer) -> Judgement:
        """Return the judgement for one kind of writer."""
        return self.declared if producer is Producer.DECLARED else self.any

    def to_json(self) -> dict[str, Json]:
        """Return the judgements as a JSON object; `strict` only for results."""
        strict: dict[str, Json] = {} if self.strict is None else {"strict": self.strict.to_json()}
        return {"declared": self.declared.to_json(), "any": self.any.to_json(), **strict}


@dataclass(frozen=True, slots=True)
class Boundary:
    """What a contract takes and gives, as written and as declared.

    Args:
        arguments: The arguments that its input schema describes.
        declared_arguments: Those of them that hold nothing but what it declares.
        results: The results that its output schema describes; without one, any result.
        declared_results: Those of them that hold nothing but what it declares.
    """

    arguments: Side
    declared_arguments: Side
    results: Side
    declared_results: Side

    @classmethod
    def of(cls, contract: Contract) -> "Boundary":
        """Return the boundary of a contract."""
        output = ANYTHING if contract.output_schema is None else contract.output_schema
        arguments, results = (
            Side(schema, contract.dialect, contract.assert_format)
            for schema in (_of_objects(contract.input_schema), output)
        )
        return cls(
            arguments=arguments,
            declared_arguments=replace(arguments, is_closed=True),
            results=results,
            declared_results=replace(results, is_closed=True),
        )


def _of_objects(schema: dict[str, Json]) -> dict[str, Json]:
    """Return an input schema that says what holds for every call: arguments are an object.

    A schema that refers to its own root is left as it is, since what stands there in the middle of
    a value need not be an object.
    """
    types = schema.get("type", "object")
    if "object" not in (types if isinstance(types, list) else [types]):
        return schema
    targets = (
        position.keywords.get(each) for position in Subschemas(schema) for each in REFERENCES
    )
    refers_to_root = any(isinstance(each, str) and not each.startswith("#/") for each in targets)
    return schema if refers_to_root else {**schema, "type": "object"}


def judge_flows(old: Boundary, new: Boundary, steps: int) -> dict[Flow, Passage]:
    """Judge the four flows between two contracts.

    Args:
        old: The boundary of the one.
        new: The boundary of the other.
        steps: The budget of each judgement.
    """
    return {
        Flow.OLD_CALLS: _calls(old, new, steps),
        Flow.NEW_RESULTS: _results(new, old, steps),
        Flow.NEW_CALLS: _calls(new, old, steps),
        Flow.OLD_RESULTS: _results(old, new, steps),
    }


def _calls(writer: Boundary, reader: Boundary, steps: int) -> Passage:
    return Passage(
        declared=judge(writer.declared_arguments, reader.declared_arguments, Budget(steps)),
        any=judge(writer.arguments, reader.arguments, Budget(steps)),
    )


def _results(writer: Boundary, reader: Boundary, steps: int) -> Passage:
    return Passage(
        declared=judge(writer.declared_results, reader.results, Budget(steps)),
        any=judge(writer.results, reader.results, Budget(steps)),
        strict=judge(writer.declared_results, reader.declared_results, Budget(steps)),
    )


def is_empty(side: Side, steps: int) -> bool:
    """Tell whether it is proven that no value at all satisfies a schema."""
    nothing = Side(NOTHING, side.dialect)
    return judge(side, nothing, Budget(steps)).verdict is Answer.COMPATIBLE


def is_vacuous(side: Side, declared: Side, steps: int) -> bool:
    """Tell whether values satisfy a schema, but none that holds declared properties alone.

    Of such a side, a proof about declared values says nothing.
    """
    return is_empty(declared, steps) and not is_empty(side, steps)


def worst(judgements: Mapping[Flow, Passage], producer: Producer) -> Answer:
    """Return what becomes of callers who stay on the old version: their calls, and the results."""
    verdicts = {
        judgements[flow].by(producer).verdict for flow in (Flow.OLD_CALLS, Flow.NEW_RESULTS)
    }
    order = (Answer.INCOMPATIBLE, Answer.UNDECIDED, Answer.COMPATIBLE)
    return next(answer for answer in order if answer in verdicts)
