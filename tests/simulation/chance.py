"""Every choice of a schedule, drawn from one seed, recorded, and replayed in full or in part.

A choice is a number from 0 to 1, and the smaller the calmer: 0 is no fault, no delay, the first of
several. So a story is made shorter by leaving choices out and by making them 0.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final, TypeVar

T = TypeVar("T")

_TRIES_MAX: Final = 600


class Chance:
    """Draws choices from a seed, or takes them from a list and is calm when that is used up."""

    def __init__(self, source: str | Iterable[float]) -> None:
        if isinstance(source, str):
            self._draw = Random(source).random
        else:
            given = iter(source)
            self._draw = lambda: next(given, 0.0)
        self.choices: list[float] = []

    def draw(self) -> float:
        choice = self._draw()
        self.choices.append(choice)
        return choice

    def happens(self, probability: float) -> bool:
        return self.draw() > 1.0 - probability

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.draw()

    def pick(self, options: Sequence[T]) -> T:
        return options[min(int(self.draw() * len(options)), len(options) - 1)]


def shortened(choices: Sequence[float], still_fails: Callable[[list[float]], bool]) -> list[float]:
    """Return fewer and calmer choices that still fail: ever smaller parts are left out or made 0.

    At most some hundred tries are made, so that a story never takes longer than its search.
    """
    best, tries = list(choices), 0
    size = len(best)
    while size and tries < _TRIES_MAX:
        start = len(best)
        while start > 0 and tries < _TRIES_MAX:
            start = max(start - size, 0)
            middle = best[start : start + size]
            calm = [0.0] * len(middle)
            for instead in ([], calm) if any(middle) else ([],):
                tries += 1
                candidate = best[:start] + instead + best[start + size :]
                if still_fails(candidate):
                    best = candidate
                    break
        size //= 2
    while best and best[-1] == 0.0:
        best.pop()
    return best
