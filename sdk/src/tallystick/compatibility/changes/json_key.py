"""JSON values as dictionary keys, whatever they hold and however deep it goes."""

from typing import TypeAlias

from tallystick.canonical import Json

Key: TypeAlias = tuple[object, ...]


def key(value: Json) -> Key:
    """Return something hashable that is equal for equal JSON values, `1` and `1.0` among them."""
    tokens: list[object] = []
    pending: list[tuple[bool, Json]] = [(True, value)]
    while pending:
        is_value, item = pending.pop()
        if not is_value:
            tokens.append(("name", item))
        elif isinstance(item, dict):
            tokens.append(("object", len(item)))
            for name in sorted(item, reverse=True):
                pending += [(True, item[name]), (False, name)]
        elif isinstance(item, list):
            tokens.append(("array", len(item)))
            pending.extend((True, each) for each in reversed(item))
        elif isinstance(item, bool) or item is None:
            tokens.append(str(item))
        else:
            tokens.append(("scalar", item))
    return tuple(tokens)


def type_of(value: Json) -> str:
    """Return the narrowest JSON Schema type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
