"""Where schemas come to stand in a schema that is written anew, and references to them.

A schema is written for the sake of a key: what it was, and how it is read. References name keys
while the writing goes on; where a key has no place yet at the end, it gets one under `$defs`.
"""

from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import quote

from tallystick.canonical import Json, pointer_join

KeyT = TypeVar("KeyT")

# Beside letters and digits, what a URI's fragment may hold as it is (RFC 3986, section 3.5).
_FRAGMENT_SAFE = "/~!$&'()*+,;=:@?"


class Placement(Generic[KeyT]):
    """The places of the schemas that are being written, by their keys."""

    def __init__(self) -> None:
        self._places: dict[KeyT, str] = {}
        self._numbers: dict[str, int] = {}
        self._links: list[tuple[dict[str, Json], KeyT]] = []

    def __len__(self) -> int:
        return len(self._places)

    def put(self, key: KeyT, pointer: str) -> None:
        """Say that the schema for a key stands at a pointer; the first place counts."""
        self._places.setdefault(key, pointer)

    def refer(self, schema: dict[str, Json], key: KeyT) -> None:
        """Make a schema's `$ref` lead to the schema for a key, once `finish` is through."""
        schema["$ref"] = ""
        self._links.append((schema, key))

    def finish(
        self, root: dict[str, Json], write: Callable[[KeyT, str], Json], name: Callable[[KeyT], str]
    ) -> None:
        """Write what is referred to and has no place yet, and point every reference at its target.

        Args:
            root: The schema that is being written.
            write: Writes the schema for a key, which will stand at the pointer.
            name: What the schema for a key may be called under `$defs`, if the name is free.
        """
        held = root.get("$defs")
        definitions: dict[str, Json] = held if isinstance(held, dict) else {}
        links = iter(self._links)  # and those that are added on the way
        for schema, key in links:
            if key not in self._places:
                free = self._free(name(key), definitions)
                pointer = pointer_join("$defs", free)
                self.put(key, pointer)
                definitions[free] = True  # taken, while it is being written
                definitions[free] = write(key, pointer)
            schema["$ref"] = "#" + quote(self._places[key], safe=_FRAGMENT_SAFE)
        if definitions:
            root["$defs"] = definitions

    def _free(self, name: str, taken: dict[str, Json]) -> str:
        free = name
        while free in taken:
            self._numbers[name] = self._numbers.get(name, 1) + 1
            free = f"{name}-{self._numbers[name]}"
        return free
