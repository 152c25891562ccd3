"""The second gate: what a model sent is the arguments of the contract, and nothing else.

Arguments come as an object or as the JSON text of one, as the providers send them. They are read
strictly, and held to the recorded schema under the `declared` producer model: what the schema does
not declare is refused, also where the schema is open.
"""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, cast

from tallystick.canonical import Json, MalformedJson, check_json, parse_json, pointer_split
from tallystick.compatibility.forms.dialect import localised, modern
from tallystick.compatibility.forms.producer import close
from tallystick.errors import InvalidArguments, TooLarge
from tallystick.schema import Validator
from tallystick.subschema import DRAFT_2020_12
from tallystick.tool_contract import Contract
from tallystick.violation import Violation

FAULTS_TOLD_MAX: Final = 10
ARGUMENTS_CHARS_MAX: Final = 1024 * 1024

_PLACE_CHARS_MAX: Final = 80
_OPERAND_CHARS_MAX: Final = 200


def accepted(contract: Contract, arguments: object) -> dict[str, Json]:
    """Return a strict copy of the arguments of a call.

    Args:
        contract: The contract that they have to match.
        arguments: An object, or the JSON text of one; an empty text means no arguments.

    Raises:
        InvalidArguments: They are not JSON, not an object, or break the contract. The sentence
            names each fault by its place in the manner of Pydantic, and quotes no value.
    """
    value = parsed(contract, arguments)
    check_arguments(contract, value)
    return value


def check_arguments(contract: Contract, arguments: dict[str, Json]) -> None:
    """Refuse arguments that break the contract, or have what it does not declare.

    Raises:
        InvalidArguments: As `accepted`.
    """
    found = closed_validator(contract).violations(arguments)
    if found:
        raise InvalidArguments(
            f"Invalid arguments for {contract.name}: {_told(found)}", pointer=found[0].pointer
        )


def closed_arguments(contract: Contract) -> Json:
    """Return the input schema in 2020-12 with nothing extra allowed, as `accepted` asserts it.

    A schema whose references make too many schemas of it stays as it is written.
    """
    try:
        return close(localised(modern(contract.input_schema, contract.dialect)))
    except TooLarge:
        return contract.input_schema


@lru_cache(maxsize=1024)
def closed_validator(contract: Contract) -> Validator:
    """Return what judges the arguments of a contract; equal contracts share it."""
    closed = closed_arguments(contract)
    dialect = contract.dialect if closed is contract.input_schema else DRAFT_2020_12
    return Validator.of(closed, dialect, contract.assert_format)


def parsed(contract: Contract, arguments: object) -> dict[str, Json]:
    """Return a strict copy of an object, or of the one that a JSON text has.

    Raises:
        InvalidArguments: It is neither.
    """
    try:
        value = _strict(arguments)
    except MalformedJson as error:
        place = f"{_place(error.pointer)}: " if error.pointer else "the arguments are "
        raise InvalidArguments(
            f"Invalid arguments for {contract.name}: {place}{error.detail}",
            pointer=error.pointer,
        ) from None
    if not isinstance(value, dict):
        raise InvalidArguments(
            f"Invalid arguments for {contract.name}: the arguments must be an object", pointer=""
        )
    return value


def _strict(arguments: object) -> Json:
    if isinstance(arguments, str):
        if len(arguments) > ARGUMENTS_CHARS_MAX:
            raise MalformedJson(f"longer than {ARGUMENTS_CHARS_MAX} characters")
        return parse_json(arguments) if arguments.strip() else {}
    if isinstance(arguments, Mapping):
        return check_json(dict(cast("Mapping[object, object]", arguments)))
    return check_json(arguments)


def _told(violations: tuple[Violation, ...]) -> str:
    told = [f"{_place(each.pointer)}: {_sentence(each)}" for each in violations[:FAULTS_TOLD_MAX]]
    more = len(violations) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")


def _place(pointer: str) -> str:
    """Return a place as Pydantic writes it: `items.0.sku`. Its names may be a model's own."""
    place = ".".join(pointer_split(pointer)) or "arguments"
    return place if len(place) <= _PLACE_CHARS_MAX else f"{place[:_PLACE_CHARS_MAX]}…"


# --- sentences ------------------------------------------------------------------------------------

_TYPES: Final = {
    "array": "list",
    "boolean": "boolean",
    "integer": "integer",
    "null": "null",
    "number": "number",
    "object": "object",
    "string": "string",
}


def _type(operand: Any) -> str:  # noqa: ANN401 - what the engine read of the schema
    names = sorted(_TYPES[str(each)] for each in operand)
    names.sort(key="null".__eq__)  # "a string or null", not the other way round
    return f"Input should be a valid {' or '.join(names)}"


def _counted(bound: str, noun: str) -> Callable[[Any], str]:
    return lambda limit: f"should have at {bound} {limit} {noun}{'' if limit == 1 else 's'}"


_SENTENCES: Final[Mapping[str, Callable[[Any], str]]] = {
    "additionalProperties": lambda _: "Extra inputs are not permitted",
    "unevaluatedProperties": lambda _: "Extra inputs are not permitted",
    "false schema": lambda _: "Extra inputs are not permitted",
    "required": lambda _: "Field required",
    "type": _type,
    "pattern": lambda pattern: f"String should match pattern '{_cut(pattern)}'",
    "format": lambda name: f"Input should be a valid {name}",
    "const": lambda value: f"Input should be {_quoted(value)}",
    "enum": lambda values: f"Input should be {' or '.join(map(_quoted, values))}",
    "minLength": lambda limit: f"String {_counted('least', 'character')(limit)}",
    "maxLength": lambda limit: f"String {_counted('most', 'character')(limit)}",
    "minItems": lambda limit: f"List {_counted('least', 'item')(limit)}",
    "maxItems": lambda limit: f"List {_counted('most', 'item')(limit)}",
    "minProperties": lambda limit: f"Object {_counted('least', 'member')(limit)}",
    "maxProperties": lambda limit: f"Object {_counted('most', 'member')(limit)}",
    "uniqueItems": lambda _: "List should have no item twice",
    "minimum": lambda limit: f"Input should be greater than or equal to {limit}",
    "maximum": lambda limit: f"Input should be less than or equal to {limit}",
    "exclusiveMinimum": lambda limit: f"Input should be greater than {limit}",
    "exclusiveMaximum": lambda limit: f"Input should be less than {limit}",
    "multipleOf": lambda factor: f"Input should be a multiple of {factor}",
    "anyOf": lambda _: "Input should match one of the forms that are allowed here",
    "oneOf": lambda _: "Input should match exactly one of the forms that are allowed here",
    "propertyNames": lambda _: "A name of a member is not allowed",
}


def _sentence(violation: Violation) -> str:
    told = _SENTENCES.get(violation.keyword)
    return violation.message if told is None else _cut(told(violation.operand))


def _quoted(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else json.dumps(value)


def _cut(text: str) -> str:
    return text if len(text) <= _OPERAND_CHARS_MAX else f"{text[:_OPERAND_CHARS_MAX]}…"
