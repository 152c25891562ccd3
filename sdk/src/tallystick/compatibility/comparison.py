"""Compares two schemas: a verdict under both producer models, and what changed."""

import json
from dataclasses import dataclass, replace
from itertools import chain

from tallystick.canonical import Json
from tallystick.compatibility.budget import STEPS, Budget
from tallystick.compatibility.changes.change import Change, Direction
from tallystick.compatibility.changes.listing import agreeing, changes
from tallystick.compatibility.judging import Side, judge
from tallystick.compatibility.verdict import (
    Answer,
    Judgement,
    Obstacle,
    Producer,
    Proof,
    Witness,
)
from tallystick.errors import InvalidContract, InvalidRequest, TooLarge
from tallystick.schema import SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX
from tallystick.schema_faults import cost_faults, form_faults
from tallystick.subschema import DRAFT_2020_12, Subschemas, dialect_named


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` answers.

    Args:
        producer: Who was said to write the values: whose judgement `verdict` is.
        declared: The judgement for a producer that writes what is declared.
        any: The judgement for one that writes whatever the old schema lets through.
        changes: What a reviewer reads.
    """

    producer: Producer
    declared: Judgement
    any: Judgement
    changes: tuple[Change, ...]

    @property
    def judgement(self) -> Judgement:
        """The judgement for the producer that was asked about."""
        return self.declared if self.producer is Producer.DECLARED else self.any

    @property
    def verdict(self) -> Answer:
        """Whether everything that the producer of the old schema writes satisfies the new one."""
        return self.judgement.verdict

    @property
    def proof(self) -> Proof | None:
        """Why no value can be a witness, if the verdict is `compatible`."""
        return self.judgement.proof

    @property
    def witness(self) -> Witness | None:
        """A value that no longer satisfies, if the verdict is `incompatible`."""
        return self.judgement.witness

    @property
    def obstacle(self) -> Obstacle | None:
        """What stopped the analysis, if the verdict is `undecided`."""
        return self.judgement.obstacle

    def to_json(self) -> dict[str, Json]:
        """Return the comparison as a JSON object."""
        return {
            "producer": self.producer.value,
            **self.judgement.to_json(),
            "producers": {"declared": self.declared.to_json(), "any": self.any.to_json()},
            "changes": [change.to_json() for change in self.changes],
        }


def compare(
    old: Json,
    new: Json,
    producer: Producer | str = Producer.DECLARED,
    *,
    dialect: str | None = None,
    assert_format: bool = False,
    budget: int = STEPS,
) -> Comparison:
    """Tell whether everything that the producer of the old schema writes satisfies the new one.

    Args:
        old: The schema that the values were written to.
        new: The schema that they are now held to.
        producer: Who writes: `declared` (only what the old schema declares) or `any`.
        dialect: The dialect of both; if not said, what each one says in `$schema`, or 2020-12.
        assert_format: Whether `format` is more than an annotation.
        budget: How many steps each of the two judgements may take.

    Raises:
        InvalidContract: One of them is no schema of its dialect, is nested too deeply, or would
            have the validator run without end.
        TooLarge: One of them is larger than a contract may hold.
        InvalidRequest: There is no such producer.
    """
    try:
        asked = Producer(producer)
    except ValueError:
        raise InvalidRequest("a producer is `declared` or `any`", pointer="/producer") from None
    before, after = (_side(schema, dialect, assert_format) for schema in (old, new))
    closed = judge(replace(before, is_closed=True), replace(after, is_closed=True), Budget(budget))
    as_written = judge(before, after, Budget(budget))
    judged = {Direction.OLD_TO_NEW: (closed if asked is Producer.DECLARED else as_written).verdict}
    listed = changes(
        before.modern,
        after.modern,
        is_closed=asked is Producer.DECLARED,
        assert_format=assert_format,
    )
    return Comparison(asked, closed, as_written, agreeing(listed, judged))


def _side(schema: Json, dialect: str | None, assert_format: bool) -> Side:  # noqa: FBT001
    stated = schema.get("$schema") if isinstance(schema, dict) and dialect is None else dialect
    meant = dialect_named(stated) if isinstance(stated, str) else DRAFT_2020_12
    if meant is None:
        raise InvalidContract(f"no known dialect: {stated}", pointer="/$schema")
    if _depth(schema) > SCHEMA_DEPTH_MAX:
        raise InvalidContract(f"the schema is nested more than {SCHEMA_DEPTH_MAX} deep")
    if len(json.dumps(schema)) > SCHEMA_BYTES_MAX:
        raise TooLarge(f"a schema is larger than {SCHEMA_BYTES_MAX} bytes")
    if not isinstance(schema, dict | bool):
        raise InvalidContract("a schema must be an object or a boolean")
    side = Side(schema, meant, assert_format)
    faults = chain(form_faults(schema, meant), cost_faults(Subschemas(side.modern)))
    for pointer, detail in faults:
        raise InvalidContract(detail, pointer=pointer)
    return side


def _depth(value: Json) -> int:
    """Return how deeply a value is nested, as far as it matters."""
    depth, level = 0, [value]
    while level and depth <= SCHEMA_DEPTH_MAX:
        depth += 1
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
    return depth
