"""Reads a 2020-12 schema into the algebra.

What is an annotation says nothing; what is not understood becomes an `Opaque` node, about which
nothing is ever concluded.
"""

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from tallystick.canonical import Json, pointer_join
from tallystick.compatibility.algebra.keywords import READERS, Keyword
from tallystick.compatibility.algebra.node import (
    Algebra,
    Node,
    Opaque,
)
from tallystick.compatibility.budget import Budget
from tallystick.subschema import KEYWORDS, Position, Subschemas

# How far schemas are read into each other before one is left to be read when it is needed.
_INLINE_DEPTH_MAX: Final = 24

# What holds other schemas, or leads to them.
_HOLDING: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef", *KEYWORDS})


class Reading:
    """One schema, read into an algebra.

    Args:
        schema: A 2020-12 schema.
        algebra: Where its nodes are made.
        budget: What reading is paid from, one step a keyword.
        document: A number for the schema, which tells its references from those of others.
        format_dialect: The dialect whose formats are asserted; None where they are annotations.
    """

    def __init__(
        self,
        schema: Json,
        algebra: Algebra,
        budget: Budget,
        *,
        document: int,
        format_dialect: str | None,
    ) -> None:
        self.algebra: Final = algebra
        self._root = Position("", schema, "", "")
        self.format_dialect: Final = format_dialect
        self._budget = budget
        self._document = document
        self._read: dict[str, Node] = {}
        self._open: set[str] = set()

    @cached_property
    def positions(self) -> Subschemas:
        """Every position of the schema, by which references are followed."""
        return Subschemas(self._root.schema)

    def root(self) -> Node:
        """Return the node of the whole schema."""
        return self.node(self._root)

    def node(self, position: Position) -> Node:
        """Return the node of a schema position, or a reference to it where it refers to itself."""
        pointer = position.pointer
        if pointer in self._read:
            return self._read[pointer]
        if pointer in self._open or len(self._open) > _INLINE_DEPTH_MAX:
            return self.algebra.refer(self._document, pointer, lambda: self._target(position))
        self._open.add(pointer)
        node = self._read[pointer] = self._schema(position)
        self._open.remove(pointer)
        return node

    def below(self, position: Position, *tokens: str | int) -> Node:
        """Return the node of a schema that a keyword of this one holds."""
        held: Any = position.schema
        for token in tokens:
            held = held[token]
        return self.node(Position(position.pointer + pointer_join(*tokens), held, "", ""))

    def opaque(self, position: Position, keyword: str, reason: str) -> Node:
        """Return a node for a keyword that is not understood."""
        identity = (self._document, position.pointer)
        return self.algebra.make(Opaque, keyword, reason, identity)

    def _target(self, position: Position) -> Node:
        opened, self._open = self._open, set()
        node = self.node(position)
        self._open = opened
        return node

    def _schema(self, position: Position) -> Node:
        self._budget.spend()
        if isinstance(position.schema, bool):
            return self.algebra.everything if position.schema else self.algebra.nothing
        if not isinstance(position.schema, dict):
            return self.opaque(position, "", "no schema stands here")
        key = self._leaf_key(position.schema)
        if key is None:
            return self.algebra.all_of(self._parts(position))
        if key not in self.algebra.leaves:
            self.algebra.leaves[key] = self.algebra.all_of(self._parts(position))
        return self.algebra.leaves[key]

    def _leaf_key(self, schema: Mapping[str, Json]) -> Hashable | None:
        """Return what a schema without others in it says: the same says the same everywhere."""
        if not _HOLDING.isdisjoint(schema):
            return None
        said = ((keyword, repr(schema[keyword])) for keyword in schema if keyword in READERS)
        return self.format_dialect, *said

    def _parts(self, position: Position) -> Iterator[Node]:
        for keyword, value in position.keywords.items():
            self._budget.spend()
            reader = READERS.get(keyword)
            if reader is not None:
                try:
                    yield reader(Keyword(self, position, keyword, value))
                except ValueError as error:
                    yield self.opaque(position, keyword, str(error))
