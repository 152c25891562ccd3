"""Where the schemas inside a JSON Schema are, and which of them apply to which value.

Everything that reads a schema goes by the one table `KEYWORDS`. What it does not name is data: a
`$ref` in a `const` is no reference, and a property that is called `title` is no annotation.
All dialects share it: a keyword that one of them lacks (`FOREIGN`) constrains nothing there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urljoin

from tallystick.canonical import Json, pointer_join

if TYPE_CHECKING:
    import jsonschema_rs


DRAFT_2020_12: Final = "https://json-schema.org/draft/2020-12/schema"
DRAFT_07: Final = "http://json-schema.org/draft-07/schema#"
DRAFT_06: Final = "http://json-schema.org/draft-06/schema#"
DRAFT_04: Final = "http://json-schema.org/draft-04/schema#"
DIALECTS: Final = (DRAFT_2020_12, DRAFT_07, DRAFT_06, DRAFT_04)

# What one dialect constrains or names, and the other passes over in silence.
_SINCE_DRAFT_06: Final = frozenset({"$id", "const", "contains", "propertyNames"})
_SINCE_DRAFT_07: Final = frozenset({"if", "then", "else"})
_SINCE_2020_12: Final = frozenset(
    {
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "dependentRequired",
        "dependentSchemas",
        "maxContains",
        "minContains",
        "prefixItems",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
FOREIGN: Final = {
    DRAFT_2020_12: frozenset({"additionalItems", "dependencies"}),
    DRAFT_07: _SINCE_2020_12,
    DRAFT_06: _SINCE_2020_12 | _SINCE_DRAFT_07,
    DRAFT_04: _SINCE_2020_12 | _SINCE_DRAFT_07 | _SINCE_DRAFT_06,
}

# The formats that the validator asserts, where a contract asks for it; it lets any other pass.
_FORMATS_04: Final = frozenset(
    {"date", "date-time", "email", "hostname", "idn-email", "ipv4", "ipv6", "regex", "time", "uri"}
)
_FORMATS_06: Final = _FORMATS_04 | {"json-pointer", "uri-reference", "uri-template"}
_FORMATS_07: Final = _FORMATS_06 | {
    "idn-hostname",
    "iri",
    "iri-reference",
    "relative-json-pointer",
}
FORMATS: Final = {
    DRAFT_2020_12: _FORMATS_07 | {"duration", "uuid"},
    DRAFT_07: _FORMATS_07,
    DRAFT_06: _FORMATS_06,
    DRAFT_04: _FORMATS_04,
}


def dialect_named(stated: str) -> str | None:
    """Return the one of `DIALECTS` that is stated, with or without its empty fragment, or None."""
    known = {dialect.rstrip("#"): dialect for dialect in DIALECTS}
    return known.get(stated.rstrip("#"))


class Form(Enum):
    """How a keyword holds its schemas."""

    ONE = "a schema"
    LIST = "an array of schemas"
    ONE_OR_LIST = "a schema or, up to draft-07, an array of schemas"
    MAP = "an object of schemas"


class Scope(Enum):
    """Which value a keyword's schemas describe, seen from the value that the keyword describes."""

    SAME = "the same value"
    MEMBER = "its properties"
    ITEM = "its items"
    NAME = "the names of its properties"
    NONE = "nothing by itself"


KEYWORDS: Final[dict[str, tuple[Form, Scope]]] = {
    "allOf": (Form.LIST, Scope.SAME),
    "anyOf": (Form.LIST, Scope.SAME),
    "oneOf": (Form.LIST, Scope.SAME),
    "not": (Form.ONE, Scope.SAME),
    "if": (Form.ONE, Scope.SAME),
    "then": (Form.ONE, Scope.SAME),
    "else": (Form.ONE, Scope.SAME),
    "dependentSchemas": (Form.MAP, Scope.SAME),
    "dependencies": (Form.MAP, Scope.SAME),
    "properties": (Form.MAP, Scope.MEMBER),
    "patternProperties": (Form.MAP, Scope.MEMBER),
    "additionalProperties": (Form.ONE, Scope.MEMBER),
    "unevaluatedProperties": (Form.ONE, Scope.MEMBER),
    "items": (Form.ONE_OR_LIST, Scope.ITEM),
    "prefixItems": (Form.LIST, Scope.ITEM),
    "additionalItems": (Form.ONE, Scope.ITEM),
    "unevaluatedItems": (Form.ONE, Scope.ITEM),
    "contains": (Form.ONE, Scope.ITEM),
    "propertyNames": (Form.ONE, Scope.NAME),
    "contentSchema": (Form.ONE, Scope.NONE),
    "$defs": (Form.MAP, Scope.NONE),
    "definitions": (Form.MAP, Scope.NONE),
}

REFERENCES: Final = ("$ref", "$dynamicRef")
SENSITIVE: Final = "x-sensitive"

# Of a compiled regular expression: a publisher could else keep the compiler busy for minutes.
PATTERN_BYTES_MAX: Final = 2 * 1024 * 1024


def parts(keyword: str, value: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield the schemas that a keyword's value holds, each with its place below the keyword.

    A value of another form than the keyword's yields nothing; the arrays of names that the older
    dialects allow in `dependencies` are no schemas.
    """
    form = KEYWORDS[keyword][0] if keyword in KEYWORDS else None
    if isinstance(value, list) and form in (Form.LIST, Form.ONE_OR_LIST):
        for index, item in enumerate(value):
            yield (index,), item
    elif isinstance(value, dict) and form is Form.MAP:
        for name, item in value.items():
            if keyword != "dependencies" or not isinstance(item, list):
                yield (name,), item
    elif form in (Form.ONE, Form.ONE_OR_LIST):
        yield (), value


def map_parts(keyword: str, value: Json, change: Callable[[Json], Json]) -> Json:
    """Return a keyword's value with each schema that `parts` yields of it changed."""
    return rebuilt(value, {tokens: change(part) for tokens, part in parts(keyword, value)})


def rebuilt(value: Json, changed: Mapping[tuple[str | int, ...], Json]) -> Json:
    """Return a keyword's value with other schemas in place of those that `parts` yields of it.

    Args:
        value: The value.
        changed: All the schemas, by their places below the keyword.
    """
    if () in changed:
        return changed[()]
    if isinstance(value, list) and changed:
        return list(changed.values())
    if isinstance(value, dict):
        return {name: changed.get((name,), item) for name, item in value.items()}
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """One schema inside a schema.

    Args:
        pointer: Where it stands, a JSON Pointer from the root.
        schema: What stands there, which in an unchecked schema may not be a schema at all.
        base: The pointer of the schema resource (the nearest `$id`) that its references start from.
        uri: The identifier of that resource, as far as it has one.
    """

    pointer: str
    schema: Json
    base: str
    uri: str

    @property
    def keywords(self) -> dict[str, Json]:
        """The schema's keywords; none if it is a boolean."""
        return self.schema if isinstance(self.schema, dict) else {}


class Subschemas:
    """Every schema position of one schema, in document order, with its references resolved."""

    def __init__(self, schema: Json) -> None:
        self._at: dict[str, Position] = {}
        self._anchors: dict[tuple[str, str], Position] = {}
        self._dynamic: dict[str, list[Position]] = {}
        pending = [Position("", schema, "", "")]
        while pending:
            position = _rebased(pending.pop())
            self._add(position)
            pending.extend(reversed(list(_below(position))))

    def __iter__(self) -> Iterator[Position]:
        return iter(self._at.values())

    @property
    def root(self) -> Position:
        """The schema itself."""
        return self._at[""]

    def at(self, pointer: str) -> Position:
        """Return the schema position with this pointer.

        Raises:
            KeyError: No schema stands there.
        """
        return self._at[pointer]

    def target(self, position: Position, reference: str) -> Position | None:
        """Return the schema position that a reference means, or None.

        Only a fragment is looked up, from the position's own resource: an empty one, a
        percent-encoded JSON Pointer, or an anchor. What is no schema position (an example, an
        enumerated value, the map of all properties) is no target.
        """
        if not reference.startswith("#"):
            return None
        try:
            fragment = unquote(reference[1:], errors="strict")
        except UnicodeDecodeError:
            return None
        if fragment and not fragment.startswith("/"):
            return self._anchors.get((position.base, fragment))
        return self._at.get(position.base + fragment)

    def held(self, position: Position, *scopes: Scope) -> Iterator[Position]:
        """Yield the schemas that this one holds for these scopes."""
        keywords = (name for name in position.keywords if name in KEYWORDS)
        return self.held_by(position, *(name for name in keywords if KEYWORDS[name][1] in scopes))

    def held_by(self, position: Position, *keywords: str) -> Iterator[Position]:
        """Yield the schemas that this one holds by these keywords."""
        for keyword in keywords:
            if keyword in position.keywords:
                for tokens, _ in parts(keyword, position.keywords[keyword]):
                    yield from self._find(position, keyword, *tokens)

    def same_value(self, position: Position) -> Iterator[Position]:
        """Yield the schemas that this one applies to the value that it describes itself."""
        yield from self.held(position, Scope.SAME)
        for keyword in REFERENCES:
            reference = position.keywords.get(keyword)
            if isinstance(reference, str):
                target = self.target(position, reference)
                if target is not None:
                    yield target
                if keyword == "$dynamicRef":
                    yield from self._dynamic.get(reference.removeprefix("#"), ())

    def closure(self, positions: Iterable[Position]) -> list[Position]:
        """Return these positions and all that they apply to the same value, each once."""
        found: dict[str, Position] = {}
        pending = list(positions)
        while pending:
            position = pending.pop()
            if position.pointer not in found:
                found[position.pointer] = position
                pending.extend(self.same_value(position))
        return list(found.values())

    def applied(self, position: Position, value: Json) -> Iterator[tuple[Position, Json]]:
        """Yield the schemas that this one applies to a value and inside it, each with its value."""
        for same in self.same_value(position):
            yield same, value
        if isinstance(value, dict):
            for name, item in value.items():
                for child in self.member(position, name):
                    yield child, item
        elif isinstance(value, list):
            for index, item in enumerate(value):
                for child in self.item(position, index):
                    yield child, item

    def member(self, position: Position, name: str) -> list[Position]:
        """Return the schemas that this one applies to the property with this name."""
        patterns = position.keywords.get("patternProperties")
        declared = self._find(position, "properties", name)
        for pattern in patterns if isinstance(patterns, dict) else ():
            if _matches(pattern, name):
                declared += self._find(position, "patternProperties", pattern)
        return (
            declared
            or self._find(position, "additionalProperties")
            or self._find(position, "unevaluatedProperties")
        )

    def item(self, position: Position, index: int) -> list[Position]:
        """Return the schemas that this one applies to the item with this index."""
        placed = (
            self._find(position, "prefixItems", index)
            or self._find(position, "items", index)
            or self._find(position, "items") + self._find(position, "additionalItems")
            or self._find(position, "unevaluatedItems")
        )
        return placed + self._find(position, "contains")

    def _find(self, position: Position, *tokens: str | int) -> list[Position]:
        if tokens[0] not in position.keywords:
            return []
        found = self._at.get(position.pointer + pointer_join(*tokens))
        return [] if found is None else [found]

    def _add(self, position: Position) -> None:
        self._at[position.pointer] = position
        for name in anchors(position):
            self._anchors[position.base, name] = position
        dynamic = position.keywords.get("$dynamicAnchor")
        if isinstance(dynamic, str):
            self._dynamic.setdefault(dynamic, []).append(position)


def anchors(position: Position) -> Iterator[str]:
    """Yield the names that a schema gives itself, for references by plain name."""
    for keyword in ("$anchor", "$dynamicAnchor"):
        name = position.keywords.get(keyword)
        if isinstance(name, str):
            yield name
    identifier = position.keywords.get("$id")
    if isinstance(identifier, str) and identifier.startswith("#"):
        yield identifier[1:]


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> "jsonschema_rs.Validator":
    """Compile a regular expression for the linear-time engine, to a validator of strings.

    Raises:
        ValueError: The engine cannot run it: it is malformed, looks around or refers back.
    """
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=regex_options())


@cache
def regex_options() -> "jsonschema_rs.RegexOptions":
    """Return the choice of the linear-time engine, with a bound on the size of what it compiles."""
    import jsonschema_rs

    return jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES_MAX)


def _matches(pattern: str, name: str) -> bool:
    try:
        return compile_pattern(pattern).is_valid(name)
    except ValueError:
        return True  # in an unchecked schema: rather one schema too many than one too few


def _below(position: Position) -> Iterator[Position]:
    for keyword, value in position.keywords.items():
        for tokens, part in parts(keyword, value):
            pointer = position.pointer + pointer_join(keyword, *tokens)
            yield Position(pointer, part, position.base, position.uri)


def _rebased(position: Position) -> Position:
    identifier = position.keywords.get("$id")
    if not isinstance(identifier, str) or identifier.startswith("#"):
        return position
    try:
        uri = urljoin(position.uri, identifier)
    except ValueError:
        uri = identifier
    return replace(position, base=position.pointer, uri=uri)
