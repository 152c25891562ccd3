"""Laws of policies: more rules never allow more, and only what is said decides, exactly."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tallystick.canonical import canonical_bytes
from tallystick.policy import Call, CapturedFact, Decision, History, Policy, Tally, captured, decide
from tallystick.policy.lint import LintCode, lint
from tallystick.policy.operators import LAWS, PATTERNED, Operator, same
from tallystick.policy.paths import Path
from tallystick.policy.terms import SEVERITY, RuleType
from tallystick.policy.transformations import TRANSFORMATIONS, decimal_of, transformed

TOOLS = ["look", "mail", "pay"]
FACTS = ["total", "owner"]
SOME_TOOLS = st.sampled_from(TOOLS) | st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3)
OPERATORS = [each.value for each in Operator if each not in PATTERNED]

NUMBERS = st.integers(-20, 20) | st.floats(-20, 20, allow_nan=False).map(lambda x: round(x, 2))
SCALARS = NUMBERS | st.sampled_from(["", "a", "b", "10", True, False])
VALUES = SCALARS | st.lists(SCALARS, max_size=3)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | SCALARS | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "total"]), inner, max_size=3)
    ),
    max_leaves=8,
)

OPERANDS: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda key: {"source": "arg", "key": key}, st.sampled_from(["amount", "to"])),
    st.builds(lambda key: {"source": "fact", "key": key}, st.sampled_from(FACTS)),
    st.builds(lambda value: {"source": "const", "value": value}, VALUES),
)


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, Any]:
    operator = draw(st.sampled_from(OPERATORS))
    condition = {"left": draw(OPERANDS), "op": operator}
    if operator not in ("exists", "not_exists"):
        condition["right"] = draw(OPERANDS)
    if draw(st.booleans()):
        condition["missing"] = draw(st.sampled_from(["fire", "pass"]))
    return condition


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from([each.value for each in RuleType]))
    rule: dict[str, Any] = {
        "type": kind,
        "tool": draw(SOME_TOOLS),
        "effect": draw(st.sampled_from(["block", "needs_human"])),
    }
    if kind.endswith("prior_call"):
        rule["prior_tool"] = draw(SOME_TOOLS)
    elif kind == "compare":
        rule |= draw(conditions())
    elif kind == "require_fact":
        rule |= {"fact": draw(st.sampled_from(FACTS)), "op": draw(st.sampled_from(OPERATORS))}
        if rule["op"] not in ("exists", "not_exists"):
            rule["value"] = draw(VALUES)
    if draw(st.booleans()):
        rule["when"] = draw(st.lists(conditions(), min_size=1, max_size=2))
    return rule


LIMITS = st.lists(
    st.fixed_dictionaries(
        {"max": st.integers(0, 5)},
        optional={"risk": st.sampled_from(["read", "write"]), "amount": st.just("amount")},
    ),
    max_size=2,
)


def a_policy(
    rules: list[Any],
    limits: list[Any],
    *,
    unknown_tools: str = "block",
    max_total_calls: int = 6,
) -> Policy:
    named: list[Any] = [{**rule, "name": f"rule-{place}"} for place, rule in enumerate(rules)]
    counted: list[Any] = [{**limit, "name": f"limit-{place}"} for place, limit in enumerate(limits)]
    return Policy.of(
        {
            "version": "0.2",
            "id": "drawn",
            "defaults": {"unknown_tools": unknown_tools},
            "tools": {
                "look": {"risk": "read"},
                "mail": {"risk": "write"},
                "pay": {"risk": "high_risk"},
            },
            "facts": [
                {"name": "total", "from_tool": "look", "path": "total"},
                {"name": "owner", "from_tool": ["look", "mail"], "path": "a.b"},
            ],
            "budgets": {"max_total_calls": max_total_calls, "limits": counted},
            "rules": named,
        }
    )


RULES = st.lists(rules(), max_size=5)
CALLS = st.builds(
    Call,
    st.sampled_from([*TOOLS, "unknown"]),
    st.dictionaries(st.sampled_from(["amount", "to"]), st.none() | VALUES, max_size=2),
)
HISTORIES = st.builds(
    History,
    tallies=st.dictionaries(
        st.sampled_from([*TOOLS, "unknown"]),
        st.builds(Tally, st.integers(0, 3), st.integers(0, 2)),
        max_size=3,
    ),
    facts=st.dictionaries(
        st.tuples(st.sampled_from(FACTS), st.just("")), st.none() | VALUES, max_size=2
    ),
    spent=st.dictionaries(
        st.sampled_from(["limit-0", "limit-1"]), st.integers(0, 5).map(Decimal), max_size=2
    ),
)


@given(RULES, rules(), LIMITS, CALLS, HISTORIES)
def test_a_rule_more_never_allows_more(
    before: list[Any], more: Any, limits: list[Any], call: Call, history: History
):
    less = decide(a_policy(before, limits), call, history)
    stricter = decide(a_policy([*before, more], limits), call, history)
    assert SEVERITY[stricter.decision] >= SEVERITY[less.decision]


@given(RULES, LIMITS, CALLS, HISTORIES)
def test_a_limit_more_never_allows_more(
    drawn: list[Any], limits: list[Any], call: Call, history: History
):
    less = decide(a_policy(drawn, []), call, history)
    stricter = decide(a_policy(drawn, limits), call, history)
    assert SEVERITY[stricter.decision] >= SEVERITY[less.decision]


@given(RULES, LIMITS, CALLS, HISTORIES)
def test_the_gravest_part_that_fires_decides(
    drawn: list[Any], limits: list[Any], call: Call, history: History
):
    verdict = decide(a_policy(drawn, limits), call, history)
    fired = [found for found in verdict.findings if found.fired]
    gravest = max((found.effect for found in fired), key=SEVERITY.__getitem__, default=None)
    assert verdict.decision is (gravest or Decision.ALLOW)
    first = next((found.rule for found in fired if found.effect is gravest), None)
    assert verdict.rule == first
    assert (verdict.refusal() is None) is (verdict.decision is Decision.ALLOW)


@given(st.data(), RULES, LIMITS, CALLS, HISTORIES)
def test_the_order_of_rules_changes_no_decision(
    data: st.DataObject, drawn: list[Any], limits: list[Any], call: Call, history: History
):
    turned = a_policy(data.draw(st.permutations(drawn)), limits)
    decision = decide(a_policy(drawn, limits), call, history).decision
    assert decide(turned, call, history).decision is decision


@given(RULES, LIMITS, CALLS, HISTORIES)
def test_the_same_question_has_the_same_answer(
    drawn: list[Any], limits: list[Any], call: Call, history: History
):
    policy = a_policy(drawn, limits)
    asked = canonical_bytes(dict(call.arguments))
    first = decide(policy, call, history)
    assert decide(policy, call, history) == first
    assert decide(Policy.of(dict(policy.document)), call, history) == first
    assert canonical_bytes(dict(call.arguments)) == asked


@given(RULES, CALLS, HISTORIES)
def test_success_of_other_tools_spends_nothing(drawn: list[Any], call: Call, history: History):
    policy = a_policy(drawn, [])
    after = history.succeeded("mail", [CapturedFact("total", "", 5)])
    assert after.spent == history.spent
    budgets = [found for found in decide(policy, call, history).findings if found.units]
    later = [found for found in decide(policy, call, after).findings if found.units]
    assert [found.before for found in budgets] == [found.before for found in later]


@given(st.lists(NUMBERS, max_size=6), st.integers(0, 40))
def test_a_budget_is_spent_exactly_and_never_over(amounts: list[float], most: int):
    policy = a_policy([], [{"max": most, "amount": "amount"}], max_total_calls=1000)
    history, total = History(), Decimal(0)
    for amount in amounts:
        call = Call("pay", {"amount": amount})
        fits = amount >= 0 and total + decimal_of(amount) <= most
        assert (decide(policy, call, history).decision is Decision.ALLOW) is fits
        if fits:
            history = history.dispatched(call, policy)
            total += decimal_of(amount)
            assert history.spent["limit-0"] == total


@given(
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1),
)
def test_numbers_compare_as_they_are_written(left: float, right: float):
    written = decimal_of(left), decimal_of(right)
    for operator, outcome in (
        (Operator.EQ, written[0] == written[1]),
        (Operator.GT, written[0] > written[1]),
        (Operator.GTE, written[0] >= written[1]),
        (Operator.LT, written[0] < written[1]),
        (Operator.LTE, written[0] <= written[1]),
    ):
        assert LAWS[operator].fits(left, right)
        assert LAWS[operator].holds(left, right) is outcome


@given(ANYTHING, ANYTHING)
def test_values_are_the_same_when_their_canonical_forms_are(left: Any, right: Any):
    assert same(left, right) is (canonical_bytes(left) == canonical_bytes(right))


@given(ANYTHING, ANYTHING, st.sampled_from(list(Operator)))
def test_an_operator_and_its_opposite_never_agree(left: Any, right: Any, operator: Operator):
    pairs = [
        (Operator.EQ, Operator.NE),
        (Operator.GT, Operator.LTE),
        (Operator.GTE, Operator.LT),
        (Operator.IN, Operator.NOT_IN),
        (Operator.CONTAINS, Operator.NOT_CONTAINS),
        (Operator.EXISTS, Operator.NOT_EXISTS),
    ]
    for one, other in pairs:
        if operator not in (one, other):
            continue
        assert LAWS[one].fits(left, right) is LAWS[other].fits(left, right)
        if LAWS[one].fits(left, right):
            assert LAWS[one].holds(left, right) is not LAWS[other].holds(left, right)


@given(ANYTHING, st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), max_size=4))
def test_what_is_made_of_json_is_json(value: Any, names: list[str]):
    canonical_bytes(transformed(value, names))


@given(ANYTHING, st.text(max_size=12))
def test_a_path_finds_or_is_refused(value: Any, text: str):
    try:
        path = Path.parse(text)
    except ValueError:
        return
    canonical_bytes(path.find(value))


@given(ANYTHING)
def test_any_result_gives_its_facts(result: Any):
    found = captured(a_policy([], []), Call("look", {}), result)
    assert [fact.name for fact in found] == ["total", "owner"]


CLOSE = st.lists(rules().map(lambda rule: {**rule, "tool": "pay"}), min_size=1, max_size=5)


@given(RULES | CLOSE, st.lists(st.tuples(CALLS, ANYTHING), max_size=6))
def test_what_lint_says_is_so_in_every_run(drawn: list[Any], calls: list[tuple[Call, Any]]):
    policy = a_policy(drawn, [], unknown_tools="allow")
    found_by_lint = lint(policy)
    told = {(finding.code, finding.pointer) for finding in found_by_lint}
    # Of tools of which two rules leave no call, the message tells.
    barred = " ".join(
        finding.message.partition("every call of ")[2]
        for finding in found_by_lint
        if finding.code is LintCode.CONTRADICTORY_RULES
    ).split()
    history = History()
    for call, result in calls:
        verdict = decide(policy, call, history)
        if call.tool in barred:
            assert verdict.decision is Decision.BLOCK
        for found in verdict.findings:
            place = f"/rules/{found.rule.removeprefix('rule-')}"
            if (LintCode.NEVER_FIRES, place) in told:
                assert not found.fired
            if (LintCode.ALWAYS_FIRES, place) in told:
                assert found.fired or not found.applied
            if (LintCode.IMPOSSIBLE_ORDER, place) in told:
                assert found.fired
            if (LintCode.SHADOWED_RULE, place) in told:
                others = [rule for rule in drawn if rule is not drawn[int(place[7:])]]
                without = a_policy(others, [], unknown_tools="allow")
                assert decide(without, call, history).decision is verdict.decision
        if verdict.decision is not Decision.BLOCK:
            succeeded = captured(policy, call, result)
            history = history.dispatched(call, policy).succeeded(call.tool, succeeded)
