"""The twelve rules that always hold, each judged against the books, and two beside. Pure.

What no ledger can hold is left out of a rule by name: what was sent after its lease, because its
worker was paused between the look at its clock and the first byte, and what took the provider
longer than the settle window. Only a provider that enforces a key stands in for that.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ledger.effect import Event, replay
from ledger.evidence import LATE_WORKER
from ledger.state import CLOSED, State
from tallystick.errors import IllegalTransition
from tests.crash.books import Line
from tests.crash.catalogue import (
    ABSENT_SECONDS_MIN,
    ATTEMPTS_MAX,
    LAG_SECONDS,
    LEASE_SECONDS,
    ONCE,
    RETENTION_SECONDS,
    SETTLE_SECONDS,
)
from tests.crash.ledger import Ledger, Record, Standing
from tests.crash.work import Item
from tests.owners import ended_by_another

SETTLED: Final = CLOSED | {State.QUARANTINED}


@dataclass(frozen=True)
class Violation:
    """One broken rule: which, how it shows, and all that happened to the effect that breaks it."""

    rule: str
    what: str
    history: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}\n{self.history}".rstrip()


@dataclass(frozen=True)
class Case:
    """One effect, as the ledger and as the provider has it, and what its workers noted of it."""

    record: Record
    requests: Sequence[Line] = ()
    bookings: Sequence[Line] = ()
    notes: Sequence[Mapping[str, Any]] = ()

    @property
    def dispatched(self) -> list[Event]:
        return [one for one in self.record.events if one.to_state == "DISPATCHED"]

    def history(self) -> str:
        """Return all that happened to the effect, in the order of the machine's clock."""
        record = self.record
        steps = [
            (
                one.at,
                f"{one.transition} {one.to_state}, fence {one.fence}: {one.actor}: {one.reason}",
            )
            for one in record.events
        ]
        answers = [(one.observed_at, f"{one.source} says {one.answer}") for one in record.evidence]
        booked = [
            (_time(one), f"the provider: {one.entry}, fence {one.fence}, key {one.key}: {one.body}")
            for one in (*self.requests, *self.bookings)
        ]
        head = f"{record.effect_id} {record.run} {record.identity} {record.effect_class}"
        shown = [f"    {at:%H:%M:%S.%f}  {what}" for at, what in sorted(steps + answers + booked)]
        return "\n".join([f"{head}: {record.state}", *shown])


@dataclass(frozen=True)
class Scene:
    """A whole schedule after its end."""

    ledger: Ledger
    lines: Sequence[Line] = ()
    notes: Sequence[Mapping[str, Any]] = ()
    items: Sequence[Item] = ()
    cases: list[Case] = field(init=False)

    def __post_init__(self) -> None:
        lines: dict[tuple[str, str], list[Line]] = defaultdict(list)
        notes: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for line in self.lines:
            lines[line.entry, line.effect_id].append(line)
        for note in self.notes:
            notes[note.get("late", note.get("confused", ""))].append(note)
        cases = [
            Case(
                one,
                lines["request", one.effect_id],
                lines["booking", one.effect_id],
                notes[one.effect_id],
            )
            for one in self.ledger.records
        ]
        object.__setattr__(self, "cases", cases)


Rule = Callable[[Case], Iterator[str]]
SceneRule = Callable[[Scene], Iterator[str]]


def judge(scene: Scene) -> list[Violation]:
    """Return every broken rule of a schedule."""
    return [
        *(
            Violation(rule.__name__, what, case.history())
            for case in scene.cases
            for rule in RULES
            for what in rule(case)
        ),
        *(Violation(rule.__name__, what) for rule in SCENE_RULES for what in rule(scene)),
    ]


def rule_01_nothing_is_sent_before_it_is_durable(case: Case) -> Iterator[str]:
    """No byte goes out before a durable DISPATCHED row with that fence; one request each."""
    dispatched = {one.fence: one.at for one in case.dispatched}
    for fence, times in Counter(one.fence for one in case.requests).items():
        if fence not in dispatched:
            yield f"a request has fence {fence}, and nothing was dispatched with it"
        elif times > 1:
            yield f"{times} requests have fence {fence}"
    for request in case.requests:
        if request.fence in dispatched and _time(request) < dispatched[request.fence]:
            yield f"the request with fence {request.fence} came before its dispatch"


def rule_02_a_stale_fence_changes_nothing(case: Case) -> Iterator[str]:
    """Only the owner ends its attempt or its claim; what a late worker says is kept."""
    yield from ended_by_another(case.record.events)
    kept = {(one.fence, one.answer) for one in case.record.evidence if one.source == LATE_WORKER}
    for note in case.notes:
        if "late" in note and (note["fence"], note["answer"]) not in kept:
            yield f"the late report with fence {note['fence']} is lost"


def rule_03_one_identity_and_one_place(case: Case) -> Iterator[str]:
    """One effect id has one fingerprint; an effect is open or has a current outcome, never both."""
    record = case.record
    if any("confused" in note for note in case.notes):
        yield "a call with other arguments was answered with this effect"
    last = record.events[-1]
    is_closed = last.to_state in CLOSED
    if record.open and is_closed:
        yield "it is closed, and has an open row"
    if is_closed and (not record.outcomes or record.outcomes[-1].fence != last.fence):
        yield "it is closed, and has no outcome that says so"
    if not is_closed and not record.open:
        yield "it is open, and has no open row"
    fences = [one.fence for one in record.outcomes]
    if fences != sorted(fences):
        yield "a later revision of the outcome has an older fence"


def rule_04_what_runs_once_is_sent_once(case: Case) -> Iterator[str]:
    """An effect of class UNKNOWN or NON_RETRYABLE reaches the provider at most once, ever."""
    requests, bookings = len(case.requests), len(case.bookings)
    if case.record.effect_class in ONCE and max(requests, bookings) > 1:
        yield f"{requests} requests and {bookings} bookings of what may be sent once"


def rule_05_a_key_makes_one_effect(case: Case) -> Iterator[str]:
    """An IDEMPOTENT effect is applied once, by equal requests, all within the key's horizon."""
    if case.record.effect_class != "IDEMPOTENT":
        return
    if len(case.bookings) > 1:
        yield f"{len(case.bookings)} bookings of one idempotent effect"
    if len({one.key for one in case.requests}) > 1:
        yield "the requests differ in their key"
    if len({one.body for one in case.requests}) > 1:
        yield "the requests differ in their bytes"
    if any(not one.key for one in case.requests):
        yield "a request has no key"
    for event in case.dispatched[1:]:
        until = event.at + timedelta(seconds=2 * LEASE_SECONDS)
        if until > case.dispatched[0].at + timedelta(seconds=RETENTION_SECONDS):
            yield f"the attempt with fence {event.fence} does not fit into the key's horizon"


def rule_06_all_attempts_carry_the_recorded_contract(case: Case) -> Iterator[str]:
    """All attempts of an effect carry one contract, the recorded one, never the newest."""
    record = case.record
    if [one.fence for one in record.attempts] != [one.fence for one in case.dispatched]:
        yield "attempts and DISPATCHED events do not match"
    if {one.contract_id for one in record.attempts} - {record.contract_id}:
        yield "an attempt carries another contract than the recorded one"
    if len(record.attempts) > (1 if record.effect_class in ONCE else ATTEMPTS_MAX):
        yield "there are too many attempts"


def rule_08_a_version_that_may_not_run_does_not(case: Case) -> Iterator[str]:
    """A retired version gets no dispatch, and has no open effect but quarantined ones."""
    retired_at = case.record.retired_at
    if retired_at is None:
        return
    earlier = [one for one in case.record.events if one.at <= retired_at]
    if earlier and earlier[-1].to_state not in SETTLED:
        yield f"its version was retired while it was {earlier[-1].to_state}"
    for event in case.record.events[len(earlier) :]:
        if event.to_state not in SETTLED:
            yield f"it became {event.to_state} after its version was retired"


def rule_09_absent_is_believed_only_when_it_counts(case: Case) -> Iterator[str]:
    """`absent` counts when it was said twice in a row after the settle window, apart, and was so.

    Nothing was or will be booked by an attempt before it whose worker and provider kept time.
    """
    for event in case.record.events:
        is_believed = event.transition == "T6" and event.to_state in ("RETRYABLE", "QUARANTINED")
        if not is_believed or not event.reason.startswith(("settled: absent", "absent")):
            continue
        asked = _absent_after_the_window(case.record, event)
        apart = timedelta(seconds=max(LAG_SECONDS, ABSENT_SECONDS_MIN))
        if not asked or max(asked) - min(asked) < apart:
            yield f"fence {event.fence}: absent, and not said twice in a row after the window"
        for booking in case.bookings:
            if booking.fence < event.fence and _kept_time(case, booking):
                yield f"fence {event.fence}: absent, and {booking.reference} was there or came"


def _absent_after_the_window(record: Record, event: Event) -> list[datetime]:
    """Return when the source said so after the window of the last doubt, and nothing else since."""
    doubts = [
        one.at
        for one in record.events
        if one.fence < event.fence and (one.transition, one.to_state) != ("T6", "UNKNOWN")
        if one.to_state == "UNKNOWN"
    ]
    settled = max(doubts) + timedelta(seconds=SETTLE_SECONDS + LAG_SECONDS)
    asked: list[datetime] = []
    for one in record.evidence:
        if one.source == LATE_WORKER or one.fence >= event.fence:
            continue
        if (one.source, one.answer) != ("http", "absent"):
            asked.clear()
        elif one.observed_at >= settled:
            asked.append(one.observed_at)
    return asked


def _kept_time(case: Case, booking: Line) -> bool:
    """Tell whether the request came within its lease, and was booked within the settle window.

    That begins with the doubt, when the lease was over, or the worker did not wait any longer.
    """
    leases = {one.fence: one.lease_until for one in case.record.attempts}
    came = {one.fence: one for one in case.requests}.get(booking.fence)
    if came is None or came.fence not in leases:
        return False
    doubted = min(one.at for one in case.record.events if one.fence > booking.fence)
    is_prompt = _time(booking) <= doubted + timedelta(seconds=SETTLE_SECONDS)
    return is_prompt and _time(came) <= leases[came.fence]


def rule_10_the_records_replay_to_the_state(case: Case) -> Iterator[str]:
    """Every change is a record, and the records replay to the state."""
    record = case.record
    try:
        state, fence, attempt = replay(record.events)
    except (ValueError, IllegalTransition) as fault:
        yield f"the events do not replay: {fault}"
        return
    if state != record.state:
        yield f"the events replay to {state}, and the API says {record.state}"
    if attempt != len(record.attempts):
        yield f"the events count {attempt} attempts, and {len(record.attempts)} are recorded"
    # What evidence opened again has its former outcome still.
    current = record.open or record.outcomes[-1:]
    if current != [Standing(state, fence)]:
        yield f"open or closed, and as the last event says: {current} is not {state}, fence {fence}"


def rule_12_every_effect_is_settled(case: Case) -> Iterator[str]:
    """When faults stop, every effect becomes closed or QUARANTINED."""
    if case.record.state not in SETTLED:
        yield f"the effect is left {case.record.state}"


def rule_12_every_outcome_agrees_with_the_books(case: Case) -> Iterator[str]:
    """What is closed as done is in the books, and what is not, is not."""
    record = case.record
    if record.effect_class == "PURE":
        if case.bookings:
            yield "a read has booked something"
        return
    if record.state == "SUCCEEDED":
        references = {one.reference for one in case.bookings}
        told = record.told["outcome"]["provider_reference"]
        # A person's word names none.
        if not references or (told and told not in references):
            yield f"the effect SUCCEEDED as {told}, and the books have {references or 'nothing'}"
    elif case.bookings and record.state not in ("QUARANTINED", "ABANDONED"):
        yield f"the effect is booked, and {record.state} in the ledger"


def a_quarantine_has_a_reason(case: Case) -> Iterator[str]:
    """An effect waits for a person only where no machine could have found out, or may not go on."""
    record = case.record
    if record.state != "QUARANTINED" or record.events[-1].transition == "T12":
        return
    if record.effect_class == "REPLAYABLE" and case.bookings:
        return  # a late worker said that it was done, and no key makes another attempt harmless
    if record.effect_class not in ONCE and len(record.attempts) < ATTEMPTS_MAX:
        yield f"quarantined after {len(record.attempts)} attempts"


def duplicates_are_bounded(case: Case) -> Iterator[str]:
    """A REPLAYABLE effect is applied by its attempts alone, each of them once."""
    many, attempts = len(case.bookings), len(case.record.attempts)
    if case.record.effect_class == "REPLAYABLE" and many > attempts:
        yield f"{many} bookings in {attempts} attempts"


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
    rule_12_every_effect_is_settled,
    rule_12_every_outcome_agrees_with_the_books,
    a_quarantine_has_a_reason,
    duplicates_are_bounded,
)


def rule_01_the_books_hold_only_what_is_recorded(scene: Scene) -> Iterator[str]:
    """Nothing reaches the provider that the ledger has not, but a read without the registry."""
    recorded = {case.record.effect_id for case in scene.cases}
    for line in scene.lines:
        if line.effect_id not in recorded and (line.effect_id or line.kind != "customers"):
            yield f"the provider has an effect that the ledger has not: {line}"


def rule_03_every_call_is_the_effect_that_it_named(scene: Scene) -> Iterator[str]:
    """Each piece of work is one effect, with its arguments, and nothing that was told is lost."""
    told = {note["effect_id"] for note in scene.notes if "effect_id" in note}
    yield from (
        f"a worker was told of {one}, which is not there"
        for one in told - {case.record.effect_id for case in scene.cases}
    )
    found = {
        (one.tenant, one.run, one.identity): one.told["arguments"] for one in scene.ledger.records
    }
    if len(found) != len(scene.ledger.records):
        yield "two effects have one name"
    # A run that uses a version which is closed by now can call nothing new.
    refused = {note["refused"] for note in scene.notes if "refused" in note}
    for item in scene.items:
        named = (item.tenant, item.run, f"effect:{item.effect}")
        arguments = found.pop(named, None)
        if arguments != item.arguments and not (arguments is None and item.number in refused):
            yield f"{named} is recorded with {arguments}, not {item.arguments}"
    yield from (f"nobody asked for {named}" for named in found)


def rule_05_a_key_names_one_effect(scene: Scene) -> Iterator[str]:
    """No two effects share a provider's key."""
    owners: dict[str, set[str]] = defaultdict(set)
    for case in scene.cases:
        for request in case.requests:
            if request.key:
                owners[request.key].add(request.effect_id)
    for key, effects in owners.items():
        if len(effects) > 1:
            yield f"the key {key} was sent for {sorted(effects)}"


def rule_07_a_run_uses_one_version(scene: Scene) -> Iterator[str]:
    """A run uses one version of a tool."""
    used: dict[tuple[str, str, str], set[object]] = defaultdict(set)
    for record in scene.ledger.records:
        used[record.tenant, record.run, record.tool].add(record.contract_id)
    for (tenant, run, tool), versions in used.items():
        if len(versions) > 1:
            yield f"the run {run} of {tenant} uses {len(versions)} versions of {tool}"


def rule_11_a_tenant_sees_its_own(scene: Scene) -> Iterator[str]:
    """A tenant's rows are visible to that tenant alone, in the database as well as in the code."""
    yield from (f"{reader} saw {what} of another tenant" for reader, what in scene.ledger.sights)


SCENE_RULES: Final[tuple[SceneRule, ...]] = (
    rule_01_the_books_hold_only_what_is_recorded,
    rule_03_every_call_is_the_effect_that_it_named,
    rule_05_a_key_names_one_effect,
    rule_07_a_run_uses_one_version,
    rule_11_a_tenant_sees_its_own,
)


def _time(line: Line) -> datetime:
    return datetime.fromtimestamp(line.at, tz=UTC)
