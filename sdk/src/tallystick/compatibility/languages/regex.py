"""Reads a `pattern` exactly as the validator does, or refuses it.

The validator translates a pattern from ECMA-262 and gives it to a linear-time engine. Whatever that
engine refuses is refused here too; and so is all that is rare and that this reader would have to
guess at. Wrong is worse than refused.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from tallystick.compatibility.languages.boolean import union
from tallystick.compatibility.languages.characters import (
    Characters,
    asked,
    characters,
    ordinal,
)
from tallystick.compatibility.languages.expression import (
    EMPTY,
    EVERYTHING,
    Anchor,
    Concat,
    Expression,
    Place,
    Union,
    concat,
    one_of,
    place,
    repeat,
    words,
)
from tallystick.subschema import compile_pattern

SIZE_MAX: Final = 2000
DEPTH_MAX: Final = 40


class UnsupportedPattern(ValueError):
    """This pattern's language is not known exactly."""


def parse(pattern: str) -> Expression:
    """Return what a pattern matches, of the text and its place in it.

    Raises:
        UnsupportedPattern: The engine refuses it, or it is outside what is modelled exactly.
    """
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise UnsupportedPattern(f"The engine refuses {pattern!r}") from error
    expression = _read(pattern)
    if expression.size > SIZE_MAX or expression.depth > DEPTH_MAX:
        raise UnsupportedPattern(f"A pattern of {len(pattern)} characters is too large")
    return expression


def search(expression: Expression) -> Expression:
    """Return all texts in which an expression matches somewhere."""
    return _followed(_preceded(expression))


def _preceded(expression: Expression) -> Expression:
    """Return anything, then an expression: only the empty string stands before a start."""
    match expression:
        case Place(content=Anchor.START):
            return EMPTY
        case Union(content=parts):
            return union(_preceded(part) for part in parts)
        case Concat(content=parts):
            return concat((_preceded(parts[0]), *parts[1:]))
        case _:
            return concat((EVERYTHING, expression))


def _followed(expression: Expression) -> Expression:
    match expression:
        case Place(content=Anchor.END):
            return EMPTY
        case Union(content=parts):
            return union(_followed(part) for part in parts)
        case Concat(content=parts):
            return concat((*parts[:-1], _followed(parts[-1])))
        case _:
            return concat((expression, EVERYTHING))


def _set(*pairs: str) -> Characters:
    return characters((ordinal(pair[0]), ordinal(pair[-1])) for pair in pairs)


def _negated(members: Characters) -> Characters:
    return members.map(lambda is_member: not is_member)


def _joint(sets: Iterable[Characters]) -> Characters:
    ranges = (span for members in sets for is_member, span in members.ranges() if is_member)
    return characters(ranges)


_SETS: Final = {
    "d": _set("09"),
    "w": _set("09", "AZ", "__", "az"),
    # WhiteSpace and LineTerminator of ECMA-262, sections 12.2 and 12.3.
    "s": _set(
        *("\t\r", "  ", "\xa0\xa0", "\u1680\u1680", "\u2000\u200a", "\u2028\u2029"),
        *("\u202f\u202f", "\u205f\u205f", "\u3000\u3000", "\ufeff\ufeff"),
    ),
}
_DOT: Final = _negated(_set("\n\n", "\r\r", "\u2028\u2029"))
_ANCHORS: Final = {
    "^": Anchor.START,
    r"\A": Anchor.START,
    "$": Anchor.END,
    r"\z": Anchor.END,
    r"\b": Anchor.BOUNDARY,
    r"\B": Anchor.INSIDE,
}
_COUNTS: Final = {"*": (0, inf), "+": (1, inf), "?": (0, 1)}
_FOLDED: Final = {"k": "\u212a", "K": "\u212a", "s": "\u017f", "S": "\u017f"}
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}


# The tokens of a pattern: a character or a set of them, then what stands outside of brackets only.
_ITEM: Final = r"""
    \\x(?P<two>[0-9A-Fa-f]{2}) | \\u(?P<four>[0-9A-Fa-f]{4}) | \\U(?P<eight>[0-9A-Fa-f]{8})
  | \\[xuU]\{(?P<braced>[0-9A-Fa-f]{1,8})\} | \\c(?P<control>[A-Za-z])
  | \\(?P<letter>[nrtfv]) | \\(?P<escaped>[!-/:;=?@\[-`{-~\ ])
  | \\(?P<set>[dDwWsS]) | (?P<property>\\[pP](?:[A-Z]|\{\^?[\w=:!\ -]+\}))
"""
_IN_BRACKETS: Final = re.compile(rf"{_ITEM} | (?P<plain>[^\\\]])", re.VERBOSE | re.ASCII)
_OUTSIDE: Final = re.compile(
    rf"""
    {_ITEM} | (?P<plain>[^\\()\[|^$.*+?{{]) | (?P<dot>\.) | (?P<bracket>\[\^?)
  | (?P<anchor>[\^$]|\\[Az]|\\[bB](?!\{{))
  | (?P<count>[*+?]|\{{(?P<low>[0-9]+)(?P<more>,(?P<high>[0-9]*))?\}})\??
  | \(\?(?P<switch>[is-]+)\) | (?P<open>\((?:\?(?P<flags>[is-]*):|\?P?<[A-Za-z_]\w*>|(?!\?)))
  | (?P<close>\)) | (?P<bar>\|)
    """,
    re.VERBOSE | re.ASCII,
)


@dataclass(slots=True)
class _Group:
    """A group that is being read: its branches so far, and the items of the one at hand."""

    ignores_case: bool
    branches: list[Expression] = field(default_factory=list[Expression])
    items: list[Expression | str] = field(default_factory=list[Expression | str])

    def end_branch(self) -> None:
        """Make a branch of the items, and words of the plain characters among them."""
        parts: list[Expression] = []
        text = ""
        for item in [*self.items, EMPTY]:
            if isinstance(item, str):
                text += item
            else:
                parts += words((text,)), item
                text = ""
        self.branches.append(concat(parts))
        self.items.clear()

    def close(self) -> Expression:
        self.end_branch()
        return union(self.branches)

    def repeat(self, count: re.Match[str]) -> None:
        """Repeat the last item."""
        if count["low"] is None:
            low, high = _COUNTS[count["count"]]
        else:
            low = int(count["low"])
            most = int(count["high"]) if count["high"] else inf
            high = low if count["more"] is None else most
        last = self.items.pop()
        self.items.append(repeat(words([last]) if isinstance(last, str) else last, low, high))

    def switch(self, flags: str) -> bool:
        """Return whether case is ignored once these flags are set."""
        on, _, off = flags.partition("-")
        return "i" in on or (self.ignores_case and "i" not in off)


def _read(pattern: str) -> Expression:
    groups = [_Group(ignores_case=False)]
    at = 0
    while at < len(pattern):
        token = _OUTSIDE.match(pattern, at)
        if token is None:
            raise _unknown(pattern, at)
        at = token.end()
        group = groups[-1]
        match token.lastgroup:
            case "open" | "flags":
                groups.append(_Group(group.switch(token["flags"] or "")))
            case "close":
                closed = groups.pop().close()
                groups[-1].items.append(closed)
            case "bar":
                group.end_branch()
            case "switch":
                group.ignores_case = group.switch(token["switch"])
            case "count" | "low" | "more" | "high":
                group.repeat(token)
            case "bracket":
                members, at = _bracketed(pattern, at, ignores_case=group.ignores_case)
                is_negated = token["bracket"] == "[^"
                group.items.append(one_of(_negated(members) if is_negated else members))
            case _:
                group.items.append(_item(token, ignores_case=group.ignores_case))
    return groups.pop().close()


def _item(token: re.Match[str], *, ignores_case: bool) -> Expression | str:
    if token["anchor"]:
        return place(_ANCHORS[token["anchor"]])
    if token["dot"]:
        return one_of(_DOT)
    char = _character(token)
    if char is None:
        return one_of(_members(token, ignores_case=ignores_case))
    return one_of(_cased(char, char)) if ignores_case else char


def _character(token: re.Match[str]) -> str | None:
    """Return the character that a token stands for, or None if it stands for several."""
    code = token["two"] or token["four"] or token["eight"] or token["braced"]
    if code:
        return chr(int(code, 16))
    if token["control"]:
        return chr(ord(token["control"]) % 32)
    if token["letter"]:
        return _CONTROLS[token["letter"]]
    return token["escaped"] or token["plain"]


def _members(token: re.Match[str], *, ignores_case: bool) -> Characters:
    """Return the characters that a token for several stands for."""
    name = token["set"]
    if name is None:
        if ignores_case:
            raise UnsupportedPattern(f"{token['property']} is not supported where case is ignored")
        return asked(token["property"])
    members = _SETS[name.lower()]
    if ignores_case and name in "wW":
        members = _joint((members, _set("\u017f", "\u212a")))
    return _negated(members) if name.isupper() else members


def _bracketed(pattern: str, start: int, *, ignores_case: bool) -> tuple[Characters, int]:
    """Return the characters listed in brackets that begin at `start`, and where those end."""
    found: list[Characters] = []
    at = start
    while pattern[at] != "]":
        token, at = _listed(pattern, at)
        first = last = _character(token)
        if first is None:
            found.append(_members(token, ignores_case=ignores_case))
            continue
        if pattern[at] == "-" and pattern[at + 1] != "]":
            token, at = _listed(pattern, at + 1)
            last = _character(token)
        if last is None:
            raise UnsupportedPattern(f"{pattern[start:at]!r} has a set for an end of a range")
        found.append(_cased(first, last) if ignores_case else _set(first + last))
    # The engine has rules of its own for these, which rest on how the pattern is translated.
    if at == start or "--" in pattern[start:at]:
        raise UnsupportedPattern(f"[{pattern[start : at + 1]} is not supported")
    return _joint(found), at + 1


def _listed(pattern: str, at: int) -> tuple[re.Match[str], int]:
    token = _IN_BRACKETS.match(pattern, at)
    if token is None:
        raise _unknown(pattern, at)
    return token, token.end()


def _unknown(pattern: str, at: int) -> UnsupportedPattern:
    return UnsupportedPattern(f"{pattern[at : at + 8]!r} is not supported in a pattern")


def _cased(first: str, last: str) -> Characters:
    """Return a range of characters with their other cases, as the engine folds them.

    Raises:
        UnsupportedPattern: It is not a range of ASCII.
    """
    if not last.isascii():
        raise UnsupportedPattern(f"{last!r} is not supported where case is ignored")
    letters = [chr(code) for code in range(ord(first), ord(last) + 1)]
    kelvin_or_long_s = (_FOLDED[char] for char in letters if char in _FOLDED)
    return _set(f"{first}{last}", *(char.swapcase() for char in letters), *kelvin_or_long_s)
