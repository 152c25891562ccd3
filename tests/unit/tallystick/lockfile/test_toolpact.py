"""What a project accepted with toolpact is taken over, and what changed since shows."""

import json

import pytest

from tallystick.errors import LockfileInvalid
from tallystick.lockfile.drift import drift_of
from tallystick.lockfile.entry import Entry, Level
from tallystick.lockfile.toolpact import ToolpactEntry, adopt, read_toolpact
from tests.unit.tallystick.lockfile.tools import a_document, taking

PARAMETERS = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for."},
        "limit": {"type": "integer", "default": 10},
        "language": {"type": ["string", "null"]},
    },
    "required": ["query"],
}
# The file as toolpact 0.1.0 writes it.
FILE = {
    "_toolpact": "1",
    "functions": {
        "search": {
            "accepted_at": "2026-07-12T12:00:00.123456+02:00",
            "breaking": False,
            "hash": "sha256:a3f9b2c1d4e5f678",
            "pending": {"breaking": True, "hash": "sha256:0", "schema": {}},
            "schema": {"name": "search", "description": "Search.", "parameters": PARAMETERS},
        }
    },
}


def code(**changes) -> dict:
    """Return the contract of the function that toolpact accepted, with other parameters."""
    properties = {
        "query": {"type": "string", "description": "The words."},
        "limit": {"type": "integer", "default": 10},
        "language": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    }
    kept = {name: each for name, each in (properties | changes).items() if each is not None}
    return taking(kept, *("query" for each in ("query",) if each in kept))


def accepted(parameters: dict | None = None) -> ToolpactEntry:
    schema = {"name": "search", "description": "", "parameters": parameters or PARAMETERS}
    return ToolpactEntry("search", schema, "2026-07-12T10:00:00Z")


def level_after(entry: Entry, document: dict) -> Level:
    return drift_of(entry.name, entry, document).level


def test_functions_are_read_by_name_with_their_time_in_utc():
    (entry,) = read_toolpact(json.dumps(FILE)).values()
    assert (entry.name, entry.accepted_at) == ("search", "2026-07-12T10:00:00Z")
    assert entry.parameters == PARAMETERS
    assert read_toolpact('{"_toolpact": "1", "functions": {}}') == {}


def test_time_without_a_zone_is_utc():
    text = json.dumps(FILE).replace(".123456+02:00", "")
    assert read_toolpact(text)["search"].accepted_at == "2026-07-12T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not strict JSON"),
        ("[]", "is no lockfile of toolpact"),
        ('{"tallystick_lock": 1, "tools": {}}', "is no lockfile of toolpact"),
        ('{"_toolpact": "2", "functions": {}}', "a format of toolpact that is not known"),
        ('{"_toolpact": "1", "functions": []}', "is no lockfile of toolpact"),
        ('{"_toolpact": "1", "functions": {"a": 1}}', "see a"),
        ('{"_toolpact": "1", "functions": {"a": {"accepted_at": "", "schema": {}}}}', "see a"),
        (json.dumps(FILE).replace('"limit": {', '"limit": 1, "l": {'), "see search"),
        (json.dumps(FILE).replace("2026-07-12T12", "yesterday"), "a time that is none: yesterday"),
    ],
)
def test_what_is_no_lockfile_of_toolpact_is_refused(text, words):
    with pytest.raises(LockfileInvalid, match=words):
        read_toolpact(text, name="my.lock")


def test_code_that_takes_the_same_is_accepted_as_it_is():
    document = code()
    entry = adopt(accepted(), document, source="shop.tools:search")
    assert entry.document == {**document, "version": "1.0.0"}
    assert (entry.accepted_at, entry.source) == ("2026-07-12T10:00:00Z", "shop.tools:search")
    assert level_after(entry, document) is Level.UNCHANGED


def test_version_that_the_code_states_is_kept():
    entry = adopt(accepted(), {**code(), "version": "3.2"})
    assert entry.version == "3.2.0"


@pytest.mark.parametrize(
    ("document", "level", "kinds"),
    [
        (code(query=None, words={"type": "string"}), Level.BREAKING, {"property_removed"}),
        (code(limit={"type": "string", "default": "10"}), Level.BREAKING, {"type_changed"}),
        (code(limit={"type": "integer", "default": 20}), Level.REVIEW, {"default_changed"}),
        (code(page={"type": "integer"}), Level.COMPATIBLE, {"property_added"}),
    ],
)
def test_what_changed_since_shows_and_nothing_else(document, level, kinds):
    entry = adopt(accepted(), document)
    found = drift_of(entry.name, entry, document)
    assert found.level is level
    assert found.comparison is not None
    structural = {each.kind.value for each in found.comparison.changes if not each.is_prompt_facing}
    assert kinds <= structural
    assert "additional_properties_closed" not in structural
    assert "language" not in "".join(each.path for each in found.comparison.changes)


def test_parameter_that_toolpact_could_not_read_shows():
    """It holds `{}` for every model: nobody can tell whether the model is as it was accepted."""
    entry = adopt(
        accepted({"type": "object", "properties": {"item": {}}, "required": ["item"]}),
        taking({"item": {"type": "object", "properties": {}}}, "item"),
    )
    assert entry.contract.input_schema["properties"] == {"item": {}}


def test_identity_of_a_parameter_that_was_not_there_is_left_out():
    document = {**code(page={"type": "integer"}), "identity_fields": ["page"]}
    entry = adopt(accepted(), document)
    assert "identity_fields" not in entry.contract.document
    assert level_after(entry, document) is Level.REVIEW


def test_parameters_that_are_no_schema_are_refused():
    broken = accepted({"type": "objct", "properties": {}})
    with pytest.raises(LockfileInvalid, match="toolpact's schema of search: "):
        adopt(broken, a_document())
