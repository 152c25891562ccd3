"""Entries to change one thing of."""

from typing import Any

from tallystick.lockfile.entry import Entry, Lock

ACCEPTED_AT = "2026-11-30T10:00:00Z"

SEARCH: dict[str, Any] = {
    "name": "shop.tools.search",
    "description": "Search the catalogue.",
    "capabilities": [],
    "effect_class": "UNKNOWN",
    "input_schema": {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
        "required": ["query"],
        "additionalProperties": False,
    },
}


def a_document(**fields: Any) -> dict[str, Any]:
    """Return the document of a tool as its code has it: without a version, unless one is given."""
    return {**SEARCH, **fields}


def taking(properties: dict[str, Any], *required: str, **keywords: Any) -> dict[str, Any]:
    """Return the document of a tool that takes these arguments."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return a_document(input_schema={**schema, "required": [*required], **keywords})


def returning(schema: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the document of a tool that returns this."""
    return a_document(output_schema=schema, **fields)


def an_entry(document: dict[str, Any] | None = None, version: str = "1.0.0") -> Entry:
    """Return an accepted contract."""
    accepted = {**(document or SEARCH), "version": version}
    return Entry(accepted, ACCEPTED_AT, "shop.tools:search")


def a_lock(*names: str) -> Lock:
    """Return a lock that holds the same tool under each of some names."""
    lock = Lock()
    for name in names:
        lock = lock.with_entry(an_entry(a_document(name=name)))
    return lock
