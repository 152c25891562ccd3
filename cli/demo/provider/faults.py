"""What goes wrong at the provider, and when: all of it drawn from one seed. Pure."""

from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, model_validator

SECONDS_MAX: Final = 3600


class Fault(StrEnum):
    """One way to fail."""

    # Nothing is done.
    DOWN = "down"
    RATE_LIMITED = "rate_limited"
    LOSES_THE_REQUEST = "loses_the_request"
    # It is done late, not at all, or not shown.
    ACCEPTS_LATE = "accepts_late"
    SETTLES_LATE = "settles_late"
    DECLINES = "declines"
    IS_STALE = "is_stale"
    # It is done, and the answer does not say so.
    ANSWERS_LATE = "answers_late"
    LOSES_THE_ANSWER = "loses_the_answer"
    BREAKS = "breaks"
    IS_MALFORMED = "is_malformed"
    IS_FOREIGN = "is_foreign"
    # A webhook only.
    TELLS_NOTHING = "tells_nothing"
    TELLS_TWICE = "tells_twice"
    TELLS_LATE = "tells_late"
    IS_FORGED = "is_forged"


class Place(StrEnum):
    """Where a fault strikes."""

    ORDERS = "orders"
    LOOK_UPS = "look_ups"
    WEBHOOKS = "webhooks"


_ANYWHERE: Final = frozenset(
    {
        Fault.DOWN,
        Fault.RATE_LIMITED,
        Fault.LOSES_THE_REQUEST,
        Fault.ANSWERS_LATE,
        Fault.LOSES_THE_ANSWER,
        Fault.BREAKS,
        Fault.IS_MALFORMED,
        Fault.IS_FOREIGN,
    }
)
FITTING: Final = {
    Place.ORDERS: _ANYWHERE | {Fault.ACCEPTS_LATE, Fault.SETTLES_LATE, Fault.DECLINES},
    Place.LOOK_UPS: _ANYWHERE | {Fault.IS_STALE},
    Place.WEBHOOKS: frozenset(
        {Fault.TELLS_NOTHING, Fault.TELLS_TWICE, Fault.TELLS_LATE, Fault.IS_FORGED}
    ),
}


class Trouble(NamedTuple):
    """What one request meets; ``seconds`` is the delay of a late fault, or a stale answer's age."""

    fault: Fault | None = None
    seconds: float = 0

    def delay(self, fault: Fault) -> float:
        """Return how long to wait where this fault would strike, in seconds."""
        return self.seconds if self.fault is fault else 0


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Strict):
    """A fault that a share of the requests meets, until it has struck so many times."""

    fault: Fault
    on: Place = Place.ORDERS
    seconds: float = Field(default=0, ge=0, le=SECONDS_MAX)
    share: float = Field(default=1, gt=0, le=1)
    times: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> "Rule":
        if self.fault not in FITTING[self.on]:
            raise ValueError(f"{self.fault} does not happen to {self.on}")
        return self


class Subscriber(_Strict):
    """Who is told of bookings: an address, and a secret `whsec_...` in base64."""

    url: HttpUrl
    secret: str = Field(pattern=r"^whsec_[A-Za-z0-9+/]+={0,2}$")


class Plan(_Strict):
    """How the provider behaves: its faults, of which the first that strikes counts.

    ``lag_seconds`` is how far look-ups are behind the books, and ``retention_seconds`` how long a
    key is known. The same seed gives the same faults to the same sequence of requests.
    """

    seed: int = 0
    faults: tuple[Rule, ...] = ()
    lag_seconds: float = Field(default=0, ge=0, le=SECONDS_MAX)
    retention_seconds: float = Field(default=86_400, ge=0)
    webhook: Subscriber | None = None


class Schedule:
    """A plan, and how often each of its faults has struck."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._struck = [0] * len(plan.faults)

    def draw(self, place: Place, number: int) -> Trouble:
        """Return what the request of a number meets."""
        for index, rule in enumerate(self.plan.faults):
            is_spent = rule.times is not None and self._struck[index] >= rule.times
            if rule.on is not place or is_spent:
                continue
            if _fraction(f"{self.plan.seed}:{index}:{number}") < rule.share:
                self._struck[index] += 1
                return Trouble(rule.fault, rule.seconds)
        return Trouble()


def _fraction(name: str) -> float:
    """Return a number from 0 to 1 that looks like chance, and is the same for the same name."""
    return int.from_bytes(sha256(name.encode()).digest()[:4]) / 2**32


def read_trouble(header: str, place: Place) -> Trouble:
    """Read a request's own fault, as in ``answers_late=1.5``. Raises ValueError."""
    name, _, seconds = header.partition("=")
    rule = Rule(fault=Fault(name), on=place, seconds=float(seconds or 0))
    return Trouble(rule.fault, rule.seconds)
