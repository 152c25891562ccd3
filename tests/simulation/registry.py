"""The registry and the rollout, over the same store: what may run, and how a version goes."""

from collections.abc import Generator
from datetime import timedelta
from typing import Final, TypeVar

from ledger.state import State
from registry.lease import Lease
from rollout.retirement import References
from tallystick.errors import ContractInUse
from tallystick.resolution import Lifecycle, Purpose
from tests.simulation.engine import Engine
from tests.simulation.product import Product
from tests.simulation.store import Store, Version

T = TypeVar("T")
Transaction = Generator[float, None, T]

LEASE_SECONDS_MAX: Final = 8.0
"""How long a resolution may be relied on."""
OPEN_SECONDS_MAX: Final = 1.0
"""How long a transaction holds its locks before it commits."""


class Registry:
    """What may run. Everyone locks a version before its credential."""

    def __init__(self, engine: Engine, product: Product, store: Store) -> None:
        self._engine = engine
        self._product = product
        self._store = store

    def check(self, version: Version, credential: int, purpose: Purpose) -> None:
        """Refuse a version that may not run. Raises as `tallystick.resolution.check` does."""
        capabilities = version.contract.capabilities_for(version.tenant)
        reference = version.contract.reference(
            credential_version=credential, capabilities=capabilities
        )
        self._product.check(reference, version.standing(), capabilities, purpose)

    def share(self, version: Version) -> Transaction[None]:
        """Lock what a dispatch goes by."""
        yield from version.lock.share()
        try:
            yield from version.slot.lock.share()
        except GeneratorExit:
            version.lock.shares -= 1
            raise

    def unshare(self, version: Version) -> None:
        version.slot.lock.shares -= 1
        version.lock.shares -= 1

    def newest(self, version: Version) -> Version:
        """Return the newest version of the same tool of the same tenant."""
        same = (version.tenant, version.contract.name)
        return [one for one in self._store.versions if (one.tenant, one.contract.name) == same][-1]

    # --- the rollout and the operator -----------------------------------------------------------

    def resolve_tool(self, version: Version) -> Lease:
        """Answer a resolution. Raises what `tallystick.resolution.check` does."""
        self.check(version, version.bound, Purpose.PLAN)
        now = self._store.now
        return Lease(version.contract_id, now, now + timedelta(seconds=LEASE_SECONDS_MAX))

    def close(self, version: Version) -> None:
        """Put up the closing mark: the first half of a retirement."""
        if version.closed_at is None and version.lifecycle is Lifecycle.ACTIVE:
            version.closed_at = self._store.now
            self._engine.note("rollout", f"closes {version.contract.version}")

    def retire(self, version: Version) -> Transaction[None]:
        """Retire a closed version: the second half. Raises ContractInUse."""
        yield from version.lock.take(awaits=self._product.awaits_dispatches)
        try:
            yield self._engine.chance.between(0.0, OPEN_SECONDS_MAX)
            if version.lifecycle is Lifecycle.RETIRED or version.closed_at is None:
                return
            found = self._product.blockers(
                self._references(version),
                closed_at=version.closed_at,
                lease_seconds_max=LEASE_SECONDS_MAX,
                now=self._store.now,
            )
            if found:
                raise ContractInUse("Something refers to it.")
            version.lifecycle = Lifecycle.RETIRED
            version.retired_at = self._store.now
            self._engine.note("rollout", f"retires {version.contract.version}")
        finally:
            version.lock.is_taken = False

    def _references(self, version: Version) -> list[References]:
        many: dict[State, int] = {}
        for record in self._store.records.values():
            if record.version is version and record.open is not None:
                many[record.open.state] = many.get(record.open.state, 0) + 1
        return [References("effects", state, count, None) for state, count in many.items()]

    def reopen(self, version: Version) -> Transaction[None]:
        """Reopen a closed version."""
        yield from version.lock.take()
        try:
            if version.lifecycle is not Lifecycle.RETIRED and version.closed_at is not None:
                version.closed_at = None
                self._engine.note("rollout", f"reopens {version.contract.version}")
        finally:
            version.lock.is_taken = False

    def rotate(self, version: Version) -> Transaction[None]:
        """Give the credential of a version a new number, once no dispatch goes by the old one."""
        yield from version.slot.lock.take()
        try:
            version.slot.current += 1
            self._engine.note("operator", f"rotates the credential to {version.slot.current}")
        finally:
            version.slot.lock.is_taken = False

    def attest(self, version: Version) -> Transaction[None]:
        """Bind a version to its credential as it is now."""
        yield from version.lock.take()
        version.bound = version.slot.current
        version.lock.is_taken = False

    def suspend(self, version: Version, *, suspended: bool) -> Transaction[None]:
        """Suspend a version, or let it run again."""
        yield from version.lock.take()
        version.suspended = suspended
        version.lock.is_taken = False
        self._engine.note("operator", f"suspended is {suspended}: {version.contract.version}")
