"""What a contract document must be: its own schema, and the rules that no schema can say.

Pure, but for reading the schema that ships with the package.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

from tallystick.canonical import (
    Json,
    MalformedJson,
    canonical_bytes,
    check_json,
    parse_json,
    pointer_join,
    pointer_split,
)
from tallystick.document import DOCUMENT_BYTES_MAX
from tallystick.effect_class import TRAITS, EffectClass
from tallystick.errors import InvalidContract, TooLarge
from tallystick.schema import DRAFT_2020_12, Validator, Violation, check_schema
from tallystick.subschema import Position, Subschemas, dialect_named

# What stands before an @ within the authority (RFC 3986, 3.2.1).
_NAMES_A_USER: Final = re.compile(r"https?://[^/?#]*@")


@cache
def contract_schema() -> dict[str, Json]:
    """Return the JSON Schema of the contract document itself, for editors too."""
    text = files("tallystick").joinpath("contract.schema.json").read_bytes()
    return cast("dict[str, Json]", parse_json(text))


def checked(document: object) -> dict[str, Any]:
    """Return a copy of a document that obeys every rule.

    Raises:
        InvalidContract: It breaks one, with the JSON Pointer of the offending place.
        TooLarge: It, or one of its schemas, exceeds its size limit.
    """
    strict = _strict(document)
    if len(canonical_bytes(strict)) > DOCUMENT_BYTES_MAX:
        raise TooLarge(f"a contract is larger than {DOCUMENT_BYTES_MAX} bytes", pointer="")
    if isinstance(strict, dict) and isinstance(strict.get("version"), int | float):
        raise InvalidContract('the version must be a string: quote it, "1.0"', pointer="/version")
    for violation in _contract_validator().violations(strict):
        raise InvalidContract(_sentence(violation), pointer=violation.pointer)
    fields = cast("dict[str, Any]", strict)
    dialect = dialect_of(fields)
    for schema in ("input_schema", "output_schema"):
        if schema in fields:
            check_schema(fields[schema], dialect=dialect, pointer=f"/{schema}")
    for rule in (
        _check_effect_class,
        _check_identity,
        _check_identifiers,
        _check_errors,
        _check_evidence,
    ):
        rule(fields)
    return fields


def _check_effect_class(fields: Mapping[str, Any]) -> None:
    effect_class = EffectClass(fields["effect_class"])
    traits = TRAITS[effect_class]
    if traits.key_required and "idempotency" not in fields:
        raise InvalidContract(
            f"{effect_class} needs the place, the retention and the conflict answer of its key",
            pointer="/idempotency",
        )
    if traits.key_required and "conflict" not in fields["idempotency"]:
        raise InvalidContract(
            f"{effect_class} needs the provider's answer to the same key with another body",
            pointer="/idempotency/conflict",
        )
    if not traits.automatic_retry and fields.get("attempts_max", 1) != 1:
        raise InvalidContract(f"{effect_class} allows one attempt", pointer="/attempts_max")
    if effect_class is not EffectClass.REPLAYABLE and fields.get("max_duplicates"):
        raise InvalidContract(f"{effect_class} allows no duplicates", pointer="/max_duplicates")


def _check_identity(fields: Mapping[str, Any]) -> None:
    declared = fields["input_schema"].get("properties", {})
    for index, name in enumerate(fields.get("identity_fields", ())):
        if name not in declared:
            raise InvalidContract(
                "an identity field must be a property of the input schema",
                pointer=pointer_join("identity_fields", index),
            )


def _check_identifiers(fields: Mapping[str, Any]) -> None:
    positions = Subschemas(fields["input_schema"])
    for field in ("ownership", "returned"):
        for index, entry in enumerate(fields.get(field, ())):
            if not _can_be_there(positions, entry["argument"]):
                raise InvalidContract(
                    "the input schema declares no such argument",
                    pointer=pointer_join(field, index, "argument"),
                )
            if entry.get("tool") == fields["name"] and fields["effect_class"] != EffectClass.PURE:
                raise InvalidContract(
                    "only a PURE tool is asked who owns an object",
                    pointer=pointer_join(field, index, "tool"),
                )


def _can_be_there(positions: Subschemas, pointer: str) -> bool:
    """Tell whether arguments that send only what is declared can have something at a pointer.

    Where nothing at all is declared of a place, anything can be there.
    """
    here = _with_items(positions, [positions.root])
    for token in pointer_split(pointer):
        inside = [each for one in here for each in positions.member(one, token)]
        inside += [each for one in here if token.isdigit() for each in positions.item(one, 0)]
        if not inside:
            return all(map(_may_hold_anything, here))
        here = _with_items(positions, inside)
    return any(each.schema is not False for each in here)


def _may_hold_anything(position: Position) -> bool:
    stated = position.keywords.get("type", "object")
    types = stated if isinstance(stated, list) else [stated]
    return "properties" not in position.keywords and ("object" in types or "array" in types)


def _with_items(positions: Subschemas, start: list[Position]) -> list[Position]:
    """Return what applies to a value, or to an item if it is an array, at any depth."""
    found = positions.closure(start)
    items = [each for one in found for each in positions.item(one, 0)]
    known = {each.pointer for each in found}
    if all(each.pointer in known for each in items):
        return found
    return _with_items(positions, [*found, *items])


def _check_errors(fields: Mapping[str, Any]) -> None:
    taken: set[str] = set()
    for index, error in enumerate(fields.get("errors", ())):
        if error["code"] in taken:
            raise InvalidContract(
                "an error code has two meanings", pointer=pointer_join("errors", index, "code")
            )
        taken.add(error["code"])


def _check_evidence(fields: Mapping[str, Any]) -> None:
    evidence = fields.get("evidence", {})
    for source, parts in (("http", ("http", "answer")), ("plugin", ("plugin",))):
        for part in parts:
            if part in evidence and evidence["source"] != source:
                raise InvalidContract(
                    f"it belongs to the source {source}, and the contract names another",
                    pointer=pointer_join("evidence", part),
                )
    for part in ("http", "listing"):
        if _NAMES_A_USER.match(evidence.get(part, {}).get("url", "")):
            raise InvalidContract(
                "the address names a user, for every reader to see: a secret goes in a credential"
                " slot",
                pointer=pointer_join("evidence", part, "url"),
            )
    if "listing" in evidence and fields["effect_class"] == EffectClass.PURE:
        raise InvalidContract(
            "a PURE tool leaves nothing that a provider could list", pointer="/evidence/listing"
        )
    if "idempotency" not in fields:
        _check_no_key(evidence)


def _check_no_key(evidence: Mapping[str, Any]) -> None:
    if "{idempotency_key}" in evidence.get("http", {}).get("url", ""):
        raise InvalidContract(
            "the contract has no idempotency key to ask by", pointer="/evidence/http/url"
        )
    for part in ("answer", "listing"):
        if evidence.get(part, {}).get("bind", {}).get("equals") == "idempotency_key":
            raise InvalidContract(
                "the contract has no idempotency key to ask by",
                pointer=pointer_join("evidence", part, "bind", "equals"),
            )


def dialect_of(fields: Mapping[str, Any]) -> str:
    """Return the dialect of both schemas: what a document says, or else its input schema."""
    stated = fields.get("dialect", fields["input_schema"].get("$schema", DRAFT_2020_12))
    return dialect_named(str(stated)) or DRAFT_2020_12


def _strict(document: object) -> Json:
    try:
        return check_json(document)
    except MalformedJson as error:
        raise InvalidContract(error.detail, pointer=error.pointer) from None


def _sentence(violation: Violation) -> str:
    field = pointer_split(violation.pointer)[-1:]
    return f"{field[0]}: {violation.message}" if field else violation.message


@cache
def _contract_validator() -> Validator:
    return Validator.of(contract_schema())
