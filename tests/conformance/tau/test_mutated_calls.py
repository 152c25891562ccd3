"""Every wrong call is stopped: at the gate where it belongs, with the code that belongs to it."""

from collections import Counter
from functools import cache

import pytest

from tests.conformance.tau import corpus
from tests.conformance.tau.contracts import contracts
from tests.conformance.tau.mutations import BLOCKED, EXHAUSTED, NOT_GRANTED, mutants
from tests.conformance.tau.run import Run
from tests.conformance.tau.twists import AFTER, ELSEWHERE, WITHOUT, twists

pytestmark = pytest.mark.skipif(
    not corpus.is_there(), reason=f"tau-bench and tau2-bench are not in {corpus.CORPUS}"
)

KINDS = {
    "unknown tool",
    "not JSON",
    "not an object",
    "extra",
    "twice",
    "null",
    "missing",
    "wrong type",
    "another customer's",
    "nobody's",
    "never returned",
}


def right_calls(domain, *, asks_tools=False):
    """Yield each gold call that has a contract, with its run right before it is made."""
    for task in corpus.tasks(domain):
        run = Run(task, asks_tools=asks_tools)
        for call in task.calls:
            run.look_first(call)
            if call.tool in contracts(domain):
                yield run, call
            run.call(call.tool, call.arguments)


@cache
def writes(domain):
    """Return each gold call that changes something and passes, with its task."""
    found = []
    for run, call in right_calls(domain):
        if contracts(domain)[call.tool].kind == "write" and call.id != "64_6":
            found.append((run.task, call))
    return found


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_wrong_call(domain):
    counts, wrong = Counter(), []
    for run, call in right_calls(domain):
        before = run.world.answers
        for mutant in mutants(call, contracts(domain)[call.tool], run.world.others):
            told = run.call(mutant.tool, mutant.arguments)
            counts[mutant.kind] += 1
            if told.stop != mutant.stop:
                wrong.append((call.id, mutant, told))
        assert run.world.answers == before, "a refused call reached the service"

    print(domain, dict(counts))
    assert wrong == []
    assert counts.keys() == (KINDS | {"wrong enum"} if domain != "telecom" else KINDS)


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_another_customers_things_where_a_tool_says_whose_they_are(domain):
    counts, wrong = Counter(), []
    for run, call in right_calls(domain, asks_tools=True):
        for mutant in mutants(call, contracts(domain)[call.tool], run.world.others):
            if mutant.kind in ("another customer's", "nobody's"):
                told = run.call(mutant.tool, mutant.arguments)
                counts[mutant.kind] += 1
                if told.stop != mutant.stop:
                    wrong.append((call.id, mutant, told))

    assert wrong == []
    assert counts.keys() == {"another customer's", "nobody's"}


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_not_yours_and_not_there_are_one_answer(domain):
    count = 0
    for run, call in right_calls(domain):
        for each in contracts(domain)[call.tool].ownership:
            name = each.argument.removeprefix("/")
            theirs = {**call.arguments, name: run.world.others[name]}
            not_yours = run.call(call.tool, theirs)
            run.world.has_stranger = False
            not_there = run.call(call.tool, theirs)
            run.world.has_stranger = True
            count += not_yours.stop != not_there.stop
            assert not_yours.text == not_there.text

    assert count > 0


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_without_one_look_up(domain):
    counts, wrong = Counter(), []
    for task, call in writes(domain):
        for (tool, left_out), (stop, rule) in WITHOUT.items():
            if tool == call.tool:
                run = Run(task)
                run.look_first(call, without=left_out)
                told = run.call(call.tool, call.arguments)
                counts[tool, left_out] += 1
                if (told.stop, told.rule) != (stop, rule):
                    wrong.append((call, left_out, told))

    assert wrong == []
    assert counts.keys() == {row for row in WITHOUT if row[0] in contracts(domain)}


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_after_a_look_at_something_else(domain):
    counts, wrong = Counter(), []
    for task, call in writes(domain):
        if call.tool not in ELSEWHERE:
            continue
        look, rule = ELSEWHERE[call.tool]
        run = Run(task)
        run.look_first(call, without=look)
        assert run.call(*run.world.look_elsewhere(call)).stop is None
        told = run.call(call.tool, call.arguments)
        counts[call.tool] += 1
        if (told.stop, told.rule) != (BLOCKED, rule):
            wrong.append((call, told))

    print(domain, dict(counts))
    assert wrong == []
    assert counts.keys() == ELSEWHERE.keys() & contracts(domain).keys()


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_twisted_call(domain):
    counts, wrong = Counter(), []
    for task, call in writes(domain):
        for twist in twists(call):
            run = Run(task)
            run.world.change(call, twist.changes)
            run.look_first(call)
            told = run.call(call.tool, twist.arguments)
            counts[twist.kind] += 1
            if (told.stop, told.rule) != (twist.stop, twist.rule):
                wrong.append((call, twist, told))

    print(domain, dict(counts))
    assert wrong == []
    assert counts


def test_call_that_comes_too_late():
    counts, wrong = Counter(), []
    for task, call in writes("retail"):
        for (tool, arguments), rule in AFTER.get(call.tool, ()):
            run = Run(task)
            run.look_first(call)
            assert run.call(call.tool, call.arguments).stop is None
            told = run.call(tool, {"order_id": call.arguments["order_id"], **arguments})
            counts[rule] += 1
            if (told.stop, told.rule) != (BLOCKED, rule):
                wrong.append((call, tool, told))

    print(dict(counts))
    assert wrong == []
    assert counts.keys() == {rule for rows in AFTER.values() for _, rule in rows}


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_call_over_the_budget(domain):
    count, wrong = 0, []
    for task in corpus.tasks(domain):
        run = Run(task)
        passed = []
        for call in task.calls:
            run.look_first(call)
            if run.call(call.tool, call.arguments).stop is None:
                passed.append(call)
        run.spend_all()
        for call in passed:
            told = run.call(call.tool, call.arguments)
            count += 1
            if (told.stop, told.rule) != (EXHAUSTED, "budgets.max_total_calls"):
                wrong.append((call, told))

    assert wrong == []
    assert count > 0


@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_write_without_the_capability(domain):
    count, wrong = 0, []
    for task, call in writes(domain):
        run = Run(task, granted=frozenset({f"{domain}:read:tau"}))
        run.look_first(call)
        told = run.call(call.tool, call.arguments)
        count += 1
        if told.stop != NOT_GRANTED:
            wrong.append((call, told))

    assert wrong == []
    assert count > 0
