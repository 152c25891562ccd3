"""Values that might tell two schemas apart: the attack on every claim that none does.

It shares nothing with the engine: values come from what both schemas mention (constants, bounds and
their neighbours, lengths, names, patterns), are put together along the schemas, and are mutated. A
validator alone says what they show.
"""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from tallystick.canonical import MISSING, Json, Missing, resolve_pointer
from tests.conformance.compatibility.samples import sample

Node = dict[str, Any]
IsValid = Callable[[Json], bool]

DEPTH_MAX = 5
LENGTH_MAX = 160
PARTS_MAX = 700
POOL_MAX = 40

_PLAIN: tuple[Json, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    "",
    "a",
    "zz",
    [],
    {},
    ["a"],
    {"a": 1},
)
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("Length", "Items", "Properties", "Contains")
_KIND = {
    "object": ("properties", "required", "additionalProperties", "patternProperties"),
    "array": ("items", "prefixItems", "contains", "uniqueItems", "minItems", "maxItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": (*_BOUNDS, "multipleOf"),
}


def refutation(
    schemas: tuple[Json, Json], old: IsValid, new: IsValid, *, seed: str | int, tries: int = 150
) -> Json | Missing:
    """Return a value that the old validator accepts and the new one refuses, or MISSING."""
    for value in islice(Values(schemas, random.Random(seed)).towards(old), tries):
        if old(value) and not new(value):
            return value
    return MISSING


class Values:
    """An endless, repeatable source of values for a pair of schemas."""

    def __init__(self, schemas: tuple[Json, Json], chance: random.Random) -> None:
        self._schemas = schemas
        self._chance = chance
        self._leaves: list[Json] = [*_PLAIN]
        self._names: list[str] = ["a", "zz"]
        self._lengths: list[int] = [0, 1, 2]
        self._parts_left = 0
        for schema in schemas:
            self._harvest(schema)

    def towards(self, accepted: IsValid) -> Iterator[Json]:
        """Yield values, most of them near those that are accepted."""
        self._leaves = [_plain(leaf) for leaf in self._leaves]
        yield from self._leaves[:100]
        pool: list[Json] = [leaf for leaf in self._leaves if accepted(leaf)][:POOL_MAX]
        while True:
            if pool and self._chance.random() < 0.6:
                value = self._mutated(self._chance.choice(pool), DEPTH_MAX)
            else:
                root = self._chance.choice(self._schemas)
                self._parts_left = PARTS_MAX
                value = self._made(root, root, DEPTH_MAX)
            value = _plain(value)
            yield value
            if accepted(value):
                pool.append(value)
                if len(pool) > POOL_MAX:
                    pool.pop(self._chance.randrange(len(pool)))

    # --- what the schemas mention ---

    def _harvest(self, schema: Json) -> None:
        pending: list[Any] = [schema]
        while pending:
            node = pending.pop()
            if isinstance(node, list):
                pending.extend(node)
            elif isinstance(node, dict):
                pending.extend(node.values())
                for keyword, value in node.items():
                    self._harvest_keyword(keyword, value)

    def _harvest_keyword(self, keyword: str, value: Any) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if keyword in ("const", "default", "enum", "examples"):
            values = (
                value if isinstance(value, list) and keyword in ("enum", "examples") else [value]
            )
            self._leaves.extend(values)
            self._names.extend(each for each in values if isinstance(each, str))
        elif keyword in _BOUNDS and is_number:
            self._leaves.extend((value, value - 1, value + 1, value + 0.5))
        elif keyword == "multipleOf" and is_number:
            self._leaves.extend((value, 2 * value, 3 * value, value / 2))
        elif keyword.endswith(_COUNTS) and is_number:
            near = (int(value) + change for change in (-1, 0, 1))
            self._lengths.extend(length for length in near if 0 <= length <= LENGTH_MAX)
        elif keyword == "pattern" and isinstance(value, str):
            self._leaves.extend(sample(value, self._chance) for _ in range(3))
        elif keyword in ("required", "dependentRequired") and isinstance(value, list):
            self._names.extend(name for name in value if isinstance(name, str))
        elif keyword == "patternProperties" and isinstance(value, dict):
            self._names.extend(sample(pattern, self._chance) for pattern in value)
        elif keyword.startswith(("properties", "depend")) and isinstance(value, dict):
            self._names.extend(value)

    # --- values along a schema ---

    def _made(self, schema: Json, root: Json, depth: int) -> Json:
        chance = self._chance
        node = _flattened(schema, root, chance)
        self._parts_left -= 1
        if depth == 0 or self._parts_left < 0 or not node or chance.random() < 0.05:
            return chance.choice(self._leaves)
        if "const" in node:
            return node["const"]
        if isinstance(node.get("enum"), list) and node["enum"]:
            return chance.choice(node["enum"])
        return self._of_kind(self._kind(node), node, root, depth)

    def _of_kind(self, kind: Any, node: Node, root: Json, depth: int) -> Json:
        match kind:
            case "object":
                return self._object(node, root, depth)
            case "array":
                return self._array(node, root, depth)
            case "string":
                return self._string(node)
            case "number" | "integer":
                return self._number(node)
            case "boolean":
                return self._chance.choice((True, False))
            case "null":
                return None
            case _:
                return self._chance.choice(self._leaves)

    def _kind(self, node: Node) -> Any:
        stated = node.get("type")
        if isinstance(stated, list) and stated:
            return self._chance.choice(stated)
        if isinstance(stated, str):
            return stated
        hinted = [kind for kind, words in _KIND.items() if any(word in node for word in words)]
        return self._chance.choice(hinted) if hinted else None

    def _object(self, node: Node, root: Json, depth: int) -> Json:
        chance, properties = self._chance, _dict(node.get("properties"))
        names = [name for name in _list(node.get("required")) if isinstance(name, str)]
        density = chance.choice((0.0, 0.3, 1.0))
        names += [name for name in properties if chance.random() < density]
        names += [sample(pattern, chance) for pattern in _dict(node.get("patternProperties"))]
        if chance.random() < 0.4:
            names.append("".join(chance.choices(self._names, k=chance.choice((1, 1, 1, 2)))))
        if chance.random() < 0.3:
            names += [f"n{number}" for number in range(chance.choice(self._lengths) - len(names))]
        others = node.get("additionalProperties", node.get("unevaluatedProperties", True))
        return {name: self._made(properties.get(name, others), root, depth - 1) for name in names}

    def _array(self, node: Node, root: Json, depth: int) -> Json:
        chance = self._chance
        first = node.get("prefixItems", node.get("items"))
        prefix = first if isinstance(first, list) else []
        rest = node.get("additionalItems" if first is prefix else "items", True)
        if isinstance(rest, list):
            rest = node.get("additionalItems", True)
        items = [self._made(part, root, depth - 1) for part in prefix]
        least = max(node.get("minItems", 0), len(items))
        length = chance.choice((least, least, chance.choice(self._lengths), len(items) + 1))
        length = min(length, LENGTH_MAX)
        while len(items) < length:
            part = chance.choice((rest, rest, node.get("contains", rest)))
            item = self._made(part, root, depth - 1)
            items.append(chance.choice(items) if items and chance.random() < 0.2 else item)
        return items

    def _string(self, node: Node) -> str:
        chance, pattern = self._chance, node.get("pattern")
        if isinstance(pattern, str):
            return sample(pattern, chance)
        word = chance.choice([leaf for leaf in self._leaves if isinstance(leaf, str)])
        if chance.random() < 0.5:
            word = (word or "b").ljust(chance.choice(self._lengths), "c")
        return word[: node.get("maxLength", LENGTH_MAX)]

    def _number(self, node: Node) -> Json:
        chance = self._chance
        number = chance.choice(
            [x for x in self._leaves if isinstance(x, int | float) and not isinstance(x, bool)]
        )
        step = node.get("multipleOf")
        if isinstance(step, int | float) and chance.random() < 0.7:
            number = step * chance.randrange(-3, 12)
        return int(number) if node.get("type") == "integer" and abs(number) < 2**53 else number

    # --- mutation ---

    def _mutated(self, value: Json, depth: int) -> Json:
        chance = self._chance
        if depth and isinstance(value, dict | list) and value and chance.random() < 0.6:
            copied: Any = value.copy()
            key = chance.choice([*value] if isinstance(value, dict) else range(len(value)))
            copied[key] = self._mutated(copied[key], depth - 1)
            return copied
        match value:
            case dict():
                return self._mutated_object(value)
            case list():
                return self._mutated_array(value)
            case str() if chance.random() < 0.7:
                at = chance.randrange(len(value) + 1)
                return chance.choice(
                    (
                        value[:at] + value[at + 1 :],
                        value[:at] + chance.choice("aA0-\n é") + value[at:],
                    )
                )
            case bool() | None:
                return chance.choice(self._leaves)
            case int() | float() if chance.random() < 0.7 and abs(value) < 2**52:
                return value + chance.choice((1, -1, 0.5, -0.5))
            case _:
                return chance.choice(self._leaves)

    def _mutated_object(self, value: Node) -> Json:
        chance = self._chance
        if value and chance.random() < 0.5:
            gone = chance.choice([*value])
            return {name: item for name, item in value.items() if name != gone}
        if chance.random() < 0.1:
            return chance.choice(self._leaves)
        items = [*self._leaves, *value.values()]
        return {**value, chance.choice(self._names): chance.choice(items)}

    def _mutated_array(self, value: list[Json]) -> Json:
        chance = self._chance
        at = chance.randrange(len(value) + 1)
        if value and chance.random() < 0.5:
            return value[:at] + value[at + 1 :]
        return [*value[:at], chance.choice([*self._leaves, *value, *value]), *value[at:]]


def _plain(value: Json) -> Json:
    """Return the value as it is read back from its canonical form, where 2.0 is 2."""
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case _:
            return value


# --- schemas --------------------------------------------------------------------------------------


def _flattened(schema: Json, root: Json, chance: random.Random) -> Node:
    """Return one way to satisfy a schema: references followed, one branch of each union taken."""
    node: Node = {}
    pending = [schema]
    for _ in range(12):
        if not pending:
            break
        part = pending.pop()
        if not isinstance(part, dict):
            continue
        part = dict(part)
        reference = part.pop("$ref", None)
        if isinstance(reference, str) and reference.startswith("#"):
            pending.append(_resolved(root, reference[1:]))
        pending.extend(_list(part.pop("allOf", None)))
        unions = [_list(part.pop(keyword, None)) for keyword in ("anyOf", "oneOf")]
        pending.extend(chance.choice(branches) for branches in unions if branches)
        branch = chance.choice(("then", "else"))
        pending.extend(part.pop(keyword) for keyword in ("if", branch) if keyword in part)
        node = _merged(node, part)
    return node


def _resolved(root: Json, pointer: str) -> Json:
    try:
        found = resolve_pointer(root, pointer)
    except ValueError:
        return True
    return found if isinstance(found, dict) else True


def _merged(one: Node, other: Node) -> Node:
    both = {**one, **other}
    for keyword in ("properties", "patternProperties"):
        if isinstance(one.get(keyword), dict) and isinstance(other.get(keyword), dict):
            parts, others = one[keyword], other[keyword]
            both[keyword] = parts | {
                name: {"allOf": [parts[name], part]} if name in parts else part
                for name, part in others.items()
            }
    if isinstance(one.get("required"), list) and isinstance(other.get("required"), list):
        both["required"] = [*one["required"], *other["required"]]
    return both


def _dict(value: Any) -> Node:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
