"""A policy is read whole or refused whole, with every fault in its place."""

from pathlib import Path
from typing import Any

import pytest

from tallystick.errors import InvalidPolicy, TooLarge
from tallystick.policy import Decision, Policy, Risk
from tallystick.policy.fault import FAULTS_MAX
from tallystick.policy.reading import POLICY_BYTES_MAX
from tallystick.policy.terms import RuleType
from tests.policies import (
    AMOUNT,
    ORDER_TOTAL,
    TOTAL,
    a_document,
    a_rule,
    compare,
    const,
    policy_of,
)

SMALL = 'version: "0.1"\nid: small\ntools: {}\n'


def faults_of(document: Any) -> list[tuple[str, str]]:
    """Return the place and the message of each fault of a document, or of a text."""
    return [(pointer, message) for pointer, message, *_ in marked_faults(document)]


def marked_faults(document: Any) -> list[tuple[str, str, int | None, int | None]]:
    with pytest.raises(InvalidPolicy) as caught:
        Policy.parse(document) if isinstance(document, str) else Policy.of(document)
    faults: Any = caught.value.facts["faults"]
    assert caught.value.pointer == faults[0]["pointer"]
    assert faults[0]["message"] in caught.value.detail
    return [(each["pointer"], each["message"], each["line"], each["column"]) for each in faults]


# --- what a policy may say ------------------------------------------------------------------------


def test_the_smallest_policy():
    policy = Policy.parse(SMALL)
    assert (policy.id, policy.version, policy.title) == ("small", "0.1", "")
    assert policy.unknown_tools is Decision.BLOCK
    assert (policy.tools, policy.facts, policy.budgets, policy.limits, policy.rules) == (
        {},
        (),
        (),
        (),
        (),
    )


def test_everything_that_a_policy_may_say():
    order = {"source": "arg", "key": "order_id"}
    when = [{"left": order, "op": "matches", "right": const("^LK-"), "missing": "fire"}]
    for_latest: Any = {"for": {"source": "fact", "key": "latest"}}
    policy = policy_of(
        title="All of it",
        defaults={"unknown_tools": "needs_human"},
        facts=[
            {**ORDER_TOTAL, "transform": ["number"], "per": {"path": "order.id"}},
            {"name": "latest", "from_tool": "lookup_order", "path": "/orders/0/id"},
        ],
        budgets={
            "max_total_calls": 9,
            "max_write_calls": 4,
            "max_high_risk_calls": 2,
            "limits": [
                {"name": "mails", "tools": ["send_email"], "max": 100, "per": "tenant"},
                {
                    "name": "refunded",
                    "risk": "high_risk",
                    "max": 999.95,
                    "amount": "amount",
                    "per": "tenant",
                    "window": "24h",
                    "slice": 50,
                },
            ],
        },
        rules=[
            a_rule("require_prior_call", name="a", prior_tool="lookup_order", message="Look."),
            a_rule("forbid_prior_call", name="b", prior_tool="send_email", effect="needs_human"),
            a_rule("require_fact", name="c", fact="order_total", op="exists", **for_latest),
            compare({**AMOUNT, "transform": ["number"]}, "not_in", const([1, 2]), name="d"),
            compare({**AMOUNT, "key": "a.b[*]"}, "exists", name="e", missing="pass"),
            a_rule("always", name="f", when=when),
        ],
    )
    assert [rule.type for rule in policy.rules] == [
        RuleType.REQUIRE_PRIOR_CALL,
        RuleType.FORBID_PRIOR_CALL,
        RuleType.REQUIRE_FACT,
        RuleType.COMPARE,
        RuleType.COMPARE,
        RuleType.ALWAYS,
    ]
    assert policy.risk_of("send_email") is Risk.WRITE
    assert policy.risk_of("nothing") is None
    assert [(each.name, each.window_seconds, str(each.slice)) for each in policy.limits] == [
        ("mails", None, "1"),
        ("refunded", 86_400, "50"),
    ]


def test_the_digest_is_of_what_is_said_and_not_of_how_it_is_written():
    written = Policy.parse('# a comment\nid: small\n"version": "0.1"\n\ntools: {}')
    assert written == Policy.parse(SMALL) == Policy.of({**written.document})
    assert written.digest == Policy.parse(SMALL).digest
    assert hash(written) == hash(Policy.parse(SMALL))
    assert written != Policy.parse(SMALL.replace("small", "other"))
    assert written != "small"


def test_json_is_read_as_the_yaml_that_it_is():
    assert Policy.parse('{"version": "0.1",\t"id": "small", "tools": {}}') == Policy.parse(SMALL)


def test_a_file_is_read_as_it_comes_from_an_editor(tmp_path: Path):
    file = tmp_path / "policy.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert Policy.load(file) == Policy.load(str(file)) == Policy.parse(SMALL)
    file.write_bytes(b"id: \xff")
    with pytest.raises(InvalidPolicy, match="byte 4 is not UTF-8"):
        Policy.load(file)
    with pytest.raises(FileNotFoundError):
        Policy.load(tmp_path / "nowhere.yaml")


def test_a_policy_has_a_size():
    text = SMALL + "#" * (POLICY_BYTES_MAX - len(SMALL))
    assert Policy.parse(text) == Policy.parse(SMALL)
    with pytest.raises(TooLarge):
        Policy.parse(text + "#")
    with pytest.raises(TooLarge):
        Policy.of({"id": "a" * POLICY_BYTES_MAX})


# --- faults and their places ----------------------------------------------------------------------

MANY_FAULTS = """\
version: "0.1"
id: bad policy
titel: Misspelt
tools:
  lookup_order: {risk: raed}
  lookup_order: {risk: read}
  send_email: &mail {risk: write}
facts:
  - name: total
    from_tool: lookup_order
    path: items[0].total
rules:
  - name: first
    type: compare
    tool: send_email
    left: {source: arg, key: to}
    op: matches
    right: {source: const, value: x}
    effect: block
  - name: second
    type: require_fact
    tool: send_email
    fact: totl
    op: eq
    value: 1
    effect: stop
  - name: third
    type: require_prior_call
    tool: *mail
    effect: block
"""


def test_all_faults_are_told_at_once_in_the_order_of_the_text():
    assert marked_faults(MANY_FAULTS) == [
        ("/id", "a name of letters, digits, -, _ and . belongs here", 2, 5),
        ("/titel", 'no field is called "titel": did you mean "title"?', 3, 1),
        (
            "/tools/lookup_order/risk",
            'one of read, write, high_risk belongs here, not "raed": did you mean "read"?',
            5,
            24,
        ),
        ("/tools/lookup_order", "a key that the object has already", 6, 3),
        ("/tools/send_email", "an anchor, which JSON has not", 7, 15),
        ("/facts/0/path", 'such a path needs version "0.2"', 11, 11),
        ("/rules/0/op", '"matches" needs version "0.2"', 17, 9),
        (
            "/rules/1/fact",
            'no fact is called "totl": did you mean "total"?',
            23,
            11,
        ),
        (
            "/rules/1/effect",
            'one of block, needs_human belongs here, not "stop"',
            26,
            13,
        ),
        ("/rules/2", 'the field "prior_tool" is missing', 27, 5),
        ("/rules/2/tool", "an alias, which JSON has not: write the value out", 29, 11),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", ("", "the document is empty", 1, 1)),
        ("# nothing\n", ("", "the document is empty", 2, 1)),
        ("id: [1", ("/id", "not YAML: expected ',' or ']', but got '<stream end>'", 1, 7)),
        ("a: 1\n b: 2", ("", "not YAML: mapping values are not allowed here", 2, 3)),
        ("id: \x07", ("", "not YAML: unacceptable character #x0007", 1, 1)),
    ],
)
def test_what_is_no_yaml_is_refused_where_it_stops(text: str, fault: Any):
    found = marked_faults(text)
    assert len(found) == 1
    assert found[0][0] == fault[0]
    assert found[0][1].startswith(fault[1][:30])
    assert found[0][2:] == fault[2:]


@pytest.mark.parametrize(
    ("text", "pointer", "message", "line"),
    [
        (SMALL + "---\na: 1\n", "", "a second document begins", 4),
        (SMALL + "1: 2\n", "", "a key that is not a string: quote it", 4),
        (SMALL + "? [a, b]\n: {c: d}\n", "", "a key that is not a string: quote it", 4),
        (SMALL + "title: !!binary aGk=\n", "/title", "a tag that does not fit the value", 4),
        (SMALL + "title: .nan\n", "/title", "a number that a double cannot hold", 4),
        (SMALL + "rules: " + "[" * 200 + "]" * 200, "/rules", "nested more than 128 deep", 4),
        ("%YAML 1.1\n---\n" + SMALL, "", "only YAML 1.2 is read", 2),
    ],
)
def test_what_json_cannot_say_is_refused(text: str, pointer: str, message: str, line: int):
    found = [
        each
        for each in marked_faults(text)
        if each[0].startswith(pointer) and each[1].startswith(message)
    ]
    assert [each[2] for each in found] == [line]


def test_of_very_many_faults_the_first_are_told_and_all_are_counted():
    with pytest.raises(InvalidPolicy, match=r"\(and 499 more\)") as caught:
        Policy.of(a_document(**{f"toolz{place}": 1 for place in range(500)}))
    faults: Any = caught.value.facts["faults"]
    assert len(faults) == FAULTS_MAX
    guesses = [fault for fault in faults if "did you mean" in fault["message"]]
    assert 0 < len(guesses) < len(faults)


@pytest.mark.parametrize("text", ["a: " + "[" * 50_000, "{a: " * 20_000, "? " * 50_000])
def test_what_is_nested_very_deeply_is_refused_where_it_is_too_deep(text: str):
    assert len(faults_of(text)) == 1


def test_a_json_value_has_faults_without_lines():
    assert marked_faults({"version": "0.1", "id": "a"}) == [
        ("", 'the field "tools" is missing', None, None)
    ]
    assert faults_of({"version": float("nan")}) == [
        ("/version", "a number that a double cannot hold")
    ]
    assert faults_of([1]) == [("", "a mapping belongs here, not a list")]


def test_the_first_fault_is_the_sentence_and_the_number_of_others_is_told():
    with pytest.raises(InvalidPolicy) as caught:
        Policy.parse('version: "0.3"\nid: a\n')
    assert str(caught.value) == ('line 1 column 1: the field "tools" is missing (and 1 more).')


# --- each fault of the form -----------------------------------------------------------------------

RULE = a_rule("require_prior_call", prior_tool="lookup_order")
LIMIT = {"name": "mails", "max": 5}
KEYED = {**ORDER_TOTAL, "per": {"arg": "order_id"}}


def rule_with(**fields: Any) -> dict[str, Any]:
    return {"rules": [{**RULE, **fields}]}


def compare_with(left: Any = AMOUNT, op: Any = "gt", right: Any = None, **fields: Any) -> Any:
    rule = compare(left, op, const(1) if right is None else right, **fields)
    return {"rules": [rule], "facts": [ORDER_TOTAL]}


@pytest.mark.parametrize(
    ("parts", "pointer", "message"),
    [
        ({"version": 0.1}, "/version", 'version "0.1" or "0.2" belongs here: quote it'),
        ({"version": "1.0"}, "/version", 'version "0.1" or "0.2" belongs here'),
        ({"id": ""}, "/id", "the text is empty"),
        ({"id": 5}, "/id", "a text belongs here, not 5"),
        ({"id": "a" * 129}, "/id", "the text is longer than 128 characters"),
        ({"title": "a" * 301}, "/title", "the text is longer than 300 characters"),
        ({"defaults": {"unknown_tools": "deny"}}, "/defaults/unknown_tools", "one of allow"),
        ({"defaults": {"tools": 1}}, "/defaults/tools", 'no field is called "tools"'),
        ({"tools": []}, "/tools", "a mapping belongs here, not a list"),
        ({"tools": {"a b": {"risk": "read"}}}, "/tools/a b", "the name of a tool"),
        ({"tools": {"a": {}}}, "/tools/a", 'the field "risk" is missing'),
        ({"tools": {"a": None}}, "/tools/a", "a mapping belongs here, not nothing"),
        (
            {"tools": {f"t{n}": {"risk": "read"} for n in range(1001)}},
            "/tools",
            "a policy has at most 1000 tools",
        ),
        ({"facts": {}}, "/facts", "a list belongs here, not a mapping"),
        ({"facts": [ORDER_TOTAL] * 201}, "/facts", "a list of 0 to 200 items belongs here"),
        (
            {"facts": [ORDER_TOTAL, ORDER_TOTAL]},
            "/facts/1",
            'a fact called "order_total" is there already',
        ),
        ({"facts": [{**ORDER_TOTAL, "path": "a..b"}]}, "/facts/0/path", "not a path, from its"),
        (
            {"facts": [{**ORDER_TOTAL, "transform": ["lowr"]}]},
            "/facts/0/transform/0",
            'no transformation is called "lowr": did you mean "lower"?',
        ),
        (
            {"facts": [{**ORDER_TOTAL, "transform": []}]},
            "/facts/0/transform",
            "a list of 1 to 8 items belongs here",
        ),
        (
            {"facts": [{**ORDER_TOTAL, "per": {}}]},
            "/facts/0/per",
            "either arg or path belongs here",
        ),
        (
            {"facts": [{**ORDER_TOTAL, "per": {"path": "ids[*]"}}]},
            "/facts/0/per/path",
            "what a fact is kept per is one value: [*] finds many",
        ),
        (
            {"budgets": {"max_calls": 1}},
            "/budgets/max_calls",
            'no field is called "max_calls": did you mean',
        ),
        (
            {"budgets": {"max_total_calls": -1}},
            "/budgets/max_total_calls",
            "a whole number from 0 to 1000000000 belongs here, not -1",
        ),
        (
            {"budgets": {"max_total_calls": True}},
            "/budgets/max_total_calls",
            "a whole number from 0 to 1000000000 belongs here, not true",
        ),
        (
            {"budgets": {"limits": [LIMIT, LIMIT]}},
            "/budgets/limits/1",
            'a limit called "mails" is there already',
        ),
        (
            {"budgets": {"limits": [{**LIMIT, "tools": ["a"], "risk": "read"}]}},
            "/budgets/limits/0",
            "either tools or risk says which calls count, not both",
        ),
        (
            {"budgets": {"limits": [{**LIMIT, "max": 1.5}]}},
            "/budgets/limits/0/max",
            "a limit of calls is a whole number",
        ),
        (
            {"budgets": {"limits": [{**LIMIT, "max": "5"}]}},
            "/budgets/limits/0/max",
            'a number from 0 to 1000000000000000 belongs here, not "5"',
        ),
        (
            {"budgets": {"limits": [{**LIMIT, "window": "24h"}]}},
            "/budgets/limits/0/window",
            'a window is for a limit with "per: tenant"',
        ),
        (
            {"budgets": {"limits": [{**LIMIT, "slice": 2}]}},
            "/budgets/limits/0/slice",
            'a slice is for a limit with "per: tenant"',
        ),
        (
            {"budgets": {"limits": [{**LIMIT, "per": "tenant", "slice": 0}]}},
            "/budgets/limits/0/slice",
            "a slice is more than nothing",
        ),
        (
            {"budgets": {"limits": [{**LIMIT, "per": "tenant", "window": "400d"}]}},
            "/budgets/limits/0/window",
            "a time of at most 366 days belongs here, such as 30m, 24h or 7d",
        ),
        (
            {"budgets": {"limits": [{**LIMIT, "per": "user"}]}},
            "/budgets/limits/0/per",
            "one of run, tenant belongs here",
        ),
        (rule_with(name="a.b"), "/rules/0/name", "a name of letters, digits, - and _ belongs here"),
        (rule_with(type="require_call"), "/rules/0/type", "one of require_prior_call"),
        (rule_with(tool="../etc"), "/rules/0/tool", "the name of a tool"),
        (rule_with(effect="allow"), "/rules/0/effect", "one of block, needs_human belongs here"),
        (rule_with(fact="x"), "/rules/0/fact", 'no field is called "fact"'),
        (rule_with(when=[]), "/rules/0/when", "a list of 1 to 20 items belongs here"),
        (rule_with(when={}), "/rules/0/when", "a list belongs here, not a mapping"),
        (rule_with(message=" "), "/rules/0/message", "the text is empty"),
        ({"rules": [RULE, RULE]}, "/rules/1", 'a rule called "rule" is there already'),
        ({"rules": ["x"]}, "/rules/0", 'a mapping belongs here, not "x"'),
        ({"rules": [{"name": "a"}]}, "/rules/0", 'the field "type" is missing'),
        (compare_with(left={"source": "env"}), "/rules/0/left/source", "one of arg, fact, const"),
        (compare_with(left={"source": "arg"}), "/rules/0/left", 'the field "key" is missing'),
        (compare_with(left={}), "/rules/0/left", 'the field "source" is missing'),
        (compare_with(left=const(None)), "/rules/0/left/value", 'null is "not there"'),
        (
            compare_with(left={**const(1), "transform": ["text"]}),
            "/rules/0/left/transform",
            'no field is called "transform"',
        ),
        (compare_with(op="=="), "/rules/0/op", "one of eq, ne, gt"),
        (compare_with(op="exists"), "/rules/0/right", '"exists" asks for the one operand alone'),
        (
            {"rules": [compare(AMOUNT, "gt")]},
            "/rules/0",
            'the field "right" is missing',
        ),
        (compare_with(missing="ignore"), "/rules/0/missing", "one of fire, pass belongs here"),
        (
            compare_with(op="matches", right=const("(?=a)")),
            "/rules/0/right",
            "the pattern is malformed, too large, or needs an engine that backtracks",
        ),
        (
            compare_with(op="matches", right=const("(")),
            "/rules/0/right",
            "the pattern is malformed, too large, or needs an engine that backtracks",
        ),
        (
            compare_with(op="matches", right=AMOUNT),
            "/rules/0/right",
            "a pattern is a constant text of at most 1000 characters",
        ),
        (
            compare_with(left={"source": "fact", "key": "total"}),
            "/rules/0/left/key",
            'no fact is called "total": did you mean "order_total"?',
        ),
        (
            compare_with(left={**TOTAL, "for": AMOUNT}),
            "/rules/0/left/for",
            'the fact "order_total" has one value: it is not kept per anything',
        ),
        (
            {
                "facts": [{**ORDER_TOTAL, "per": {"path": "order_id"}}],
                "rules": [compare(AMOUNT, "gt", TOTAL)],
            },
            "/rules/0/right",
            'the fact "order_total" is kept per order_id of the result: say for which, with "for"',
        ),
        (
            {"facts": [{**ORDER_TOTAL, "from_tool": []}]},
            "/facts/0/from_tool",
            "a list of 1 to 100 items belongs here",
        ),
        (
            {"facts": [{**ORDER_TOTAL, "from_tool": ["lookup_order", "a b"]}]},
            "/facts/0/from_tool/1",
            "the name of a tool",
        ),
        ({"facts": [{**KEYED, "per": {"path": ""}}]}, "/facts/0/per/path", "the text is empty"),
        (compare_with(left={**AMOUNT, "key": ""}), "/rules/0/left/key", "the text is empty"),
        (rule_with(tool=[]), "/rules/0/tool", "a list of 1 to 100 items belongs here"),
        (rule_with(tool=["a"] * 101), "/rules/0/tool", "a list of 1 to 100 items belongs here"),
        (rule_with(prior_tool=[5]), "/rules/0/prior_tool/0", "a text belongs here, not 5"),
        (
            compare_with(op="not_matches", right=const("(")),
            "/rules/0/right",
            "the pattern is malformed, too large, or needs an engine that backtracks",
        ),
        (
            {"facts": [KEYED], "rules": [compare(AMOUNT, "gt", {**TOTAL, "for": TOTAL})]},
            "/rules/0/right/for",
            "what selects a fact's value is not itself a fact with several values",
        ),
        (
            {
                "rules": [a_rule("require_fact", fact="order_total", op="eq")],
                "facts": [ORDER_TOTAL],
            },
            "/rules/0",
            'the field "value" is missing',
        ),
    ],
)
def test_each_fault_of_the_form_is_told_in_its_place(parts: Any, pointer: str, message: str):
    found = faults_of(a_document(**parts))
    assert any(place == pointer and told.startswith(message) for place, told in found), found


# --- what needs version 0.2 -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "pointer"),
    [
        ({"facts": [{**ORDER_TOTAL, "transform": ["number"]}]}, "/facts/0/transform"),
        ({"facts": [KEYED]}, "/facts/0/per"),
        ({"facts": [{**ORDER_TOTAL, "path": "items[*].price"}]}, "/facts/0/path"),
        ({"facts": [{**ORDER_TOTAL, "path": '"a b"'}]}, "/facts/0/path"),
        ({"facts": [{**ORDER_TOTAL, "path": "/total"}]}, "/facts/0/path"),
        ({"budgets": {"limits": [LIMIT]}}, "/budgets/limits"),
        ({"facts": [{**ORDER_TOTAL, "path": ""}]}, "/facts/0/path"),
        ({"facts": [{**ORDER_TOTAL, "from_tool": ["lookup_order"]}]}, "/facts/0/from_tool"),
        (rule_with(tool=["issue_refund"]), "/rules/0/tool"),
        (rule_with(prior_tool=["lookup_order"]), "/rules/0/prior_tool"),
        (rule_with(when=[]), "/rules/0/when"),
        (rule_with(message="No."), "/rules/0/message"),
        (rule_with(type="forbid_prior_call"), "/rules/0/type"),
        ({"rules": [a_rule("always")]}, "/rules/0/type"),
        (compare_with(missing="pass"), "/rules/0/missing"),
        (compare_with(op="in", right=const([1])), "/rules/0/op"),
        (compare_with(op="not_matches", right=const("a")), "/rules/0/op"),
        (compare_with(left={**AMOUNT, "key": "refund.amount"}), "/rules/0/left/key"),
        (compare_with(left={**AMOUNT, "transform": ["number"]}), "/rules/0/left/transform"),
        (compare_with(left={**TOTAL, "for": AMOUNT}), "/rules/0/left/for"),
    ],
)
def test_an_addition_is_refused_in_a_document_of_version_0_1(parts: Any, pointer: str):
    found = faults_of(a_document(**parts, version="0.1"))
    told = [message for place, message in found if place == pointer]
    assert any('needs version "0.2"' in message for message in told), found
    later = faults_of_any(a_document(**parts, version="0.2"))
    assert not any('needs version "0.2"' in message for _, message in later)


def faults_of_any(document: Any) -> list[tuple[str, str]]:
    try:
        Policy.of(document)
    except InvalidPolicy:
        return faults_of(document)
    return []


def test_version_0_1_has_paths_with_dots_and_six_operators():
    for op in ("eq", "ne", "gt", "gte", "lt", "lte"):
        policy_of(
            version="0.1",
            facts=[{**ORDER_TOTAL, "path": "order.total"}],
            rules=[compare(AMOUNT, op, TOTAL)],
        )


def test_a_name_in_a_fault_cannot_command_a_terminal():
    (_, message), *_ = faults_of(a_document(**{"\x1b[2Jtools": 1}))
    assert "\x1b" not in message
