"""Makes a witness smaller, as long as it stays one."""

from collections.abc import Callable, Iterator
from typing import Final

from tallystick.canonical import Json, count_values

# Of parts copied and shown to the validator, in all.
_PARTS_MAX: Final = 20_000


def shrunk(value: Json, is_witness: Callable[[Json], bool]) -> Json:
    """Return a smaller value that is a witness too: parts left out, or replaced by simpler ones.

    Greedy, and bounded in what it costs.
    """
    left = _PARTS_MAX
    is_smaller = True
    while is_smaller:
        is_smaller = False
        size = count_values(value, left)
        for candidate in _smaller(value):
            left -= size
            if left < 0:
                return value
            if is_witness(candidate):
                value, is_smaller = candidate, True
                break
    return value


def _smaller(value: Json) -> Iterator[Json]:
    """Yield a value's parts, then values with one part less, then with one part made simpler."""
    match value:
        case dict():
            yield from _smaller_objects(value)
        case list():
            yield from _smaller_arrays(value)
        case str() if len(value) > 1:
            yield value[: len(value) // 2]
        case int() | float() if not isinstance(value, bool) and abs(value) > 1:
            yield from (0, 1)
        case _:
            pass


def _smaller_objects(value: dict[str, Json]) -> Iterator[Json]:
    yield from value.values()
    for name in value:
        yield {other: part for other, part in value.items() if other != name}
    for name, part in value.items():
        for simpler in _smaller(part):
            yield {**value, name: simpler}


def _smaller_arrays(value: list[Json]) -> Iterator[Json]:
    yield from value
    for index in range(len(value)):
        yield [*value[:index], *value[index + 1 :]]
    for index, part in enumerate(value):
        for simpler in _smaller(part):
            yield [*value[:index], simpler, *value[index + 1 :]]
