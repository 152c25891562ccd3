"""What a run remembers, in one process: what the policy counts, and what tools have returned.

Everything that decides and everything that spends goes through one lock, so that two calls at once
cannot both have the last unit of a budget. Nothing is done in it but arithmetic.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Final, TypeAlias

from tallystick.canonical import MISSING, Json, Missing, canonical_bytes
from tallystick.errors import EffectConflict
from tallystick.gates.policy import decided
from tallystick.identifiers import (
    Identifier,
    Ownership,
    Returned,
    identifiers_in,
    owner_told,
)
from tallystick.policy import (
    Call,
    Decision,
    History,
    Limit,
    Policy,
    Verdict,
    captured,
    charges,
    window_start,
)
from tallystick.tool_contract import Contract

IDENTIFIERS_MAX: Final = 100_000

# Rules by their names; None stands for the contract, where that asks.
Approved: TypeAlias = frozenset[str | None]
NOT_APPROVED: Final[Approved] = frozenset()

# The limit, and since when it counts; of limits without a window, None.
_Window: TypeAlias = tuple[str, datetime | None]
# The tool that was asked, the places of identifier and owner, and the identifier.
_Owned: TypeAlias = tuple[str | None, str | None, str | None, Identifier]


@dataclass(slots=True)
class Spending:
    """What the runs of one process have spent together: limits of a tenant, under one lock.

    A budget that several processes share is the service's to keep.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    of_tenant: dict[tuple[str, _Window], Decimal] = field(
        default_factory=dict[tuple[str, _Window], Decimal]
    )


class Memory:
    """What one run remembers.

    Args:
        policy: The policy in force.
        tenant: Whose limits its calls count towards.
        subject: On whose behalf it acts; empty while nobody has said.
        spending: What the runs of this process have spent together.
    """

    def __init__(
        self, policy: Policy | None, tenant: str, subject: Mapping[str, Json], spending: Spending
    ) -> None:
        self._policy = policy
        self.subject = dict(subject)
        self._tenant = tenant
        self._spending = spending
        self._history = History()
        self._spent: dict[_Window, Decimal] = {}
        self._returned: dict[str, set[Identifier]] = {}
        self._owners: dict[_Owned, Identifier | None] = {}
        self._failed: set[str] = set()
        self._unsettled: set[str] = set()
        self._count = 0

    def set_subject(self, subject: Mapping[str, Json]) -> None:
        """Say on whose behalf the run acts, once and for all; the same again changes nothing.

        Raises:
            EffectConflict: The run acts for somebody else.
        """
        with self._spending.lock:
            if not self.subject:
                self.subject = dict(subject)
            elif canonical_bytes(self.subject) != canonical_bytes(dict(subject)):
                raise EffectConflict("The run acts for somebody else.")

    # --- policy -----------------------------------------------------------------------------------

    def decide(
        self, contract: Contract, call: Call, now: datetime, approved: Approved = NOT_APPROVED
    ) -> Verdict:
        """Decide about a call, and spend what it costs if it runs.

        Args:
            contract: Its contract.
            call: The call.
            now: The time that windows of limits go by.
            approved: The rules for which a person has approved it: it runs if no other asks.
        """
        with self._spending.lock:
            verdict = self._verdict(contract, call, now)
            asks = verdict.decision is Decision.NEEDS_HUMAN
            if verdict.decision is Decision.ALLOW or (asks and verdict.rule in approved):
                self._spend(call, now)
            return verdict

    def foresee(self, proposed: Iterable[tuple[Contract, Call]], now: datetime) -> list[Verdict]:
        """Decide about calls as if each had run that comes before it. Nothing is spent."""
        with self._spending.lock:
            kept = self._history, dict(self._spent), dict(self._spending.of_tenant)
            verdicts: list[Verdict] = []
            for contract, call in proposed:
                verdicts.append(self._verdict(contract, call, now))
                if verdicts[-1].decision is not Decision.BLOCK:
                    self._spend(call, now)
            self._history, self._spent, self._spending.of_tenant = kept
            return verdicts

    def _verdict(self, contract: Contract, call: Call, now: datetime) -> Verdict:
        history = self._history
        if self._policy is not None and self._policy.limits:
            spent = {each.name: self._read(each, now) for each in self._policy.limits}
            history = replace(history, spent=spent)
        return decided(contract, self._policy, call, history)

    def _read(self, limit: Limit, now: datetime) -> Decimal:
        window = (limit.name, window_start(limit, now))
        if limit.per == "tenant":
            return self._spending.of_tenant.get((self._tenant, window), Decimal(0))
        return self._spent.get(window, Decimal(0))

    def _spend(self, call: Call, now: datetime) -> None:
        if self._policy is None:
            return
        self._history = self._history.dispatched(call, self._policy)
        if not self._policy.limits:
            return
        self._history = History(self._history.tallies, self._history.facts)
        for charge in charges(self._policy, call):
            window = (charge.limit.name, window_start(charge.limit, now))
            after = self._read(charge.limit, now) + charge.units
            if charge.limit.per == "tenant":
                self._forget_windows(window)
                self._spending.of_tenant[self._tenant, window] = after
            else:
                self._spent[window] = after

    def _forget_windows(self, current: _Window) -> None:
        """Drop what was spent in windows of this limit that are over."""
        name, _ = current
        over = [
            each
            for each in self._spending.of_tenant
            if each[0] == self._tenant and each[1][0] == name and each[1] != current
        ]
        for each in over:
            del self._spending.of_tenant[each]

    # --- results ----------------------------------------------------------------------------------

    def succeeded(
        self, call: Call, result: Json | Missing, ownerships: Iterable[Ownership], *, keep: bool
    ) -> None:
        """Keep what a successful call told.

        Args:
            call: The call.
            result: Its result; `MISSING` if it is none to go by.
            ownerships: The declarations that ask this tool who owns an object.
            keep: Whether a contract asks which identifiers it has returned.
        """
        facts = (
            ()
            if self._policy is None or isinstance(result, Missing)
            else captured(self._policy, call, result)
        )
        with self._spending.lock:
            self._history = self._history.succeeded(call.tool, facts)
            if isinstance(result, Missing):
                return
            if keep:
                self._keep_identifiers(call.tool, result)
            self.told_owners(call, result, ownerships)

    def told_owners(
        self, call: Call, result: Json | Missing, ownerships: Iterable[Ownership]
    ) -> None:
        """Keep who owns an object by what a tool told that declarations ask for it."""
        if isinstance(result, Missing):
            return
        for each in ownerships:
            told = owner_told(each, dict(call.arguments), result)
            if told is not None:
                self._owners[_owned(each, told[0])] = told[1]

    def _keep_identifiers(self, tool: str, result: Json) -> None:
        returned = self._returned.setdefault(tool, set())
        for each in identifiers_in(result):
            if self._count >= IDENTIFIERS_MAX:
                return
            before = len(returned)
            returned.add(each)
            self._count += len(returned) - before

    def was_returned(self, source: Returned, identifier: Identifier) -> bool:
        """Tell whether a tool that counts has returned an identifier in this run."""
        tools = self._returned.keys() if source.tools is None else source.tools
        return any(identifier in self._returned.get(tool, ()) for tool in [*tools])

    def owner(self, ownership: Ownership, identifier: Identifier) -> Identifier | Missing | None:
        """Return who owns an object by what a tool told in this run; `MISSING` if none did."""
        return self._owners.get(_owned(ownership, identifier), MISSING)

    # --- failures ---------------------------------------------------------------------------------

    def failed(self, fingerprint: str, *, is_unsettled: bool) -> None:
        """Keep that a call failed, and whether nobody knows what it did."""
        with self._spending.lock:
            self._failed.add(fingerprint)
            if is_unsettled:
                self._unsettled.add(fingerprint)

    def recovered(self, fingerprint: str) -> None:
        """Forget that a call failed before: it has succeeded."""
        self._failed.discard(fingerprint)

    @property
    def has_failures(self) -> bool:
        """Whether any call of the run has failed."""
        return bool(self._failed)

    def has_failed(self, fingerprint: str) -> bool:
        """Tell whether this call failed when it was made last."""
        return fingerprint in self._failed

    def is_unsettled(self, fingerprint: str) -> bool:
        """Tell whether this call was made, and nobody knows what it did."""
        return fingerprint in self._unsettled


def _owned(ownership: Ownership, identifier: Identifier) -> _Owned:
    return ownership.tool, ownership.asked, ownership.owner, identifier
