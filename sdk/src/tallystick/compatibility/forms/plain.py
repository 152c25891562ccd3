"""Closes the plain schemas that most tools have: nested objects and arrays, and nothing else.

It comes to what `producer.close` comes to in general, in a small part of the time.
"""

from typing import Final

from tallystick.canonical import Json
from tallystick.subschema import KEYWORDS

_PLAIN: Final = frozenset({"properties", "items", "additionalProperties"})
_SPECIAL: Final = frozenset({"$ref", "$dynamicRef", "$id"} | KEYWORDS.keys() - _PLAIN)


def closed_plainly(schema: Json) -> Json | None:
    """Return a schema closed, or None if it says more than the types of properties and items."""
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else None
    if not _SPECIAL.isdisjoint(schema):
        return None
    changed = dict(schema)
    properties = schema.get("properties")
    if properties is not None:
        members = _closed_members(properties)
        if members is None:
            return None
        changed["properties"] = members
        changed.setdefault("additionalProperties", False)
    if "items" in schema:
        items = closed_plainly(schema["items"])
        if items is None:
            return None
        changed["items"] = items
    is_as_before = len(changed) == len(schema) and all(
        changed[each] is schema[each] for each in schema
    )
    return schema if is_as_before else changed


def _closed_members(properties: Json) -> Json | None:
    if not isinstance(properties, dict):
        return None
    members: dict[str, Json] = {}
    for name, part in properties.items():
        closed = closed_plainly(part)
        if closed is None:
            return None
        members[name] = closed
    return properties if all(members[name] is properties[name] for name in members) else members
