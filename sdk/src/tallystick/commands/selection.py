"""Which tool somebody means: by its full name, or by as much of its end as is unique."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from tallystick.errors import ToolNotDeclared

_NAMED_MAX: Final = 5


def select(given: str, names: Iterable[str]) -> str:
    """Return the name that is meant: `search` means `shop.tools.search` if no other ends so.

    Raises:
        ToolNotDeclared: None or several fit; the detail names those that are there.
    """
    known = sorted(set(names))
    if given in known:
        return given
    fitting = [name for name in known if name.endswith(f".{given}")]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ToolNotDeclared(f"{given} may be {_either(fitting)}: give the full name.")
    raise ToolNotDeclared(f"There is no tool {given}. {_hint(given, known)}")


def _hint(given: str, known: list[str]) -> str:
    near = _nearest(given, known)
    if near:
        return f"Do you mean {_either(near)}?"
    if not known:
        return "There are none at all."
    more = f" and {len(known) - _NAMED_MAX} more" if len(known) > _NAMED_MAX else ""
    return f"There are: {', '.join(known[:_NAMED_MAX])}{more}."


def _nearest(given: str, known: list[str]) -> list[str]:
    """Return at most three names that look like the one given, in full or in their last part."""
    whole = get_close_matches(given, known)
    lasts = get_close_matches(given, {name.rpartition(".")[2] for name in known})
    by_last = [name for name in known if name.rpartition(".")[2] in lasts]
    return list(dict.fromkeys([*whole, *by_last]))[:3]


def _either(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
