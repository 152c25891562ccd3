"""What happens in a crash test, all of it drawn from one seed: the work, its troubles, the faults.

Pure: the same seed gives the same scenario. Only the moment at which a fault strikes is the
machine's own, so that a replay meets the same troubles, and other interleavings.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

LEASE_SECONDS: Final = 1.5
SETTLE_SECONDS: Final = 1.0
BOOKS_LATE_SECONDS_MAX: Final = 0.6
"""Below the settle window: a provider that is slower than its contract says is another test."""
ATTEMPTS_MAX: Final = 6
MAX_DUPLICATES: Final = 2
RUN_LENGTH: Final = 4

SHARES: Final = {
    "IDEMPOTENT": 40,
    "NON_RETRYABLE": 25,
    "REPLAYABLE": 15,
    "UNKNOWN": 10,
    "PURE": 10,
}
VERSIONS: Final = {name: ("1.0", "2.0") if name == "IDEMPOTENT" else ("1.0",) for name in SHARES}
"""A run chooses one of them at its first call, whichever of its workers comes first."""

TROUBLES: Final = {
    "none": 50,
    # at the provider
    "books_late": 7,
    "answers_late": 7,
    "loses_the_answer": 5,
    "declines": 4,
    "is_down_at_first": 5,
    # in the worker
    "pauses_before_send": 6,
    "pauses_before_report": 6,
    "does_not_send": 3,
    # in the worker, at its first attempt; meanwhile others may have made the next one
    "sends_after_its_lease": 3,
    "reports_after_its_lease": 3,
    "vouches_after_its_lease": 3,
}
CONTESTED_SHARE: Final = 0.05
"""How much of the work without such a pause every worker takes, with two threads at once."""

FAULTS: Final = {"server": 3, "reconciler": 2, "worker": 5, "postmaster": 2, "supervisor": 1}
"""How often each is killed. A supervisor gives up a server that ends five times in a minute."""


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """One piece of work: it is one effect, however many workers take it, and however often."""

    number: int
    effect_class: str
    trouble: str
    plans_first: bool
    is_contested: bool

    @property
    def tool(self) -> str:
        return tool_of(self.effect_class)

    @property
    def run(self) -> str:
        # Runs of one class: the calls of a run use one tool, and must agree on its version.
        return f"{self.effect_class}-{self.number // (RUN_LENGTH * 5)}"

    @property
    def effect(self) -> str:
        return f"item-{self.number}"

    @property
    def arguments(self) -> dict[str, Any]:
        return {"item": self.number, "trouble": self.trouble}

    def fault(self, attempt: int, random: Random) -> str:
        """Return what an attempt meets at the provider, as a header `Fault`, or nothing."""
        match self.trouble:
            case "is_down_at_first" if attempt == 1:
                return "down"
            case _ if self.effect_class == "PURE":
                return ""
            case "books_late":
                return f"accepts_late={random.uniform(0.1, BOOKS_LATE_SECONDS_MAX)}"
            case "answers_late":
                return f"answers_late={random.uniform(0.2, 2.0)}"
            case "loses_the_answer" | "declines" as fault:
                return fault
            case _:
                return ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Kill one process, and start it again after a while.

    Most faults wait until the service works again, and then some time; the others strike while it
    still recovers from the fault before.
    """

    victim: str
    number: int
    awaits_recovery: bool
    after_seconds: float
    down_seconds: float


def tool_of(effect_class: str) -> str:
    return f"crash.{effect_class.lower()}"


def draw_items(seed: int, count: int) -> list[Item]:
    """Return the work of a test."""
    random = Random(f"{seed}:items")
    items: list[Item] = []
    for number in range(count):
        trouble = _weighted(random, TROUBLES)
        item = Item(
            number=number,
            effect_class=_weighted(random, SHARES),
            trouble=trouble,
            plans_first=random.random() < 0.2,
            is_contested="after_its_lease" in trouble or random.random() < CONTESTED_SHARE,
        )
        items.append(item)
    return items


def draw_faults(seed: int) -> list[Fault]:
    """Return the faults of a test, in their order."""
    random = Random(f"{seed}:faults")
    victims = [(victim, number) for victim, times in FAULTS.items() for number in range(times)]
    random.shuffle(victims)
    return [
        Fault(
            victim=victim,
            number=number,
            awaits_recovery=random.random() < 0.75,
            after_seconds=random.uniform(0.0, 2.5),
            down_seconds=random.uniform(0.0, 1.0),
        )
        for victim, number in victims
    ]


def share_of(seed: int, items: Sequence[Item], worker: int, workers: int) -> list[Item]:
    """Return what one worker works on. All go through the work in one order, so that they meet."""
    order = list(items)
    Random(f"{seed}:order").shuffle(order)
    share: list[Item] = []
    for item in order:
        if item.is_contested:
            share += [item, item]
        elif item.number % workers == worker:
            share.append(item)
    return share


def documents(provider_url: str) -> list[dict[str, Any]]:
    """Return the contracts of the tools."""
    return [
        _document(effect_class, version, provider_url)
        for effect_class, versions in VERSIONS.items()
        for version in versions
    ]


def save(items: Sequence[Item], path: Path) -> None:
    path.write_text(json.dumps([asdict(item) for item in items]))


def load(path: Path) -> list[Item]:
    return [Item(**item) for item in json.loads(path.read_text())]


def _weighted(random: Random, weights: dict[str, int]) -> str:
    return random.choices(list(weights), list(weights.values()))[0]


def _document(effect_class: str, version: str, provider_url: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": tool_of(effect_class),
        "version": version,
        "description": f"Book something at the provider; an effect of class {effect_class}.",
        "input_schema": {
            "type": "object",
            "properties": {"item": {"type": "integer"}, "trouble": {"type": "string"}},
            "required": ["item", "trouble"],
            "additionalProperties": False,
        },
        "capabilities": [f"booking:write:{{tenant}}.{effect_class}"],
        "effect_class": effect_class,
        "lease_seconds": LEASE_SECONDS,
        "settle_seconds": SETTLE_SECONDS,
    }
    if effect_class == "IDEMPOTENT":
        document["idempotency"] = {
            "header": "Idempotency-Key",
            "retention_seconds": 86400,
            "conflict": {"statuses": [422]},
        }
    if effect_class == "REPLAYABLE":
        document["max_duplicates"] = MAX_DUPLICATES
    if effect_class in ("IDEMPOTENT", "REPLAYABLE", "PURE"):
        document["attempts_max"] = ATTEMPTS_MAX
    if effect_class != "PURE":
        document["evidence"] = {
            "source": "http",
            "consistency": "read_after_write",
            "http": {"url": f"{provider_url}/effects/{{effect_id}}", "timeout_seconds": 1},
            "answer": {
                "absent_statuses": [404],
                "state": "/status",
                "applied": ["booked"],
                "rejected": ["declined"],
                "reference": "/reference",
                "bind": {"pointer": "/effect_id", "equals": "effect_id"},
                "match": {"/body/item": "/item"},
            },
        }
    return document
