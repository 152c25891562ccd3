"""Small edits of a schema, as the people make them who change a tool's parameters.

An edit draws through `pick`, which chooses one of a sequence: `random.Random(...).choice`, or
hypothesis. What comes out is a schema again, and mostly close to what went in.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from tallystick.canonical import Json
from tallystick.subschema import parts

T = TypeVar("T")


class Pick(Protocol):
    """Chooses one of a sequence."""

    def __call__(self, choices: Sequence[T], /) -> T: ...


Node = dict[str, Any]
Edit = Callable[[Node, Pick], None]

NAMES = ("a", "b", "ab", "x-1")
WORDS = ("a", "b", "ab", "", "A", "é", "2020-01-01", "1")
SMALL = (0, 1, 2, 3)
PATTERNS = ("^a", "b$", "^[a-z]+$", "^a*$", "^.{1,2}$", r"^\d+$", "a|b", "^x-")
FORMATS = ("date", "uri", "email", "uuid")
BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
TURNED = {
    "minimum": "exclusiveMinimum",
    "exclusiveMinimum": "minimum",
    "maximum": "exclusiveMaximum",
    "exclusiveMaximum": "maximum",
}
TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")


def edited(schema: Json, pick: Pick, edits: int) -> Json:
    """Return a schema with so many edits made to it, each at a place of its own."""
    for _ in range(edits):
        if not isinstance(schema, dict):
            schema = pick(({"type": "string"}, {}, True, False))
            continue
        schema = copy.deepcopy(schema)
        places = [place for place in schemas_in(schema) if isinstance(place, dict)]
        place, number = pick(places), pick(range(len(EDITS) + len(REFERENCE_EDITS)))
        if number < len(EDITS):
            EDITS[number](place, pick)
        elif place is not schema:
            REFERENCE_EDITS[number - len(EDITS)](place, schema)
    return schema


def schemas_in(schema: Json) -> Iterator[Json]:
    """Yield a schema and every schema inside it: the objects themselves, to be changed."""
    yield schema
    if isinstance(schema, dict):
        for keyword, value in schema.items():
            for _, part in parts(keyword, value):
                yield from schemas_in(part)


# --- edits ----------------------------------------------------------------------------------------


def leaf(pick: Pick) -> Node:
    """Return a schema of one value."""
    return pick(
        (
            {"type": "string"},
            {"type": "integer"},
            {"type": "number"},
            {"type": "boolean"},
            {"type": "null"},
            {"enum": ["a", "b"]},
            {"const": "a"},
            {"const": 1},
            {"type": ["string", "null"]},
            {"type": "array", "items": {"type": "string"}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {},
        )
    )


def _add_property(node: Node, pick: Pick) -> None:
    name = pick(NAMES)
    node["properties"] = {**_dict(node, "properties"), name: leaf(pick)}
    if pick((False, True)):
        node["required"] = sorted({*_list(node, "required"), name})


def _remove_property(node: Node, pick: Pick) -> None:
    if names := [*_dict(node, "properties")]:
        name = pick(names)
        node["properties"] = {k: v for k, v in node["properties"].items() if k != name}
        if pick((True, False)) and "required" in node:
            node["required"] = [each for each in _list(node, "required") if each != name]


def _rename_property(node: Node, pick: Pick) -> None:
    if names := [*_dict(node, "properties")]:
        old, new = pick(names), pick(NAMES)
        node["properties"] = {
            new if name == old else name: part for name, part in node["properties"].items()
        }
        if "required" in node:
            required = {new if name == old else name for name in _list(node, "required")}
            node["required"] = sorted(required)


def _change_required(node: Node, pick: Pick) -> None:
    required = set(_list(node, "required"))
    required ^= {pick([*_dict(node, "properties"), *NAMES])}
    node["required"] = sorted(required)


def _change_type(node: Node, pick: Pick) -> None:
    node["type"] = pick((*TYPES, ["string", "null"], ["integer", "string"], ["object", "null"]))


def _widen_type(node: Node, pick: Pick) -> None:
    stated = node.get("type")
    if isinstance(stated, str | list):
        types = [stated] if isinstance(stated, str) else stated
        node["type"] = sorted({*types, pick(TYPES)})


def _change_enum(node: Node, pick: Pick) -> None:
    words = _list(node, "enum")
    if len(words) > 1 and pick((False, True)):
        gone = pick(range(len(words)))
        node["enum"] = [word for index, word in enumerate(words) if index != gone]
    elif (word := pick((*WORDS, None, 1, 1.0, True))) not in words:
        node["enum"] = [*words, word]


def _change_bound(node: Node, pick: Pick) -> None:
    keyword = pick(_said(node, BOUNDS))
    stated = node.get(keyword)
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        stated = pick(SMALL)
    node[keyword] = max(stated + pick((1, -1, 0)), 0)
    if keyword == "multipleOf":
        node[keyword] = pick((1, 2, 3, 0.5, 0.1, 0.3))


def _turn_bound(node: Node, pick: Pick) -> None:
    """Make a bound that is met one that is not, or the reverse."""
    keyword = pick(_said(node, tuple(TURNED)))
    if keyword in node:
        node[TURNED[keyword]] = node.pop(keyword)


def _said(node: Node, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the keywords that the schema has, or all of them."""
    return tuple(keyword for keyword in keywords if keyword in node) or keywords


def _change_text(node: Node, pick: Pick) -> None:
    keyword = pick(("pattern", "format", "description", "default"))
    words = {"pattern": PATTERNS, "format": FORMATS}.get(keyword, WORDS)
    node[keyword] = pick(words)


def _remove_keyword(node: Node, pick: Pick) -> None:
    # Definitions stay: a reference that leads nowhere makes no schema.
    if keywords := [keyword for keyword in node if keyword not in ("$defs", "definitions")]:
        del node[pick(keywords)]


def _change_openness(node: Node, pick: Pick) -> None:
    keyword = pick(("additionalProperties", "unevaluatedProperties", "propertyNames"))
    values = {"propertyNames": ({"pattern": pick(PATTERNS)}, {"maxLength": pick(SMALL)})}
    node[keyword] = pick(values.get(keyword, (False, True, {"type": "string"}, leaf(pick))))


def _wrap(node: Node, pick: Pick) -> None:
    """Move all that is said, but for definitions, into an applicator."""
    kept = {key: node.pop(key) for key in ("$defs", "definitions", "$schema", "$id") if key in node}
    inner = dict(node)
    node.clear()
    node.update(kept)
    match pick(("anyOf", "oneOf", "allOf", "not", "if")):
        case "not":
            node["not"] = {"not": inner}
        case "if":
            node.update({"if": leaf(pick), "then": inner, "else": pick((inner, True, leaf(pick)))})
        case keyword:
            branches = [inner, leaf(pick)] if keyword != "allOf" else [inner]
            node[keyword] = branches[:: pick((1, -1))]


def _change_branches(node: Node, pick: Pick) -> None:
    keyword = pick(("anyOf", "oneOf", "allOf"))
    branches = _list(node, keyword)
    if len(branches) > 1 and pick((False, True)):
        gone = pick(range(len(branches)))
        node[keyword] = [each for index, each in enumerate(branches) if index != gone]
    else:
        node[keyword] = [*branches, leaf(pick)]


def _add_rule(node: Node, pick: Pick) -> None:
    """Add one of the keywords that few schemas have."""
    part = leaf(pick)
    node.update(
        pick(
            (
                {"patternProperties": {pick(PATTERNS): part}},
                {"dependentRequired": {pick(NAMES): [pick(NAMES)]}},
                {"dependentSchemas": {pick(NAMES): {"properties": {pick(NAMES): part}}}},
                {"contains": part},
                {"contains": part, "minContains": pick(SMALL), "maxContains": pick(SMALL)},
                {"prefixItems": [part]},
                {"prefixItems": [leaf(pick), part], "items": False},
                {"items": part},
                {"unevaluatedItems": False},
                {"uniqueItems": True},
                {"not": part},
                {"if": {"required": [pick(NAMES)]}, "then": {"required": [pick(NAMES)]}},
            )
        )
    )


def _move_behind_reference(node: Node, root: Node) -> None:
    """Make a definition of a schema, and refer to it."""
    definitions = _dict(root, "$defs")
    name = f"part{len(definitions)}"
    moved = dict(node)
    node.clear()
    node["$ref"] = f"#/$defs/{name}"
    root["$defs"] = {**definitions, name: moved}


def _repeat_the_whole(node: Node, _: Node) -> None:
    """Make the schema recursive."""
    node.clear()
    node["$ref"] = "#"


def _dict(node: Node, keyword: str) -> Node:
    value = node.get(keyword)
    return value if isinstance(value, dict) else {}


def _list(node: Node, keyword: str) -> list[Any]:
    value = node.get(keyword)
    return value if isinstance(value, list) else []


EDITS: tuple[Edit, ...] = (
    _add_property,
    _remove_property,
    _rename_property,
    _change_required,
    _change_type,
    _widen_type,
    _change_enum,
    _change_bound,
    _turn_bound,
    _change_text,
    _remove_keyword,
    _change_openness,
    _wrap,
    _change_branches,
    _add_rule,
)
REFERENCE_EDITS: tuple[Callable[[Node, Node], None], ...] = (
    _move_behind_reference,
    _repeat_the_whole,
)
