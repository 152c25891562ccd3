"""Tables of cases: calls, what had happened before them, and what a policy is to say of them.

    - name: what nobody looked up is not refunded
      call: {tool: issue_refund, arguments: {order_id: O-1, amount: 42}}
      expect: {decision: block, rule: refund-requires-order-lookup}

    - name: what was looked up is refunded
      history:
        - {tool: lookup_order, arguments: {order_id: O-1}, result: {total: 150}}
        - {fact: refund_eligible, value: true}
      call: {tool: issue_refund, arguments: {order_id: O-1, amount: 42}}
      expect: {decision: allow}

Read as strictly as a policy: every fault has its line and column. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from tallystick.canonical import Json
from tallystick.document import DOCUMENT_BYTES_MAX, Mark, parse_marked
from tallystick.errors import InvalidPolicyTable, PolicyBlocked, TooLarge
from tallystick.policy.call import Call
from tallystick.policy.decision import Verdict, decide
from tallystick.policy.facts import captured, key_text
from tallystick.policy.fault import invalid
from tallystick.policy.history import History
from tallystick.policy.node import Faults, Need, Node
from tallystick.policy.policy import Policy
from tallystick.policy.reading import UNITS_MAX
from tallystick.policy.reading_rules import NAME_CHARS_MAX, read_tool
from tallystick.policy.terms import Decision

CASES_MAX: Final = 2000
HISTORY_MAX: Final = 1000
TIMES_MAX: Final = 1000
CASE_NAME_CHARS_MAX: Final = 300

_R, _O = Need.REQUIRED, Need.OPTIONAL
_CASE: Final = {"name": _R, "history": _O, "call": _R, "expect": _R}
_CALL: Final = {"tool": _R, "arguments": _O}
_EXPECTED: Final = {"decision": _R, "rule": _O, "code": _O}
_EARLIER_CALL: Final = {**_CALL, "result": _O, "failed": _O, "times": _O}
_FACT: Final = {"fact": _R, "value": _R, "for": _O}
_SPENT: Final = {"limit": _R, "spent": _R}


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a policy is to say of a call.

    Args:
        decision: What becomes of it.
        rule: The part of the policy that decides; None if the table does not say.
        code: The code of the refusal; None if the table does not say.
    """

    decision: Decision
    rule: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One call, and what is expected.

    Args:
        name: What it shows, in a few words.
        history: What had happened before.
        call: The call.
        expected: What the policy is to say.
        mark: Where in the table it stands.
    """

    name: str
    history: History
    call: Call
    expected: Expectation
    mark: Mark


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One thing that came out otherwise.

    Args:
        what: `decision`, `rule` or `code`.
        expected: As the table has it.
        found: As the policy says.
    """

    what: str
    expected: str
    found: str | None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of a case.

    Args:
        case: The case.
        verdict: What the policy says.
    """

    case: Case
    verdict: Verdict

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        """What came out otherwise than expected; nothing, if the case passes."""
        expected, verdict = self.case.expected, self.verdict
        pairs = (
            ("decision", expected.decision.value, verdict.decision.value),
            ("rule", expected.rule, verdict.rule),
            ("code", expected.code, verdict.code),
        )
        return tuple(
            Mismatch(what, wanted, found)
            for what, wanted, found in pairs
            if wanted is not None and wanted != found
        )

    @property
    def passed(self) -> bool:
        """Whether all came out as expected."""
        return not self.mismatches

    def to_json(self) -> dict[str, Json]:
        """Return the result as a JSON object."""
        return {
            "name": self.case.name,
            "line": self.case.mark.line,
            "tool": self.case.call.tool,
            "passed": self.passed,
            "decision": self.verdict.decision.value,
            "rule": self.verdict.rule,
            "code": self.verdict.code,
            "message": self.verdict.message,
            "mismatches": [
                {"what": each.what, "expected": each.expected, "found": each.found}
                for each in self.mismatches
            ],
        }


def run(policy: Policy, cases: Sequence[Case]) -> tuple[CaseResult, ...]:
    """Ask a policy about each case."""
    return tuple(CaseResult(case, decide(policy, case.call, case.history)) for case in cases)


def read_cases(text: str, policy: Policy) -> tuple[Case, ...]:
    """Read a table of cases from YAML.

    Args:
        text: The table.
        policy: The policy that it is about: what had happened is told in its facts and limits.

    Raises:
        InvalidPolicyTable: It is none; `facts["faults"]` has every fault, with line and column.
        TooLarge: It is longer than `DOCUMENT_BYTES_MAX` bytes.
    """
    node, marks = _parsed(text)
    names: set[str] = set()
    cases: list[Case] = []
    for item in node.items(CASES_MAX, least=1):
        case = _case(item, policy, marks)
        if case is None:
            continue
        if case.name in names:
            item.refuse(f'a case called "{case.name}" is there already')
        names.add(case.name)
        cases.append(case)
    _check(node.faults)
    return tuple(cases)


def read_history(text: str, policy: Policy) -> History:
    """Read what had happened before a call, as a case has it, from YAML.

    Raises:
        InvalidPolicyTable: As `read_cases`.
        TooLarge: As `read_cases`.
    """
    node, _ = _parsed(text)
    history = _history(node, policy)
    _check(node.faults)
    return history


def _parsed(text: str) -> tuple[Node, Mapping[str, Mark]]:
    if len(text.encode(errors="surrogatepass")) > DOCUMENT_BYTES_MAX:
        raise TooLarge(f"a table is larger than {DOCUMENT_BYTES_MAX} bytes", pointer="")
    document = parse_marked(text)
    faults = Faults(document)
    if not document.is_whole:
        _check(faults)
    return Node(faults, document.value, ""), document.marks


def _check(faults: Faults) -> None:
    if faults.all:
        refusal = invalid(faults.all)
        raise InvalidPolicyTable(refusal.detail, pointer=refusal.pointer, facts=refusal.facts)


def _case(node: Node, policy: Policy, marks: Mapping[str, Mark]) -> Case | None:
    fields = node.fields(_CASE)
    name = fields["name"].text(CASE_NAME_CHARS_MAX) if "name" in fields else None
    history = _history(fields["history"], policy) if "history" in fields else History()
    call = _call(fields["call"].fields(_CALL)) if "call" in fields else None
    expected = _expected(fields["expect"]) if "expect" in fields else None
    if name is None or call is None or expected is None:
        return None
    return Case(name, history, call, expected, marks[node.pointer])


def _call(fields: dict[str, Node]) -> Call | None:
    tool = read_tool(fields["tool"]) if "tool" in fields else None
    arguments: Json = {}
    if "arguments" in fields:
        fields["arguments"].members()
        arguments = fields["arguments"].value
    return Call(tool, arguments) if tool is not None and isinstance(arguments, dict) else None


def _expected(node: Node) -> Expectation | None:
    fields = node.fields(_EXPECTED)
    decision = fields["decision"].one_of(Decision) if "decision" in fields else None
    rule = fields["rule"].text(NAME_CHARS_MAX) if "rule" in fields else None
    code = fields["code"].text(NAME_CHARS_MAX) if "code" in fields else None
    return None if decision is None else Expectation(decision, rule, code)


# --- what had happened ----------------------------------------------------------------------------


def _history(node: Node, policy: Policy) -> History:
    history = History()
    for item in node.items(HISTORY_MAX):
        members = item.value if isinstance(item.value, dict) else {}
        if "fact" in members:
            history = _with_fact(history, item, policy)
        elif "limit" in members:
            history = _with_spent(history, item, policy)
        else:
            history = _with_call(history, item, policy)
    return history


def _with_call(history: History, node: Node, policy: Policy) -> History:
    fields = node.fields(_EARLIER_CALL)
    call = _call(fields)
    failed = "failed" in fields and _is_true(fields["failed"])
    times = fields["times"].count(TIMES_MAX) if "times" in fields else 1
    if failed and "result" in fields:
        fields["result"].refuse("a call that failed has no result")
    if call is None:
        return history
    result = fields["result"].value if "result" in fields else None
    try:
        for _ in range(times or 0):
            history = history.dispatched(call, policy)
            if not failed:
                history = history.succeeded(call.tool, captured(policy, call, result))
    except PolicyBlocked as refusal:
        node.refuse(f"this cannot have happened: {refusal.detail}")
    return history


def _with_fact(history: History, node: Node, policy: Policy) -> History:
    fields = node.fields(_FACT)
    facts = {fact.name: fact for fact in policy.facts}
    name = fields["fact"].known(facts, "fact")
    if name is None or "value" not in fields:
        return history
    key, per = "", facts[name].per
    if per is None:
        if "for" in fields:
            fields["for"].refuse(f'the fact "{name}" has one value: it is not kept per anything')
    elif "for" not in fields:
        node.refuse(f'the fact "{name}" is kept per {per.text}: say for which, with "for"')
    else:
        found = key_text(fields["for"].value)
        if found is None:
            fields["for"].refuse("a text, a number or a boolean belongs here")
        key = found or ""
    # A fact alone is no call of its tool: what is asked for a prior call does not find one.
    known = {**history.facts, (name, key): fields["value"].value}
    return replace(history, facts=known)


def _with_spent(history: History, node: Node, policy: Policy) -> History:
    fields = node.fields(_SPENT)
    name = fields["limit"].known([limit.name for limit in policy.limits], "limit")
    units = fields["spent"].number(UNITS_MAX) if "spent" in fields else None
    if name is None or units is None:
        return history
    before = history.spent.get(name, Decimal(0))
    return replace(history, spent={**history.spent, name: before + units})


def _is_true(node: Node) -> bool:
    if not isinstance(node.value, bool):
        node.refuse("true or false belongs here")
    return node.value is True
