"""The policies of the benchmark: free of faults, and with no rule that nothing meets."""

from copy import deepcopy

import pytest

from tallystick.policy.lint import lint
from tests.conformance.tau import corpus
from tests.conformance.tau.mutations import BLOCKED, EXHAUSTED, NEEDS_HUMAN
from tests.conformance.tau.run import Run, policy
from tests.conformance.tau.twists import AFTER, ELSEWHERE, WITHOUT, twists

needs_corpus = pytest.mark.skipif(
    not corpus.is_there(), reason=f"tau-bench and tau2-bench are not in {corpus.CORPUS}"
)

SHOWN_HERE = {
    "book-for-a-known-user",
    "certificates-need-a-person",
}


def first_call(domain, tool):
    """Return the first gold call of a tool, in a run that has made the look-ups for it."""
    task, call = next(
        (task, call) for task in corpus.tasks(domain) for call in task.calls if call.tool == tool
    )
    run = Run(task)
    run.look_first(call)
    return run, call


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_lint_finds_nothing(domain):
    assert list(lint(policy(domain))) == []


@needs_corpus
def test_every_rule_is_met():
    met = {rule for _, rule in (*WITHOUT.values(), *ELSEWHERE.values())}
    met |= {rule for rows in AFTER.values() for _, rule in rows}
    tasks = (task for domain in corpus.DOMAINS for task in corpus.tasks(domain))
    met |= {twist.rule for task in tasks for call in task.calls for twist in twists(call)}

    rules = {rule.name for domain in corpus.DOMAINS for rule in policy(domain).rules}
    assert rules - met == SHOWN_HERE


@needs_corpus
@pytest.mark.parametrize(
    ("name", "other", "rule"),
    [
        ("flight_number", "HAT999", "basic-economy-keeps-its-flights"),
        ("date", "2024-05-31", "basic-economy-keeps-its-dates"),
    ],
)
def test_who_changes_to_basic_economy_keeps_the_flights(name, other, rule):
    run, call = first_call("airline", "update_reservation_flights")
    basic = {**call.arguments, "cabin": "basic_economy"}
    flights = deepcopy(call.arguments["flights"])
    flights[0][name] = other

    assert run.call(call.tool, basic).stop is None
    told = run.call(call.tool, {**basic, "flights": flights})
    assert (told.stop, told.rule) == (BLOCKED, rule)
    assert run.call(call.tool, call.arguments).stop is None


@needs_corpus
def test_nothing_is_booked_before_the_user_is_known():
    run, call = first_call("airline", "book_reservation")
    fresh = Run(run.task)
    told = fresh.call(call.tool, {**call.arguments, "payment_methods": []})

    assert (told.stop, told.rule) == (BLOCKED, "book-for-a-known-user")


@needs_corpus
def test_certificates_need_a_person_and_have_a_budget():
    run, call = first_call("airline", "book_reservation")
    user = {"user_id": call.arguments["user_id"]}

    told = run.call("send_certificate", {**user, "amount": 100})
    assert (told.stop, told.rule) == (NEEDS_HUMAN, "certificates-need-a-person")
    told = run.call("send_certificate", {**user, "amount": 500.5})
    assert (told.stop, told.rule) == (EXHAUSTED, "budgets.limits.certificates")


@needs_corpus
@pytest.mark.parametrize(
    ("domain", "tool", "count", "rule"),
    [
        ("retail", "modify_user_address", 8, "budgets.max_write_calls"),
        ("airline", "update_reservation_flights", 6, "budgets.max_high_risk_calls"),
        ("telecom", "make_payment", 4, "budgets.max_high_risk_calls"),
        ("telecom", "refuel_data", 1, "budgets.limits.gigabytes"),
    ],
)
def test_budget_of_writes(domain, tool, count, rule):
    run, call = first_call(domain, tool)

    told = [run.call(tool, call.arguments) for _ in range(count + 1)]
    assert [each.stop for each in told] == [None] * count + [EXHAUSTED]
    assert told[-1].rule == rule
