"""The parts of the product that a schedule runs on: each is real, unless a mutant replaces it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ledger import admission, approval, completion, evidence, identity, quarantine, settlement
from reconciler import judgement
from rollout import retirement
from tallystick import resolution
from tallystick.tool_contract import Contract


@dataclass(frozen=True, slots=True)
class Product:
    """The pure decisions, and what the code around them and the database promise."""

    # decisions
    check: Callable[..., None] = resolution.check
    admit: Callable[..., admission.Decision] = admission.decide
    contradicted: Callable[..., Any] = admission.contradicted
    is_owner: Callable[..., bool] = completion.is_owner
    report: Callable[..., Any] = completion.decide
    overdue: Callable[..., Any] = settlement.overdue
    claim: Callable[..., Any] = settlement.claim
    settle: Callable[..., Any] = settlement.settle
    act: Callable[..., evidence.Act] = evidence.act
    cancel: Callable[..., Any] = settlement.cancel
    resolve: Callable[..., quarantine.Decision] = quarantine.resolve
    judge: Callable[..., judgement.Judgement] = judgement.judge
    blockers: Callable[..., Any] = retirement.blockers
    why_not: Callable[..., Any] = approval.why_not
    provider_key: Callable[..., str] = identity.provider_key
    reads: Callable[[Contract], Contract] = lambda contract: contract
    """The contract, as the decisions about an effect see it."""

    # the code around them
    compares_arguments: bool = True
    keeps_late_reports: bool = True
    checks_fence_before_settling: bool = True
    runs_the_recorded_contract: bool = True
    sweeps: bool = True
    sends_unacknowledged: bool = False

    # the database
    compares_and_sets: bool = True
    awaits_dispatches: bool = True
    keeps_one_version_a_run: bool = True
    hides_other_tenants: bool = True
    keeps_every_event: bool = True
    closes_what_ended: bool = True
