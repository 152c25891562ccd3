"""Compares what people have at hand: two contracts, or two bare schemas.

The answer is JSON, and the same whoever gives it: the command on files, or the service.
"""

from dataclasses import dataclass

from tallystick.canonical import Json
from tallystick.compatibility.changes.change import Direction
from tallystick.compatibility.changes.listing import agreeing
from tallystick.compatibility.comparison import compare
from tallystick.compatibility.contracts.comparison import compare_contracts
from tallystick.compatibility.verdict import Producer
from tallystick.contract_rules import dialect_of
from tallystick.errors import InvalidRequest
from tallystick.schema import check_schema
from tallystick.tool_contract import Contract


@dataclass(frozen=True, slots=True)
class BareSchema:
    """A JSON Schema that belongs to no contract."""

    schema: Json


def read_document(document: Json) -> Contract | BareSchema:
    """Read a contract, which is what has an `input_schema`, or else a JSON Schema.

    Raises:
        InvalidContract: It is no contract, or no schema of its dialect.
        TooLarge: It exceeds its size limit.
    """
    if isinstance(document, dict) and "input_schema" in document:
        return Contract.parse(document)
    stated = document if isinstance(document, dict) else {}
    check_schema(document, dialect=dialect_of({"input_schema": stated}), pointer="")
    return BareSchema(document)


def compare_documents(
    old: Contract | BareSchema, new: Contract | BareSchema, producer: Producer = Producer.DECLARED
) -> dict[str, Json]:
    """Compare two contracts, or two schemas; `compared` in the answer says which.

    Raises:
        InvalidRequest: One is a contract and the other one is a schema.
    """
    if isinstance(old, Contract) and isinstance(new, Contract):
        return compare_contracts(old, new).to_json(producer)
    if isinstance(old, BareSchema) and isinstance(new, BareSchema):
        return _compare_schemas(old.schema, new.schema, producer)
    raise InvalidRequest("A contract is compared with a contract, and a schema with a schema.")


def _compare_schemas(old: Json, new: Json, producer: Producer) -> dict[str, Json]:
    forth, back = compare(old, new, producer), compare(new, old, producer)
    changes = agreeing(forth.changes, {Direction.NEW_TO_OLD: back.verdict})
    return {
        "compared": "schemas",
        "producer": producer.value,
        "verdict": forth.verdict.value,
        "old_to_new": {"declared": forth.declared.to_json(), "any": forth.any.to_json()},
        "new_to_old": {"declared": back.declared.to_json(), "any": back.any.to_json()},
        "changes": [each.to_json() for each in changes],
    }
