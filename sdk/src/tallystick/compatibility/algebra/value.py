"""JSON values as keys: hashable, and equal exactly if JSON Schema calls the values equal.

`1` and `1.0` are equal, `1` and `true` are not. Numbers are exact: a double means the shortest
decimal that denotes it, as it stands in the text.
"""

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from typing import Final, cast

from tallystick.canonical import Json

Key = None | str | int | Fraction | tuple["Key", ...]
"""A value's key. Compound values and booleans are tuples, and begin with their type."""

_BOOLEAN: Final = "boolean"
_ARRAY: Final = "array"
_OBJECT: Final = "object"


class Kind(StrEnum):
    """The types of JSON values; an integer is a number that is a multiple of one."""

    NULL = "null"
    BOOLEAN = "boolean"
    NUMBER = "number"
    STRING = "string"
    ARRAY = "array"
    OBJECT = "object"


ALL_KINDS: Final = frozenset(Kind)


def key_of(value: Json) -> Key:
    """Return a value's key.

    Raises:
        ValueError: A number is not finite.
    """
    match value:
        case bool():
            return (_BOOLEAN, int(value))
        case None | str() | int():
            return value
        case float():
            return number_of(value)
        case list():
            return (_ARRAY, *map(key_of, value))
        case dict():
            members = sorted(value.items())
            return (_OBJECT, *((name, key_of(member)) for name, member in members))


def value_of(key: Key) -> Json:
    """Return the value that a key stands for."""
    match key:
        case Fraction():
            return number_value(key)
        case tuple():
            kind, *parts = key
            if kind == _BOOLEAN:
                return bool(parts[0])
            if kind == _ARRAY:
                return [value_of(part) for part in parts]
            members = cast("list[tuple[str, Key]]", parts)
            return {name: value_of(member) for name, member in members}
        case _:
            return key


def kind_of(value: Json) -> Kind:
    """Return the type of a value."""
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.BOOLEAN
        case int() | float():
            return Kind.NUMBER
        case str():
            return Kind.STRING
        case list():
            return Kind.ARRAY
        case dict():
            return Kind.OBJECT


def kind_of_key(key: Key) -> Kind:
    """Return the type of the value that a key stands for."""
    match key:
        case None:
            return Kind.NULL
        case int() | Fraction():
            return Kind.NUMBER
        case str():
            return Kind.STRING
        case tuple():
            return Kind(cast("str", key[0]))


def number_of(value: float) -> int | Fraction:
    """Return a number exactly as its shortest decimal says it.

    Raises:
        ValueError: It is not finite.
    """
    if isinstance(value, int):
        return value
    if not isfinite(value):
        raise ValueError("a number is not finite")
    exact = Fraction(repr(value))
    return exact.numerator if exact.denominator == 1 else exact


def number_value(number: int | Fraction) -> int | float:
    """Return the JSON number nearest to an exact one.

    Raises:
        OverflowError: It is no integer, and beyond all doubles.
    """
    exact = Fraction(number)
    return exact.numerator if exact.denominator == 1 else float(exact)


def keys_of(values: Iterable[Json]) -> frozenset[Key]:
    """Return the keys of values.

    Raises:
        ValueError: A number is not finite.
    """
    return frozenset(key_of(value) for value in values)
