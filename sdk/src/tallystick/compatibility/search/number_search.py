"""Finds a number that obeys bounds and factors, or proves that there is none. Exact."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Final

from tallystick.compatibility.algebra.node import AtLeast, AtMost, MultipleOf, Node, Not, Values
from tallystick.compatibility.algebra.value import key_of, number_value
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.search.outcome import Closed, Found, Outcome, Stuck

_DIGITS_MAX: Final = 30


@dataclass(slots=True)
class Numbers:
    """What is asked of a number.

    Args:
        low: The greatest lower bound, and whether it is exclusive.
        high: The least upper bound, and whether it is exclusive.
        factors: What it must be a multiple of.
        refused: What it must not be a multiple of.
        excluded: What it must not be.
    """

    low: tuple[Fraction, bool] | None = None
    high: tuple[Fraction, bool] | None = None
    factors: list[Fraction] = field(default_factory=list[Fraction])
    refused: list[Fraction] = field(default_factory=list[Fraction])
    excluded: set[Fraction] = field(default_factory=set[Fraction])

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> "Numbers":
        """Gather what atoms, plain and negated, ask of a number."""
        numbers = cls()
        for node in nodes:
            match node:
                case AtLeast(bound, is_exclusive):
                    numbers._raise(bound, is_exclusive)
                case Not(AtMost(bound, is_exclusive)):
                    numbers._raise(bound, not is_exclusive)
                case AtMost(bound, is_exclusive):
                    numbers._lower(bound, is_exclusive)
                case Not(AtLeast(bound, is_exclusive)):
                    numbers._lower(bound, not is_exclusive)
                case MultipleOf(factor):
                    numbers.factors.append(factor)
                case Not(MultipleOf(factor)):
                    numbers.refused.append(factor)
                case Not(Values(keys)):
                    numbers.excluded.update(
                        Fraction(key) for key in keys if isinstance(key, int | Fraction)
                    )
                case _:
                    pass
        return numbers

    def _raise(self, bound: Fraction, is_exclusive: bool) -> None:  # noqa: FBT001
        self.low = (
            (bound, is_exclusive) if self.low is None else max(self.low, (bound, is_exclusive))
        )

    def _lower(self, bound: Fraction, is_exclusive: bool) -> None:  # noqa: FBT001
        # Of two equal upper bounds the exclusive one is the lesser.
        if self.high is None or (bound, not is_exclusive) < (self.high[0], not self.high[1]):
            self.high = (bound, is_exclusive)

    def admits(self, number: Fraction) -> bool:
        """Tell whether a number is as asked."""
        return (
            (
                self.low is None
                or number > self.low[0]
                or (number == self.low[0] and not self.low[1])
            )
            and (
                self.high is None
                or number < self.high[0]
                or (number == self.high[0] and not self.high[1])
            )
            and number not in self.excluded
            and all((number / factor).denominator == 1 for factor in self.factors)
            and all((number / factor).denominator != 1 for factor in self.refused)
        )

    def is_empty_interval(self) -> bool:
        """Tell whether the bounds alone leave nothing."""
        if self.low is None or self.high is None:
            return False
        return self.low[0] > self.high[0] or (
            self.low[0] == self.high[0] and (self.low[1] or self.high[1])
        )

    def is_point(self) -> bool:
        """Tell whether the bounds leave one number."""
        return self.low is not None and self.high is not None and self.low[0] == self.high[0]


def find_number(nodes: Iterable[Node], budget: Budget) -> Outcome:
    """Find a number that all of these atoms, plain and negated, let through."""
    numbers = Numbers.of(nodes)
    if numbers.is_empty_interval():
        return Closed("interval", "no number is within the bounds")
    candidates = _multiples(numbers) if numbers.factors else _decimals(numbers)
    for number in candidates:
        budget.spend()
        if numbers.admits(number):
            return _written(number)
    if numbers.factors:
        return Closed("multiples", "no number within the bounds is a multiple as asked")
    if numbers.is_point():
        return Closed("interval", "the one number within the bounds is refused")
    return Stuck("minimum", "the bounds are closer together than was looked")


def _written(number: Fraction) -> Outcome:
    with suppress(OverflowError):
        value = number_value(number)
        if key_of(value) == number:
            return Found(value)
    return Stuck("multipleOf", "a number has no exact double")


def _multiples(numbers: Numbers) -> Iterator[Fraction]:
    """Yield multiples of all factors, nearest to zero first, until none that is left is better."""
    step = _common_multiple(numbers.factors)
    # What is refused recurs with this period, so that one of them without a number settles it.
    period = int(_common_multiple([step, *numbers.refused]) / step)
    wanted = period * (len(numbers.excluded) + 2)
    first = None if numbers.low is None else ceil(numbers.low[0] / step)
    last = None if numbers.high is None else floor(numbers.high[0] / step)
    start = max(first or 0, 0) if first is not None and first > 0 else min(last or 0, 0)
    if first is not None and last is not None and first > last:
        return
    # Bounds that are exclusive cost one multiple at either end.
    for distance in range(wanted + 3):
        for index in dict.fromkeys((start + distance, start - distance)):
            if (first is None or index >= first) and (last is None or index <= last):
                yield index * step


def _decimals(numbers: Numbers) -> Iterator[Fraction]:
    """Yield numbers from within the bounds, simple ones first; they never end but at one point."""
    low = numbers.low[0] if numbers.low else None
    high = numbers.high[0] if numbers.high else None
    if low is not None and numbers.is_point():
        yield low
        return
    for digits in range(_DIGITS_MAX):
        step = Fraction(1, 10**digits)
        tried = 2 * len(numbers.excluded) + 12
        origin = _origin(low, high, step)
        for distance in range(tried):
            yield (origin + distance) * step
            yield (origin - distance) * step


def _origin(low: Fraction | None, high: Fraction | None, step: Fraction) -> int:
    """Return the multiple of a step, within the bounds if one is, that is nearest to zero."""
    if low is not None and low > 0:
        return ceil(low / step)
    if high is not None and high < 0:
        return floor(high / step)
    return 0


def _common_multiple(factors: Iterable[Fraction]) -> Fraction:
    numerator, denominator = 1, 1
    result: Fraction | None = None
    for factor in factors:
        if result is None:
            result = factor
        else:
            denominator = lcm(result.denominator, factor.denominator)
            numerator = lcm(int(result * denominator), int(factor * denominator))
            result = Fraction(numerator, denominator)
    return Fraction(1) if result is None else result
