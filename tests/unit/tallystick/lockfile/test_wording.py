"""A person reads what changed, a call that fails now, and what to do: on any terminal."""

from typing import Any

import pytest

from tallystick.lockfile.drift import Drift, drift_of
from tallystick.lockfile.wording import (
    COLUMNS,
    commands,
    details,
    headline,
    place,
    summary,
    told_changes,
    verdict,
)
from tests.unit.tallystick.lockfile.tools import SEARCH, a_document, an_entry, returning, taking

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
QUERY = taking({"query": TEXT}, "query")
RENAMED = taking({"search_query": TEXT}, "search_query")
MANY = taking({f"field_{number}": TEXT for number in range(20)})
# A pair that the engine does not decide.
OBSCURE = taking({"query": {"type": "string", "pattern": "^(a|b)*a(a|b){40}$"}})
OBSCURED = taking({"query": {"type": "string", "pattern": "^(a|b)*a(a|b){39}a?b?$"}})
HOSTILE = "\x1b[31mred\x1b[0m\a \u202egnirts\u202c \r\n\u2028 end"


def drift(old: dict[str, Any] | None, new: dict[str, Any] | None) -> Drift:
    return drift_of("shop.tools.search", None if old is None else an_entry(old), new)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (SEARCH, SEARCH, "is what tallystick.lock accepts."),
        (None, SEARCH, "is not in tallystick.lock yet."),
        (SEARCH, None, "is in tallystick.lock, and the code no longer declares it."),
        (SEARCH, a_document(description="Other."), "changes in text alone, and breaks nobody."),
        (SEARCH, a_document(version="1.2.0"), "changes its version alone."),
        (QUERY, taking({"query": TEXT, "note": TEXT}, "query"), "changes, and breaks nobody."),
        (SEARCH, a_document(capabilities=["a:b:c"]), "changes in what a person has to judge."),
        (QUERY, RENAMED, "it breaks callers."),
        (returning(TEXT), returning({}), "it breaks readers of its results."),
        (
            {**QUERY, "output_schema": TEXT},
            {**RENAMED, "output_schema": NUMBER},
            "it breaks callers and readers of its results.",
        ),
        (SEARCH, a_document(effect_class="PURE"), "it changes its effect class."),
    ],
)
def test_one_sentence_says_how_grave_it_is(old, new, sentence):
    told = headline(drift(old, new))
    assert told.startswith("shop.tools.search is ")
    assert told.endswith(sentence)


def test_the_sentence_ends_with_the_verdict_and_names_the_file():
    found = drift(QUERY, RENAMED)
    assert verdict(found) == "breaks callers"
    assert "what shop.lock accepts" in headline(found, "shop.lock")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (QUERY, RENAMED, ("input/query", "renamed to search_query", "breaks old calls")),
        (
            QUERY,
            taking({"query": TEXT, "limit": NUMBER}, "query"),
            ("input/limit", 'property added: {"type": "integer"}', ""),
        ),
        (
            taking({"query": TEXT}),
            QUERY,
            ("input/query", "required now", "breaks old calls"),
        ),
        (QUERY, taking({"query": TEXT}), ("input/query", "no longer required", "")),
        (
            taking({"limit": {**NUMBER, "default": 10}}),
            taking({"limit": {**NUMBER, "default": 20}}),
            ("input/limit/default", "default changed: 10 -> 20", "to be judged"),
        ),
        (
            taking({"mode": {"enum": ["fast", "slow"]}}),
            taking({"mode": {"enum": ["fast"]}}),
            ("input/mode/enum", 'enum removed: ["fast", "slow"] -> ["fast"]', "breaks old calls"),
        ),
        (
            returning({"type": "object", "properties": {"id": TEXT}}),
            returning({"type": "object", "properties": {"id": {"type": ["string", "null"]}}}),
            (
                "output/id/type",
                'type widened: "string" -> ["null", "string"]',
                "breaks old readers",
            ),
        ),
        (SEARCH, a_document(description="Other."), ("description", "description changed", "")),
    ],
)
def test_a_change_is_told_in_a_line(old, new, told):
    [change] = told_changes(drift(old, new))
    assert (change.place, change.what, change.effect) == told


@pytest.mark.parametrize(
    ("pointer", "told"),
    [
        ("/input_schema/properties/lines/items/properties/price", "input/lines/items/price"),
        ("/input_schema/properties/properties", "input/properties"),
        ("/input_schema", "input"),
        ("/output_schema/properties/a~1b", "output/a/b"),
        ("/capabilities/0", "capabilities/0"),
    ],
)
def test_a_place_is_told_without_the_way_inside_a_schema(pointer, told):
    assert place(pointer) == told


def test_the_gravest_change_is_told_first_and_of_many_only_the_first():
    new = taking(
        {**{f"a{number}": TEXT for number in range(20)}, "search_query": TEXT}, "search_query"
    )
    lines = summary(drift(QUERY, new))
    assert lines[0].split() == [
        "input/query",
        "renamed",
        "to",
        "search_query",
        "breaks",
        "old",
        "calls",
    ]
    assert "... and 9 more" in lines
    assert len(lines) < 30


def test_a_call_that_fails_now_is_shown_and_the_next_version():
    assert summary(drift(QUERY, RENAMED)) == [
        "input/query  renamed to search_query  breaks old calls",
        "",
        "A call that worked and fails now:",
        '  shop.tools.search {"query": ""}',
        "  /query: this property is not declared",
        "  /search_query: this property is required",
        "",
        "A new major version: 1.0.0 -> 2.0.0",
    ]


def test_a_result_that_readers_refuse_is_shown():
    lines = summary(drift(returning(TEXT), returning({"type": ["string", "null"]})))
    at = lines.index("A result that may come now, and that old readers refuse:")
    assert lines[at + 1] == "  null"


def test_what_a_person_has_to_judge_is_asked_with_what_was_and_is():
    lines = summary(
        drift(
            taking({"limit": {**NUMBER, "default": 10}}),
            taking({"limit": {**NUMBER, "default": 20}}),
        )
    )
    at = lines.index("For a person to judge:")
    assert lines[at + 1].startswith("  - `limit` now defaults to 20, it was 10")


def test_a_stated_version_that_is_too_low_is_said():
    lines = [*summary(drift(QUERY, {**RENAMED, "version": "1.0.0"}))]
    assert "  - The code states version 1.0.0; this change asks for 2.0.0 or higher." in lines
    assert not any(line.startswith("A new major version") for line in lines)
    text = "\n".join(details(drift(QUERY, {**RENAMED, "version": "1.0.0"})))
    assert "A call that worked with the accepted 1.0.0 and fails with the code's 1.0.0:" in text


def test_what_is_not_decided_says_where_it_stopped():
    found = drift(OBSCURE, OBSCURED)
    assert verdict(found) == "may break callers"
    for lines in (summary(found), details(found)):
        told = " ".join(" ".join(lines).split())
        assert "Not decided: old calls against the new version; stopped at /: " in told


def test_the_commands_say_how_to_go_on():
    assert commands("shop.search", prog="registry lock", options=" -m shop") == [
        "See all of it:  registry lock diff shop.search -m shop",
        "Accept it:      registry lock accept shop.search -m shop",
    ]


# --- in full --------------------------------------------------------------------------------------


def test_both_directions_are_told_and_every_change_with_its_values():
    old = {**QUERY, "output_schema": TEXT}
    new = {
        **taking(
            {"search_query": {"type": "string", "enum": ["alpha", "beta", "gamma"]}}, "search_query"
        )
    }
    lines = details(drift(old, {**new, "output_schema": {"type": ["string", "null"]}}))
    for line in (
        "calls for 1.0.0, to 2.0.0                         incompatible     incompatible",
        "results of 1.0.0, to readers of 2.0.0 (rollback)  compatible       compatible",
        "A call that worked with 1.0.0 and fails with 2.0.0:",
        "A result that 2.0.0 may return and readers of 1.0.0 refuse:",
        "After a rollback, a call for 2.0.0 that 1.0.0 refuses:",
        "A new major version: 1.0.0 -> 2.0.0",
        "  - 2.0.0 refuses a call that 1.0.0 allows.",
    ):
        assert line in lines
    assert any(line.startswith("input/") and "breaks old calls" in line for line in lines)


def test_a_text_is_compared_by_its_sentences():
    old = "Search the catalogue. Be quick.\n\nOne word is enough."
    lines = details(
        drift(a_document(description=old), a_document(description=old.replace("quick", "slow")))
    )
    at = lines.index("description: description changed")
    assert lines[at + 2 : at + 7] == [
        "    Search the catalogue.",
        "  - Be quick.",
        "  + Be slow.",
        "",
        "    One word is enough.",
    ]


@pytest.mark.parametrize(("old", "new"), [("Go on.  Now.", "Go on. Now."), ("Go on", "Go on ")])
def test_what_cannot_be_seen_is_shown_as_json(old, new):
    lines = details(drift(a_document(description=old), a_document(description=new)))
    assert [line for line in lines if line.startswith(('  - "', '  + "'))] == [
        f'  - "{old}"',
        f'  + "{new}"',
    ]


def test_a_long_value_is_compared_by_its_lines():
    def document(last: str) -> dict[str, Any]:
        return taking({"mode": {"enum": ["one", "two", "three", "four", "five", last]}})

    lines = details(drift(document("six"), document("seven")))
    assert '  -   "six"' in lines
    assert '  +   "seven"' in lines
    assert '  -   "one",' not in lines


def test_a_tool_on_one_side_alone_is_shown_whole():
    new, removed = details(drift(None, SEARCH)), details(drift(SEARCH, None))
    assert '+   "version": "1.0.0"' in new
    assert '-   "name": "shop.tools.search",' in removed
    assert details(drift(SEARCH, SEARCH)) == ["shop.tools.search is what tallystick.lock accepts."]


def test_what_means_the_same_is_said_to():
    lines = details(drift(taking({"a": {"enum": [1, 2]}}), taking({"a": {"enum": [2, 1]}})))
    assert lines[1] == "They are proven to mean the same."


# --- on any terminal ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "new",
    [
        a_document(description=HOSTILE),
        taking({HOSTILE: {"type": "string", "description": HOSTILE}}, HOSTILE),
        taking({"query": {"enum": [HOSTILE]}}, "query"),
        returning({"const": HOSTILE}),
        taking({"query": {"type": "string", "default": HOSTILE}}, "query"),
        MANY,
    ],
)
def test_no_line_is_obeyed_or_too_long(new):
    for found in (drift(SEARCH, new), drift(new, SEARCH), drift(None, new), drift(new, None)):
        for line in (*summary(found), *details(found)):
            assert line.isprintable()
            assert len(line) <= COLUMNS + 4
            assert line == line.rstrip()


def test_a_long_text_is_broken_and_a_long_call_cut():
    long = "word " * 400
    old = taking({"query": {"const": long}}, "query")
    lines = summary(drift(old, taking({"query": {"const": "short"}}, "query")))
    assert len(lines) < 20
    assert any(line.endswith("...") for line in lines)
    changed = details(drift(a_document(description=long), a_document(description=long * 2)))
    assert max(map(len, changed)) <= 100
    assert "\n".join(changed).count("word") >= 1200
