"""The list of changes: what a reviewer is told, and what is no change at all."""

from typing import Any

import pytest

from tallystick.canonical import MISSING, resolve_pointer
from tallystick.compatibility.changes.change import Change, ChangeKind, Direction
from tallystick.compatibility.changes.listing import PAIRS_MAX, agreeing, changes
from tallystick.compatibility.verdict import Answer

TEXT: Any = {"type": "string"}
WHOLE: Any = {"type": "integer"}
OLD, NEW = Direction.OLD_TO_NEW, Direction.NEW_TO_OLD


def record(*required, **properties) -> Any:
    return {"type": "object", "properties": properties, "required": list(required)}


def told(old, new, **reading) -> list[tuple[str, str]]:
    return [(each.path, each.kind.value) for each in changes(old, new, **reading)]


def only(old, new, **reading) -> Change:
    (change,) = changes(old, new, **reading)
    return change


# --- no change ------------------------------------------------------------------------------------

SAME: list[tuple[Any, Any]] = [
    ({"type": ["string"]}, TEXT),
    ({"type": ["null", "string"]}, {"type": ["string", "null"]}),
    ({"type": ["number", "integer"]}, {"type": "number"}),
    ({"enum": ["a"]}, {"const": "a"}),
    ({"enum": ["a", "b"]}, {"type": "string", "enum": ["b", "a"]}),
    ({"anyOf": [{"const": "a"}, {"const": "b"}]}, {"enum": ["a", "b"]}),
    ({"anyOf": [TEXT, {"type": "null"}]}, {"type": ["string", "null"]}),
    ({"oneOf": [{"type": "null"}, TEXT]}, {"type": ["string", "null"]}),
    ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, {"enum": ["a", None, "b"]}),
    (
        {"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]},
        {"type": ["null", "string"], "minLength": 2},
    ),
    ({"anyOf": [TEXT]}, TEXT),
    ({"allOf": [TEXT, {"minLength": 1}]}, {"type": "string", "minLength": 1}),
    ({"required": []}, {}),
    ({"minimum": 1.0}, {"minimum": 1}),
    ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
    ({"minLength": 0, "minItems": 0, "uniqueItems": False, "items": {}}, True),
    ({"additionalProperties": True}, {"additionalProperties": {}}),
    ({"type": "object", "additionalProperties": {}}, {"type": "object"}),
    ({"$comment": "one", "$schema": "https://json-schema.org/draft/2020-12/schema"}, {}),
    (False, {"not": {}}),
    ({"type": "string", "minimum": 3}, TEXT),
    ({"dependentRequired": {"a": ["b", "c"]}}, {"dependentRequired": {"a": ["c", "b"]}}),
    (record("a", "b", a=TEXT, b=TEXT), record("b", "a", b=TEXT, a=TEXT)),
    (
        record(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": record(b=TEXT)}},
        record(a=record(b=TEXT)),
    ),
    (
        {"$ref": "#/$defs/A", "$defs": {"A": record(next={"$ref": "#/$defs/A"})}},
        record(next={"$ref": "#"}),
    ),
    (
        {"anyOf": [record("k", k={"const": 1}), record("k", k={"const": 2})]},
        {"anyOf": [record("k", k={"enum": [2]}), record("k", k={"const": 1.0})]},
    ),
    ({"allOf": [record(a=TEXT), record("b", b=TEXT)]}, record("b", a=TEXT, b=TEXT)),
]


@pytest.mark.parametrize(("old", "new"), SAME)
@pytest.mark.parametrize("is_closed", [True, False])
def test_what_is_only_written_in_another_way_is_no_change(old, new, is_closed):
    assert changes(old, new, is_closed=is_closed) == ()
    assert changes(new, old, is_closed=is_closed) == ()


def test_taking_properties_together_that_an_additional_one_shuts_out_is_a_change():
    apart: Any = {"allOf": [record(a=TEXT) | {"additionalProperties": False}, record(b=TEXT)]}
    together = record(a=TEXT, b=TEXT) | {"additionalProperties": False}
    assert changes(apart, together, is_closed=False)


# --- one change, as a sentence --------------------------------------------------------------------

ONE: list[tuple[Any, Any, str, str, set[Direction], str]] = [
    (TEXT, WHOLE, "/type", "type_changed", {OLD, NEW}, "was a string and is now an integer"),
    (WHOLE, {"type": ["integer", "null"]}, "/type", "type_widened", {NEW}, "may now be null"),
    ({"type": ["integer", "null"]}, WHOLE, "/type", "type_narrowed", {OLD}, "no longer be null"),
    ({"type": "number"}, WHOLE, "/type", "type_narrowed", {OLD}, "must now be an integer"),
    (WHOLE, {"type": "number"}, "/type", "type_widened", {NEW}, "not only an integer"),
    ({}, TEXT, "/type", "type_narrowed", {OLD}, "could be anything and must now be a string"),
    (TEXT, {}, "/type", "type_widened", {NEW}, "may now be anything"),
    (TEXT, False, "", "type_narrowed", {OLD}, "no longer accepts any value"),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, "/enum", "enum_removed", {OLD}, 'accepts "b"'),
    ({"enum": ["a"]}, {"enum": ["a", 1]}, "/enum", "enum_added", {NEW}, "now also accepts 1"),
    ({"const": "a"}, {"const": "b"}, "/const", "const_changed", {OLD, NEW}, 'be "b", it was "a"'),
    ({"enum": ["a", "b"]}, TEXT, "/enum", "enum_lifted", {NEW}, 'limited to "a" or "b"'),
    (TEXT, {"const": "a"}, "/const", "enum_imposed", {OLD}, 'now accepts only "a"'),
    (
        {"enum": ["low", "not_planned"]},
        {"enum": ["LOW", "NOT_PLANNED"]},
        "/enum",
        "enum_respelled",
        {OLD, NEW},
        '"low" is now "LOW" and "not_planned" is now "NOT_PLANNED"',
    ),
    (
        {"type": "string", "maxLength": 9},
        {"type": "string", "maxLength": 5},
        "/maxLength",
        "bound_tightened",
        {OLD},
        "at most 5 characters long; before, it had to be at most 9 characters long",
    ),
    ({"minItems": 1}, {}, "/minItems", "bound_loosened", {NEW}, "need no longer have at least 1 i"),
    ({"minimum": 1}, {"exclusiveMinimum": 1}, "/exclusiveMinimum", "bound_tightened", {OLD}, "1"),
    ({}, {"uniqueItems": True}, "/uniqueItems", "bound_tightened", {OLD}, "all different"),
    ({"multipleOf": 4}, {"multipleOf": 2}, "/multipleOf", "multiple_of_changed", {NEW}, "of 2"),
    (TEXT, TEXT | {"pattern": "^a"}, "/pattern", "pattern_added", {OLD}, "must now match `^a`"),
    ({"pattern": "a"}, {}, "/pattern", "pattern_removed", {NEW}, "need no longer match `a`"),
    ({"pattern": "a"}, {"pattern": "b"}, "/pattern", "pattern_changed", {OLD, NEW}, "it was `a`"),
    (TEXT, TEXT | {"format": "uri"}, "/format", "format_added", set(), "nothing is refused"),
    (TEXT, TEXT | {"default": "x"}, "/default", "default_added", set(), 'now defaults to "x"'),
    ({"default": 1}, {}, "/default", "default_removed", set(), "no longer defaults to 1"),
    ({"default": 1}, {"default": 2}, "/default", "default_changed", set(), "to 2, it was 1"),
    ({}, {"deprecated": True}, "/deprecated", "deprecated_changed", set(), "is now deprecated"),
    ({"title": "A"}, {"title": "B"}, "/title", "title_changed", set(), "reads differently"),
    ({}, {"x-unit": "cm"}, "/x-unit", "keyword_changed", set(), "`x-unit` of the value"),
    ({"$ref": "u:a"}, {"$ref": "u:b"}, "/$ref", "reference_changed", {OLD, NEW}, "not followed"),
    ({}, {"not": TEXT}, "/not", "not_changed", {OLD}, "now held to an exclusion"),
    ({"not": TEXT}, {"not": WHOLE}, "/not", "not_changed", {OLD, NEW}, "has changed"),
    ({"contains": TEXT}, {}, "/contains", "contains_changed", {NEW}, "no longer held to"),
    (
        {"propertyNames": {"maxLength": 3}},
        {"propertyNames": {"maxLength": 4}},
        "/propertyNames",
        "property_names_changed",
        {OLD, NEW},
        "has changed",
    ),
    (
        {"if": {"required": ["a"]}, "then": {"minProperties": 1}},
        {"if": {"required": ["a"]}, "then": {"minProperties": 2}},
        "/then",
        "condition_changed",
        {OLD, NEW},
        "a condition",
    ),
    (
        {"dependentRequired": {"a": ["b"]}},
        {"dependentRequired": {"a": ["b", "c"]}},
        "/dependentRequired/a",
        "condition_changed",
        {OLD},
        "`a` must now come with `c`",
    ),
    (
        {"dependentSchemas": {"a": {"minProperties": 2}}},
        {},
        "/dependentSchemas/a",
        "condition_changed",
        {NEW},
        "where `a` is sent, the value is no longer held",
    ),
    ({"items": TEXT}, {"items": WHOLE}, "/items/type", "type_changed", {OLD, NEW}, "an item of"),
    ({}, {"items": TEXT}, "/items", "items_changed", {OLD}, "now says what its items must be"),
    (
        {"prefixItems": [TEXT]},
        {"prefixItems": [TEXT, TEXT]},
        "/prefixItems/1",
        "items_changed",
        {OLD},
        "what its item 1 must be",
    ),
    (
        {"additionalProperties": TEXT},
        {"additionalProperties": WHOLE},
        "/additionalProperties/type",
        "type_changed",
        {OLD, NEW},
        "a further property of",
    ),
    (
        {},
        {"patternProperties": {"^x": TEXT}},
        "/patternProperties/^x",
        "pattern_property_added",
        {OLD},
        "match `^x`",
    ),
]


@pytest.mark.parametrize(("old", "new", "path", "kind", "breaks", "why"), ONE)
def test_one_change(old, new, path, kind, breaks, why):
    change = only(old, new)

    assert (change.path, change.kind.value, set(change.breaks)) == (path, kind, breaks)
    assert why in change.why
    places = resolve_pointer(new, path), resolve_pointer(old, path)
    assert any(place is not MISSING for place in places)


def test_an_asserted_format_refuses_values():
    change = only(TEXT | {"format": "uri"}, TEXT | {"format": "uuid"}, assert_format=True)
    assert change.why == "the value must now be `uuid`, it was `uri`"
    assert change.breaks == {OLD, NEW}


def test_sentences_name_the_property():
    old = record(priority=WHOLE, state={"enum": ["open", "closed"]}, tags={"items": TEXT})
    new = record(
        priority={"type": ["integer", "null"]},
        state={"enum": ["open"]},
        tags={"items": TEXT | {"maxLength": 9}},
    )
    assert [each.why for each in changes(old, new)] == [
        "`priority` may now be null, and old readers may not expect it",
        '`state` no longer accepts "closed"',
        "an item of `tags` must now be at most 9 characters long",
    ]


# --- properties -----------------------------------------------------------------------------------


def test_an_optional_property_breaks_nobody_who_does_not_know_it():
    change = only(record(a=TEXT), record(a=TEXT, page=WHOLE))
    assert change.kind is ChangeKind.PROPERTY_ADDED
    assert change.why == "`page` is new and optional: values without it stay valid"
    assert change.breaks == {NEW}


def test_an_optional_property_of_an_open_object_may_break_what_was_sent_undeclared():
    assert only(record(a=TEXT), record(a=TEXT, b=WHOLE), is_closed=False).breaks == {OLD}
    assert only(record(a=TEXT), record(a=TEXT, b={}), is_closed=False).breaks == set()


def test_a_removed_property_breaks_old_callers():
    change = only(record("b", a=TEXT, b=TEXT), record(a=TEXT))
    assert change.kind is ChangeKind.PROPERTY_REMOVED
    assert change.why == "`b` is gone: values with it are refused and old readers may need it"
    assert change.breaks == {OLD, NEW}


def test_a_required_property_with_a_default_breaks_all_the_same():
    change = only(record(a=TEXT), record("b", a=TEXT, b=TEXT | {"default": "x"}))
    assert change.kind is ChangeKind.REQUIRED_ADDED
    assert OLD in change.breaks
    assert "its default notwithstanding" in change.why


def test_a_property_that_becomes_required_or_optional():
    (change,) = changes(record(a=TEXT), record("a", a=TEXT))
    assert (change.path, change.kind.value) == ("/properties/a", "required_added")
    assert change.breaks == {OLD}
    (change,) = changes(record("a", a=TEXT), record(a=TEXT))
    assert (change.kind.value, set(change.breaks)) == ("required_removed", {NEW})


@pytest.mark.parametrize("is_closed", [True, False])
def test_closing_as_written_breaks_only_who_sends_what_is_not_declared(is_closed):
    open_, closed = record(a=TEXT), record(a=TEXT) | {"additionalProperties": False}
    change = only(open_, closed, is_closed=is_closed)
    assert change.kind is ChangeKind.ADDITIONAL_PROPERTIES_CLOSED
    assert change.breaks == (set() if is_closed else {OLD})
    change = only(closed, open_, is_closed=is_closed)
    assert change.kind is ChangeKind.ADDITIONAL_PROPERTIES_OPENED
    assert change.breaks == (set() if is_closed else {NEW})


def test_to_no_longer_declare_further_properties_matters_to_the_closed_reading():
    said, silent = record(a=TEXT) | {"additionalProperties": True}, record(a=TEXT)
    assert changes(said, silent, is_closed=False) == ()
    assert only(said, silent, is_closed=True).breaks == {OLD}


# --- renamed and moved ----------------------------------------------------------------------------


def test_a_rename_is_one_change():
    change = only(record("q", q=TEXT), record("query", query=TEXT))
    assert (change.path, change.replacement) == ("/properties/q", "/properties/query")
    assert (change.old, change.new, change.kind) == ("q", "query", ChangeKind.RENAMED)
    assert change.why == "`q` is now called `query`: callers that send `q` are refused"
    assert change.breaks == {OLD, NEW}


def test_a_rename_says_what_became_required_and_what_else_changed():
    new = record("query", query=TEXT | {"maxLength": 9})
    renamed, bound = changes(record(q=TEXT), new)
    assert renamed.why.endswith("are refused; it is now required")
    assert bound.path == "/properties/query/maxLength"


def test_other_units_are_no_rename():
    old = record(
        "customer_id", "amount_dollars", customer_id=TEXT, amount_dollars={"type": "number"}
    )
    new = record(
        "account_id",
        "amount_cents",
        "currency",
        account_id=TEXT,
        amount_cents=WHOLE,
        currency=TEXT,
    )
    assert told(old, new) == [
        ("/properties/amount_cents", "required_added"),
        ("/properties/amount_dollars", "property_removed"),
        ("/properties/currency", "required_added"),
        ("/properties/customer_id", "renamed"),
    ]


def test_a_property_that_went_to_another_level_has_moved():
    flat, nested = record(name=TEXT, zip=TEXT), record(name=TEXT, address=record(zip=TEXT))
    assert told(flat, nested) == [
        ("/properties/address", "property_added"),
        ("/properties/zip", "moved"),
    ]
    assert told(nested, flat) == [
        ("/properties/address", "property_removed"),
        ("/properties/address/properties/zip", "moved"),
    ]
    moved = changes(flat, nested)[1]
    assert moved.replacement == "/properties/address/properties/zip"
    assert moved.why.startswith("`zip` has moved into `address`")


# --- alternatives ---------------------------------------------------------------------------------


def test_alternatives_are_matched_by_what_tells_them_apart():
    old: Any = {"anyOf": [record("k", k={"const": "a"}), record("k", k={"const": "b"}, x=TEXT)]}
    new: Any = {"anyOf": [record("k", k={"const": "b"}, x=WHOLE), record("k", k={"const": "c"})]}
    removed, changed, added = changes(old, new)
    assert removed.why == 'an alternative of the value is gone: an object whose `k` is "a"'
    assert (removed.path, set(removed.breaks)) == ("/anyOf/0", {OLD})
    assert (changed.path, changed.kind.value) == ("/anyOf/0/properties/x/type", "type_changed")
    assert (added.path, set(added.breaks)) == ("/anyOf/1", {NEW})


def test_a_schema_that_becomes_one_of_several():
    change = only(record(a=TEXT), {"anyOf": [record(z=WHOLE), record(a=TEXT)]})
    assert (change.path, change.kind) == ("/anyOf/0", ChangeKind.UNION_BRANCH_ADDED)


def test_what_a_type_holds_is_not_told_of_a_type_that_is_new():
    change = only(TEXT, {"anyOf": [TEXT, record("a", a=TEXT)]})
    assert change.kind is ChangeKind.TYPE_WIDENED
    assert change.why == "the value may now be an object, and old readers may not expect it"


def test_a_choice_that_is_put_beside_a_schema():
    choice: Any = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    change = only(record(a=TEXT, b=TEXT), record(a=TEXT, b=TEXT) | choice)
    assert (change.path, change.kind.value) == ("/anyOf", "condition_changed")
    assert change.why == (
        "the value must now fit at least one of 2 alternatives: "
        "an object with `a` or an object with `b`"
    )


# --- text -----------------------------------------------------------------------------------------


def test_text_is_prompt_facing_and_breaks_nobody():
    old = record(description=TEXT | {"description": "one", "examples": ["x"]})
    new = record(description=TEXT | {"description": "two"})
    found = changes(old, new)
    assert [each.kind.value for each in found] == ["description_changed", "examples_changed"]
    assert all(each.is_prompt_facing and not each.breaks for each in found)


def test_text_of_alternatives_is_compared_with_its_own():
    def either(text) -> Any:
        return {"anyOf": [TEXT | {"description": text}, WHOLE | {"description": "number"}]}

    change = only(either("one"), either("two"))
    assert (change.path, change.kind.value) == ("/anyOf/0/description", "description_changed")


def test_to_json():
    assert only(TEXT, TEXT | {"minLength": 1}).to_json() == {
        "path": "/minLength",
        "kind": "bound_tightened",
        "new": 1,
        "breaks": ["old_to_new"],
        "is_prompt_facing": False,
        "why": "the value must now be at least 1 character long",
    }


# --- the engine has the last word -----------------------------------------------------------------


def test_no_change_claims_what_the_engine_has_disproved():
    found = changes(TEXT, WHOLE)
    (change,) = agreeing(found, {OLD: Answer.COMPATIBLE, NEW: Answer.INCOMPATIBLE})
    assert change.breaks == {NEW}
    assert change.why.endswith("; but every old value is still accepted")
    assert agreeing(found, {OLD: Answer.INCOMPATIBLE, NEW: Answer.UNDECIDED}) == found


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("keyword", ["properties", "items", "not", "anyOf", "allOf"])
def test_a_deep_schema_is_compared(keyword):
    def nested(leaf) -> Any:
        for _ in range(300):
            if keyword in ("anyOf", "allOf"):
                leaf = {keyword: [leaf, {"minLength": 1}]}
            else:
                leaf = {keyword: {"a": leaf} if keyword == "properties" else leaf}
        return leaf

    assert changes(nested(TEXT), nested(WHOLE))
    assert not changes(nested(TEXT), nested(TEXT))


def test_cycles_of_different_length_end():
    def ring(length) -> Any:
        at = {str(n): record(x={"$ref": f"#/$defs/{(n + 1) % length}"}) for n in range(length)}
        return {"$ref": "#/$defs/0", "$defs": at}

    assert changes(ring(3), ring(5)) == ()
    last = changes(ring(83), ring(89))[-1]
    assert last.kind is ChangeKind.UNTOLD
    assert str(PAIRS_MAX) in last.why


def test_large_unions_are_matched_by_equality():
    old: Any = {"anyOf": [record(**{f"a{n}": TEXT}) for n in range(300)]}
    new: Any = {"anyOf": [record(**{f"a{n}": TEXT}) for n in reversed(range(1, 301))]}
    found = changes(old, new)
    assert [each.kind.value for each in found] == ["union_branch_added", "union_branch_removed"]


JUNK: list[Any] = [
    None,
    5,
    "x",
    [],
    {"type": 5},
    {"type": ["x", 1]},
    {"properties": [1]},
    {"properties": {"a": 5, "": None, "~/": {"title": "\0"}}},
    {"required": [1, None]},
    {"enum": 5},
    {"anyOf": [1, 2]},
    {"allOf": [None], "oneOf": 3},
    {"$ref": 5},
    {"$ref": "#%FF"},
    {"$ref": "#"},
    {"items": [1, 2], "prefixItems": 5},
    {"additionalProperties": None},
    {"patternProperties": {"(": TEXT, "a": 1}},
    {"dependentRequired": {"a": 5}, "dependentSchemas": {"a": 5}},
    {"if": 5, "then": 6, "contains": 5, "minContains": "a", "not": 5},
    {"minLength": "a", "pattern": 5, "format": [], "multipleOf": 0, "uniqueItems": 3},
    {"minimum": 10**5000, "maximum": float("inf"), "const": float("nan")},
    {"title": 5, "description": [], "deprecated": "x", "default": {}},
]


@pytest.mark.parametrize("old", JUNK)
def test_no_json_makes_it_raise(old):
    for new in JUNK:
        for change in changes(old, new):
            assert isinstance(change.to_json()["why"], str)
    assert changes(old, old) == ()
