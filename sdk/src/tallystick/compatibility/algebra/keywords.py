"""How each keyword is read: one small function a keyword, in the table `READERS`.

What is not in the table is an annotation, and says nothing. A reader raises ValueError for what it
does not understand.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast

from tallystick.canonical import Json
from tallystick.compatibility.algebra.node import (
    Algebra,
    AtLeast,
    AtMost,
    Format,
    Item,
    Matching,
    MaxContains,
    MaxItems,
    MaxLength,
    MaxMembers,
    Member,
    MinContains,
    MinItems,
    MinLength,
    MinMembers,
    MultipleOf,
    Names,
    Node,
    Other,
    Pattern,
    Required,
    Rest,
    Types,
    Unique,
    Values,
)
from tallystick.compatibility.algebra.unevaluated import unevaluated_items, unevaluated_properties
from tallystick.compatibility.algebra.value import Kind, key_of, keys_of, number_of
from tallystick.subschema import FORMATS, Position

if TYPE_CHECKING:
    from tallystick.compatibility.algebra.reading import Reading

_INTEGER: Final = "integer"


@dataclass(slots=True)
class Keyword:
    """A keyword at a position, with what reading it takes."""

    reading: "Reading"
    position: Position
    name: str
    value: Json

    @property
    def algebra(self) -> Algebra:
        """Where nodes are made."""
        return self.reading.algebra

    def beside(self, keyword: str, otherwise: Json) -> Json:
        """Return another keyword's value in the same schema."""
        return self.position.keywords.get(keyword, otherwise)

    def part(self, *tokens: str | int) -> Node:
        """Return the node of a schema that this keyword holds."""
        return self.reading.below(self.position, self.name, *tokens)

    def parts(self) -> list[Node]:
        """Return the nodes of the schemas that this keyword lists."""
        return [self.part(index) for index in range(len(self.array()))]

    def array(self) -> list[Json]:
        """Return the value as an array. Raises ValueError if it is none."""
        if not isinstance(self.value, list):
            raise ValueError("not an array")  # noqa: TRY004 -- a fault of the schema's
        return self.value

    def object(self) -> Mapping[str, Json]:
        """Return the value as an object. Raises ValueError if it is none."""
        if not isinstance(self.value, dict):
            raise ValueError("not an object")  # noqa: TRY004 -- a fault of the schema's
        return self.value

    def number(self) -> Fraction:
        """Return the value as an exact number. Raises ValueError if it is none."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise ValueError("not a number")  # noqa: TRY004 -- a fault of the schema's
        return Fraction(number_of(self.value))

    def count(self) -> int:
        """Return the value as a count. Raises ValueError if it is no number."""
        return int(self.number())

    def text(self) -> str:
        """Return the value as a string. Raises ValueError if it is none."""
        if not isinstance(self.value, str):
            raise ValueError("not a string")  # noqa: TRY004 -- a fault of the schema's
        return self.value


# --- any type -------------------------------------------------------------------------------------


def _type(keyword: Keyword) -> Node:
    names = keyword.value if isinstance(keyword.value, list) else [keyword.value]
    kinds = {Kind.NUMBER if name == _INTEGER else Kind(cast("str", name)) for name in names}
    types = keyword.algebra.make(Types, frozenset(kinds))
    if _INTEGER not in names or Kind.NUMBER in names:
        return types
    return keyword.algebra.all_of([types, keyword.algebra.make(MultipleOf, Fraction(1))])


def _enum(keyword: Keyword) -> Node:
    keys = keys_of(keyword.array())
    return keyword.algebra.make(Values, keys) if keys else keyword.algebra.nothing


def _const(keyword: Keyword) -> Node:
    return keyword.algebra.make(Values, frozenset({key_of(keyword.value)}))


def _all_of(keyword: Keyword) -> Node:
    return keyword.algebra.all_of(keyword.parts())


def _any_of(keyword: Keyword) -> Node:
    return keyword.algebra.any_of(keyword.parts())


def _one_of(keyword: Keyword) -> Node:
    return keyword.algebra.one_of(keyword.parts())


def _not(keyword: Keyword) -> Node:
    return keyword.algebra.negate(keyword.part())


def _if(keyword: Keyword) -> Node:
    algebra, reading, position = keyword.algebra, keyword.reading, keyword.position
    condition = keyword.part()
    branches: list[Node] = []
    for name, unless in (("then", algebra.negate(condition)), ("else", condition)):
        if name in position.keywords:
            branches.append(algebra.any_of([unless, reading.below(position, name)]))
    return algebra.all_of(branches)


def _ref(keyword: Keyword) -> Node:
    reading = keyword.reading
    position = reading.positions.at(keyword.position.pointer)
    target = reading.positions.target(position, keyword.text())
    if target is None:
        raise ValueError("the reference leads to no schema in the document")
    return reading.node(target)


def _unevaluated_properties(keyword: Keyword) -> Node:
    return unevaluated_properties(keyword.reading, keyword.position, keyword.part())


def _unevaluated_items(keyword: Keyword) -> Node:
    return unevaluated_items(keyword.reading, keyword.position, keyword.part())


def _not_understood(_: Keyword) -> Node:
    raise ValueError("its meaning depends on where the evaluation came from")


# --- numbers --------------------------------------------------------------------------------------


def _minimum(keyword: Keyword) -> Node:
    return keyword.algebra.make(AtLeast, keyword.number(), keyword.name == "exclusiveMinimum")


def _maximum(keyword: Keyword) -> Node:
    return keyword.algebra.make(AtMost, keyword.number(), keyword.name == "exclusiveMaximum")


def _multiple_of(keyword: Keyword) -> Node:
    factor = keyword.number()
    if factor <= 0:
        raise ValueError("a factor must be greater than zero")
    return keyword.algebra.make(MultipleOf, factor)


# --- strings --------------------------------------------------------------------------------------


def _pattern(keyword: Keyword) -> Node:
    return keyword.algebra.make(Pattern, keyword.text())


def _format(keyword: Keyword) -> Node:
    dialect = keyword.reading.format_dialect
    if dialect is None or keyword.value not in FORMATS[dialect]:
        return keyword.algebra.everything
    return keyword.algebra.make(Format, keyword.text(), dialect)


# --- sizes ----------------------------------------------------------------------------------------

_SIZES: Final = {
    "minLength": MinLength,
    "maxLength": MaxLength,
    "minItems": MinItems,
    "maxItems": MaxItems,
    "minProperties": MinMembers,
    "maxProperties": MaxMembers,
}


def _size(keyword: Keyword) -> Node:
    count = keyword.count()
    if count == 0 and keyword.name.startswith("min"):
        return keyword.algebra.everything
    return keyword.algebra.make(_SIZES[keyword.name], count)


# --- arrays ---------------------------------------------------------------------------------------


def _prefix_items(keyword: Keyword) -> Node:
    parts = enumerate(keyword.parts())
    return keyword.algebra.all_of(
        keyword.algebra.carry(part, Item, index, part) for index, part in parts
    )


def _items(keyword: Keyword) -> Node:
    prefix = keyword.beside("prefixItems", [])
    start = len(prefix) if isinstance(prefix, list) else 0
    part = keyword.part()
    return keyword.algebra.carry(part, Rest, start, part)


def _contains(keyword: Keyword) -> Node:
    algebra, part = keyword.algebra, keyword.part()
    least, most = (keyword.beside(name, None) for name in ("minContains", "maxContains"))
    bounds: list[Node] = []
    minimum = int(least) if isinstance(least, int | float) else 1
    if minimum > 0:
        bounds.append(algebra.make(MinContains, minimum, part))
    if isinstance(most, int | float):
        bounds.append(algebra.make(MaxContains, int(most), part))
    return algebra.all_of(bounds)


def _unique_items(keyword: Keyword) -> Node:
    return keyword.algebra.make(Unique) if keyword.value is True else keyword.algebra.everything


# --- objects --------------------------------------------------------------------------------------


def _required(keyword: Keyword) -> Node:
    return _requires(keyword.algebra, keyword.array())


def _requires(algebra: Algebra, names: Iterable[Json]) -> Node:
    return algebra.all_of(algebra.make(Required, cast("str", name)) for name in names)


def _properties(keyword: Keyword) -> Node:
    return keyword.algebra.all_of(
        keyword.algebra.carry(part := keyword.part(name), Member, name, part)
        for name in keyword.object()
    )


def _pattern_properties(keyword: Keyword) -> Node:
    return keyword.algebra.all_of(
        keyword.algebra.carry(part := keyword.part(pattern), Matching, pattern, part)
        for pattern in keyword.object()
    )


def _additional_properties(keyword: Keyword) -> Node:
    named, patterns = (keyword.beside(name, {}) for name in ("properties", "patternProperties"))
    part = keyword.part()
    return keyword.algebra.carry(
        part,
        Other,
        frozenset(cast("dict[str, Json]", named)),
        frozenset(cast("dict[str, Json]", patterns)),
        part,
    )


def _property_names(keyword: Keyword) -> Node:
    part = keyword.part()
    return keyword.algebra.carry(part, Names, part)


def _dependent_required(keyword: Keyword) -> Node:
    algebra = keyword.algebra
    return algebra.all_of(
        _unless_absent(algebra, name, _requires(algebra, cast("list[Json]", names)))
        for name, names in keyword.object().items()
    )


def _dependent_schemas(keyword: Keyword) -> Node:
    algebra = keyword.algebra
    return algebra.all_of(
        _unless_absent(algebra, name, keyword.part(name)) for name in keyword.object()
    )


def _unless_absent(algebra: Algebra, name: str, node: Node) -> Node:
    # That a name is required is said of objects alone: what is no object satisfies it, and would
    # not satisfy its complement. So "absent" is: no object, or without the property.
    absent = algebra.negate(algebra.make(Required, name))
    no_object = algebra.negate(algebra.make(Types, frozenset({Kind.OBJECT})))
    return algebra.any_of([no_object, absent, node])


READERS: Final[dict[str, Callable[[Keyword], Node]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _ref,
    "$dynamicRef": _not_understood,
    "$recursiveRef": _not_understood,
    "minimum": _minimum,
    "exclusiveMinimum": _minimum,
    "maximum": _maximum,
    "exclusiveMaximum": _maximum,
    "multipleOf": _multiple_of,
    "minLength": _size,
    "maxLength": _size,
    "pattern": _pattern,
    "format": _format,
    "minItems": _size,
    "maxItems": _size,
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "uniqueItems": _unique_items,
    "minProperties": _size,
    "maxProperties": _size,
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
}
