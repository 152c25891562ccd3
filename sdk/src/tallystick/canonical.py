"""Strict JSON in, canonical JSON out: the one way in which bytes become values and digests.

Values are read as I-JSON (RFC 7493) and written in the JSON Canonicalization Scheme (RFC 8785), so
that two parties who hold the same value hold the same digest. A fault is located with a JSON
Pointer (RFC 6901). Pure: nothing here reads a file or a clock.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import Any, Final, TypeAlias, cast

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

DEPTH_MAX: Final = 128
INTEGER_MAX: Final = 2**53 - 1

# RFC 8785 writes a whole number below this as an integer, and above it with an exponent.
_EXPONENT_FORM_MIN: Final = 1e21
_INTEGER_CHARS_MAX: Final = len(str(-INTEGER_MAX))

_FORBIDDEN_CHAR: Final = re.compile("[\0\ud800-\udfff]")
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_CLOSER: Final = {"[": "]", "{": "}"}
_ARRAY_INDEX: Final = re.compile("0|[1-9][0-9]*")


class MalformedJson(ValueError):
    """A text or value is not strict JSON.

    Not a refusal: only the caller knows what was being read.

    Args:
        detail: What is wrong, in one sentence that quotes no value.
        pointer: Where, as a JSON Pointer; empty for the whole document.
    """

    def __init__(self, detail: str, pointer: str = "") -> None:
        super().__init__(detail, pointer)
        self.detail = detail
        self.pointer = pointer

    def __str__(self) -> str:
        return f"{self.detail} (at {self.pointer!r})" if self.pointer else self.detail


class Missing(Enum):
    """The type of `MISSING`, which no JSON value equals."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


def parse_json(text: str | bytes, *, depth_max: int = DEPTH_MAX) -> Json:
    """Read one strict JSON text (I-JSON, RFC 7493).

    Refused beside what JSON itself forbids: bytes that are not UTF-8, duplicate keys, NaN and
    Infinity, numbers that a double cannot hold, integers beyond ±(2^53-1) in whichever way they are
    written, lone surrogates, the character NUL, and containers nested more than `depth_max` deep.
    Whatever is accepted comes back equal from its canonical form.

    Raises:
        MalformedJson: With the pointer to the first fault.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise MalformedJson(f"byte {error.start} is not UTF-8") from None
    return _Walk(depth_max).visit(_read(text, depth_max))


def check_json(value: object, *, depth_max: int = DEPTH_MAX) -> Json:
    """Return a copy of a Python value that obeys the rules of `parse_json`.

    Raises:
        MalformedJson: With the pointer to the first fault, which may be a type that JSON lacks.
    """
    plain = _plain_copy(value, depth_max)
    return _Walk(depth_max).visit(value) if isinstance(plain, Missing) else plain


def _plain_copy(value: Any, depth: int) -> Json | Missing:  # noqa: ANN401 - any Python value
    """Return a copy of what is strict beyond doubt, in a third of the time that the walk takes.

    `MISSING` stands for everything else: what has a fault, and what takes a closer look.
    """
    kind = cast("type[object]", type(value))
    if kind is str:
        return value if value.isascii() and "\0" not in value else MISSING
    if kind is int or kind is float:
        return value if -INTEGER_MAX <= value <= INTEGER_MAX else MISSING
    if kind is dict and depth:
        members: dict[str, Json] = {}
        for name, item in value.items():
            copy = _plain_copy(item, depth - 1)
            if copy is MISSING or type(name) is not str or not name.isascii() or "\0" in name:
                return MISSING
            members[name] = copy
        return members
    if kind is list and depth:
        items = [_plain_copy(item, depth - 1) for item in value]
        return MISSING if MISSING in items else cast("list[Json]", items)
    return value if value is None or kind is bool else MISSING


def canonical_bytes(value: Json) -> bytes:
    """Write a value in canonical form (RFC 8785), UTF-8.

    Raises:
        MalformedJson: The value is not strict JSON.
    """
    import rfc8785

    try:
        return rfc8785.dumps(cast("Any", value))
    except (ValueError, RecursionError):
        check_json(value)  # names the place of the fault
        raise


def canonical_object(members: Mapping[str, Json]) -> dict[str, Json]:
    """Return a strict object as `parse_json` reads its canonical form, in a fraction of the time.

    All members are in the canonical order, and all whole numbers are integers, so that a serializer
    makes the same bytes of all objects that are equal.
    """
    # RFC 8785 orders names by their UTF-16 code units, which ASCII alone has in order.
    names = sorted(members, key=None if all(map(str.isascii, members)) else _utf_16)
    return {name: _canonical(members[name]) for name in names}


def _canonical(value: Json) -> Json:
    match value:
        case dict():
            return canonical_object(value)
        case list():
            return [_canonical(item) for item in value]
        case float() if value.is_integer() and abs(value) <= INTEGER_MAX:
            return int(value)
        case _:
            return value


def _utf_16(name: str) -> bytes:
    return name.encode("utf-16-be")


def digest(value: Json) -> str:
    """Return the SHA-256 of the canonical form, as `sha256:` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(canonical_bytes(value)).hexdigest()}"


def values_in(value: Json) -> Iterator[Json]:
    """Yield a value and every value that it is made of, in no particular order."""
    pending = [value]
    while pending:
        found = pending.pop()
        yield found
        if isinstance(found, dict):
            pending.extend(found.values())
        elif isinstance(found, list):
            pending.extend(found)


def count_values(value: Json, limit: int) -> int:
    """Return of how many values a value is made: of more than a limit, one more than that."""
    return sum(1 for _ in islice(values_in(value), max(limit + 1, 0)))


def pointer_join(*tokens: str | int) -> str:
    """Write reference tokens as a JSON Pointer (RFC 6901)."""
    return "".join(["/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens])


def pointer_split(pointer: str) -> tuple[str, ...]:
    """Read a JSON Pointer into its reference tokens (RFC 6901).

    Raises:
        ValueError: It is not a JSON Pointer.
    """
    head, *tokens = pointer.split("/")
    if head or re.search("~(?![01])", pointer):
        raise ValueError(f"not a JSON Pointer: {pointer!r}")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def resolve_pointer(value: Json, pointer: str) -> Json | Missing:
    """Return what a JSON Pointer (RFC 6901) points at, or `MISSING`.

    Raises:
        ValueError: It is not a JSON Pointer.
    """
    for token in pointer_split(pointer):
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif (
            isinstance(value, list)
            and _ARRAY_INDEX.fullmatch(token)
            and len(token) <= _INTEGER_CHARS_MAX
            and int(token) < len(value)
        ):
            value = value[int(token)]
        else:
            return MISSING
    return value


# --- reading: the decoder leaves a mark at every fault, the walk gives it its pointer -------------


class _Fault:
    """A mark for something that the decoder met and Python has no strict value for."""

    def __init__(self, detail: str) -> None:
        self.detail = detail


class _Pairs(list[tuple[str, object]]):
    """An object as it was written, duplicate keys and all."""


def _read_integer(text: str) -> object:
    # Python refuses, and would take quadratic time over, very long runs of digits.
    return int(text) if len(text) <= _INTEGER_CHARS_MAX else _Fault(_INTEGER_BEYOND)


_INTEGER_BEYOND: Final = "an integer beyond ±(2^53-1) is not exact everywhere: use a string"
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Pairs,
    parse_int=_read_integer,
    parse_constant=lambda name: _Fault(f"{name} is not JSON"),
)


def _read(text: str, depth_max: int) -> object:
    fragment = _too_deep(text, depth_max)
    try:
        value = _DECODER.decode(fragment or text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise MalformedJson(f"not JSON: {error.msg}, {where}") from None
    if fragment is not None:
        raise MalformedJson(f"nested more than {depth_max} deep", _last_pointer(value))
    return value


def _too_deep(text: str, depth_max: int) -> str | None:
    """Return the text up to its first container that is too deep, closed; or None.

    The decoder is recursive, so that depth must be known before it runs.
    """
    if text.count("[") + text.count("{") <= depth_max:
        return None
    closers: list[str] = []
    for match in _STRING_OR_BRACKET.finditer(text):
        token = match[0]
        if token in _CLOSER:
            if len(closers) == depth_max:
                return text[: match.start()] + "null" + "".join(reversed(closers))
            closers.append(_CLOSER[token])
        elif token in "]}" and closers:
            closers.pop()
    return None


def _last_pointer(value: object) -> str:
    tokens: list[str | int] = []
    while isinstance(value, list) and value:
        items = cast("list[Any]", value)
        token, value = items[-1] if isinstance(value, _Pairs) else (len(items) - 1, items[-1])
        tokens.append(token)
    return pointer_join(*tokens)


class _Walk:
    """Visits a value once, copies it, and raises at the first fault."""

    def __init__(self, depth_max: int) -> None:
        self._depth_max = depth_max
        self._path: list[str | int] = []

    def visit(self, value: object) -> Json:
        match value:
            case str():
                return self._string(value)
            case _Pairs():
                return self._object(value)
            case dict():
                return self._object(list(cast("dict[object, object]", value).items()))
            case list():
                return self._array(cast("list[object]", value))
            case None | bool():
                return value
            case int():
                return self._integer(value)
            case float():
                return self._float(value)
            case _Fault():
                raise self._fault(value.detail)
            case _:
                raise self._fault(f"a Python {type(value).__name__} is not JSON")

    def _fault(self, detail: str) -> MalformedJson:
        return MalformedJson(detail, pointer_join(*self._path))

    def _string(self, value: str) -> str:
        # Not str(value): an enumeration's own __str__ may be another text.
        text = str.__str__(value)
        if not text.isascii() or "\0" in text:
            found = _FORBIDDEN_CHAR.search(text)
            if found is not None:
                name = "the character NUL" if found[0] == "\0" else "a lone surrogate"
                raise self._fault(f"a string holds {name} (U+{ord(found[0]):04X})")
        return text

    def _integer(self, value: int) -> int:
        if abs(value) > INTEGER_MAX:
            raise self._fault(_INTEGER_BEYOND)
        return int(value)

    def _float(self, value: float) -> float:
        if not math.isfinite(value):
            raise self._fault("a number that a double cannot hold")
        if INTEGER_MAX < abs(value) < _EXPONENT_FORM_MIN:
            raise self._fault(_INTEGER_BEYOND)
        return float(value)

    def _enter(self) -> None:
        if len(self._path) >= self._depth_max:
            raise self._fault(f"nested more than {self._depth_max} deep")

    def _array(self, items: list[object]) -> list[Json]:
        self._enter()
        result: list[Json] = []
        for index, item in enumerate(items):
            self._path.append(index)
            result.append(self.visit(item))
            self._path.pop()
        return result

    def _object(self, pairs: list[tuple[str, object]] | list[tuple[object, object]]) -> Json:
        self._enter()
        result: dict[str, Json] = {}
        for key, item in pairs:
            if not isinstance(key, str):
                raise self._fault("an object has a key that is not a string")
            name = self._string(key)
            self._path.append(name)
            if name in result:
                raise self._fault("a key that the object has already")
            result[name] = self.visit(item)
            self._path.pop()
        return result
