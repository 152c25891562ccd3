"""The twelve rules that always hold, each judged against the provider's books, and two beside them.

What no ledger can hold is left out of a rule by name: `Booking.is_timely` is false for a request
that was sent after its lease, because its worker was paused between the look at its clock and the
first byte, and for one that took longer than the settle window. Only a provider that enforces a key
stands in for that. What is known of such an effect has to be said all the same.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ledger.approval import Status
from ledger.effect import Event, OpenEffect, replay
from ledger.evidence import LATE_WORKER, Answer
from ledger.settlement import CHECKS_MAX
from ledger.state import CLOSED, State
from tallystick.canonical import canonical_bytes
from tallystick.effect_class import EffectClass
from tallystick.errors import IllegalTransition
from tallystick.resolution import Lifecycle
from tests.owners import ended_by_another
from tests.simulation.catalogue import LEASE_SECONDS, ONCE
from tests.simulation.provider import Booking, Request
from tests.simulation.schedule import Schedule
from tests.simulation.store import EPOCH, Record, Settlement


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule: which, of which effect, and how it shows."""

    rule: str
    about: str
    what: str


@dataclass(slots=True)
class Case:
    """One effect, as the ledger and as the provider has it."""

    schedule: Schedule
    record: Record
    sent: list[Request] = field(default_factory=list[Request])
    bookings: list[Booking] = field(default_factory=list[Booking])

    @property
    def effect_class(self) -> EffectClass:
        return self.record.effect.effect_class

    @property
    def dispatched(self) -> list[Event]:
        return [one for one in self.record.events if one.to_state == "DISPATCHED"]


Rule = Callable[[Case], Iterator[str]]


def judge(schedule: Schedule) -> list[Fault]:
    """Return every broken rule of a schedule."""
    cases = {record.id: Case(schedule, record) for record in schedule.site.store.records.values()}
    faults: list[Fault] = []
    for request in schedule.site.provider.sent:
        if request.effect_id in cases:
            cases[request.effect_id].sent.append(request)
        else:
            faults.append(Fault(RULES[0].__name__, request.effect_id, "sent, and never recorded"))
    for booking in schedule.site.provider.bookings:
        if booking.request.effect_id in cases:
            cases[booking.request.effect_id].bookings.append(booking)
    for case in cases.values():
        faults += [
            Fault(rule.__name__, case.record.id, what) for rule in RULES for what in rule(case)
        ]
    return faults + [
        Fault(rule.__name__, about, what) for rule in SITE_RULES for about, what in rule(schedule)
    ]


def rule_01_nothing_is_sent_before_it_is_durable(case: Case) -> Iterator[str]:
    """No byte goes out before a durable DISPATCHED row with that fence, acknowledged; one each."""
    rows = {one.fence: one for one in case.dispatched}
    fences: set[int] = set()
    for request in case.sent:
        row = rows.get(request.fence)
        if row is None or row.actor != request.worker or _seconds(row.at) > request.sent_at:
            yield f"{request.worker} sent with fence {request.fence}, and no row allows that"
        if not request.is_acknowledged:
            yield f"fence {request.fence} was sent without an acknowledged commit"
        if request.fence in fences:
            yield f"two requests have fence {request.fence}"
        fences.add(request.fence)


def rule_02_a_stale_fence_changes_nothing(case: Case) -> Iterator[str]:
    """Only the owner ends its attempt or its claim; what a late worker says is kept."""
    yield from ended_by_another(case.record.events)
    kept = {(one.fence, one.answer) for one in case.record.evidence if one.source == LATE_WORKER}
    for record, told in case.schedule.site.settling.late_reports:
        if record is case.record and told.answer and (told.fence, told.answer) not in kept:
            yield f"the late report with fence {told.fence} is lost"


def rule_03_one_identity_and_one_place(case: Case) -> Iterator[str]:
    """One effect id has one fingerprint; an effect is open or has a current outcome, never both."""
    record = case.record
    for answered, arguments in case.schedule.site.dispatching.accepted:
        if answered is record and arguments != record.effect.arguments:
            yield f"another call, {arguments}, was answered with this effect"
    last = record.events[-1]
    is_closed = last.to_state in CLOSED
    outcome = record.outcomes[-1] if record.outcomes else None
    if record.open is not None and is_closed:
        yield "it is closed, and has an open row"
    if is_closed and (outcome is None or outcome.fence != last.fence):
        yield "it is closed, and has no outcome that says so"
    if not is_closed and record.open is None:
        yield "it is open, and has no open row"
    revisions = [(one.revision, one.fence) for one in record.outcomes]
    if revisions != sorted(revisions):
        yield "a later revision of the outcome has an older fence"


def rule_04_what_runs_once_is_sent_once(case: Case) -> Iterator[str]:
    """An effect of class UNKNOWN or NON_RETRYABLE reaches the provider at most once, ever."""
    if case.effect_class in ONCE and len(case.sent) > 1:
        yield f"it was sent {len(case.sent)} times"


def rule_05_a_key_makes_one_effect(case: Case) -> Iterator[str]:
    """An IDEMPOTENT effect is applied once, by equal requests, all within the key's horizon.

    A whole lease is left as a margin for a worker that pauses and a network that is slow; what
    comes later than that is beyond what any margin could hold.
    """
    if case.effect_class is not EffectClass.IDEMPOTENT:
        return
    if len({(one.key, one.body, one.version) for one in case.sent}) > 1:
        yield "the requests differ"
    if any(not one.key for one in case.sent):
        yield "a request has no key"
    prompt = [
        one for one in case.bookings if one.arrived_at <= one.request.lease_until + LEASE_SECONDS
    ]
    if len(prompt) > 1:
        yield f"it was applied {len(prompt)} times"
    idempotency = case.record.version.contract.idempotency
    assert idempotency is not None
    for event in case.dispatched[1:]:
        until = event.at + timedelta(seconds=2 * LEASE_SECONDS)
        if until > case.dispatched[0].at + timedelta(seconds=idempotency.retention_seconds):
            yield f"the attempt with fence {event.fence} does not fit into the key's horizon"


def rule_06_all_attempts_carry_the_recorded_contract(case: Case) -> Iterator[str]:
    """All attempts of an effect carry one contract, the recorded one, never the newest."""
    effect = case.record.effect
    for attempt in case.record.attempts:
        if attempt.contract_id != effect.contract_id:
            yield f"attempt {attempt.row.attempt} carries another contract"
    for request in case.sent:
        if request.version != effect.version:
            yield f"fence {request.fence} was sent as {request.version}, not {effect.version}"
        if request.body != canonical_bytes(effect.arguments).decode():
            yield f"fence {request.fence} was sent with other arguments than are recorded"


def rule_08_a_version_that_may_not_run_does_not(case: Case) -> Iterator[str]:
    """A retired or suspended version gets no dispatch, and has no open effect but quarantined ones.

    Nor does one whose credential has changed since the effect was planned.
    """
    for attempt in case.record.attempts:
        standing, fence = attempt.standing, attempt.row.fence
        if standing.lifecycle is Lifecycle.RETIRED or standing.suspended:
            yield f"fence {fence} was dispatched on a version that was retired or suspended"
        used = case.record.effect.credential_version
        if not used == standing.credential_bound == standing.credential_current:
            yield f"fence {fence} was dispatched under a credential that had changed"
    retired_at = case.record.version.retired_at
    if retired_at is None:
        return
    earlier = [one for one in case.record.events if one.at <= retired_at]
    if earlier and earlier[-1].to_state not in CLOSED | {State.QUARANTINED}:
        yield f"its version was retired while it was {earlier[-1].to_state}"
    for event in case.record.events[len(earlier) :]:
        if event.to_state not in CLOSED | {State.QUARANTINED}:
            yield f"it became {event.to_state} after its version was retired"


def rule_09_absent_is_believed_only_when_it_counts(case: Case) -> Iterator[str]:
    """`absent` before the settle window, or from a source that may not show it, changes nothing.

    Where it was believed, it was so: nothing that kept time had been booked, or was booked later.
    """
    contract = case.record.version.contract
    for one in case.record.settlements:
        if not _believed_absent(one):
            continue
        assert one.finding is not None
        assert one.before.unknown_since is not None
        evidence = contract.evidence
        if evidence is None or evidence.consistency != "read_after_write":
            yield f"fence {one.step.fence}: the source may not show it yet"
            continue
        wait = timedelta(seconds=contract.settle_seconds + evidence.lag_seconds)
        if one.finding.observed_at < one.before.unknown_since + wait:
            yield f"fence {one.step.fence}: the settle window was not over"
        if not _was_absent_before(case.record, one, one.before.unknown_since + wait):
            yield f"fence {one.step.fence}: it was said only once"
        for booking in case.bookings:
            if booking.is_timely and booking.request.fence < one.step.fence:
                yield f"fence {one.step.fence}: {booking.reference} was there, or came in time"


def _believed_absent(one: Settlement) -> bool:
    """Tell whether a step rests on "absent": not on having been asked in vain for long enough."""
    if one.finding is None or one.finding.answer != Answer.ABSENT:
        return False
    after = one.step.after
    if isinstance(after, OpenEffect) and after.state is State.RETRYABLE:
        return after.unaccounted == one.before.unaccounted
    is_over = one.step.to_state is not State.UNKNOWN
    return is_over and "absent" in one.step.reason and one.before.checks + 1 < CHECKS_MAX


def _was_absent_before(record: Record, one: Settlement, settled_at: datetime) -> bool:
    """Tell whether the source had said so before, after the window, and nobody otherwise since."""
    assert one.finding is not None
    evidence = record.version.contract.evidence
    assert evidence is not None
    attempt = max(it.row.fence for it in record.attempts if it.row.fence < one.step.fence)
    heard = record.evidence[: record.evidence.index(one.finding)]
    # What was asked before the attempt says nothing of it, however late it was recorded.
    for earlier in reversed([it for it in heard if it.fence >= attempt]):
        if (earlier.source, earlier.answer) != (one.finding.source, Answer.ABSENT):
            return False
        apart = one.finding.observed_at - earlier.observed_at
        if apart >= timedelta(seconds=evidence.lag_seconds) and earlier.observed_at >= settled_at:
            return True
    return False


def rule_10_the_records_replay_to_the_state(case: Case) -> Iterator[str]:
    """Every change is an append-only record, and the records replay to the state."""
    record = case.record
    try:
        state, fence, attempt = replay(record.events)
    except (ValueError, IllegalTransition) as fault:
        yield f"the events do not replay: {fault}"
        return
    if state != record.state or attempt != len(record.attempts):
        yield f"the events replay to {state} after {attempt} attempts"
    if record.open is not None and record.open.fence != fence:
        yield f"the open row has fence {record.open.fence}, and the last event {fence}"
    written = case.schedule.site.store.journal[record.effect.id]
    if written != [(one.fence, one.to_state) for one in record.events]:
        yield "what was written is not what stands there"


def rule_12_every_outcome_agrees_with_the_books(case: Case) -> Iterator[str]:
    """When faults stop, every effect becomes closed or QUARANTINED, and agrees with the books."""
    record = case.record
    if not record.is_over:
        yield f"it is left {record.state}"
        return
    if case.effect_class is EffectClass.PURE:
        if case.bookings:
            yield "a read has booked something"
        return
    is_no = record.state in {State.FAILED, State.REFUSED, State.CANCELLED}
    if record.state is State.SUCCEEDED:
        told = record.outcomes[-1].ending.provider_reference
        references = {one.reference for one in case.bookings}
        if not references or (told and told not in references):
            yield f"it SUCCEEDED as {told}, and the books have {sorted(references)}"
    elif is_no and any(one.is_timely for one in case.bookings):
        yield f"it is booked, and {record.state}"
    answers = {one.answer for one in record.evidence}
    if is_no and Answer.APPLIED in answers and case.bookings:
        yield f"somebody said that it was applied, and it is {record.state}"


def a_person_was_asked(case: Case) -> Iterator[str]:
    """What needs a person's approval runs on one, and not on that of who planned it."""
    contract = case.record.version.contract
    for attempt in case.record.attempts:
        given = attempt.approval
        if contract.approval != "always":
            continue
        if given is None or given.status is not Status.CONSUMED:
            yield f"fence {attempt.row.fence} was dispatched without an approval"
        elif given.decided_by in (None, case.record.effect.principal):
            yield f"fence {attempt.row.fence} was approved by who planned it"


def duplicates_are_bounded(case: Case) -> Iterator[str]:
    """A REPLAYABLE effect is applied once, and as often again as its contract accepts."""
    if case.effect_class is not EffectClass.REPLAYABLE:
        return
    contract = case.record.version.contract
    if len(case.record.attempts) > contract.attempts_max:
        yield f"there were {len(case.record.attempts)} attempts"
    is_helped = any(one.transition == "T11" for one in case.record.events)
    if is_helped or not all(one.is_timely for one in case.bookings):
        return
    if len(case.bookings) > 1 + contract.max_duplicates:
        yield f"it was applied {len(case.bookings)} times"


RULES: Final[tuple[Rule, ...]] = (
    rule_01_nothing_is_sent_before_it_is_durable,
    rule_02_a_stale_fence_changes_nothing,
    rule_03_one_identity_and_one_place,
    rule_04_what_runs_once_is_sent_once,
    rule_05_a_key_makes_one_effect,
    rule_06_all_attempts_carry_the_recorded_contract,
    rule_08_a_version_that_may_not_run_does_not,
    rule_09_absent_is_believed_only_when_it_counts,
    rule_10_the_records_replay_to_the_state,
    rule_12_every_outcome_agrees_with_the_books,
    a_person_was_asked,
    duplicates_are_bounded,
)


def rule_07_a_run_uses_one_version(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """A run uses one version of a tool."""
    used: dict[tuple[str, str, str], set[str]] = {}
    for record in schedule.site.store.records.values():
        effect = record.effect
        used.setdefault((record.tenant, effect.run, effect.tool), set()).add(effect.version)
    for (tenant, run, tool), versions in used.items():
        if len(versions) > 1:
            yield "", f"{run} of {tenant} uses {sorted(versions)} of {tool}"


def rule_05_a_key_names_one_effect(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """No two effects share a provider's key."""
    owners: dict[str, set[str]] = {}
    for request in schedule.site.provider.sent:
        if request.key:
            owners.setdefault(request.key, set()).add(request.effect_id)
    for effects in owners.values():
        if len(effects) > 1:
            yield "", f"one key was sent for {sorted(effects)}"


def rule_11_a_tenant_sees_its_own(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """A tenant's rows are visible to that tenant alone."""
    for reader, owner in sorted(schedule.site.store.reads):
        if reader != owner:
            yield "", f"{reader} saw a row of {owner}"


SITE_RULES: Final[tuple[Callable[[Schedule], Iterable[tuple[str, str]]], ...]] = (
    rule_05_a_key_names_one_effect,
    rule_07_a_run_uses_one_version,
    rule_11_a_tenant_sees_its_own,
)


def _seconds(at: datetime) -> float:
    return (at - EPOCH) / timedelta(seconds=1)
