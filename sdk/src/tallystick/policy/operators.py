"""How two JSON values compare: each operator with the values that it fits, and when it holds.

Nothing is converted: `true` is not 1, and "5" is not 5. Numbers compare as they are written. That
needs no decimals here: a JSON number is a double, or an integer that a double holds, doubles keep
the order of what they are written as, and Python compares an integer with a double exactly.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple, cast

from tallystick.canonical import Json
from tallystick.subschema import compile_pattern


class Kind(StrEnum):
    """What a JSON value is; an integer and a double are both numbers."""

    NULL = "null"
    BOOLEAN = "boolean"
    NUMBER = "number"
    STRING = "string"
    LIST = "list"
    OBJECT = "object"
    OTHER = "other"
    """What strict JSON has not: NaN, infinity, a Python object."""


class Operator(StrEnum):
    """How two operands are compared. The last two take the left one alone."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NOT_IN = "not_in"
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    MATCHES = "matches"
    NOT_MATCHES = "not_matches"
    EXISTS = "exists"
    NOT_EXISTS = "not_exists"


ALONE: Final = frozenset({Operator.EXISTS, Operator.NOT_EXISTS})
PATTERNED: Final = frozenset({Operator.MATCHES, Operator.NOT_MATCHES})
ORDERED: Final = frozenset({Operator.GT, Operator.GTE, Operator.LT, Operator.LTE})

_KINDS: Final[Mapping[type, Kind]] = {
    type(None): Kind.NULL,
    bool: Kind.BOOLEAN,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    list: Kind.LIST,
    dict: Kind.OBJECT,
}

_NUMBERS: Final = frozenset({int, float})
_PLAIN: Final = frozenset({bool, str, list, dict})

Test = Callable[[Any, Any], bool]


def kind_of(value: object) -> Kind:
    """Return what a value is."""
    if isinstance(value, float) and not isfinite(value):
        return Kind.OTHER
    return _KINDS.get(cast("type", type(value)), Kind.OTHER)


class Law(NamedTuple):
    """What an operator means.

    Args:
        fits: Whether it can compare two values at all: it never can if one is null.
        holds: Whether it holds of two values that it fits.
    """

    fits: Test
    holds: Test


def same(left: Json, right: Json) -> bool:
    """Return whether two values are one: in lists and objects, too, `true` is not 1."""
    if not _alike(left, right):
        return left is None and right is None
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    return left == right


def differ(left: Json, right: Json) -> bool:
    """Return whether two values are not one."""
    return not same(left, right)


def _any(_left: Json, _right: Json) -> bool:
    return True


def _alike(left: Json, right: Json) -> bool:
    kind = type(left)
    if kind is type(right) and kind in _PLAIN:
        return True
    return _numbers(left, right)


def _numbers(left: Any, right: Any) -> bool:  # noqa: ANN401 -- to find out what they are
    return type(left) in _NUMBERS and type(right) in _NUMBERS and isfinite(left) and isfinite(right)


def _strings(left: Json, right: Json) -> bool:
    return type(left) is str and type(right) is str


def _one_of(left: Json, right: Json) -> bool:
    """Return whether the right is a list that has items of the left's kind, or none at all."""
    if left is None or not isinstance(right, list):
        return False
    return not right or any(_alike(left, item) for item in right)


def _whole_and_part(left: Json, right: Json) -> bool:
    return _strings(left, right) or _one_of(right, left)


def _is_in(left: Json, right: list[Json]) -> bool:
    return any(same(left, item) for item in right)


def _contains(left: Any, right: Any) -> bool:  # noqa: ANN401 -- what fits: two strings, or a list
    return right in left if isinstance(left, str) else _is_in(right, left)


def _is_not_in(left: Json, right: list[Json]) -> bool:
    return not _is_in(left, right)


def _contains_not(left: Any, right: Any) -> bool:  # noqa: ANN401
    return not _contains(left, right)


def _matches(left: str, right: str) -> bool:
    # Linear in the text: the engine has no backtracking, and reading refuses what would need it.
    return compile_pattern(right).is_valid(left)


def _matches_not(left: str, right: str) -> bool:
    return not _matches(left, right)


def _is_there(left: Json, _: Json) -> bool:
    return left is not None


def _is_not_there(left: Json, _: Json) -> bool:
    return left is None


LAWS: Final[Mapping[Operator, Law]] = {
    Operator.EQ: Law(_alike, same),
    Operator.NE: Law(_alike, differ),
    Operator.GT: Law(_numbers, gt),
    Operator.GTE: Law(_numbers, ge),
    Operator.LT: Law(_numbers, lt),
    Operator.LTE: Law(_numbers, le),
    Operator.IN: Law(_one_of, _is_in),
    Operator.NOT_IN: Law(_one_of, _is_not_in),
    Operator.CONTAINS: Law(_whole_and_part, _contains),
    Operator.NOT_CONTAINS: Law(_whole_and_part, _contains_not),
    Operator.STARTS_WITH: Law(_strings, str.startswith),
    Operator.ENDS_WITH: Law(_strings, str.endswith),
    Operator.MATCHES: Law(_strings, _matches),
    Operator.NOT_MATCHES: Law(_strings, _matches_not),
    # Asked of the left value alone, there or not.
    Operator.EXISTS: Law(_any, _is_there),
    Operator.NOT_EXISTS: Law(_any, _is_not_there),
}
assert LAWS.keys() == set(Operator)
