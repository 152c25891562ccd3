"""Reads the rules of a policy document, and what they are made of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tallystick.policy.node import Need, Node
from tallystick.policy.operators import ALONE, PATTERNED, Operator
from tallystick.policy.paths import PATH_CHARS_MAX, Path
from tallystick.policy.terms import (
    Condition,
    Decision,
    Fact,
    Operand,
    PerSource,
    Rule,
    RuleType,
    Source,
)
from tallystick.policy.transformations import TRANSFORMATIONS, TRANSFORMATIONS_MAX
from tallystick.subschema import compile_pattern

NAME_CHARS_MAX: Final = 128
RULES_MAX: Final = 300
TOOLS_OF_ONE_MAX: Final = 100
CONDITIONS_MAX: Final = 20
MESSAGE_CHARS_MAX: Final = 300
PATTERN_CHARS_MAX: Final = 1000

_R, _O, _L = Need.REQUIRED, Need.OPTIONAL, Need.LATER
_RULE: Final = {"name": _R, "type": _R, "tool": _R, "effect": _R, "when": _L, "message": _L}
_COMPARISON: Final = {"left": _R, "op": _R, "right": _O, "missing": _L}
_OWN_FIELDS: Final[Mapping[RuleType, Mapping[str, Need]]] = {
    RuleType.REQUIRE_PRIOR_CALL: {"prior_tool": _R},
    RuleType.FORBID_PRIOR_CALL: {"prior_tool": _R},
    RuleType.REQUIRE_FACT: {"fact": _R, "op": _R, "value": _O, "for": _L},
    RuleType.COMPARE: _COMPARISON,
    RuleType.ALWAYS: {},
}
_OPERANDS: Final[Mapping[Source, Mapping[str, Need]]] = {
    Source.ARG: {"source": _R, "key": _R, "transform": _L},
    Source.FACT: {"source": _R, "key": _R, "for": _L, "transform": _L},
    Source.CONST: {"source": _R, "value": _R},
}
_LATER_TYPES: Final = frozenset({RuleType.FORBID_PRIOR_CALL, RuleType.ALWAYS})
_LATER_OPERATORS: Final = frozenset(Operator) - {
    Operator.EQ,
    Operator.NE,
    Operator.GT,
    Operator.GTE,
    Operator.LT,
    Operator.LTE,
}
_EFFECTS: Final = (Decision.BLOCK, Decision.NEEDS_HUMAN)
_NOTHING: Final = Operand(Source.CONST)

_TOOL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")
_RULE_NAME: Final = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*")


class _Missing(StrEnum):
    FIRE = "fire"
    PASS = "pass"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What rules may speak of.

    Args:
        facts: The facts by their names.
    """

    facts: Mapping[str, Fact]


def read_tool(node: Node) -> str | None:
    """Read the name of a tool; whether the policy declares it is not a matter of form."""
    return node.name(_TOOL, "the name of a tool, such as billing.send_invoice,", NAME_CHARS_MAX)


def read_tools(node: Node) -> tuple[str, ...]:
    """Read the name of a tool or, since version 0.2, a list of names."""
    if not isinstance(node.value, list):
        tool = read_tool(node)
        return () if tool is None else (tool,)
    if node.needs_later("a list of tools"):
        return ()
    named = [read_tool(item) for item in node.items(TOOLS_OF_ONE_MAX, least=1)]
    return tuple(tool for tool in named if tool is not None)


def read_path(node: Node, *, dots_are_old: bool = False, may_be_whole: bool = False) -> Path | None:
    """Read a path; more than a name, or than names with dots between them, needs version 0.2.

    Args:
        node: The path.
        dots_are_old: Whether names with dots between them do not.
        may_be_whole: Whether the whole value may be meant, with an empty text.
    """
    text = "" if may_be_whole and node.value == "" else node.text(PATH_CHARS_MAX)
    if text is None:
        return None
    try:
        path = Path.parse(text)
    except ValueError as error:
        node.refuse(str(error))
        return None
    is_old = path.is_dotted if dots_are_old else path.is_name
    return None if not is_old and node.needs_later("such a path") else path


def read_transform(node: Node) -> tuple[str, ...]:
    """Read the names of transformations."""
    names = [
        item.known(TRANSFORMATIONS, "transformation")
        for item in node.items(TRANSFORMATIONS_MAX, least=1)
    ]
    return tuple(name for name in names if name is not None)


def read_rules(node: Node, vocabulary: Vocabulary) -> tuple[Rule, ...]:
    """Read all rules."""
    rules: dict[str, Rule] = {}
    for index, item in enumerate(node.items(RULES_MAX)):
        rule = _rule(item, index, vocabulary)
        if rule is None:
            continue
        if rule.name in rules:
            item.refuse(f'a rule called "{rule.name}" is there already')
        rules.setdefault(rule.name, rule)
    return tuple(rules.values())


def _rule(node: Node, index: int, vocabulary: Vocabulary) -> Rule | None:
    kind = _rule_type(node)
    fields = node.fields({**_RULE, **(_OWN_FIELDS[kind] if kind else _any_field())})
    name = (
        fields["name"].name(_RULE_NAME, "a name of letters, digits, - and _", NAME_CHARS_MAX)
        if "name" in fields
        else None
    )
    tools = read_tools(fields["tool"]) if "tool" in fields else ()
    effect = fields["effect"].one_of(_EFFECTS) if "effect" in fields else None
    prior_tools = read_tools(fields["prior_tool"]) if "prior_tool" in fields else ()
    message = fields["message"].text(MESSAGE_CHARS_MAX) if "message" in fields else None
    condition = None
    if kind is RuleType.REQUIRE_FACT:
        condition = _fact_condition(node, fields, vocabulary)
    elif kind is RuleType.COMPARE:
        condition = _condition(node, fields, vocabulary)
    when = [
        _condition(item, item.fields(_COMPARISON), vocabulary)
        for item in (fields["when"].items(CONDITIONS_MAX, least=1) if "when" in fields else ())
    ]
    if name is None or kind is None or not tools or effect is None:
        return None
    if condition is None and kind in (RuleType.REQUIRE_FACT, RuleType.COMPARE):
        return None
    return Rule(
        name=name,
        type=kind,
        tools=tools,
        effect=effect,
        prior_tools=prior_tools,
        condition=condition,
        when=tuple(each for each in when if each is not None),
        message=message,
        index=index,
    )


def _rule_type(node: Node) -> RuleType | None:
    type_node = node.members().get("type")
    return type_node.one_of(RuleType, _LATER_TYPES) if type_node else None


def _any_field() -> dict[str, Need]:
    # Of a rule without a type, no field is known to be wrong.
    return {name: _O for fields in _OWN_FIELDS.values() for name in fields}


def _fact_condition(
    node: Node, fields: Mapping[str, Node], vocabulary: Vocabulary
) -> Condition | None:
    left = _fact_operand(node, fields.get("fact"), fields.get("for"), vocabulary)
    operator = _operator(fields)
    right = _NOTHING
    if operator is not None and _takes_right(node, operator, fields, "value"):
        right = Operand(Source.CONST, value=fields["value"].value)
        _check_pattern(operator, right, fields["value"])
    return None if left is None or operator is None else Condition(left, operator, right)


def _condition(node: Node, fields: Mapping[str, Node], vocabulary: Vocabulary) -> Condition | None:
    left = _operand(fields["left"], vocabulary) if "left" in fields else None
    operator = _operator(fields)
    right: Operand | None = _NOTHING
    if operator is not None and _takes_right(node, operator, fields, "right"):
        right = _operand(fields["right"], vocabulary)
        if right is not None:
            _check_pattern(operator, right, fields["right"])
    passes = "missing" in fields and fields["missing"].one_of(_Missing) is _Missing.PASS
    if left is None or operator is None or right is None:
        return None
    return Condition(left, operator, right, passes)


def _operator(fields: Mapping[str, Node]) -> Operator | None:
    return fields["op"].one_of(Operator, _LATER_OPERATORS) if "op" in fields else None


def _takes_right(node: Node, operator: Operator, fields: Mapping[str, Node], name: str) -> bool:
    """Return whether an operator's right side is there; refuse it where none belongs."""
    if operator in ALONE and name in fields:
        fields[name].refuse(f'"{operator.value}" asks for the one operand alone')
    elif operator not in ALONE and name not in fields:
        node.refuse(f'the field "{name}" is missing')
    return operator not in ALONE and name in fields


def _check_pattern(operator: Operator, right: Operand, node: Node) -> None:
    if operator not in PATTERNED:
        return
    pattern = right.value
    if not isinstance(pattern, str) or len(pattern) > PATTERN_CHARS_MAX:
        node.refuse(
            f"a pattern is a constant text of at most {PATTERN_CHARS_MAX} characters: "
            "it never comes from a call"
        )
        return
    try:
        compile_pattern(pattern)
    except ValueError:
        node.refuse("the pattern is malformed, too large, or needs an engine that backtracks")


def _operand(node: Node, vocabulary: Vocabulary, *, is_selector: bool = False) -> Operand | None:
    source_node = node.members().get("source")
    source = source_node.one_of(Source) if source_node else None
    known = (
        _OPERANDS[source] if source else {name: _O for each in _OPERANDS.values() for name in each}
    )
    fields = node.fields({**known, "source": _R})
    transform = read_transform(fields["transform"]) if "transform" in fields else ()
    match source:
        case Source.ARG if "key" in fields:
            path = read_path(fields["key"])
            return path and Operand(source, path.text, path, transform=transform)
        case Source.CONST if "value" in fields:
            if fields["value"].value is None:
                fields["value"].refuse('null is "not there": ask with exists or not_exists')
            return Operand(source, value=fields["value"].value)
        case Source.FACT if "key" in fields:
            return _fact_operand(
                node,
                fields["key"],
                fields.get("for"),
                vocabulary,
                transform,
                is_selector=is_selector,
            )
        case _:
            return None


def _fact_operand(
    node: Node,
    name_node: Node | None,
    for_node: Node | None,
    vocabulary: Vocabulary,
    transform: tuple[str, ...] = (),
    *,
    is_selector: bool = False,
) -> Operand | None:
    name = name_node.known(vocabulary.facts, "fact") if name_node else None
    selector = _operand(for_node, vocabulary, is_selector=True) if for_node else None
    if name is None:
        return None
    fact = vocabulary.facts[name]
    if is_selector and fact.per is not None:
        node.refuse("what selects a fact's value is not itself a fact with several values")
    elif fact.per is not None and for_node is None and fact.per_source is PerSource.ARG:
        selector = Operand(Source.ARG, fact.per.text, fact.per)
    elif fact.per is not None and for_node is None:
        node.refuse(
            f'the fact "{name}" is kept per {fact.per.text} of the result: '
            'say for which, with "for"'
        )
    elif fact.per is None and for_node is not None:
        for_node.refuse(f'the fact "{name}" has one value: it is not kept per anything')
    return Operand(Source.FACT, name, transform=transform, tools=fact.tools, selector=selector)
