"""Replay guesses nothing: what it says of a recorded run is what would have been.

A run is made up: calls, what each tool would answer, what a person would say. It is recorded under
one policy, with parts of the record redacted, and lived through under another. Whatever a replay
says for sure is what came of it there.
"""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.policy import Call, Decision, History, Policy, captured, decide
from tallystick.policy.replay import replay
from tallystick.policy.trace import read_calls

HIDDEN: Any = {"x-redacted": True}
TOOLS = {"look": "read", "note": "write", "pay": "high_risk"}
PER_ORDER = {"source": "arg", "key": "order"}
TOTAL = {"source": "fact", "key": "total", "for": PER_ORDER}
LAST = {"source": "fact", "key": "last"}
AMOUNT = {"source": "arg", "key": "amount"}

effects = st.sampled_from(["block", "needs_human"])
tools = st.sampled_from([*TOOLS])
small = st.integers(0, 3)
conditions = st.builds(
    lambda left, op, right, missing: {"left": left, "op": op, "right": right, "missing": missing},
    st.sampled_from([TOTAL, LAST, AMOUNT]),
    st.sampled_from(["gt", "eq", "ne", "lte"]),
    st.one_of(
        small.map(lambda value: {"source": "const", "value": value}),
        st.sampled_from([AMOUNT, TOTAL, LAST]),
    ),
    st.sampled_from(["fire", "pass"]),
)
bodies = st.one_of(
    conditions.map(lambda condition: {"type": "compare", **condition}),
    st.builds(
        lambda kind, prior: {"type": kind, "prior_tool": prior},
        st.sampled_from(["require_prior_call", "forbid_prior_call"]),
        tools,
    ),
    st.just({"type": "always"}),
)
rules = st.builds(
    lambda body, tool, effect, when: {
        **body,
        "tool": tool,
        "effect": effect,
        **({"when": when} if when else {}),
    },
    bodies,
    tools,
    effects,
    st.lists(conditions, max_size=1),
)
budgets = st.fixed_dictionaries(
    {},
    optional={
        "max_total_calls": st.integers(1, 4),
        "max_high_risk_calls": st.integers(0, 2),
        "limits": st.integers(0, 5).map(
            lambda most: [{"name": "paid", "tools": ["pay"], "amount": "amount", "max": most}]
        ),
    },
)


@st.composite
def policies(draw):
    numbered = enumerate(draw(st.lists(rules, min_size=1, max_size=4)))
    document: dict[str, Any] = {
        "version": "0.2",
        "id": "made-up",
        "tools": {tool: {"risk": risk} for tool, risk in TOOLS.items()},
        "facts": [
            {"name": "total", "from_tool": "look", "path": "total", "per": {"arg": "order"}},
            {"name": "last", "from_tool": "note", "path": "value"},
        ],
        "budgets": draw(budgets),
        "rules": [{"name": f"rule-{number}", **rule} for number, rule in numbered],
    }
    return Policy.of(document)


# A call, what its tool would answer (None: it fails), what a person would say of it when it is
# recorded and when it is lived through, and what of its line is redacted.
steps = st.tuples(
    tools,
    st.sampled_from(["O-1", "O-2"]),
    small,
    st.none() | st.fixed_dictionaries({"total": small, "value": small}),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "amount", "total", "value", "order", "result"]),
)


def the_call(step):
    tool, order, amount, *_ = step
    return Call(tool, {"order": order, "amount": amount})


def lived(policy, run, says):
    """Return for each call what the policy said, and whether it ran."""
    history, told = History(), []
    for number, step in enumerate(run):
        call, result = the_call(step), step[3]
        decision = decide(policy, call, history).decision
        ran = decision is Decision.ALLOW or (
            decision is Decision.NEEDS_HUMAN and says(number, step)
        )
        told.append((decision, ran))
        if ran:
            history = history.dispatched(call, policy)
            if result is not None:
                history = history.succeeded(call.tool, captured(policy, call, result))
    return told


def line(step, decision, ran):
    arguments, result, hidden = dict(the_call(step).arguments), step[3], step[6]
    gate = "policy" if not ran else "service" if result is None else None
    if hidden in arguments:
        arguments[hidden] = HIDDEN
    shown = HIDDEN if hidden == "result" else result
    if result is not None and hidden in result:
        shown = {**result, hidden: HIDDEN}
    code = "ok" if gate is None else "needs_human" if decision == "needs_human" else "other"
    entry = {
        "tool": step[0],
        "arguments": arguments,
        "decision": decision,
        "gate": gate,
        "code": code,
        "true_code": code,
    }
    return json.dumps(entry if gate else {**entry, "result": shown})


def recorded(policy, run):
    told = lived(policy, run, lambda _, step: step[4])
    lines = [
        line(step, decision.value, ran) for step, (decision, ran) in zip(run, told, strict=True)
    ]
    return told, tuple(read_calls("\n".join(lines)))


@settings(deadline=None)
@given(policies(), st.lists(steps, min_size=2, max_size=7))
def test_under_the_same_policy_nothing_is_otherwise(policy, run):
    whole = [(*step[:6], None) for step in run]
    told, calls = recorded(policy, whole)
    again = replay(policy, calls)
    assert [each.decision for each in again] == [decision for decision, _ in told]
    assert not any(each.is_changed for each in again)


@settings(deadline=None, max_examples=500)
@given(policies(), policies(), st.lists(steps, min_size=2, max_size=7))
def test_what_is_said_for_sure_is_what_would_have_been(policy, other, run):
    told, calls = recorded(policy, run)

    def says(number, step):
        # A person who was asked already says the same again; of all else nobody knows.
        was_asked = told[number][0] is Decision.NEEDS_HUMAN
        return step[4] if was_asked else step[5]

    for replayed, (decision, _) in zip(replay(other, calls), lived(other, run, says), strict=True):
        if replayed.decision is not None:
            assert replayed.decision is decision
