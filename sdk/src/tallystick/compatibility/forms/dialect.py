"""Schemas of the older dialects, and of many resources, as one schema of 2020-12.

What comes out has no identifiers and no anchors: each reference is a pointer from the root. A value
is valid under it exactly if it is valid under the schema that went in.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from tallystick.canonical import Json, pointer_join, pointer_split
from tallystick.compatibility.forms.placement import Placement
from tallystick.compatibility.forms.plain import is_plain
from tallystick.compatibility.forms.resources import Located, Place, Resources, Scope
from tallystick.errors import TooLarge
from tallystick.subschema import (
    DRAFT_04,
    DRAFT_2020_12,
    FOREIGN,
    FORMATS,
    parts,
    rebuilt,
)

# A schema is written once for each dynamic scope that it is evaluated in, and for each reference
# that makes a schema of what is none by its place: so many in any case, and beyond it so many times
# the number that there was.
_WRITTEN_MAX: Final = 10_000
_GROWTH_MAX: Final = 4

_NAMES: Final = frozenset({"$anchor", "$dynamicAnchor", "$id", "$schema"})
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})

_Key: TypeAlias = tuple[Place, Scope]


def modern(schema: Json, dialect: str) -> Json:
    """Return a schema of an older dialect as a schema of 2020-12 that is valid for the same values.

    A schema of 2020-12 comes back as it is; the others come back as `localised` would leave them.
    Draft-04 calls 1.0 no integer and 1 one. They are one value here, as they have one canonical
    form (RFC 8785), and an integer. `contentEncoding` and `contentMediaType` are annotations.

    Args:
        schema: A schema of the dialect.
        dialect: One of `DIALECTS`.

    Raises:
        TooLarge: References into what is no schema by its place make too many schemas of it, which
            `check_schema` does not let pass.
    """
    if dialect == DRAFT_2020_12:
        return schema
    return _Writing(schema, dialect).write()


def localised(schema: Json) -> Json:
    """Return a schema of 2020-12 with each reference a pointer from the root.

    Identifiers and anchors are gone, for nothing refers to them any more, and so is what 2020-12
    passes over. A `$dynamicRef` becomes a reference for each dynamic scope that it is met in. The
    metaschema of 2020-12 is copied if it is referred to. A reference that leaves the schema stays,
    with its whole URI. A schema with too many dynamic scopes comes back as it is, and so does one
    that there is nothing to do to.
    """
    if is_plain(schema):
        return schema
    try:
        written = _Writing(schema, DRAFT_2020_12).write()
    except TooLarge:
        return schema
    return schema if written == schema else written


class _Writing:
    def __init__(self, schema: Json, dialect: str) -> None:
        self._resources = Resources(schema, dialect)
        self._placement: Placement[_Key] = Placement()
        self._count = 0

    def write(self) -> Json:
        root = self._resources.root
        scope = self._resources.entered(frozenset(), root)
        written = self._schema(root, scope, "", with_definitions=True)
        if isinstance(written, dict):
            self._placement.finish(written, self._copy, _name)
        return written

    def _copy(self, key: _Key, pointer: str) -> Json:
        place, scope = key
        # Definitions are copied one by one, where something refers to them.
        return self._schema(self._resources.at(place), scope, pointer, with_definitions=False)

    def _schema(self, located: Located, scope: Scope, at: str, *, with_definitions: bool) -> Json:
        self._count += 1
        if self._count > _WRITTEN_MAX + _GROWTH_MAX * len(self._resources):
            raise TooLarge("the references of a schema make too many schemas of it")
        scope = self._resources.entered(scope, located)
        self._placement.put((located.place, scope), at)
        if not isinstance(located.schema, dict):
            return located.schema
        written: dict[str, Json] = {}
        for new, old, value in _translated(located):
            if new in _DEFINITIONS and not with_definitions:
                continue
            changed = {
                tokens: self._schema(
                    self._resources.below(located, old, *tokens),
                    scope,
                    at + pointer_join(new, *tokens),
                    with_definitions=with_definitions,
                )
                for tokens, _ in parts(new, value)
            }
            written[new] = rebuilt(value, changed)
        self._refer(located, scope, written)
        return written

    def _refer(self, located: Located, scope: Scope, written: dict[str, Json]) -> None:
        reference = written.get("$ref")
        if isinstance(reference, str):
            target = self._resources.target(located, reference)
            if target is None:
                written["$ref"] = located.absolute(reference)
            else:
                self._placement.refer(written, self._key(target, scope))
        reference = written.get("$dynamicRef")
        if isinstance(reference, str):
            target = self._resources.dynamic_target(located, reference, scope)
            if target is None:
                written["$dynamicRef"] = located.absolute(reference)
            else:
                del written["$dynamicRef"]
                self._placement.refer(_beside(written), self._key(target, scope))

    def _key(self, target: Located, scope: Scope) -> _Key:
        return target.place, self._resources.entered(scope, target)


def _translated(located: Located) -> Iterator[tuple[str, str, Json]]:
    """Yield the keywords of a schema for 2020-12: the new name, the old one, and the value."""
    keywords = located.keywords
    for keyword, value in keywords.items():
        if located.is_reference_alone and keyword not in {"$ref", *_DEFINITIONS}:
            continue
        if keyword == "dependencies" and located.dialect != DRAFT_2020_12:
            yield from _dependencies(value)
        elif keyword == "items" and isinstance(value, list):
            yield "prefixItems", keyword, value
        elif keyword == "additionalItems" and located.dialect != DRAFT_2020_12:
            if isinstance(keywords.get("items"), list):
                yield "items", keyword, value
        elif located.dialect == DRAFT_04 and keyword in _BOUNDS:
            exclusive = _BOUNDS[keyword]
            yield (exclusive if keywords.get(exclusive) is True else keyword), keyword, value
        elif not _is_dropped(located.dialect, keyword, value):
            yield keyword, keyword, value


_BOUNDS: Final = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}


def _is_dropped(dialect: str, keyword: str, value: Json) -> bool:
    return (
        keyword in _NAMES
        or keyword in FOREIGN[dialect]
        or (keyword == "format" and str(value) in FORMATS[DRAFT_2020_12] - FORMATS[dialect])
        or (dialect == DRAFT_04 and (keyword == "id" or keyword in _BOUNDS.values()))
    )


def _dependencies(value: Json) -> Iterator[tuple[str, str, Json]]:
    if isinstance(value, dict):
        names: dict[str, Json] = {n: v for n, v in value.items() if isinstance(v, list)}
        schemas: dict[str, Json] = {n: v for n, v in value.items() if n not in names}
        if names:
            yield "dependentRequired", "dependencies", names
        if schemas:
            yield "dependentSchemas", "dependencies", schemas


def _beside(written: dict[str, Json]) -> dict[str, Json]:
    """Return the schema to refer from: this one, or a new one beside its `$ref`."""
    if "$ref" not in written:
        return written
    held = written.get("allOf")
    beside: dict[str, Json] = {}
    written["allOf"] = [*(held if isinstance(held, list) else ()), beside]
    return beside


def _name(key: _Key) -> str:
    place, _ = key
    tokens = [token for token in pointer_split(place.pointer) if token]
    return tokens[-1] if tokens else (place.document.rstrip("#/").rpartition("/")[2] or "schema")
