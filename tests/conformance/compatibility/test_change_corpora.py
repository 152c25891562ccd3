"""Real changes of real schemas, each told as a reader would tell it.

The history is that of GitHub's MCP server. Of getsentry/json-schema-diff, the changes are compared
as far as its notion maps on ours; what differs stands in `DIFFERENT`, with the reason.
"""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tallystick.compatibility.changes.change import Direction
from tallystick.compatibility.changes.listing import changes
from tallystick.compatibility.forms.dialect import modern
from tallystick.subschema import DRAFT_07

ROOT = Path(__file__).parents[3]
CORPUS = ROOT.parent / "shared" / "corpus"
HISTORY = CORPUS / "github-mcp-server" / "toolsnaps_history.json"
PAIRS = CORPUS / "getsentry-json-schema-diff" / "tests"

with_history = pytest.mark.skipif(not HISTORY.is_file(), reason=f"there is no {HISTORY}")
with_pairs = pytest.mark.skipif(not PAIRS.is_dir(), reason=f"there is no {PAIRS}")


@cache
def history() -> list[Any]:
    rows = json.loads(HISTORY.read_text(encoding="utf-8"))
    return [row for row in rows if row["status"] == "modified"]


def told(row) -> list[tuple[str, str]]:
    """Return the path below the properties and the kind of each change that is no text."""
    found = changes(row["old"]["inputSchema"], row["new"]["inputSchema"])
    return [
        (each.path.removeprefix("/properties/"), each.kind.value)
        for each in found
        if not each.is_prompt_facing
    ]


def row_of(tool, date, subject="") -> Any:
    rows = [
        row
        for row in history()
        if (row["tool"], row["date"][:10]) == (tool, date) and subject in row["subject"]
    ]
    assert len(rows) == 1
    return rows[0]


@with_history
def test_same_input_schemas_have_no_changes():
    same = [row for row in history() if row["old"]["inputSchema"] == row["new"]["inputSchema"]]
    assert len(same) == 307
    assert not any(told(row) for row in same)


READ = [
    (("search_users", "2025-06-26"), [("q", "renamed")]),
    (("search_code", "2025-07-24"), [("q", "renamed")]),
    (
        ("get_file_contents", "2025-06-23", "adding tests"),
        [("branch", "property_removed"), ("ref", "property_added"), ("sha", "property_added")],
    ),
    (("update_issue_type", "2026-06-17"), [("confidence/enum", "enum_respelled")]),
    (
        ("update_issue_labels", "2026-06-17"),
        [("labels/items/oneOf/1/properties/confidence/enum", "enum_respelled")],
    ),
    (
        ("list_issues", "2025-08-08"),
        [
            ("after", "property_added"),
            ("direction/enum", "enum_respelled"),
            ("orderBy", "property_added"),
            ("page", "property_removed"),
            ("sort", "property_removed"),
            ("state/enum", "enum_removed"),
            ("state/enum", "enum_respelled"),
        ],
    ),
    (
        ("issue_write", "2026-08-06"),
        [("type/anyOf", "type_widened"), ("type/anyOf/0/minLength", "bound_tightened")],
    ),
    (
        ("add_issue_comment", "2026-08-18"),
        [
            ("/anyOf", "condition_changed"),
            ("/dependentSchemas/comment_id", "condition_changed"),
            ("body/minLength", "bound_tightened"),
            ("comment_id/type", "type_narrowed"),
        ],
    ),
    (
        ("add_issue_comment", "2026-08-20"),
        [("/anyOf", "condition_changed"), ("/dependentSchemas/comment_id", "condition_changed")],
    ),
    (
        ("list_project_fields", "2025-09-29"),
        [("projectNumber", "renamed"), ("project_number/type", "type_changed")],
    ),
    (
        ("get_issue_comments", "2025-07-03"),
        [
            ("page/minimum", "bound_tightened"),
            ("perPage/maximum", "bound_tightened"),
            ("perPage/minimum", "bound_tightened"),
            ("per_page", "renamed"),
        ],
    ),
    (("update_issue_labels", "2026-05-20"), [("labels/items/oneOf", "type_widened")]),
    (
        ("get_file_contents", "2025-07-11"),
        [("path", "required_removed"), ("path/default", "default_added")],
    ),
    (
        ("push_files", "2026-03-29"),
        [("files/items/additionalProperties", "additional_properties_closed")],
    ),
    (
        ("issue_write", "2026-08-19", "allow delete:false"),
        [("issue_fields/items/properties/delete/enum", "enum_lifted")],
    ),
]


@with_history
@pytest.mark.parametrize(("row", "expected"), READ)
def test_the_history_reads_as_a_reader_would_say_it(row, expected):
    assert told(row_of(*row)) == expected


@with_history
def test_sentences_of_the_history():
    def sentences(*row):
        found = row_of(*row)
        return [
            each.why
            for each in changes(found["old"]["inputSchema"], found["new"]["inputSchema"])
            if not each.is_prompt_facing
        ]

    assert sentences("search_users", "2025-06-26") == [
        "`q` is now called `query`: callers that send `q` are refused"
    ]
    assert sentences("issue_write", "2026-08-06")[0] == (
        "`type` may now be null, and old readers may not expect it"
    )
    gained, lost = (
        sentences("add_issue_comment", date)[0] for date in ("2026-08-18", "2026-08-20")
    )
    choice = (
        "fit at least one of 2 alternatives: an object with `body` or an object with `reaction`"
    )
    assert gained == f"the value must now {choice}"
    assert lost == f"the value need no longer {choice}"


@with_history
def test_optional_parameters_that_are_only_added_break_no_old_caller():
    text = {"tool_description", "param_description_only"}
    rows = [row for row in history() if set(row["tags"]) - text == {"optional_param_added"}]
    assert len(rows) >= 50
    for row in rows:
        found = changes(row["old"]["inputSchema"], row["new"]["inputSchema"])
        assert not any(Direction.OLD_TO_NEW in each.breaks for each in found)
        assert {kind for _, kind in told(row)} == {"property_added"}


@with_history
def test_text_alone_is_never_structure():
    rows = [
        row
        for row in history()
        if set(row["tags"]) <= {"param_description_only", "tool_description"}
    ]
    assert rows
    assert not any(told(row) for row in rows)


# --- getsentry/json-schema-diff -------------------------------------------------------------------

# Its changes, and what we call them. One of ours may stand for several of theirs.
OURS = {
    "TypeAdd": {"type_widened", "type_changed", "union_branch_added", "const_changed"}
    | {"additional_properties_opened"},
    "TypeRemove": {"type_narrowed", "type_changed", "union_branch_removed", "const_changed"}
    | {"additional_properties_closed"},
    "ConstAdd": {"enum_imposed", "const_changed", "type_changed"},
    "ConstRemove": {"enum_lifted", "const_changed"},
    "EnumAdd": {"enum_added", "enum_imposed"},
    "EnumRemove": {"enum_removed", "enum_lifted"},
    "PropertyAdd": {"property_added"},
    "PropertyRemove": {"property_removed"},
    "RequiredAdd": {"required_added"},
    "RequiredRemove": {"required_removed"},
    "RangeAdd": {"bound_tightened"},
    "RangeRemove": {"bound_loosened"},
    "RangeChange": {"bound_tightened", "bound_loosened"},
    "MinLengthAdd": {"bound_tightened"},
    "MinLengthRemove": {"bound_loosened"},
    "MinLengthChange": {"bound_tightened", "bound_loosened"},
    "MaxLengthAdd": {"bound_tightened"},
    "MaxLengthRemove": {"bound_loosened"},
    "MaxLengthChange": {"bound_tightened", "bound_loosened"},
    "PatternAdd": {"pattern_added"},
    "PatternRemove": {"pattern_removed"},
    "PatternChange": {"pattern_changed"},
    "FormatAdd": {"format_added"},
    "FormatRemove": {"format_removed"},
    "FormatChange": {"format_changed"},
}

_ANY_TYPE = "without `type` any value is let through, so that an added `type: object` narrows"
_CONST = "a constant object is a value that is listed; its members are no declared properties"
DIFFERENT = {
    "any_of/any_of_with_constraint_to_type_2": "two alternatives of one type become a plain schema:"
    " the choice is told as lifted, and the bound as new beside it",
    "any_of/objects_1": _ANY_TYPE,
    "any_of/objects_2": _ANY_TYPE,
    "const/const_in_any_of_1": "`number` became the integer 1: the narrower type is told as well",
    "const/const_in_any_of_2": "the same; and the choice is told as lifted",
    "const/const_in_any_of_3": f"{_CONST}; and {_ANY_TYPE}",
    "const/const_in_properties": f"{_CONST}; and properties alone let other types through",
    "const/object_to_const_object": _CONST,
    "format/format_change": "draft-07 does not know the format `uuid`: one is added, none changed",
}


def fixtures() -> list[str]:
    return sorted(f"{path.parent.name}/{path.stem}" for path in PAIRS.glob("fixtures/*/*.json"))


def their_kinds(name) -> set[str]:
    snapshot = PAIRS / "snapshots" / f"test__from_fixtures@{name.replace('/', '__')}.json.snap"
    return set(re.findall(r"change: (\w+)", snapshot.read_text(encoding="utf-8")))


def our_kinds(name) -> set[str]:
    pair = json.loads((PAIRS / "fixtures" / f"{name}.json").read_text(encoding="utf-8"))
    old, new = (modern(pair[side], DRAFT_07) for side in ("lhs", "rhs"))
    found = changes(old, new, is_closed=False)
    return {each.kind.value for each in found if not each.is_prompt_facing}


def agrees(name) -> bool:
    theirs, ours = their_kinds(name), our_kinds(name)
    known = set[str]().union(*(OURS[kind] for kind in theirs))
    return ours <= known and all(OURS[kind] & ours for kind in theirs)


@with_pairs
def test_all_pairs_are_there():
    assert len(fixtures()) == 85
    assert DIFFERENT.keys() <= set(fixtures())


@with_pairs
@pytest.mark.parametrize("name", fixtures())
def test_kinds_agree_or_differ_for_a_reason(name):
    assert agrees(name) != (name in DIFFERENT), (their_kinds(name), our_kinds(name))


@with_pairs
def test_most_agree():
    counts = Counter(agrees(name) for name in fixtures())
    assert counts[True] >= 75
