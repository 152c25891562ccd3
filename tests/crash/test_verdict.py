"""The judge of the schedules can say no: each of its rules is shown a case that breaks it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from ledger.effect import Event
from tests.crash import verdict
from tests.crash.books import Line
from tests.crash.catalogue import LAG_SECONDS, LEASE_SECONDS, RETENTION_SECONDS, SETTLE_SECONDS
from tests.crash.ledger import Answer, Attempt, Ledger, Record, Sight, Standing
from tests.crash.verdict import Case, Rule, Scene, SceneRule, judge
from tests.crash.work import TENANT, Item

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
CONTRACT, OTHER_CONTRACT = UUID(int=1), UUID(int=2)
ITEM = Item(
    schedule=1,
    number=1,
    name=1,
    tenant=TENANT,
    tool="invoice",
    trouble="none",
    plans_first=False,
    is_contested=False,
)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def event(fence: int, transition: str, from_state: str, to_state: str, **changes: Any) -> Event:
    seconds, attempt = float(fence), 1 if fence else 0
    made = Event(
        fence, transition, from_state, to_state, attempt, "worker:one", "reason", at(seconds)
    )
    return replace(made, **changes)


def line(entry: str, seconds: float, *, fence: int = 1, key: str = "key", body: str = "{}") -> Line:
    when = at(seconds).timestamp()
    return Line(entry, "invoices", "effect", fence, key, body, f"{entry}-{seconds}", when)


def a_case(state: str = "SUCCEEDED", **changes: Any) -> Case:
    """Return an effect that was sent once, booked, and reported."""
    outcome = {"provider_reference": "booking-1.2"}
    record = Record(
        effect_id="effect",
        tenant=TENANT,
        run=ITEM.run,
        identity=f"effect:{ITEM.effect}",
        tool="tool",
        effect_class="IDEMPOTENT",
        contract_id=CONTRACT,
        told={"state": state, "outcome": outcome, "arguments": ITEM.arguments},
        events=[
            event(0, "T1", "NEW", "PLANNED"),
            event(1, "T2", "PLANNED", "DISPATCHED"),
            event(2, "T3", "DISPATCHED", "SUCCEEDED"),
        ],
        attempts=[Attempt(1, 1, CONTRACT, at(1 + LEASE_SECONDS))],
        outcomes=[Standing("SUCCEEDED", 2)],
    )
    return Case(replace(record, **changes), [line("request", 1.1)], [line("booking", 1.2)])


def settled_as_absent(
    *asked: float, booked: float | None = None, came: float = 1.1, **changes: Any
) -> Case:
    """Return an effect in doubt from second 2 on, of which its source said "absent" at times."""
    events = [
        *a_case().record.events[:2],
        event(2, "T4", "DISPATCHED", "UNKNOWN"),
        event(3, "T5", "UNKNOWN", "RECONCILING", at=at(9)),
        event(4, "T6", "RECONCILING", "QUARANTINED", reason="absent, and never again", at=at(9)),
    ]
    facts: dict[str, Any] = {"effect_class": "UNKNOWN", "events": events, "outcomes": []}
    case = a_case("QUARANTINED", **(facts | {"open": [Standing("QUARANTINED", 4)]} | changes))
    case.record.evidence.extend(Answer(3, "http", "absent", at(second)) for second in asked)
    bookings = [] if booked is None else [line("booking", booked)]
    return Case(case.record, [line("request", came)], bookings)


def interrupted(case: Case, seconds: float) -> Case:
    """Return a case whose source said something else at a time, beside all else."""
    said = [*case.record.evidence, Answer(3, "http", "unavailable", at(seconds))]
    evidence = sorted(said, key=lambda one: one.observed_at)
    return replace(case, record=replace(case.record, evidence=evidence))


def tried_twice(seconds: float) -> Case:
    """Return an effect whose second attempt began so many seconds after the first."""
    events = [
        *a_case().record.events[:2],
        event(2, "T4", "DISPATCHED", "RETRYABLE"),
        event(3, "T7", "RETRYABLE", "DISPATCHED", at=at(1 + seconds), attempt=2),
    ]
    return a_case(events=events)


def retired(seconds: float, *to_states: str) -> Case:
    """Return an effect with a step at each second, whose version was retired in between."""
    events = [event(number, "T", "", to_state) for number, to_state in enumerate(to_states)]
    return a_case(events=events, retired_at=at(seconds))


def ended_by_another(transition: str, to_state: str) -> Case:
    events = [
        *a_case().record.events[:2],
        event(2, transition, "DISPATCHED", to_state, actor="worker:two"),
    ]
    return a_case(events=events)


def noted(**note: Any) -> Case:
    return replace(a_case(), notes=[note])


WINDOW_ENDS = 2 + SETTLE_SECONDS + LAG_SECONDS


def test_good_cases_break_no_rule():
    late = noted(late="effect", fence=1, answer="applied")
    late.record.evidence.append(Answer(1, "late_worker", "applied", at(3)))
    for case in (
        a_case(),
        settled_as_absent(WINDOW_ENDS, WINDOW_ENDS + 1),
        interrupted(settled_as_absent(WINDOW_ENDS, WINDOW_ENDS + 1), WINDOW_ENDS - 0.5),
        # Sent after its lease, and no fence stops that.
        settled_as_absent(WINDOW_ENDS, WINDOW_ENDS + 1, booked=8, came=7.9),
        # A provider that is slower than its settle window breaks its own word.
        settled_as_absent(WINDOW_ENDS, WINDOW_ENDS + 1, booked=2.1 + SETTLE_SECONDS),
        late,
    ):
        assert judge(scene(case)) == [], case.history()


def scene(*cases: Case, items: tuple[Item, ...] = (ITEM,), **changes: Any) -> Scene:
    lines = [one for case in cases for one in (*case.requests, *case.bookings)]
    notes = [note for case in cases for note in case.notes]
    ledger = Ledger([case.record for case in cases], changes.pop("sights", []))
    return Scene(ledger, **({"lines": lines, "notes": notes, "items": items} | changes))


BROKEN: list[tuple[Rule, Case]] = [
    (
        verdict.rule_01_nothing_is_sent_before_it_is_durable,
        replace(a_case(), requests=[line("request", 0.9)]),
    ),
    (
        verdict.rule_01_nothing_is_sent_before_it_is_durable,
        replace(a_case(), requests=[line("request", 1.1, fence=2)]),
    ),
    (
        verdict.rule_01_nothing_is_sent_before_it_is_durable,
        replace(a_case(), requests=[line("request", 1.1)] * 2),
    ),
    (verdict.rule_02_a_stale_fence_changes_nothing, ended_by_another("T3", "SUCCEEDED")),
    (verdict.rule_02_a_stale_fence_changes_nothing, ended_by_another("T4", "UNKNOWN")),
    (
        verdict.rule_02_a_stale_fence_changes_nothing,
        a_case(
            events=[
                event(0, "T5", "UNKNOWN", "RECONCILING", actor="reconciler:one"),
                event(1, "T6", "RECONCILING", "SUCCEEDED", actor="reconciler:two"),
            ]
        ),
    ),
    (
        verdict.rule_02_a_stale_fence_changes_nothing,
        noted(late="effect", fence=1, answer="applied"),
    ),
    (verdict.rule_03_one_identity_and_one_place, noted(confused="effect")),
    (verdict.rule_03_one_identity_and_one_place, a_case(open=[Standing("UNKNOWN", 2)])),
    (verdict.rule_03_one_identity_and_one_place, a_case(outcomes=[Standing("SUCCEEDED", 1)])),
    (
        verdict.rule_03_one_identity_and_one_place,
        a_case(events=a_case().record.events[:2], outcomes=[]),
    ),
    (
        verdict.rule_03_one_identity_and_one_place,
        a_case(outcomes=[Standing("FAILED", 3), Standing("SUCCEEDED", 2)]),
    ),
    (
        verdict.rule_04_what_runs_once_is_sent_once,
        replace(a_case(effect_class="UNKNOWN"), requests=[line("request", 1.1)] * 2),
    ),
    (
        verdict.rule_04_what_runs_once_is_sent_once,
        replace(a_case(effect_class="NON_RETRYABLE"), bookings=[line("booking", 1.2)] * 2),
    ),
    (
        verdict.rule_05_a_key_makes_one_effect,
        replace(a_case(), bookings=[line("booking", 1.2)] * 2),
    ),
    (
        verdict.rule_05_a_key_makes_one_effect,
        replace(a_case(), requests=[line("request", 1.1, key="")]),
    ),
    (
        verdict.rule_05_a_key_makes_one_effect,
        replace(a_case(), requests=[line("request", 1.1), line("request", 1.2, key="other")]),
    ),
    (
        verdict.rule_05_a_key_makes_one_effect,
        replace(a_case(), requests=[line("request", 1.1), line("request", 1.2, body="other")]),
    ),
    (verdict.rule_05_a_key_makes_one_effect, tried_twice(RETENTION_SECONDS - LEASE_SECONDS)),
    (verdict.rule_06_all_attempts_carry_the_recorded_contract, a_case(attempts=[])),
    (
        verdict.rule_06_all_attempts_carry_the_recorded_contract,
        a_case(contract_id=OTHER_CONTRACT),
    ),
    (
        verdict.rule_06_all_attempts_carry_the_recorded_contract,
        replace(tried_twice(5), record=replace(tried_twice(5).record, effect_class="UNKNOWN")),
    ),
    (
        verdict.rule_08_a_version_that_may_not_run_does_not,
        retired(1.5, "PLANNED", "DISPATCHED", "SUCCEEDED"),
    ),
    (
        verdict.rule_08_a_version_that_may_not_run_does_not,
        retired(0.5, "QUARANTINED", "RETRYABLE"),
    ),
    (verdict.rule_09_absent_is_believed_only_when_it_counts, settled_as_absent(WINDOW_ENDS)),
    (verdict.rule_09_absent_is_believed_only_when_it_counts, settled_as_absent(2.1, 3.1)),
    (
        verdict.rule_09_absent_is_believed_only_when_it_counts,
        settled_as_absent(WINDOW_ENDS, WINDOW_ENDS + 0.5),
    ),
    (
        verdict.rule_09_absent_is_believed_only_when_it_counts,
        settled_as_absent(WINDOW_ENDS, WINDOW_ENDS + 1, booked=1.2),
    ),
    (
        verdict.rule_09_absent_is_believed_only_when_it_counts,
        interrupted(settled_as_absent(WINDOW_ENDS, WINDOW_ENDS + 1), WINDOW_ENDS + 0.5),
    ),
    (verdict.rule_10_the_records_replay_to_the_state, a_case("FAILED")),
    (
        verdict.rule_10_the_records_replay_to_the_state,
        a_case(events=a_case().record.events[:2]),
    ),
    (
        verdict.rule_10_the_records_replay_to_the_state,
        a_case(events=a_case().record.events[1:]),
    ),
    (verdict.rule_10_the_records_replay_to_the_state, a_case(open=[Standing("UNKNOWN", 2)])),
    (verdict.rule_10_the_records_replay_to_the_state, a_case(attempts=[])),
    (verdict.rule_12_every_effect_is_settled, a_case("RETRYABLE")),
    (
        verdict.rule_12_every_outcome_agrees_with_the_books,
        replace(a_case(), bookings=[]),
    ),
    (
        verdict.rule_12_every_outcome_agrees_with_the_books,
        replace(a_case(), bookings=[line("booking", 1.3)]),
    ),
    (verdict.rule_12_every_outcome_agrees_with_the_books, a_case("FAILED")),
    (verdict.rule_12_every_outcome_agrees_with_the_books, a_case(effect_class="PURE")),
    (
        verdict.a_quarantine_has_a_reason,
        settled_as_absent(WINDOW_ENDS, WINDOW_ENDS + 1, effect_class="IDEMPOTENT"),
    ),
    (
        verdict.duplicates_are_bounded,
        replace(a_case(effect_class="REPLAYABLE"), bookings=[line("booking", 1.2)] * 2),
    ),
]

OTHER = a_case(effect_id="other", identity="effect:item-2")
BROKEN_SCENES: list[tuple[SceneRule, Scene]] = [
    (
        verdict.rule_01_the_books_hold_only_what_is_recorded,
        scene(lines=[line("request", 1.1)]),
    ),
    (verdict.rule_03_every_call_is_the_effect_that_it_named, scene()),
    (verdict.rule_03_every_call_is_the_effect_that_it_named, scene(a_case(), items=())),
    (verdict.rule_03_every_call_is_the_effect_that_it_named, scene(a_case(), a_case())),
    (
        verdict.rule_03_every_call_is_the_effect_that_it_named,
        scene(a_case(), items=(replace(ITEM, number=2),)),
    ),
    (
        verdict.rule_03_every_call_is_the_effect_that_it_named,
        scene(a_case(), notes=[{"effect_id": "another"}]),
    ),
    (
        verdict.rule_05_a_key_names_one_effect,
        scene(
            a_case(),
            OTHER,
            lines=[line("request", 1.1), replace(line("request", 1.1), effect_id="other")],
        ),
    ),
    (
        verdict.rule_07_a_run_uses_one_version,
        scene(a_case(), replace(OTHER, record=replace(OTHER.record, contract_id=OTHER_CONTRACT))),
    ),
    (verdict.rule_11_a_tenant_sees_its_own, scene(a_case(), sights=[Sight("other", "effect")])),
]


@pytest.mark.parametrize(("rule", "case"), BROKEN)
def test_a_broken_rule_is_found(rule: Rule, case: Case):
    assert list(rule(case)), case.history()


@pytest.mark.parametrize(("rule", "broken"), BROKEN_SCENES)
def test_a_rule_that_a_whole_schedule_breaks_is_found(rule: SceneRule, broken: Scene):
    assert list(rule(broken))
    assert rule.__name__ in {one.rule for one in judge(broken)}


def test_every_rule_is_shown_a_case_that_breaks_it():
    assert {rule for rule, _ in BROKEN} == set(verdict.RULES)
    assert {rule for rule, _ in BROKEN_SCENES} == set(verdict.SCENE_RULES)
    judged = {rule.__name__[:7] for rule in (*verdict.RULES, *verdict.SCENE_RULES)}
    assert judged >= {f"rule_{number:02}" for number in range(1, 13)}


def test_work_that_no_version_takes_any_more_is_not_missed():
    assert judge(scene(notes=[{"refused": ITEM.number}])) == []
