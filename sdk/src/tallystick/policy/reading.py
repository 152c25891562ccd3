"""Reads a policy document into its terms, and tells everything that is wrong with it at once.

Version "0.1" of the language is the smaller one; what "0.2" adds is refused in a document that
says "0.1", so that an old reader never takes a policy for less than it says. Nothing is repaired.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final, Literal, cast

from tallystick.canonical import Json, MalformedJson, canonical_bytes, check_json
from tallystick.document import Mark, MarkedDocument, parse_marked
from tallystick.errors import TooLarge
from tallystick.policy.fault import Fault, invalid
from tallystick.policy.node import Faults, Need, Node
from tallystick.policy.paths import Path
from tallystick.policy.reading_rules import (
    NAME_CHARS_MAX,
    Vocabulary,
    read_path,
    read_rules,
    read_tool,
    read_tools,
    read_transform,
)
from tallystick.policy.terms import CallBudget, Decision, Fact, Limit, PerSource, Risk, Rule

POLICY_BYTES_MAX: Final = 128 * 1024
TITLE_CHARS_MAX: Final = 300
TOOLS_MAX: Final = 1000
FACTS_MAX: Final = 200
LIMITS_MAX: Final = 50
CALLS_MAX: Final = 10**9
UNITS_MAX: Final = Decimal(10) ** 15
WINDOW_SECONDS_MAX: Final = 366 * 86_400

_R, _O, _L = Need.REQUIRED, Need.OPTIONAL, Need.LATER
_POLICY: Final = {
    "version": _R,
    "id": _R,
    "title": _O,
    "defaults": _O,
    "tools": _R,
    "facts": _O,
    "budgets": _O,
    "rules": _O,
}
_FACT: Final = {"name": _R, "from_tool": _R, "path": _R, "transform": _L, "per": _L}
_LIMIT: Final = {
    "name": _R,
    "tools": _O,
    "risk": _O,
    "max": _R,
    "amount": _O,
    "per": _O,
    "window": _O,
    "slice": _O,
}
_CALL_BUDGETS: Final = {
    "max_total_calls": Risk.READ,
    "max_write_calls": Risk.WRITE,
    "max_high_risk_calls": Risk.HIGH_RISK,
}
_VERSIONS: Final = ("0.1", "0.2")
_IDENTIFIER: Final = re.compile("[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_NAME: Final = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*")
_NAME_FORM: Final = "a name of letters, digits, - and _"
_WINDOW: Final = re.compile("([1-9][0-9]{0,8})([smhd])")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SLICES: Final = 100
_NOWHERE: Final = Path("", ())


class _Per(StrEnum):
    RUN = "run"
    TENANT = "tenant"


@dataclass(frozen=True, eq=False)
class Reading:
    """A document that was read.

    Args:
        document: The document as a JSON value: what the digest is taken of.
        version: The version of the language, "0.1" or "0.2".
        id: Its name.
        title: What it is for, in a few words; empty if it does not say.
        unknown_tools: What becomes of calls of tools that it does not declare.
        tools: The tools that it declares, with their risk.
        facts: What it captures from results.
        budgets: How many calls a run may make.
        limits: The budgets of its own making.
        rules: Its rules, in order.
        marks: Where in the text each part stands, by JSON Pointer; empty without a text.
    """

    document: Mapping[str, Json]
    version: Literal["0.1", "0.2"]
    id: str
    title: str
    unknown_tools: Decision
    tools: Mapping[str, Risk]
    facts: tuple[Fact, ...]
    budgets: tuple[CallBudget, ...]
    limits: tuple[Limit, ...]
    rules: tuple[Rule, ...]
    marks: Mapping[str, Mark] = field(repr=False)


def read_text(text: str) -> Reading:
    """Read a policy from YAML.

    Raises:
        InvalidPolicy: It breaks rules of the language.
        TooLarge: It is longer than `POLICY_BYTES_MAX` bytes.
    """
    _check_size(text.encode(errors="surrogatepass"))
    return _read(parse_marked(text))


def read_document(document: Json) -> Reading:
    """Read a policy from a JSON value.

    Raises:
        InvalidPolicy: It breaks rules of the language.
        TooLarge: Its canonical form is longer than `POLICY_BYTES_MAX` bytes.
    """
    try:
        value = check_json(document)
    except MalformedJson as error:
        raise invalid([Fault(error.detail, error.pointer)]) from None
    _check_size(canonical_bytes(value))
    return _read(MarkedDocument(value, marks={}, keys={}, flaws=(), is_whole=True))


def _check_size(content: bytes) -> None:
    if len(content) > POLICY_BYTES_MAX:
        raise TooLarge(f"a policy is larger than {POLICY_BYTES_MAX} bytes", pointer="")


def _read(document: MarkedDocument) -> Reading:
    faults = Faults(document)
    reading = (
        _policy(Node(faults, document.value, ""), document.marks) if document.is_whole else None
    )
    if faults.all or reading is None:
        raise invalid(faults.all)
    # Nothing was passed over in silence.
    for part, found in (("facts", reading.facts), ("rules", reading.rules)):
        assert len(cast("list[Json]", reading.document.get(part, []))) == len(found)
    return reading


def _policy(node: Node, marks: Mapping[str, Mark]) -> Reading | None:
    # What a document may have hangs on its version: that is read first.
    members = node.value if isinstance(node.value, dict) else {}
    node.faults.is_later = members.get("version") != _VERSIONS[0]
    fields = node.fields(_POLICY)
    version = _version(fields["version"]) if "version" in fields else None
    identifier = (
        fields["id"].name(_IDENTIFIER, "a name of letters, digits, -, _ and .", NAME_CHARS_MAX)
        if "id" in fields
        else None
    )
    title = fields["title"].text(TITLE_CHARS_MAX) if "title" in fields else None
    facts = _facts(fields["facts"]) if "facts" in fields else {}
    budgets, limits = _budgets(fields["budgets"]) if "budgets" in fields else ((), ())
    vocabulary = Vocabulary(facts)
    return Reading(
        document=members,
        version=cast("Literal['0.1', '0.2']", version),
        id=identifier or "",
        title=title or "",
        unknown_tools=_unknown_tools(fields["defaults"])
        if "defaults" in fields
        else Decision.BLOCK,
        tools=_tools(fields["tools"]) if "tools" in fields else {},
        facts=tuple(facts.values()),
        budgets=budgets,
        limits=limits,
        rules=read_rules(fields["rules"], vocabulary) if "rules" in fields else (),
        marks=marks,
    )


def _version(node: Node) -> str | None:
    if node.value in _VERSIONS:
        return str(node.value)
    quoted = ": quote it" if str(node.value) in _VERSIONS else ""
    node.refuse(f'version "0.1" or "0.2" belongs here{quoted}')
    return None


def _unknown_tools(node: Node) -> Decision:
    fields = node.fields({"unknown_tools": _O})
    chosen = fields["unknown_tools"].one_of(Decision) if "unknown_tools" in fields else None
    return chosen or Decision.BLOCK


def _tools(node: Node) -> dict[str, Risk]:
    tools: dict[str, Risk] = {}
    members = node.members()
    if len(members) > TOOLS_MAX:
        node.refuse(f"a policy has at most {TOOLS_MAX} tools")
        return tools
    for name, member in members.items():
        read_tool(Node(node.faults, name, member.pointer))
        fields = member.fields({"risk": _R})
        risk = fields["risk"].one_of(Risk) if "risk" in fields else None
        if risk is not None:
            tools[name] = risk
    return tools


def _facts(node: Node) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for item in node.items(FACTS_MAX):
        fact = _fact(item)
        if fact is None:
            continue
        if fact.name in facts:
            item.refuse(f'a fact called "{fact.name}" is there already')
        facts.setdefault(fact.name, fact)
    return facts


def _fact(node: Node) -> Fact | None:
    fields = node.fields(_FACT)
    name = fields["name"].name(_NAME, _NAME_FORM, NAME_CHARS_MAX) if "name" in fields else None
    tools = read_tools(fields["from_tool"]) if "from_tool" in fields else ()
    path = (
        read_path(fields["path"], dots_are_old=True, may_be_whole=True)
        if "path" in fields
        else None
    )
    transform = read_transform(fields["transform"]) if "transform" in fields else ()
    source, per = _per(fields["per"]) if "per" in fields else (PerSource.ARG, None)
    if name is None:
        return None
    # A fact with a fault is known all the same, so that the rules that read it have none.
    return Fact(name, tools, path or _NOWHERE, transform, per, source)


def _per(node: Node) -> tuple[PerSource, Path]:
    choices = node.fields({source.value: _O for source in PerSource})
    if len(choices) != 1:
        node.refuse("either arg or path belongs here")
        return PerSource.ARG, _NOWHERE
    source, choice = next(iter(choices.items()))
    path = read_path(choice, dots_are_old=True)
    if path is not None and path.has_each:
        choice.refuse("what a fact is kept per is one value: [*] finds many")
    return PerSource(source), path or _NOWHERE


def _budgets(node: Node) -> tuple[tuple[CallBudget, ...], tuple[Limit, ...]]:
    fields = node.fields({**dict.fromkeys(_CALL_BUDGETS, _O), "limits": _L})
    budgets: list[CallBudget] = []
    for name, risk in _CALL_BUDGETS.items():
        most = fields[name].count(CALLS_MAX) if name in fields else None
        if most is not None:
            budgets.append(CallBudget(name, risk, most))
    limits: dict[str, Limit] = {}
    for item in fields["limits"].items(LIMITS_MAX) if "limits" in fields else ():
        limit = _limit(item)
        if limit is None:
            continue
        if limit.name in limits:
            item.refuse(f'a limit called "{limit.name}" is there already')
        limits.setdefault(limit.name, limit)
    return tuple(budgets), tuple(limits.values())


def _limit(node: Node) -> Limit | None:
    fields = node.fields(_LIMIT)
    name = fields["name"].name(_NAME, _NAME_FORM, NAME_CHARS_MAX) if "name" in fields else None
    amount = read_path(fields["amount"]) if "amount" in fields else None
    most = _units(fields["max"], is_whole="amount" not in fields) if "max" in fields else None
    tools: frozenset[str] = frozenset()
    risk = None if "tools" in fields else Risk.READ
    if "tools" in fields:
        named = [read_tool(item) for item in fields["tools"].items(TOOLS_MAX, least=1)]
        tools = frozenset(tool for tool in named if tool is not None)
    if "risk" in fields:
        risk = fields["risk"].one_of(Risk)
        if "tools" in fields:
            node.refuse("either tools or risk says which calls count, not both")
    per = fields["per"].one_of(_Per) if "per" in fields else _Per.RUN
    window = _window(fields["window"]) if "window" in fields else None
    taken = _units(fields["slice"], is_whole="amount" not in fields) if "slice" in fields else None
    for wide in ("window", "slice"):
        if wide in fields and per is _Per.RUN:
            fields[wide].refuse(f'a {wide} is for a limit with "per: tenant"')
    if taken == 0:
        fields["slice"].refuse("a slice is more than nothing")
    if name is None or most is None or per is None:
        return None
    taken = taken or max(Decimal(1), most // _SLICES)
    return Limit(name, most, tools, risk, amount, per.value, window, taken)


def _units(node: Node, *, is_whole: bool) -> Decimal | None:
    number = node.number(UNITS_MAX)
    if number is not None and is_whole and number != number.to_integral_value():
        node.refuse("a limit of calls is a whole number")
        return None
    return number


def _window(node: Node) -> int | None:
    found = _WINDOW.fullmatch(node.value) if isinstance(node.value, str) else None
    seconds = int(found[1]) * _UNIT_SECONDS[found[2]] if found else 0
    if 0 < seconds <= WINDOW_SECONDS_MAX:
        return seconds
    node.refuse("a time of at most 366 days belongs here, such as 30m, 24h or 7d")
    return None
