"""The JSON forms of a `Decimal`: a number within its bounds, or a text of so many digits.

What a value may be comes from Pydantic's constraints, https://docs.pydantic.dev/latest/api/types/.
Patterns run in linear time. Two things are wider here than in Pydantic, since JSON Schema cannot
say them briefly: a text keeps no bound but that of zero, and a number keeps no limit of digits if
decimal places are not limited too.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from tallystick.canonical import INTEGER_MAX, Json

_BOUNDS: Final = {
    "ge": "minimum",
    "le": "maximum",
    "gt": "exclusiveMinimum",
    "lt": "exclusiveMaximum",
}
_EXPONENT: Final = "[eE][+-]?[0-9]+"


def decimal_number(limits: Mapping[str, Any]) -> dict[str, Json]:
    """Return the schema of the JSON numbers that a `Decimal` of these limits is made of.

    Args:
        limits: Pydantic's `decimal` core schema.
    """
    bounds = {word: _exact(limits[key]) for key, word in _BOUNDS.items() if limits.get(key)}
    bounds |= {word: Fraction(0) for key, word in _BOUNDS.items() if limits.get(key) == 0}
    digits, places = limits.get("max_digits"), limits.get("decimal_places")
    if digits is not None:
        beyond = Fraction(10) ** max(0, digits - (places or 0))
        bounds["exclusiveMinimum"] = max(-beyond, bounds.get("exclusiveMinimum", -beyond))
        bounds["exclusiveMaximum"] = min(beyond, bounds.get("exclusiveMaximum", beyond))
    steps = [Fraction(1, 10**places)] if places is not None else []
    if limits.get("multiple_of"):
        steps.append(_exact(limits["multiple_of"]))
    schema: dict[str, Json] = {"type": "number"}
    schema |= {word: _number(bound) for word, bound in bounds.items()}
    if steps:
        schema["multipleOf"] = _number(_common_multiple(steps))
    return schema


def decimal_text(limits: Mapping[str, Any], *, is_result: bool) -> dict[str, Json]:
    """Return the schema of the texts that a `Decimal` of these limits is made of.

    Args:
        limits: Pydantic's `decimal` core schema.
        is_result: Whether Python writes the text, which may use an exponent for any value.
    """
    digits, places = limits.get("max_digits"), limits.get("decimal_places")
    forms = [*_plain_forms(digits, places)]
    if is_result or (digits is None and places is None):
        forms.append(rf"[0-9]+(?:\.[0-9]+)?{_EXPONENT}")
    if limits.get("allow_inf_nan"):
        forms.append("Infinity|NaN")
    is_positive = any(limits.get(key) is not None and limits[key] >= 0 for key in ("ge", "gt"))
    sign = r"\+?" if is_positive else "[+-]?"
    return {"type": "string", "pattern": f"^{sign}(?:{'|'.join(forms)})$"}


def _plain_forms(digits: int | None, places: int | None) -> list[str]:
    """Return patterns of digits and a point; zeros at either end do not count."""
    if places is None and digits is not None:
        whole = rf"0*[0-9]{{1,{digits}}}(?:\.0*)?"
        split = (rf"0*[0-9]{{{n}}}\.[0-9]{{1,{digits - n}}}0*" for n in range(digits))
        return [whole, *split]
    if places is None:
        return [r"[0-9]+(?:\.[0-9]*)?", r"\.[0-9]+"]
    if digits is None:
        whole, fraction = "[0-9]+", places
    else:
        room, fraction = max(0, digits - places), min(digits, places)
        whole = f"0*[0-9]{{1,{room}}}" if room else "0+"
    if not fraction:
        return [rf"{whole}(?:\.0*)?"]
    return [rf"{whole}(?:\.[0-9]{{0,{fraction}}}0*)?", rf"\.[0-9]{{1,{fraction}}}0*"]


def _exact(value: Decimal | float) -> Fraction:
    return Fraction(str(value))  # by its digits, as Pydantic reads a number


def _common_multiple(steps: list[Fraction]) -> Fraction:
    denominator = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.lcm(*(int(step * denominator) for step in steps)), denominator)


def _number(value: Fraction) -> int | float:
    """Return a number that JSON holds exactly; what is beyond them is not written as a number."""
    bounded = max(-INTEGER_MAX, min(INTEGER_MAX, value))
    return int(bounded) if bounded == int(bounded) else float(bounded)
