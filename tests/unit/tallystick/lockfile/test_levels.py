"""A change of a tool is as grave as it is for those who stay with the accepted contract."""

import pytest

from tallystick.lockfile.drift import Drift, drift_of
from tallystick.lockfile.entry import Level
from tests.unit.tallystick.lockfile.tools import a_document, an_entry, returning, taking

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
OPEN = {"type": "object", "properties": {"query": TEXT}}
UUID, DATE, MOMENT, PATH = (
    {"type": "string", "format": each} for each in ("uuid", "date", "date-time", "path")
)
MODEL = {"type": "object", "properties": {"x": TEXT}, "required": ["x"]}
KEYED = {
    "effect_class": "IDEMPOTENT",
    "idempotency": {
        "header": "Idempotency-Key",
        "retention_seconds": 60,
        "conflict": {"statuses": [409]},
    },
}
FAILURE = {"code": "full", "meaning": "There is no room.", "retryable": True}


def drift(old: dict, new: dict) -> Drift:
    return drift_of("shop.tools.search", an_entry(old), new)


def options(*values: str) -> dict:
    return taking({"query": {**TEXT, "enum": [*values]}}, "query")


def nested(model: dict) -> dict:
    return taking({"item": {"$ref": "#/$defs/Item"}}, "item", **{"$defs": {"Item": model}})


def described(text: str, **keywords) -> dict:
    return taking({"amount": {**NUMBER, "description": text, **keywords}})


BREAKING = {
    "required parameter renamed": (
        taking({"query": TEXT}, "query"),
        taking({"search_query": TEXT}, "search_query"),
    ),
    "optional parameter renamed": (taking({"query": TEXT}), taking({"search_query": TEXT})),
    "required parameter removed": (taking({"query": TEXT}, "query"), taking({})),
    "text became an identifier": (taking({"id": TEXT}), taking({"id": UUID})),
    "moment became a date": (taking({"at": MOMENT}), taking({"at": DATE})),
    "result is no identifier any more": (returning(UUID), returning(TEXT)),
    "optional parameter removed": (taking({"query": TEXT}), taking({})),
    "parameter named description removed": (taking({"description": TEXT}), taking({})),
    "parameter named description retyped": (
        taking({"description": TEXT}),
        taking({"description": NUMBER}),
    ),
    "parameter named title required": (taking({"title": TEXT}), taking({"title": TEXT}, "title")),
    "required parameter retyped": (taking({"query": TEXT}, "query"), taking({"query": NUMBER})),
    "optional parameter retyped": (taking({"query": TEXT}), taking({"query": NUMBER})),
    "optional parameter narrowed": (
        taking({"query": {"type": ["string", "null"]}}),
        taking({"query": TEXT}),
    ),
    "parameter made required": (taking({"query": TEXT}), taking({"query": TEXT}, "query")),
    "required parameter added": (taking({}), taking({"query": TEXT}, "query")),
    "text became a choice": (taking({"query": TEXT}), options("a", "b")),
    "choice lost a value": (options("a", "b"), options("a")),
    "choice respelled a value": (options("a", "b"), options("a", "B")),
    "bound tightened": (
        taking({"limit": {**NUMBER, "maximum": 100}}),
        taking({"limit": {**NUMBER, "maximum": 50}}),
    ),
    "pattern narrowed": (taking({"query": TEXT}), taking({"query": {**TEXT, "pattern": "^a+$"}})),
    "items retyped": (
        taking({"tags": {"type": "array", "items": TEXT}}),
        taking({"tags": {"type": "array", "items": NUMBER}}),
    ),
    "nested model: field required": (
        nested(MODEL),
        nested({**MODEL, "properties": {"x": TEXT, "y": TEXT}, "required": ["x", "y"]}),
    ),
    "nested model: field retyped": (nested(MODEL), nested({**MODEL, "properties": {"x": NUMBER}})),
    "keyword arguments gone": (
        taking({}, additionalProperties=True),
        taking({}, additionalProperties=False),
    ),
    "keyword arguments retyped": (
        taking({}, additionalProperties=NUMBER),
        taking({}, additionalProperties=TEXT),
    ),
    "result lost a field": (returning(MODEL), returning({"type": "object", "properties": {}})),
    "result retyped": (returning(MODEL), returning({"type": "array"})),
    "result no longer described": (returning(MODEL), a_document()),
    "result may be null": (
        returning(MODEL),
        returning({"anyOf": [MODEL, {"type": "null"}]}),
    ),
    "effect class changed": (a_document(), a_document(effect_class="PURE")),
    "undecided": (
        taking({"query": {**TEXT, "pattern": "^(a|b)*a(a|b){40}$"}}),
        taking({"query": {**TEXT, "pattern": "^(a|b)*a(a|b){39}a?b?$"}}),
    ),
    "requires what it does not declare": (
        a_document(input_schema={**OPEN, "required": ["x"]}),
        a_document(input_schema={**OPEN, "required": ["x", "y"]}),
    ),
}

REVIEW = {
    "default changed": (
        taking({"limit": {**NUMBER, "default": 10}}),
        taking({"limit": {**NUMBER, "default": 20}}),
    ),
    "default of another type, equal to Python": (
        taking({"flag": {"default": 0}}),
        taking({"flag": {"default": False}}),
    ),
    "default removed": (taking({"limit": {**NUMBER, "default": 10}}), taking({"limit": NUMBER})),
    "default in a nested model changed": (
        nested({**MODEL, "properties": {"x": TEXT, "n": {**NUMBER, "default": 1}}}),
        nested({**MODEL, "properties": {"x": TEXT, "n": {**NUMBER, "default": 2}}}),
    ),
    "capabilities wider": (a_document(), a_document(capabilities=["shop:read:all"])),
    "error meaning changed": (
        a_document(errors=[FAILURE]),
        a_document(errors=[{**FAILURE, "retryable": False}]),
    ),
    "error gone": (a_document(errors=[FAILURE]), a_document()),
    "idempotency changed": (
        a_document(**KEYED),
        a_document(**KEYED | {"idempotency": {**KEYED["idempotency"], "header": "X-Key"}}),
    ),
    "identity changed": (a_document(), a_document(identity_fields=["query"])),
    "approval changed": (a_document(), a_document(approval="always")),
    "identifiers checked": (a_document(), a_document(returned=[{"argument": "/query"}])),
    "identifiers checked no more": (a_document(returned=[{"argument": "/query"}]), a_document()),
    "credential changed": (a_document(credential="one"), a_document(credential="two")),
    "more attempts": (
        a_document(**KEYED, attempts_max=2),
        a_document(**KEYED, attempts_max=3),
    ),
    "more duplicates": (
        a_document(effect_class="REPLAYABLE", max_duplicates=1),
        a_document(effect_class="REPLAYABLE", max_duplicates=2),
    ),
    "undeclared properties refused": (
        nested(MODEL),
        nested({**MODEL, "additionalProperties": False}),
    ),
}

COMPATIBLE = {
    "optional parameter added": (
        taking({"query": TEXT}, "query"),
        taking({"query": TEXT, "limit": {**NUMBER, "default": 10}}, "query"),
    ),
    "optional field added to a nested model": (
        nested(MODEL),
        nested({**MODEL, "properties": {"x": TEXT, "y": {**NUMBER, "default": 1}}}),
    ),
    "parameter made optional": (taking({"query": TEXT}, "query"), taking({"query": TEXT})),
    "parameter made optional, with a default": (
        taking({"query": TEXT}, "query"),
        taking({"query": {**TEXT, "default": "tea"}}),
    ),
    "identifier became a text": (taking({"id": UUID}), taking({"id": TEXT})),
    "format that says nothing": (taking({"at": TEXT}), taking({"at": PATH})),
    "choice widened": (options("a"), options("a", "b")),
    "choice became a text": (options("a", "b"), taking({"query": TEXT}, "query")),
    "type widened": (taking({"query": TEXT}), taking({"query": {"type": ["string", "null"]}})),
    "result described": (a_document(), returning(MODEL)),
    "result gained a field": (
        returning(MODEL),
        returning({**MODEL, "properties": {"x": TEXT, "y": TEXT}, "required": ["x", "y"]}),
    ),
    "result narrowed": (returning({"type": ["integer", "string"]}), returning(TEXT)),
    "capability dropped": (a_document(capabilities=["shop:read:all"]), a_document()),
    "lease changed": (a_document(), a_document(lease_seconds=5)),
    "written in another way": (taking({"query": TEXT}), taking({"query": {"type": ["string"]}})),
}

ONLY_TEXT = {
    "description changed": (a_document(), a_document(description="Find things.")),
    "title given": (a_document(), a_document(title="Search")),
    "examples given": (a_document(), a_document(examples=[{"arguments": {"query": "tea"}}])),
    "parameter described": (
        taking({"query": TEXT}),
        taking({"query": {**TEXT, "description": "q"}}),
    ),
    "measure described otherwise": (described("in cents"), described("in euros")),
    "parameter deprecated": (described("a"), described("a", deprecated=True)),
    "nested model described": (nested(MODEL), nested({**MODEL, "description": "An item."})),
    "result described otherwise": (returning(MODEL), returning({**MODEL, "description": "One."})),
    "default spelled out": (a_document(), a_document(approval="never")),
    "required in another order": (
        taking({"a": TEXT, "b": TEXT}, "a", "b"),
        taking({"a": TEXT, "b": TEXT}, "b", "a"),
    ),
}


@pytest.mark.parametrize(
    ("level", "old", "new"),
    [
        pytest.param(level, *pair, id=f"{level.value}: {name}")
        for level, pairs in (
            (Level.BREAKING, BREAKING),
            (Level.REVIEW, REVIEW),
            (Level.COMPATIBLE, COMPATIBLE),
            (Level.TEXT, ONLY_TEXT),
        )
        for name, pair in pairs.items()
    ],
)
def test_level(level, old, new):
    found = drift(old, new)
    assert found.level is level
    assert found.comparison is not None
    assert found.findings == ()
    # Once it is accepted, nothing differs any more.
    assert found.document is not None
    assert found.document["version"] != "1.0.0"
    accepted = an_entry(found.document, str(found.document["version"]))
    assert drift_of(found.name, accepted, new).level is Level.UNCHANGED


def test_undecided_says_where_it_stopped():
    found = drift(*BREAKING["undecided"])
    assert found.comparison is not None
    assert "undecided" in {each.code.value for each in found.comparison.review}
