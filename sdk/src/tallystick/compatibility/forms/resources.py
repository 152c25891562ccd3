"""Where the references of a schema lead: identifiers, anchors, pointers and dynamic scopes.

Of documents there are the schema itself and the metaschemas of its dialects, which the validator
knows without fetching anything. Every other reference that leaves the schema leads nowhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple, TypeAlias, cast
from urllib.parse import unquote, urldefrag, urljoin

from tallystick.canonical import MISSING, Json, pointer_join, pointer_split, resolve_pointer
from tallystick.subschema import DIALECTS, DRAFT_04, DRAFT_2020_12, FOREIGN, KEYWORDS, parts

_DIALECT_OF: Final = {dialect.rstrip("#"): dialect for dialect in DIALECTS}


class Place(NamedTuple):
    """Where a schema stands.

    Args:
        document: The URI of a metaschema, or nothing for the schema itself.
        pointer: A JSON Pointer from the document's root.
    """

    document: str
    pointer: str

    def below(self, *tokens: str | int) -> "Place":
        """Return the place that these reference tokens lead to from here."""
        return Place(self.document, self.pointer + pointer_join(*tokens))


# For each name the outermost `$dynamicAnchor` on the way here: no other one can matter from here on
# (JSON Schema 2020-12, section 8.2.3.2).
Scope: TypeAlias = frozenset[tuple[str, Place]]


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """One schema of a document.

    Args:
        place: Where it stands.
        schema: What stands there.
        dialect: The dialect that it is written in.
        resource: Where the schema resource (the nearest identifier) begins.
        uri: The identifier of that resource, as far as it has one.
    """

    place: Place
    schema: Json
    dialect: str
    resource: Place
    uri: str

    @property
    def keywords(self) -> dict[str, Json]:
        """The schema's keywords; none if it is a boolean."""
        return self.schema if isinstance(self.schema, dict) else {}

    @property
    def is_reference_alone(self) -> bool:
        """Whether the schema is a reference whose siblings mean nothing, as up to draft-07."""
        return self.dialect != DRAFT_2020_12 and isinstance(self.keywords.get("$ref"), str)

    def absolute(self, reference: str) -> str:
        """Return a reference of this schema with its whole URI, as far as that is known."""
        return _joined(self.uri, reference)


class Resources:
    """Every schema of a document, and of the metaschemas that it refers to."""

    def __init__(self, schema: Json, dialect: str) -> None:
        self._at: dict[Place, Located] = {}
        self._resources: dict[str, Place] = {}
        self._anchors: dict[tuple[Place, str], Place] = {}
        self._dynamic: dict[Place, dict[str, Place]] = {}
        self._targets: dict[tuple[Place, str], Located | None] = {}
        self._scopes: dict[Scope, Scope] = {}
        self._entered: dict[tuple[Scope, Place], Scope] = {}
        self._dialect = dialect
        self.root = self._read(schema, Place("", ""), "")

    def __len__(self) -> int:
        return len(self._at)

    def at(self, place: Place) -> Located:
        """Return the schema at a place that `target` or `below` has led to."""
        return self._at[place]

    def below(self, located: Located, keyword: str, *tokens: str | int) -> Located:
        """Return the schema that this one holds by a keyword of its dialect."""
        return self._at[located.place.below(keyword, *tokens)]

    def target(self, located: Located, reference: str) -> Located | None:
        """Return the schema that a `$ref` means, or None if it is in none of the documents.

        A pointer may lead to what is a schema only by being referred to.
        """
        key = located.place, reference
        if key not in self._targets:
            self._targets[key] = self._target(located, reference)
        return self._targets[key]

    def dynamic_target(self, located: Located, reference: str, scope: Scope) -> Located | None:
        """Return the schema that a `$dynamicRef` means in a dynamic scope, or None."""
        target = self.target(located, reference)
        name = unquote(urldefrag(reference).fragment)
        if target is None or target.keywords.get("$dynamicAnchor") != name:
            return target
        outermost = dict(scope).get(name)
        return target if outermost is None else self._at[outermost]

    def entered(self, scope: Scope, located: Located) -> Scope:
        """Return the dynamic scope in which this schema is evaluated, when reached from another."""
        anchors = self._dynamic.get(located.resource)
        if not anchors:
            return scope
        key = scope, located.resource
        if key not in self._entered:
            known = {name for name, _ in scope}
            new = {(name, place) for name, place in anchors.items() if name not in known}
            entered = scope | new
            self._entered[key] = self._scopes.setdefault(entered, entered)
        return self._entered[key]

    def _target(self, located: Located, reference: str) -> Located | None:
        if reference.startswith("#"):
            resource, fragment = located.resource, reference[1:]
        else:
            uri, fragment = urldefrag(_joined(located.uri, reference))
            found = self._resource(uri)
            if found is None:
                return None
            resource = found
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            anchor = self._anchors.get((resource, fragment))
            return None if anchor is None else self._at[anchor]
        return self._pointed(self._at[resource], fragment)

    def _resource(self, uri: str) -> Place | None:
        if uri not in self._resources:
            metaschemas = _metaschemas(self._dialect)
            for each, schema in metaschemas.items() if uri in metaschemas else ():
                self._read(schema, Place(each, ""), each)
        return self._resources.get(uri)

    def _pointed(self, resource: Located, fragment: str) -> Located | None:
        try:
            schema = resolve_pointer(resource.schema, fragment)
            place = resource.place.below(*pointer_split(fragment))
        except ValueError:
            return None
        if schema is MISSING:
            return None
        if place not in self._at:
            above = self._nearest(place)
            self._walk(replace(above, place=place, schema=schema))
        return self._at[place]

    def _nearest(self, place: Place) -> Located:
        tokens = list(pointer_split(place.pointer))
        while Place(place.document, pointer_join(*tokens)) not in self._at:
            tokens.pop()
        return self._at[Place(place.document, pointer_join(*tokens))]

    def _read(self, document: Json, place: Place, uri: str) -> Located:
        self._resources.setdefault(uri, place)
        self._walk(Located(place, document, self._dialect, place, uri))
        return self._at[place]

    def _walk(self, start: Located) -> None:
        pending = [start]
        while pending:
            located = self._identified(pending.pop())
            if located.place not in self._at:
                self._at[located.place] = located
                pending.extend(_below(located))

    def _identified(self, located: Located) -> Located:
        keywords = located.keywords
        identifier = keywords.get("id" if located.dialect == DRAFT_04 else "$id")
        if isinstance(identifier, str) and not located.is_reference_alone:
            uri, anchor = urldefrag(_joined(located.uri, identifier))
            if not identifier.startswith("#"):
                self._resources.setdefault(uri, located.place)
                dialect = _DIALECT_OF.get(str(keywords.get("$schema")).rstrip("#"))
                located = replace(
                    located, resource=located.place, uri=uri, dialect=dialect or located.dialect
                )
            if anchor:
                self._anchors.setdefault((located.resource, anchor), located.place)
        for keyword in {"$anchor", "$dynamicAnchor"} - FOREIGN[located.dialect]:
            name = keywords.get(keyword)
            if isinstance(name, str):
                self._anchors.setdefault((located.resource, name), located.place)
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(located.resource, {})[name] = located.place
        return located


def _below(located: Located) -> Iterator[Located]:
    for keyword, value in located.keywords.items():
        if keyword in KEYWORDS and keyword not in FOREIGN[located.dialect]:
            for tokens, part in parts(keyword, value):
                yield replace(located, place=located.place.below(keyword, *tokens), schema=part)


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


@cache
def _metaschemas(dialect: str) -> dict[str, Json]:
    """Return the metaschemas of a dialect, as the validator holds them, by their URIs."""
    import jsonschema_rs

    bundle = cast("Json", jsonschema_rs.bundle({"$schema": dialect, "$ref": dialect}))
    assert isinstance(bundle, dict)
    held = bundle.get("$defs", bundle.get("definitions"))
    assert isinstance(held, dict)
    return held
