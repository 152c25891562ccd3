"""Compares the provider's books with the ledger, line by line. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from cli.connection import JsonObject


@dataclass(frozen=True, slots=True)
class Line:
    """One effect as the provider booked it beside what the ledger says of it.

    ``bookings`` are the provider's references, and ``state`` is None for an effect that the ledger
    does not know.
    """

    effect_id: str
    call: str
    bookings: tuple[str, ...]
    state: str | None
    same: bool

    @property
    def ok(self) -> bool:
        """Whether it took place exactly once, with these arguments, and both sides say so."""
        return len(self.bookings) == 1 and self.state == "SUCCEEDED" and self.same


def compare(bookings: Sequence[JsonObject], effects: Sequence[JsonObject]) -> list[Line]:
    """Return a line for every effect that the provider has booked or the ledger says took place.

    Args:
        bookings: The provider's, as ``GET /books`` lists them.
        effects: The ledger's, as ``GET /v1/effects`` lists them. What only reads is left out.
    """
    booked: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for booking in bookings:
        booked[str(booking["effect_id"])].append(booking)
    known = {effect["effect_id"]: effect for effect in effects}
    took_place = [
        effect["effect_id"]
        for effect in effects
        if effect["state"] == "SUCCEEDED" and effect["effect_class"] != "PURE"
    ]
    return [
        _line(effect_id, booked.get(effect_id, []), known.get(effect_id))
        for effect_id in dict.fromkeys([*booked, *took_place])
    ]


def call_of(effect: JsonObject) -> str:
    """Return what a person calls an effect: the name of the run, and its own in it."""
    return f"{effect['run']} / {effect['effect'].removeprefix('effect:')}"


def _line(effect_id: str, bookings: list[JsonObject], effect: JsonObject | None) -> Line:
    references = tuple(booking["reference"] for booking in bookings)
    if effect is None:
        return Line(effect_id, "", references, None, same=False)
    outcome: JsonObject = effect["outcome"] or {}
    same_arguments = all(booking["body"] == effect["arguments"] for booking in bookings)
    same = same_arguments and outcome.get("provider_reference") in references
    return Line(effect_id, call_of(effect), references, effect["state"], same)
