"""Products with one part broken, each with the rule that has to tell.

A rule that no broken product breaks says nothing.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from ledger import admission, approval, completion, identity, settlement
from ledger.effect import Ending, OpenEffect, Step, last_step
from ledger.evidence import Act, Answer
from ledger.identity import EffectId
from ledger.state import State
from reconciler.judgement import judge
from tallystick.errors import ContractSuspended, CredentialPolicyChanged
from tallystick.resolution import check
from tallystick.tool_contract import Contract
from tests.simulation import rules
from tests.simulation.catalogue import with_source
from tests.simulation.product import Product


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken product, and a rule that it breaks."""

    product: Product
    rule: Callable[..., Any]


# --- decisions ------------------------------------------------------------------------------------


def _owns_by_state(_: object, before: OpenEffect | None) -> bool:
    return before is not None and before.state is State.DISPATCHED


def _back_to_planned(before: OpenEffect, contract: Contract, **told: Any) -> Step:
    step = settlement.overdue(before, contract, **told)
    if before.state is not State.DISPATCHED:
        return step
    assert isinstance(step.after, OpenEffect)
    return replace(
        step, to_state=State.PLANNED, after=replace(step.after, state=State.PLANNED, due_at=None)
    )


def _retryable_at_once(before: OpenEffect, contract: Contract, **told: Any) -> Step:
    step = settlement.overdue(before, contract, **told)
    if before.state is not State.DISPATCHED:
        return step
    assert isinstance(step.after, OpenEffect)
    return replace(
        step,
        to_state=State.RETRYABLE,
        after=replace(step.after, state=State.RETRYABLE, due_at=None),
    )


def _dispatched_by_anyone(before: OpenEffect, *told: Any) -> admission.Decision:
    decision = admission.decide(before, *told)
    return replace(decision, owned=decision.owned or before.state is State.DISPATCHED)


def _absent_is_failed(
    before: OpenEffect, contract: Contract, finding: Any, *rest: Any, **told: Any
):
    if finding is None or finding.answer != Answer.ABSENT:
        return settlement.settle(before, contract, finding, *rest, **told)
    return last_step(
        before, "T6", State.FAILED, actor=told["actor"], reason="absent", at=told["now"]
    )


def _unavailable_is_applied(
    before: OpenEffect, contract: Contract, finding: Any, *rest: Any, **told: Any
) -> Step:
    if finding is None or finding.answer != Answer.UNAVAILABLE:
        return settlement.settle(before, contract, finding, *rest, **told)
    return last_step(
        before, "T6", State.SUCCEEDED, actor=told["actor"], reason="hoped", at=told["now"]
    )


def _one_absent_is_enough(
    before: OpenEffect, contract: Contract, finding: Any, evidence: Any, **told: Any
) -> Step:
    if finding is not None and finding.answer == Answer.ABSENT:
        earlier = replace(finding, evidence_id=None, observed_at=told["now"])
        evidence = [*evidence, replace(earlier, observed_at=finding.observed_at)]
        finding = replace(finding, observed_at=told["now"])
    return settlement.settle(before, contract, finding, evidence, **told)


def _fails_without_doubt(before: OpenEffect, contract: Contract, report: Any, *rest: Any) -> Step:
    if report.verdict is not completion.Verdict.UNKNOWN:
        return completion.decide(before, contract, report, *rest)
    return last_step(
        before,
        "T3",
        State.FAILED,
        actor=report.actor,
        reason="no answer",
        at=rest[-1],
        ending=Ending(error_code="timeout"),
    )


def _reads_unbound(contract: Contract, question: Any, status: int, body: bytes):
    assert contract.evidence is not None
    assert contract.evidence.answer is not None
    form = replace(contract.evidence.answer, bind=None, match={})
    return judge(with_source(contract, answer=form), question, status, body)


def _closed_stays_closed(state: State, *_: Any, **__: Any) -> Act:
    return Act.KEEP


def _suspended_runs(*told: Any) -> None:
    with suppress(ContractSuspended):
        check(*told)


def _rotated_runs(*told: Any) -> None:
    with suppress(CredentialPolicyChanged):
        check(*told)


def _waits_for_nobody(given: approval.Approval, *_: Any) -> None:
    return None


def _one_key_for_all(_: object, effect_id: EffectId) -> str:
    return identity.provider_key(effect_id.run_id, EffectId(effect_id.run_id, 1))


# --- contracts ------------------------------------------------------------------------------------


def _remembers_for_ever(contract: Contract) -> Contract:
    if contract.idempotency is None:
        return contract
    forever = replace(contract.idempotency, retention_seconds=10**6)
    return replace(contract, idempotency=forever)


def _settles_at_once(contract: Contract) -> Contract:
    return replace(with_source(contract, lag_seconds=0.0), settle_seconds=0.0)


def _sees_at_once(contract: Contract) -> Contract:
    return with_source(contract, consistency="read_after_write")


def _accepts_duplicates(contract: Contract) -> Contract:
    return replace(contract, max_duplicates=9, attempts_max=99)


MUTANTS: Final = {
    "sends without an acknowledgement": Mutant(
        Product(sends_unacknowledged=True), rules.rule_01_nothing_is_sent_before_it_is_durable
    ),
    "lets everybody send what is dispatched": Mutant(
        Product(admit=_dispatched_by_anyone), rules.rule_01_nothing_is_sent_before_it_is_durable
    ),
    "takes a report under any fence": Mutant(
        Product(is_owner=_owns_by_state), rules.rule_02_a_stale_fence_changes_nothing
    ),
    "settles under any fence": Mutant(
        Product(checks_fence_before_settling=False), rules.rule_02_a_stale_fence_changes_nothing
    ),
    "forgets late reports": Mutant(
        Product(keeps_late_reports=False), rules.rule_02_a_stale_fence_changes_nothing
    ),
    "takes other arguments for the same call": Mutant(
        Product(compares_arguments=False), rules.rule_03_one_identity_and_one_place
    ),
    "keeps the open row of what is closed": Mutant(
        Product(closes_what_ended=False), rules.rule_03_one_identity_and_one_place
    ),
    "plans a lost lease anew": Mutant(
        Product(overdue=_back_to_planned), rules.rule_04_what_runs_once_is_sent_once
    ),
    "retries a lost lease": Mutant(
        Product(overdue=_retryable_at_once), rules.duplicates_are_bounded
    ),
    "retries after the key's horizon": Mutant(
        Product(reads=_remembers_for_ever), rules.rule_05_a_key_makes_one_effect
    ),
    "runs the newest contract": Mutant(
        Product(runs_the_recorded_contract=False),
        rules.rule_06_all_attempts_carry_the_recorded_contract,
    ),
    "mixes versions in a run": Mutant(
        Product(keeps_one_version_a_run=False), rules.rule_07_a_run_uses_one_version
    ),
    "retires without waiting for dispatches": Mutant(
        Product(awaits_dispatches=False), rules.rule_08_a_version_that_may_not_run_does_not
    ),
    "retires whatever refers to it": Mutant(
        Product(blockers=lambda *_, **__: ()), rules.rule_08_a_version_that_may_not_run_does_not
    ),
    "dispatches what is suspended": Mutant(
        Product(check=_suspended_runs), rules.rule_08_a_version_that_may_not_run_does_not
    ),
    "dispatches under an old credential": Mutant(
        Product(check=_rotated_runs), rules.rule_08_a_version_that_may_not_run_does_not
    ),
    "believes an early absent": Mutant(
        Product(reads=_settles_at_once), rules.rule_09_absent_is_believed_only_when_it_counts
    ),
    "believes one absent": Mutant(
        Product(settle=_one_absent_is_enough), rules.rule_09_absent_is_believed_only_when_it_counts
    ),
    "believes a source that lags": Mutant(
        Product(reads=_sees_at_once), rules.rule_09_absent_is_believed_only_when_it_counts
    ),
    "loses an event": Mutant(
        Product(keeps_every_event=False), rules.rule_10_the_records_replay_to_the_state
    ),
    "writes without comparing": Mutant(
        Product(compares_and_sets=False), rules.rule_10_the_records_replay_to_the_state
    ),
    "shows rows of other tenants": Mutant(
        Product(hides_other_tenants=False), rules.rule_11_a_tenant_sees_its_own
    ),
    "never sweeps": Mutant(
        Product(sweeps=False), rules.rule_12_every_outcome_agrees_with_the_books
    ),
    "takes absent for failed": Mutant(
        Product(settle=_absent_is_failed), rules.rule_12_every_outcome_agrees_with_the_books
    ),
    "takes no answer for success": Mutant(
        Product(settle=_unavailable_is_applied), rules.rule_12_every_outcome_agrees_with_the_books
    ),
    "takes no answer for failure": Mutant(
        Product(report=_fails_without_doubt), rules.rule_12_every_outcome_agrees_with_the_books
    ),
    "takes an answer about something else": Mutant(
        Product(judge=_reads_unbound), rules.rule_12_every_outcome_agrees_with_the_books
    ),
    "does not listen to what comes late": Mutant(
        Product(act=_closed_stays_closed), rules.rule_12_every_outcome_agrees_with_the_books
    ),
    "gives two effects one key": Mutant(
        Product(provider_key=_one_key_for_all), rules.rule_05_a_key_names_one_effect
    ),
    "asks nobody": Mutant(Product(why_not=_waits_for_nobody), rules.a_person_was_asked),
    "repeats without end": Mutant(Product(reads=_accepts_duplicates), rules.duplicates_are_bounded),
}
