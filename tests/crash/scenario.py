"""The faults of a schedule, how its provider behaves, and how far its workers' clocks are off.

Drawn from a seed and the schedule's number, as the work is. Pure: the same seed and number give the
same scenario. Only the moment at which something strikes is the machine's own, so that a replay
meets the same troubles, and other interleavings.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

from cli.demo.provider.faults import Fault as ProviderFault
from cli.demo.provider.faults import Place, Plan, Rule
from tests.crash.catalogue import LAG_SECONDS, LEASE_SECONDS
from tests.crash.work import SECONDS_AN_ITEM

RECONCILER_LEASE_SECONDS: Final = 6.0
"""How long a reconciler has an effect: the provider's time to answer, and five seconds."""
CLOCK_STEPS: Final = (-3600.0, 0.0, 3600.0)

STRIKES: Final = {
    ("kill", "worker"): 3,
    ("kill", "server"): 2,
    ("kill", "reconciler"): 1,
    ("kill", "provider"): 1,
    ("kill", "postmaster"): 1,
    ("kill", "supervisor"): 1,
    ("pause", "worker"): 2,
    ("pause", "server"): 1,
    ("pause", "reconciler"): 1,
    ("stop", "postgres"): 1,
    ("outage", "provider"): 1,
}
"""How often each strikes in `HAND` schedules in a row: each of them is dealt its part."""
HAND: Final = 2


@dataclass(frozen=True, slots=True)
class Fault:
    """One strike at one process, and how long it lasts.

    Half of them wait until the service works again, and then some time; the others strike while it
    still recovers from the one before.
    """

    kind: str
    victim: str
    number: int
    awaits_recovery: bool
    after_seconds: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.kind} {self.victim}"


def draw_faults(seed: int, schedule: int) -> list[Fault]:
    """Return the faults of a schedule, in their order."""
    cards = [one for one, times in STRIKES.items() for _ in range(times)]
    Random(f"{seed}:{schedule // HAND}:cards").shuffle(cards)
    random = Random(f"{seed}:{schedule}:faults")
    return [
        Fault(
            kind=kind,
            victim=victim,
            number=random.randrange(2**16),
            awaits_recovery=random.random() < 0.5,
            after_seconds=random.uniform(0.0, 1.0),
            seconds=_seconds(random, kind, victim),
        )
        for kind, victim in cards[schedule % HAND :: HAND]
    ]


def _seconds(random: Random, kind: str, victim: str) -> float:
    match kind, victim:
        case "pause", "reconciler":
            return RECONCILER_LEASE_SECONDS + random.uniform(0.2, 1.0)
        case "pause", _:
            return LEASE_SECONDS + random.uniform(0.5, 2.0)
        case "outage", _:
            return random.uniform(0.5, 1.5)
        case _:
            return random.uniform(0.0, 1.0)


def draw_plan(seed: int, schedule: int, *, webhook: dict[str, str], is_down: bool = False) -> Plan:
    """Return how the provider behaves beside the troubles of the work: what it shows and tells."""
    random = Random(f"{seed}:{schedule}:plan")
    down = [Rule(fault=ProviderFault.DOWN, on=place) for place in (Place.ORDERS, Place.LOOK_UPS)]
    stale, late = random.uniform(0.1, 0.8 * LAG_SECONDS), random.uniform(0.2, 2.0)
    faults = [
        # Few of each: who is not answered asks again after twice the time.
        *(
            Rule(fault=fault, on=Place.LOOK_UPS, share=0.06, times=3)
            for fault in (
                ProviderFault.DOWN,
                ProviderFault.LOSES_THE_ANSWER,
                ProviderFault.IS_MALFORMED,
                ProviderFault.IS_FOREIGN,
                ProviderFault.BREAKS,
            )
        ),
        Rule(fault=ProviderFault.ANSWERS_LATE, on=Place.LOOK_UPS, share=0.06, times=3, seconds=1.5),
        Rule(fault=ProviderFault.IS_STALE, on=Place.LOOK_UPS, share=0.3, seconds=stale),
        Rule(fault=ProviderFault.TELLS_NOTHING, on=Place.WEBHOOKS, share=0.2),
        Rule(fault=ProviderFault.TELLS_TWICE, on=Place.WEBHOOKS, share=0.3),
        Rule(fault=ProviderFault.TELLS_LATE, on=Place.WEBHOOKS, share=0.3, seconds=late),
        Rule(fault=ProviderFault.IS_FORGED, on=Place.WEBHOOKS, share=0.1, times=5),
    ]
    return Plan.model_validate(
        {
            "seed": random.randrange(2**31),
            "faults": [*(down if is_down else ()), *faults],
            "webhook": webhook,
        }
    )


def draw_clock(seed: int, schedule: int, worker: int, generation: int) -> float:
    """Return by how many seconds the clocks of a worker process are off."""
    return Random(f"{seed}:{schedule}:clock:{worker}:{generation}").choice(CLOCK_STEPS)


def draw_retirement(seed: int, schedule: int, count: int) -> float:
    """Return after how many seconds the old versions are to be retired: while work is under way."""
    share = Random(f"{seed}:{schedule}:retirement").uniform(0.2, 0.7)
    return share * count * SECONDS_AN_ITEM
