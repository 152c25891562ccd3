"""Draws a schedule, runs it, and lets time go on without faults until nothing moves any more."""

from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from ledger.identity import EffectId, number_of
from tests.simulation.catalogue import TOOLS, Tool
from tests.simulation.chance import Chance
from tests.simulation.dispatching import Dispatching
from tests.simulation.engine import STEPS_MAX, Engine, Faults, Script
from tests.simulation.operators import (
    approver,
    operator,
    reconciler,
    retirement,
    rotation,
    suspension,
)
from tests.simulation.product import Product
from tests.simulation.provider import Provider
from tests.simulation.registry import Registry
from tests.simulation.settling import Settling
from tests.simulation.site import Item, Site
from tests.simulation.store import Slot, Store, Version
from tests.simulation.worker import worker

FAULT_SECONDS: Final = 90.0
REST_SECONDS: Final = 120.0
"""Longer than any pause, delay or late message that is still to come when the faults stop."""
SETTLED_SECONDS_MAX: Final = 40_000.0
"""By then a provider has been asked as often as it ever is."""

RATES: Final = {
    "kill": 0.01,
    "pause": 0.02,
    "lost_question": 0.1,
    "lost_acknowledgement": 0.1,
    "repeated_question": 0.1,
    "lost_request": 0.1,
    "stuck_request": 0.15,
    "repeated_request": 0.2,
    "lost_answer": 0.3,
    "outage": 0.2,
    "slow_acceptance": 0.3,
    "tardy_acceptance": 0.3,
    "whim": 0.1,
    "look_up_outage": 0.2,
    "malformed_answer": 0.1,
    "foreign_answer": 0.1,
    "stale_look_up": 0.5,
    "lost_evidence": 0.1,
    "repeated_webhook": 0.3,
    "dawdling": 0.1,
    "silence": 0.2,
    "late_report": 0.15,
    "conflicting_call": 0.1,
    "foreign_id": 0.1,
    "own_approval": 0.2,
    "cancellation": 0.05,
}
"""How likely each kind of fault is, each time that it could happen, in a schedule that has it."""


@dataclass(slots=True)
class Schedule:
    """One schedule after its end: what to judge, and how to see it again."""

    site: Site

    @property
    def choices(self) -> list[float]:
        return self.site.engine.chance.choices

    @property
    def trace(self) -> list[tuple[float, str, str, str]]:
        return self.site.engine.trace

    @property
    def faults(self) -> dict[str, int]:
        return self.site.engine.faults.met


def run(chance: Chance, product: Product) -> Schedule:
    """Run one schedule to its end."""
    engine = Engine(chance, _faults(chance))
    store = Store(engine, product)
    registry = Registry(engine, product, store)
    tenants = ("acme", "globex") if chance.happens(0.2) else ("acme",)
    for tenant in tenants:
        for tool in _tools(chance):
            _publish(store, tenant, tool)
    site = Site(
        engine,
        product,
        store,
        registry,
        Dispatching(engine, product, store, registry),
        Settling(engine, product, store),
        Provider(engine, is_visible_early=chance.happens(0.5)),
        sends_webhooks=chance.happens(0.3),
    )
    _draw_items(site, chance)
    _start(site, chance, tenants)
    engine.run(FAULT_SECONDS)
    _heal(site)
    _settle(site)
    return Schedule(site)


def _faults(chance: Chance) -> Faults:
    """Draw which kinds of fault a schedule has: some have few, and some have all of them."""
    share = chance.pick((0.0, 0.2, 0.4, 0.7, 1.0))
    return Faults({kind: rate for kind, rate in RATES.items() if chance.happens(share)})


def _tools(chance: Chance) -> list[Tool]:
    # Later ones in this list are the more troublesome.
    classes = ("PURE", "IDEMPOTENT", "IDEMPOTENT", "NON_RETRYABLE", "REPLAYABLE", "UNKNOWN")
    return [chance.pick(TOOLS[chance.pick(classes)]) for _ in range(1)]


def _publish(store: Store, tenant: str, tool: Tool) -> None:
    slot = Slot()
    for contract in tool.versions:
        contract_id = UUID(int=len(store.versions) + 1)
        store.versions.append(Version(contract_id, contract, tenant, slot))


def _draw_items(site: Site, chance: Chance) -> None:
    for number in range(1 + chance.pick((0, 1, 1, 2))):
        version = chance.pick(site.store.versions)
        site.items.append(
            Item(
                tenant=version.tenant,
                run=f"run-{chance.pick((0, 0, 1))}",
                effect=f"effect-{number if chance.happens(0.8) else 0}",
                version=version,
                amount=100 + number,
                origin="queue" if chance.happens(0.2) else "runtime",
                arrives_at=chance.between(0.0, 60.0) if chance.happens(0.4) else 0.0,
                plans_first=chance.happens(0.2),
                deadline_seconds=20.0 if chance.happens(0.1) else None,
            )
        )
        if chance.happens(0.15):
            site.provider.declined.add(_id_of(site, site.items[-1]))


def _id_of(site: Site, item: Item) -> str:
    run_id = site.store.run_id(item.tenant, item.run)
    return str(EffectId(run_id, number_of(f"effect:{item.effect}")))


def _start(site: Site, chance: Chance, tenants: tuple[str, ...]) -> None:
    spawn = site.engine.spawn
    for tenant in tenants:
        for number in range(1 + chance.pick((0, 1, 1))):
            spawn(f"worker {number} of {tenant}", partial(worker, site, tenant))
    for number in range(1 + chance.pick((0, 1))):
        spawn(f"reconciler-{number}", partial(reconciler, site, f"reconciler-{number}"))
    if any(one.contract.approval == "always" for one in site.store.versions):
        spawn("approver", partial(approver, site))
    for happens, name, script in (
        (0.4, "retirement", retirement),
        (0.2, "rotation", rotation),
        (0.1, "suspension", suspension),
    ):
        if chance.happens(happens):
            version = chance.pick(site.store.versions)
            spawn(name, partial(script, site, version))
    if chance.happens(0.5):
        spawn("operator", partial(operator, site))


def _heal(site: Site) -> None:
    """End the faults, and finish what an operator had begun."""
    site.engine.faults.are_on = False
    site.engine.note("the faults", "are over")

    def script() -> Script:
        for version in site.store.versions:
            yield from site.registry.suspend(version, suspended=False)
            yield from site.registry.attest(version)

    site.engine.spawn("healing", script, is_mortal=False)


def _settle(site: Site) -> None:
    """Let time pass until every effect is over, and stays so."""

    def is_over() -> bool:
        return all(record.is_over for record in site.store.records.values())

    engine = site.engine
    while engine.now < SETTLED_SECONDS_MAX and engine.steps < STEPS_MAX:
        engine.run(engine.now + REST_SECONDS)
        if is_over():
            break
        engine.run(SETTLED_SECONDS_MAX, is_over=is_over)
