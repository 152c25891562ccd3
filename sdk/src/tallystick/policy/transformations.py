"""What may be made of a value before it is compared: a closed set, each exact or nothing.

A transformation that does not fit its value gives null, which a policy takes for "not there":
nothing is guessed, and a rule that needs the value fires.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal, Inexact
from typing import Final

from tallystick.canonical import INTEGER_MAX, Json, canonical_bytes
from tallystick.policy.operators import Kind, kind_of

TRANSFORMATIONS_MAX: Final = 8

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")
_NUMBER_CHARS_MAX: Final = 64
_EXACT: Final = Context(prec=100, traps=[Inexact])


def transformed(value: Json, names: Iterable[str]) -> Json:
    """Return a value after some of `TRANSFORMATIONS`, in their order; null if one does not fit."""
    for name in names:
        value = TRANSFORMATIONS[name](value)
    return value


def decimal_of(number: float) -> Decimal:
    """Return the number that a JSON number is written as, exactly."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def _lower(value: Json) -> Json:
    return value.lower() if isinstance(value, str) else None


def _upper(value: Json) -> Json:
    return value.upper() if isinstance(value, str) else None


def _trim(value: Json) -> Json:
    return value.strip() if isinstance(value, str) else None


def _text(value: Json) -> Json:
    match kind_of(value):
        case Kind.STRING:
            return value
        case Kind.NUMBER | Kind.BOOLEAN:
            return canonical_bytes(value).decode()
        case _:
            return None


def _number(value: Json) -> Json:
    if kind_of(value) is Kind.NUMBER:
        return value
    if not isinstance(value, str) or len(value) > _NUMBER_CHARS_MAX:
        return None
    return _json_number(Decimal(value)) if _NUMBER.fullmatch(value) else None


def _length(value: Json) -> Json:
    return len(value) if isinstance(value, str | list | dict) else None


def _first(value: Json) -> Json:
    return value[0] if isinstance(value, list) and value else None


def _last(value: Json) -> Json:
    return value[-1] if isinstance(value, list) and value else None


def _sum(value: Json) -> Json:
    total = Decimal(0)
    numbers = _numbers(value)
    if numbers is None:
        return None
    try:
        for number in numbers:
            total = _EXACT.add(total, decimal_of(number))
    except Inexact:
        return None
    return _json_number(total)


def _least(value: Json) -> Json:
    numbers = _numbers(value)
    return min(numbers) if numbers else None


def _greatest(value: Json) -> Json:
    numbers = _numbers(value)
    return max(numbers) if numbers else None


def _numbers(value: Json) -> Sequence[float] | None:
    if not isinstance(value, list):
        return None
    numbers = [
        each for each in value if isinstance(each, int | float) and kind_of(each) is Kind.NUMBER
    ]
    return numbers if len(numbers) == len(value) else None


def _json_number(number: Decimal) -> Json:
    """Return a number as JSON holds it; null if JSON cannot hold it exactly."""
    if number.copy_abs() > INTEGER_MAX:
        return None
    if number == number.to_integral_value():
        return int(number)
    double = float(number)
    return double if decimal_of(double) == number else None


TRANSFORMATIONS: Final[Mapping[str, Callable[[Json], Json]]] = {
    "lower": _lower,
    "upper": _upper,
    "trim": _trim,
    "text": _text,
    "number": _number,
    "length": _length,
    "first": _first,
    "last": _last,
    "sum": _sum,
    "min": _least,
    "max": _greatest,
}
