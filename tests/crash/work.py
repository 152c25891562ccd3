"""The work of a schedule and its troubles, drawn from a seed and the schedule's number. Pure."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.crash.catalogue import TOOLS, Tool

WORKERS: Final = 3
TENANT, OTHER_TENANT = "default", "other"
TWINS_SHARE: Final = 0.08
"""How much of the work another tenant has too, under the same names."""
RUN_LENGTH: Final = 15
SECONDS_AN_ITEM: Final = 0.1
"""How fast the work comes, so that there is always some under way while faults strike."""
BOOKS_LATE_SECONDS_MAX: Final = 0.6
"""Below the settle window: a provider that is slower than its contract says is another test."""
SETTLES_LATE_SECONDS_MAX: Final = 2.0

TROUBLES: Final = {
    "none": 46,
    # at the provider
    "books_late": 6,
    "settles_late": 3,
    "answers_late": 6,
    "loses_the_request": 2,
    "loses_the_answer": 5,
    "breaks": 2,
    "is_malformed": 2,
    "is_foreign": 2,
    "is_rate_limited": 2,
    "declines": 4,
    "is_down_at_first": 4,
    # in the worker
    "pauses_before_send": 5,
    "pauses_before_report": 5,
    "does_not_send": 3,
    "calls_it_otherwise": 3,
    # in the worker, at its first attempt; meanwhile others may have made the next one
    "sends_after_its_lease": 4,
    "reports_after_its_lease": 4,
    "vouches_after_its_lease": 3,
}
CONTESTED_SHARE: Final = 0.05
"""How much of the work without such a pause every worker takes, with two threads at once."""


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """One piece of work: it is one effect, however many workers take it, and however often.

    ``name`` is what tells it apart in its run; two tenants may have an item of the same name.
    """

    schedule: int
    number: int
    name: int
    tenant: str
    tool: str
    trouble: str
    plans_first: bool
    is_contested: bool

    @property
    def facts(self) -> Tool:
        return TOOLS[self.tool]

    @property
    def run(self) -> str:
        # Runs of one tool: the calls of a run must agree on its version.
        return f"{self.schedule}-{self.tool}-{self.name // RUN_LENGTH}"

    @property
    def effect(self) -> str:
        return f"item-{self.name}"

    @property
    def begins_after(self) -> float:
        """The seconds after which it is there to be done."""
        return self.name * SECONDS_AN_ITEM

    @property
    def arguments(self) -> dict[str, Any]:
        # Not in the order of their names: that is the order in which they have to arrive.
        return {"trouble": self.trouble, "item": self.number}

    def fault(self, attempt: int, random: Random) -> str:
        """Return what an attempt meets at the provider, as a header `Fault`, or nothing."""
        is_pure = self.facts.effect_class == "PURE"
        match self.trouble:
            case "is_down_at_first" | "is_rate_limited" | "loses_the_request" as fault:
                return fault.removeprefix("is_").removesuffix("_at_first") if attempt == 1 else ""
            case "loses_the_answer" | "breaks" | "is_malformed" as fault:
                return fault if attempt == 1 or not is_pure else ""
            case "answers_late":
                return f"answers_late={random.uniform(0.2, 2.0)}"
            case _ if is_pure:
                return ""
            case "books_late":
                return f"accepts_late={random.uniform(0.1, BOOKS_LATE_SECONDS_MAX)}"
            case "settles_late":
                return f"settles_late={random.uniform(0.1, SETTLES_LATE_SECONDS_MAX)}"
            case "is_foreign" | "declines" as fault:
                return fault
            case _:
                return ""


def draw_items(seed: int, schedule: int, count: int) -> list[Item]:
    """Return the work of a schedule."""
    random = Random(f"{seed}:{schedule}:items")
    items: list[Item] = []
    for name in range(count):
        trouble = _weighted(random, TROUBLES)
        item = Item(
            schedule=schedule,
            number=len(items),
            name=name,
            tenant=TENANT,
            tool=_weighted(random, {tool: facts.share for tool, facts in TOOLS.items()}),
            trouble=trouble,
            plans_first=random.random() < 0.2,
            is_contested="after_its_lease" in trouble or random.random() < CONTESTED_SHARE,
        )
        items.append(item)
        if random.random() < TWINS_SHARE:
            twin = asdict(item) | {"number": len(items), "tenant": OTHER_TENANT, "trouble": "none"}
            items.append(Item(**twin))
    return items


def share_of(items: Sequence[Item], worker: int) -> list[Item]:
    """Return what one worker works on. All go through the work in one order, so that they meet."""
    share: list[Item] = []
    for item in items:
        if item.is_contested:
            share += [item, item]
        elif item.number % WORKERS == worker:
            share.append(item)
    return share


def save(items: Sequence[Item], path: Path) -> None:
    path.write_text(json.dumps([asdict(item) for item in items]))


def load(path: Path) -> list[Item]:
    return [Item(**item) for item in json.loads(path.read_text())]


def _weighted(random: Random, weights: dict[str, int]) -> str:
    return random.choices(list(weights), list(weights.values()))[0]
