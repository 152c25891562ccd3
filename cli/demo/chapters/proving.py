"""The proof: the provider's own books, and histories that replay."""

from datetime import datetime

from cli.connection import JsonObject
from cli.demo.books import call_of, compare
from cli.demo.stage import Stage
from ledger.effect import Event, replay
from tallystick.errors import IllegalTransition

EFFECTS_MAX = 500


async def the_books_agree(stage: Stage) -> None:
    """Compare what the provider booked with what the ledger says, line by line."""
    stage.story.chapter(
        "The provider's books and the ledger agree",
        """The provider keeps books of its own and knows nothing of the ledger's verdicts. They are
        two halves of one tally: each booking must have exactly one effect that SUCCEEDED, and each
        such effect exactly one booking.""",
    )
    effects = await _effects(stage)
    bookings = (await stage.provider.get("/books")).raise_for_status().json()["bookings"]
    lines = compare(bookings, effects)
    stage.lines.extend(lines)
    rows = [
        (", ".join(line.bookings) or "nothing", line.call, line.state or "unknown")
        for line in lines
    ]
    stage.story.table(("Provider booked", "Run / effect", "Ledger"), rows)
    twice = sum(len(line.bookings) > 1 for line in lines)
    stage.check(
        "every booking has one effect, and every effect one booking, with the same arguments",
        ok=bool(lines) and all(line.ok for line in lines),
        answer=f"bookings: {len(bookings)}, effects that agree: {sum(line.ok for line in lines)},"
        f" booked twice: {twice}",
    )
    unsent = [effect for effect in effects if effect["state"] != "SUCCEEDED"]
    booked = {booking["effect_id"] for booking in bookings}
    stage.check(
        "what did not succeed was not booked",
        ok=not any(effect["effect_id"] in booked for effect in unsent),
        answer=", ".join(f"{call_of(effect)} is {effect['state']}" for effect in unsent),
    )


async def histories_replay(stage: Stage) -> None:
    """Replay every effect's events to its state."""
    stage.story.chapter(
        "Every history replays to the state that is shown",
        """Each step of an effect is an event that is never changed. Replaying them in order must
        lead to the state that is shown, and a history with a hole must be noticed.""",
    )
    effects = [await stage.show(one["effect_id"]) for one in await _effects(stage)]
    events = {effect["effect_id"]: _events(effect) for effect in effects}
    wrong = [
        effect["effect_id"]
        for effect in effects
        if replay(events[effect["effect_id"]])[:2] != (effect["state"], effect["fence"])
    ]
    stage.check(
        "the events of every effect lead to its state and fence",
        ok=bool(effects) and not wrong,
        answer=f"{sum(map(len, events.values()))} events of {len(effects)} effects replayed"
        + (f"; wrong: {', '.join(wrong)}" if wrong else ""),
    )
    longest = max(events.values(), key=len)
    try:
        replay([*longest[:2], *longest[3:]])
        told = ""
    except (ValueError, IllegalTransition) as fault:
        told = str(fault)
    stage.check("a history with an event taken out is refused", ok=bool(told), answer=told)
    rows = [
        (event.transition, event.to_state, _short(event.actor), event.reason) for event in longest
    ]
    stage.story.tell("The longest of them, a worker's death included:")
    stage.story.table(("Step", "State", "By", "Why"), rows)


async def _effects(stage: Stage) -> list[JsonObject]:
    """Return every effect of the demo: there are fewer than one page holds."""
    return (await stage.registry.get("effects", limit=EFFECTS_MAX))["effects"]


def _events(effect: JsonObject) -> list[Event]:
    names = ("fence", "transition", "from_state", "to_state", "attempt", "actor", "reason")
    return [
        Event(**{name: event[name] for name in names}, at=datetime.fromisoformat(event["at"]))
        for event in effect["events"]
    ]


def _short(actor: str) -> str:
    """Return who it was, with as much of an id as a narrow table bears."""
    who, _, number = actor.partition(":")
    return f"{who} {number[:8]}".strip()
