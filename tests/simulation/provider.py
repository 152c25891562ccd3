"""The provider: it makes effects, remembers keys for a while, answers look-ups, and keeps books."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tallystick.effect_class import EffectClass
from tests.simulation.catalogue import RETENTION_SECONDS, SETTLE_SECONDS
from tests.simulation.engine import Engine

OK: Final = 200
DECLINED: Final = 402
NOT_FOUND: Final = 404
IN_PROGRESS: Final = 409
CONFLICT: Final = 422
DOWN: Final = 503


@dataclass(frozen=True, slots=True)
class Request:
    """What a worker sent: for which effect, under which fence, and when.

    ``lease_until`` is the end of its lease by the database's clock.
    """

    tenant: str
    effect_id: str
    effect_class: EffectClass
    fence: int
    worker: str
    key: str
    body: str
    version: str
    sent_at: float
    lease_until: float
    is_acknowledged: bool


@dataclass(frozen=True, slots=True)
class Booking:
    """An effect that was made, for which request, and when that request came."""

    request: Request
    arrived_at: float
    at: float
    reference: str

    @property
    def is_timely(self) -> bool:
        """Tell whether it was sent within its lease, and made within the settle window."""
        request = self.request
        return (
            request.sent_at <= request.lease_until and self.at <= request.sent_at + SETTLE_SECONDS
        )


@dataclass(slots=True)
class Known:
    """What the provider knows by one name: a key, or an effect's id. Each change has its time."""

    body: str
    since: float
    changes: list[tuple[float, str, str]] = field(default_factory=list[tuple[float, str, str]])

    def at(self, moment: float) -> tuple[str, str]:
        """Return the status and the reference as they were at a moment."""
        seen = ("", "")
        for at, status, reference in self.changes:
            if at <= moment:
                seen = (status, reference)
        return seen


Answering = Callable[[int, str], None]


class Provider:
    """One provider of all tools."""

    def __init__(self, engine: Engine, *, is_visible_early: bool) -> None:
        self._engine = engine
        self.declined: set[str] = set()
        """The effects that it says no to, whoever asks and however often."""
        self._is_visible_early = is_visible_early
        self.sent: list[Request] = []
        self.arrivals: list[Request] = []
        self.bookings: list[Booking] = []
        self.reads = 0
        self._by_key: dict[str, Known] = {}
        self._by_effect: dict[str, Known] = {}

    # --- effects ------------------------------------------------------------------------------

    def receive(self, request: Request, answer: Answering) -> None:
        """Take a request in; ``answer`` is called with the status and the reference."""
        self._engine.note(
            "provider", f"gets the request with fence {request.fence}", request.effect_id
        )
        self.arrivals.append(request)
        if self._engine.fault("outage"):
            answer(DOWN, "")
        elif request.effect_class is EffectClass.PURE:
            self.reads += 1
            answer(OK, "")
        elif request.effect_class is EffectClass.IDEMPOTENT:
            self._receive_keyed(request, answer)
        else:
            self._begin(request, Known(request.body, self._engine.now), answer)

    def _receive_keyed(self, request: Request, answer: Answering) -> None:
        now = self._engine.now
        known = self._by_key.get(request.key)
        if known is None or now >= known.since + RETENTION_SECONDS:
            known = self._by_key[request.key] = Known(request.body, now)
            self._begin(request, known, answer)
            return
        status, reference = known.at(now)
        if known.body != request.body:
            answer(CONFLICT, "")
        elif status == "applied":
            answer(OK, reference)
        elif status == "declined":
            answer(DECLINED, reference)
        else:
            answer(IN_PROGRESS, "")

    def _begin(self, request: Request, by_key: Known, answer: Answering) -> None:
        now = self._engine.now
        by_effect = self._by_effect.setdefault(request.effect_id, Known(request.body, now))
        if request.effect_id in self.declined or self._engine.fault("whim"):
            self._change((by_key, by_effect), "declined", "")
            self._engine.note("provider", "declines", request.effect_id)
            answer(DECLINED, "")
            return
        takes_seconds = 0.0
        if self._engine.fault("slow_acceptance"):
            takes_seconds = self._engine.chance.between(0.1, SETTLE_SECONDS - 3.0)
        elif self._engine.fault("tardy_acceptance"):
            takes_seconds = self._engine.chance.between(SETTLE_SECONDS, 90.0)
        if self._is_visible_early and takes_seconds:
            self._change((by_key, by_effect), "pending", "")

        def apply() -> None:
            reference = f"p-{len(self.bookings) + 1}"
            self.bookings.append(Booking(request, now, self._engine.now, reference))
            self._change((by_key, by_effect), "applied", reference)
            self._engine.note("provider", f"books {reference}", request.effect_id)
            answer(OK, reference)

        if takes_seconds:
            self._engine.after(takes_seconds, apply)
        else:
            apply()

    def _change(self, known: tuple[Known, Known], status: str, reference: str) -> None:
        for one in known:
            if one.at(self._engine.now)[0] == "applied":
                continue  # What is made stays made, whatever else is asked for.
            one.changes.append((self._engine.now, status, reference))

    def status_of(self, effect_id: str) -> str:
        """Return what the books say of an effect now; empty where they have nothing."""
        known = self._by_effect.get(effect_id)
        return known.at(self._engine.now)[0] if known else ""

    # --- evidence -----------------------------------------------------------------------------

    def look_up(self, url: str, *, lag_seconds: float, is_eventual: bool) -> tuple[int, bytes]:
        """Answer a look-up: the status and the body."""
        _, place, name = url.rsplit("/", 2)
        now, engine = self._engine.now, self._engine
        if engine.fault("look_up_outage"):
            return DOWN, b""
        if engine.fault("malformed_answer"):
            return OK, engine.chance.pick((b"<html>", b"{}", b'{"status": "applied", "id": '))
        is_by_key = place == "keys"
        known = (self._by_key if is_by_key else self._by_effect).get(name)
        if engine.fault("foreign_answer") and self._by_effect:
            name, known = next(iter(self._by_effect.items()))
            is_by_key = False
        if known is not None and is_by_key and now >= known.since + RETENTION_SECONDS:
            known = None
        lag = engine.chance.between(0.0, lag_seconds) if lag_seconds else 0.0
        if is_eventual and engine.fault("stale_look_up"):
            lag = engine.chance.between(0.0, 60.0)
        status, reference = known.at(now - lag) if known else ("", "")
        if known is None or not status:
            return NOT_FOUND, b""
        told = json.loads(known.body) | {
            "status": status,
            "id": reference,
            "idempotency_key" if is_by_key else "effect_id": name,
        }
        return OK, json.dumps(told).encode()
