"""Holds the provider's books and the ledger against each other, effect by effect. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ledger.effect import replay
from ledger.state import CLOSED, State
from tallystick.errors import IllegalTransition
from tests.crash.books import Line
from tests.crash.ledger import Record, Standing
from tests.crash.scenario import ATTEMPTS_MAX, SETTLE_SECONDS

ONCE: Final = frozenset({"NON_RETRYABLE", "UNKNOWN"})


@dataclass(frozen=True)
class Case:
    """One effect, as the ledger and as the provider has it."""

    record: Record
    requests: Sequence[Line]
    bookings: Sequence[Line]

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


Rule = Callable[[Case], Iterator[str]]


def judge(records: Iterable[Record], books: Iterable[Line]) -> list[str]:
    """Return every broken rule, with the history of the effect that breaks it."""
    lines: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in books:
        lines[line.entry, line.effect_id].append(line)
    cases = [
        Case(
            one,
            lines.get(("request", one.effect_id), []),
            lines.get(("booking", one.effect_id), []),
        )
        for one in records
    ]
    return [
        *(f"{fault}\n{case.history()}" for case in cases for rule in RULES for fault in rule(case)),
        *_books_hold_only_what_is_recorded(cases, lines),
        *_keys_are_distinct(cases),
        *_runs_use_one_version(cases),
    ]


# --- the ledger with itself ---------------------------------------------------------------------


def events_replay_to_the_state(case: Case) -> Iterator[str]:
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


def is_settled(case: Case) -> Iterator[str]:
    if case.record.state not in CLOSED | {State.QUARANTINED}:
        yield f"the effect is left {case.record.state}"


def attempts_carry_the_recorded_contract(case: Case) -> Iterator[str]:
    record = case.record
    dispatched = [one.fence for one in record.events if one.to_state == "DISPATCHED"]
    if [one.fence for one in record.attempts] != dispatched:
        yield "attempts and DISPATCHED events do not match"
    if {one.contract_id for one in record.attempts} - {record.contract_id}:
        yield "an attempt carries another contract than the recorded one"
    if len(record.attempts) > (1 if record.effect_class in ONCE else ATTEMPTS_MAX):
        yield "there are too many attempts"


# --- the books against the ledger ---------------------------------------------------------------


def requests_follow_a_dispatch(case: Case) -> Iterator[str]:
    """No byte goes out before a durable DISPATCHED row with that fence; one request a row."""
    dispatched = {one.fence: one.at for one in case.record.events if one.to_state == "DISPATCHED"}
    for fence, times in Counter(one.fence for one in case.requests).items():
        if fence not in dispatched:
            yield f"a request has fence {fence}, and nothing was dispatched with it"
        elif times > 1:
            yield f"{times} requests have fence {fence}"
    for request in case.requests:
        if request.fence in dispatched and _time(request) < dispatched[request.fence]:
            yield f"the request with fence {request.fence} came before its dispatch"


def classes_are_kept(case: Case) -> Iterator[str]:
    requests, bookings = len(case.requests), len(case.bookings)
    match case.record.effect_class:
        case "NON_RETRYABLE" | "UNKNOWN" if requests > 1 or bookings > 1:
            yield f"{requests} requests and {bookings} bookings of what may be sent once"
        case "IDEMPOTENT":
            if bookings > 1:
                yield f"{bookings} bookings of one idempotent effect"
            if len({(one.key, one.body) for one in case.requests}) > 1:
                yield "the requests differ in their key or in their body"
            if any(not one.key for one in case.requests):
                yield "a request has no key"
        case "REPLAYABLE" if bookings > len(case.record.attempts):
            yield f"{bookings} bookings in {len(case.record.attempts)} attempts"
        case "PURE" if bookings:
            yield "a read has booked something"
        case _:
            pass


def outcome_agrees_with_the_books(case: Case) -> Iterator[str]:
    record = case.record
    if record.effect_class == "PURE":
        return
    if record.state == "SUCCEEDED":
        references = {one.reference for one in case.bookings}
        told = record.told["outcome"]["provider_reference"]
        if told not in references:
            yield f"the effect SUCCEEDED as {told}, and the books have {references or 'nothing'}"
    elif case.bookings and record.state != "QUARANTINED":
        yield f"the effect is booked, and {record.state} in the ledger"


def quarantine_has_a_reason(case: Case) -> Iterator[str]:
    """An effect waits for a person only where no machine could have found out, or may not go on."""
    record = case.record
    if record.state != "QUARANTINED":
        return
    if record.effect_class == "REPLAYABLE" and case.bookings:
        return  # a late worker said that it was done, and no key makes another attempt harmless
    if record.effect_class not in ONCE and len(record.attempts) < ATTEMPTS_MAX:
        yield f"quarantined after {len(record.attempts)} attempts"
    asked = [one.observed_at for one in record.evidence if one.answer == "absent"]
    booked = [_time(one) for one in case.bookings]
    if booked and asked and max(asked) > min(booked):
        yield "quarantined as absent, and it was booked before the provider was asked"


def what_was_settled_as_absent_stays_absent(case: Case) -> Iterator[str]:
    """Nothing is booked after that by an earlier attempt whose worker and provider kept time."""
    for event in case.record.events:
        if event.transition == "T6" and "absent" in event.reason and event.to_state != "UNKNOWN":
            for booking in case.bookings:
                is_earlier = booking.fence < event.fence and _kept_time(case, booking)
                if is_earlier and _time(booking) > event.at:
                    yield f"settled as absent at {event.at}, and booked after that"


def _kept_time(case: Case, booking: Line) -> bool:
    """Tell whether the request came within its lease, and was booked within the settle window."""
    leases = {one.fence: one.lease_until for one in case.record.attempts}
    came = {one.fence: one for one in case.requests}.get(booking.fence)
    if came is None or came.fence not in leases:
        return False
    return _time(came) <= leases[came.fence] and booking.at - came.at <= SETTLE_SECONDS


RULES: Final[tuple[Rule, ...]] = (
    is_settled,
    events_replay_to_the_state,
    attempts_carry_the_recorded_contract,
    requests_follow_a_dispatch,
    classes_are_kept,
    outcome_agrees_with_the_books,
    quarantine_has_a_reason,
    what_was_settled_as_absent_stays_absent,
)


def _books_hold_only_what_is_recorded(
    cases: Sequence[Case], lines: Mapping[tuple[str, str], Sequence[Line]]
) -> Iterator[str]:
    recorded = {case.record.effect_id for case in cases}
    for (_, effect_id), (first, *_) in lines.items():
        # A PURE call may run without the registry, and then has no id.
        if effect_id not in recorded and (effect_id or first.kind != "customers"):
            yield f"the provider has an effect that the ledger has not: {first}"


def _keys_are_distinct(cases: Sequence[Case]) -> Iterator[str]:
    owners: dict[str, set[str]] = defaultdict(set)
    for case in cases:
        for request in case.requests:
            if request.key:
                owners[request.key].add(request.effect_id)
    for key, effects in owners.items():
        if len(effects) > 1:
            yield f"the key {key} was sent for {sorted(effects)}"


def _runs_use_one_version(cases: Sequence[Case]) -> Iterator[str]:
    contracts: dict[tuple[str, str], set[object]] = defaultdict(set)
    for case in cases:
        contracts[case.record.run, case.record.tool].add(case.record.contract_id)
    for (run, tool), used in contracts.items():
        if len(used) > 1:
            yield f"the run {run} uses {len(used)} versions of {tool}"


def _time(line: Line) -> datetime:
    return datetime.fromtimestamp(line.at, tz=UTC)
