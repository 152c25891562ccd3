"""Schemas grown from all keywords in small, so that two of them have much to do with each other.

Names, words and numbers are few, on purpose: bounds meet, patterns overlap, properties coincide.
"""

from collections.abc import Sequence

from tests.conformance.compatibility.edits import (
    FORMATS,
    NAMES,
    PATTERNS,
    SMALL,
    WORDS,
    Node,
    Pick,
    leaf,
)

TWO_OF_THREE = (True, True, False)
ONE_OF_THREE = (False, False, True)
ONE_OF_FIVE = (False, False, False, False, True)


def grown(pick: Pick, depth: int = 2) -> Node:
    """Return a schema, of whatever kind, with others inside it so many levels deep."""
    if depth == 0:
        return leaf(pick)
    kinds = (_object, _object, _array, _number, _string, _union, _constants, _condition)
    return pick(kinds)(pick, depth)


def _object(pick: Pick, depth: int) -> Node:
    node: Node = {"type": "object"} if pick(TWO_OF_THREE) else {}
    names = _some(pick, NAMES)
    if names:
        node["properties"] = {name: grown(pick, depth - 1) for name in names}
    if pick(TWO_OF_THREE):
        node["required"] = _some(pick, NAMES)
    if pick(ONE_OF_THREE):
        node["additionalProperties"] = pick((False, False, True, grown(pick, depth - 1)))
    if pick(ONE_OF_FIVE):
        node["patternProperties"] = {pick(PATTERNS): grown(pick, depth - 1)}
    if pick(ONE_OF_FIVE):
        node["propertyNames"] = pick(({"pattern": pick(PATTERNS)}, {"enum": [*NAMES]}))
    if pick(ONE_OF_FIVE):
        node["dependentRequired"] = {pick(NAMES): [pick(NAMES)]}
    if pick(ONE_OF_FIVE):
        node["dependentSchemas"] = {pick(NAMES): grown(pick, depth - 1)}
    if pick(ONE_OF_FIVE):
        node["unevaluatedProperties"] = pick((False, grown(pick, 0)))
    return node | _bounds(pick, "minProperties", "maxProperties")


def _array(pick: Pick, depth: int) -> Node:
    node: Node = {"type": "array"} if pick(TWO_OF_THREE) else {}
    if pick(ONE_OF_THREE):
        node["prefixItems"] = [grown(pick, depth - 1) for _ in range(pick((1, 2)))]
    if pick(TWO_OF_THREE):
        node["items"] = pick((grown(pick, depth - 1), False))
    if pick(ONE_OF_THREE):
        node["contains"] = grown(pick, depth - 1)
        node |= _bounds(pick, "minContains", "maxContains")
    if pick(ONE_OF_FIVE):
        node["uniqueItems"] = True
    if pick(ONE_OF_FIVE):
        node["unevaluatedItems"] = pick((False, grown(pick, 0)))
    return node | _bounds(pick, "minItems", "maxItems")


def _number(pick: Pick, _: int) -> Node:
    node: Node = {"type": pick(("integer", "number", ["number", "null"]))}
    lower, upper = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
    node |= _bounds(pick, pick(lower), pick(upper))
    return node | ({"multipleOf": pick((1, 2, 3, 0.5, 0.1))} if pick(ONE_OF_FIVE) else {})


def _string(pick: Pick, _: int) -> Node:
    node: Node = {"type": "string"} if pick(TWO_OF_THREE) else {}
    if pick(ONE_OF_THREE):
        node["pattern"] = pick(PATTERNS)
    if pick(ONE_OF_FIVE):
        node["format"] = pick(FORMATS)
    return node | _bounds(pick, "minLength", "maxLength")


def _union(pick: Pick, depth: int) -> Node:
    keyword = pick(("anyOf", "oneOf", "allOf"))
    return {keyword: [grown(pick, depth - 1) for _ in range(pick((1, 2, 3)))]}


def _constants(pick: Pick, _: int) -> Node:
    words = _some(pick, (*WORDS, *SMALL, None, True, [], {"a": 1}, ["a"]))
    return pick(({"enum": words or ["a"]}, {"not": {"enum": words or ["a"]}}))


def _condition(pick: Pick, depth: int) -> Node:
    tested, then, other = (grown(pick, depth - 1) for _ in range(3))
    return pick(
        ({"if": tested, "then": then, "else": other}, {"if": tested, "then": then}, {"not": then})
    )


def _bounds(pick: Pick, low: str, high: str) -> Node:
    node: Node = {}
    if pick(ONE_OF_THREE):
        node[low] = pick(SMALL)
    if pick(ONE_OF_THREE):
        node[high] = pick(SMALL)
    return node


def _some(pick: Pick, choices: Sequence) -> list:
    return [each for each in choices if pick(ONE_OF_THREE)]
