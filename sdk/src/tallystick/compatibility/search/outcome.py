"""What a search for a value comes to."""

from dataclasses import dataclass

from tallystick.canonical import Json


@dataclass(frozen=True, slots=True)
class Found:
    """There is a value."""

    value: Json


@dataclass(frozen=True, slots=True)
class Closed:
    """There is none: proven, by a rule.

    Args:
        rule: The rule's name.
        detail: What it saw.
    """

    rule: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Stuck:
    """It is not known whether there is one.

    Args:
        keyword: The keyword that could not be reasoned about.
        reason: What was the matter, in words.
        path: Where, JSON Pointer tokens from where the search began.
    """

    keyword: str
    reason: str
    path: tuple[str, ...] = ()


Outcome = Found | Closed | Stuck
