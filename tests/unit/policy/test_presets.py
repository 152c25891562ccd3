"""The presets: policies that say what they mean, each with a table that reaches all of it."""

from typing import Any

import pytest

from tallystick.policy import Decision, Policy, presets
from tallystick.policy.lint import lint
from tallystick.policy.table import read_cases, run

NAMES = presets.names()


def test_there_is_one_for_each_common_workflow():
    assert NAMES == ("email", "file-deletion", "payments", "refund")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_to_be_said_of_it(name):
    policy = Policy.parse(presets.text(name))
    assert policy.id == name
    assert policy.unknown_tools is Decision.BLOCK
    assert lint(policy) == ()


@pytest.mark.parametrize("name", NAMES)
def test_its_table_passes(name):
    policy = Policy.parse(presets.text(name))
    results = run(policy, read_cases(presets.cases(name), policy))
    assert [result.case.name for result in results if not result.passed] == []


@pytest.mark.parametrize("name", NAMES)
def test_its_table_shows_every_rule_and_limit_at_work(name):
    policy = Policy.parse(presets.text(name))
    results = run(policy, read_cases(presets.cases(name), policy))
    decided = {result.verdict.rule for result in results}
    assert {rule.name for rule in policy.rules} <= decided
    assert {f"budgets.limits.{limit.name}" for limit in policy.limits} <= decided
    assert {result.verdict.decision for result in results} == set(Decision)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_rule_its_table_fails(name):
    policy = Policy.parse(presets.text(name))
    for index, rule in enumerate(policy.rules):
        document: dict[str, Any] = dict(policy.document)
        document["rules"] = [*document["rules"][:index], *document["rules"][index + 1 :]]
        weaker = Policy.of(document)
        results = run(weaker, read_cases(presets.cases(name), weaker))
        assert not all(result.passed for result in results), rule.name


@pytest.mark.parametrize("read", [presets.text, presets.cases])
def test_another_name_is_none(read):
    with pytest.raises(KeyError):
        read("../refund")
