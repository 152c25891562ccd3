"""The plain schemas that most tools have: nested objects and arrays, and nothing else.

They have nothing to localise, and what `producer.close` makes of them is made here in a small part
of the time.
"""

from typing import Final

from tallystick.canonical import Json
from tallystick.subschema import KEYWORDS

_PLAIN: Final = frozenset({"properties", "items", "additionalProperties"})
_NAMING: Final = frozenset(
    {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "$ref", "$schema"}
)
_SPECIAL: Final = _NAMING | KEYWORDS.keys() - _PLAIN


def is_plain(schema: Json) -> bool:
    """Tell whether a schema says no more than the types of properties and items, at any depth."""
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    if not _SPECIAL.isdisjoint(schema):
        return False
    properties = schema.get("properties", {})
    return (
        isinstance(properties, dict)
        and all(map(is_plain, properties.values()))
        and is_plain(schema.get("items", True))
        and is_plain(schema.get("additionalProperties", True))
    )


def closed_plainly(schema: Json) -> Json:
    """Return a plain schema closed; the same object if it is."""
    if not isinstance(schema, dict):
        return schema
    changed = dict(schema)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        members: Json = {name: closed_plainly(part) for name, part in properties.items()}
        is_same = all(members[name] is properties[name] for name in members)
        changed["properties"] = properties if is_same else members
        changed.setdefault("additionalProperties", False)
    if "items" in schema:
        changed["items"] = closed_plainly(schema["items"])
    is_same = len(changed) == len(schema) and all(changed[each] is schema[each] for each in schema)
    return schema if is_same else changed
