import json
import re
from pathlib import Path

import pytest

from tallystick.commands.github import annotations, summary
from tallystick.commands.markup import ANNOTATIONS_MAX, SUMMARY_BYTES_MAX
from tallystick.commands.report import Report, Row
from tallystick.lockfile.drift import drift_of
from tallystick.lockfile.entry import Entry

ROOT = Path("/repository")
LOCKFILE = ROOT / "tallystick.lock"
HOSTILE = "a|b www.c.d`c\r\n::error::<!-- </td> ](x) ```\n# d & \x1b[31m \u202e %0A_e_"


def document(name="shop.search", *, parameters=("query",), description="Search.", **fields):
    return {
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": {each: {"type": "string"} for each in parameters},
            "required": [*parameters],
            "additionalProperties": False,
        },
        "effect_class": "UNKNOWN",
        "capabilities": [],
        **fields,
    }


def row(old, new, *, file="/repository/src/shop.py", line=7):
    """Return the row of a tool whose contract was the one document and is the other."""
    name = (old or new)["name"]
    entry = old and Entry({**old, "version": "1.0.0"}, "2026-11-30T10:00:00Z", f"shop:{name}")
    drift = drift_of(name, entry, new)
    if new is None:
        file = line = None
    return Row(name, drift.level, "shop.tools:search", file, line, LOCKFILE, drift)


def unchecked(name):
    return Row(name, None, "other:tool", None, None, LOCKFILE, None)


def renamed(name="shop.search", to="search_query"):
    return row(document(name), document(name, parameters=(to,)))


SAME = row(document("shop.same"), document("shop.same"))
REDESCRIBED = row(document("shop.told"), document("shop.told", description="Search it all."))
WIDENED = row(document("shop.wide"), document("shop.wide", capabilities=["http:read:search"]))
ADDED = row(None, document("shop.added"))
REMOVED = row(document("shop.removed"), None)


def parsed(command: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as GitHub's runner does."""
    found = re.fullmatch(r"::([a-z]+)(?: ([^\r\n]*?))?::([^\r\n]*)", command)
    assert found, command
    kind, given, message = found.groups()
    properties = dict(each.split("=", 1) for each in given.split(",")) if given else {}
    return kind, {name: unescaped(each) for name, each in properties.items()}, unescaped(message)


def unescaped(text: str) -> str:
    for code in ("%0D", "%0A", "%3A", "%2C", "%25"):
        text = text.replace(code, chr(int(code[1:], 16)))
    return text


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


# --- annotations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (renamed(), "error"),
        (ADDED, "error"),
        (REMOVED, "error"),
        (WIDENED, "warning"),
        (row(document(), document(title="Search")), "notice"),
    ],
)
def test_each_level_has_its_kind(found, kind):
    (line,) = annotations(Report((SAME, found)), ROOT)
    assert parsed(line)[0] == kind


def test_an_annotation_says_where_what_and_what_to_do():
    (line,) = annotations(Report((renamed(),)), ROOT)
    _, properties, message = parsed(line)

    assert properties == {
        "file": "src/shop.py",
        "line": "7",
        "title": "shop.search breaks callers",
    }
    assert message.startswith("shop.search is not what tallystick.lock accepts: it breaks callers.")
    assert "search_query" in message
    assert '{"query": ""}' in message
    assert message.endswith("Accept it: tallystick accept shop.search")


def test_a_new_tool_is_accepted_by_its_module():
    (line,) = annotations(Report((ADDED,)), ROOT)
    assert line.endswith("tallystick accept shop.added -m shop.tools")


def test_a_removed_tool_is_shown_at_its_lockfile():
    (line,) = annotations(Report((REMOVED,)), ROOT)
    assert parsed(line)[1] == {
        "file": "tallystick.lock",
        "title": "shop.removed is no longer declared by the code",
    }


def test_a_file_outside_the_repository_keeps_its_path():
    outside = row(document(), document(parameters=("other",)), file="/elsewhere/a,b:c.py")
    (line,) = annotations(Report((outside,)), ROOT)
    assert "file=/elsewhere/a%2Cb%3Ac.py,line=7," in line
    assert parsed(line)[1]["file"] == "/elsewhere/a,b:c.py"


def test_a_path_may_be_as_odd_as_a_file_system_lets_it_be():
    name = "100%0A\r\n::error::,b.py"
    odd = row(document(), document(parameters=("other",)), file=f"{ROOT}/{name}")
    (line,) = annotations(Report((odd,)), ROOT)
    assert parsed(line)[1]["file"] == name


def test_no_text_ends_a_command_or_begins_another():
    hostile = document(parameters=(HOSTILE,), description=HOSTILE)
    lines = annotations(Report((row(document(), hostile), row(hostile, document()))), ROOT)
    assert len(lines) == 2
    for line in lines:
        assert line.isprintable()
        kind, properties, _ = parsed(line)
        assert (kind, properties["line"]) == ("error", "7")


def test_the_gravest_come_first():
    lines = annotations(Report((REDESCRIBED, WIDENED, ADDED, REMOVED, renamed())), ROOT)
    assert [parsed(line)[1]["title"].split()[0] for line in lines] == [
        "shop.search",
        "shop.removed",
        "shop.added",
        "shop.wide",
        "shop.told",
    ]


def test_of_too_many_the_last_says_how_many_more():
    added = [row(None, document(f"shop.added{index}")) for index in range(ANNOTATIONS_MAX + 5)]
    lines = annotations(Report((*added, WIDENED, renamed())), ROOT)
    errors = [line for line in lines if line.startswith("::error")]

    assert len(errors) == ANNOTATIONS_MAX
    assert parsed(errors[0])[1]["title"] == "shop.search breaks callers"
    assert parsed(errors[-1])[2].startswith("7 more like these")
    assert lines[ANNOTATIONS_MAX:] == annotations(Report((WIDENED,)), ROOT)


def test_just_as_many_as_github_shows_are_all_shown():
    added = [row(None, document(f"shop.added{index}")) for index in range(ANNOTATIONS_MAX)]
    lines = annotations(Report(tuple(added)), ROOT)
    assert [line for line in lines if "more like these" in line] == []
    assert len(lines) == ANNOTATIONS_MAX


def test_what_was_not_checked_is_said():
    assert annotations(Report((SAME, unchecked("far.tool"))), ROOT) == [
        "::notice::Not checked, since the module was not imported: far.tool"
    ]
    (line,) = annotations(Report(tuple(unchecked(f"far.tool{index}") for index in range(30))), ROOT)
    assert line.endswith(" and 10 more")


def test_nothing_is_said_of_what_matches():
    assert annotations(Report((SAME,)), ROOT) == []


# --- the summary of the job -----------------------------------------------------------------------


def test_the_summary_tells_tool_change_call_and_cure():
    lines = summary(Report((SAME, REDESCRIBED, renamed()))).splitlines()

    assert "2 of 3 tools differ from what the lockfile accepts." in lines
    start = lines.index("| Tool | What | Version |")
    assert [cells(line) for line in lines[start + 2 : start + 4]] == [
        ["<code>shop.search</code>", "breaks callers", "1.0.0 → 2.0.0"],
        ["<code>shop.told</code>", "changes in text alone, and breaks nobody", "1.0.0 → 1.0.1"],
    ]
    block = lines.index("```json")
    end = lines.index("```", block)
    assert json.loads("\n".join(lines[block + 1 : end])) == {"query": ""}
    assert "tallystick accept shop.search" in lines


def test_the_summary_of_what_matches_is_short():
    assert summary(Report((SAME,))).splitlines() == [
        "### Tool contracts",
        "",
        "1 tool is what the lockfile accepts.",
    ]


def test_the_summary_says_what_was_not_checked():
    assert "since the module was not imported&#58; far.tool" in summary(
        Report((SAME, unchecked("far.tool")))
    )


def test_the_summary_says_what_a_person_has_to_judge():
    text = summary(Report((WIDENED,)))
    assert (
        "For a person to judge:\n\n- A call may touch more&#58; http&#58;read&#58;search." in text
    )


def test_a_stated_version_that_is_too_low_is_told():
    stated = document(parameters=("other",), version="1.0.1")
    assert "this change asks for 2.0.0 or higher" in summary(Report((row(document(), stated),)))


def test_no_text_breaks_out_of_its_cell_or_block():
    tame, wild = document(parameters=("plain",)), document(parameters=(HOSTILE,))
    text = summary(Report((row(tame, wild), row(wild, tame))))
    lines = text.splitlines()

    assert all(each.isprintable() for each in lines)
    outside, fence = [], None
    for line in lines:
        if fence is None and line.startswith("```"):
            fence = re.match("`+", line)[0]  # pyright: ignore[reportOptionalSubscript]
        elif line == fence:
            fence = None
        elif fence is None:
            outside.append(line)
    assert fence is None
    assert not re.search(r"<(?!/?code>)|[`_]|\]\(|www\.", "\n".join(outside))
    assert {line.count("|") for line in outside if line.startswith("|")} == {4}
    assert {line for line in outside if line.startswith("#")} == {
        "### Tool contracts",
        "#### <code>shop.search</code> breaks callers",
    }


def test_a_call_is_shown_as_json_that_holds_nothing_unseen():
    wild = document(parameters=(HOSTILE,))
    text = summary(Report((row(wild, document()),)))
    fence, content = re.findall(r"^(`{4,})json\n(.*?)\n\1$", text, flags=re.DOTALL | re.MULTILINE)[
        0
    ]
    assert len(fence) > 3
    assert json.loads(content) == {HOSTILE: ""}


def test_a_call_that_is_too_long_is_counted_instead():
    long = document()
    long["input_schema"]["properties"]["query"]["minLength"] = 5000
    text = summary(Report((row(long, document(parameters=("other",))),)))
    assert "```json" not in text
    assert re.search(r"It has \d+ characters: `tallystick diff` shows it", text)


def test_a_summary_that_is_too_long_is_cut_with_a_word():
    # The letter takes two bytes: bytes are counted, not characters.
    many = [row(None, document(f"shop.added{index:05}")) for index in range(6000)]
    wide = [row(document(), document(parameters=[f"{'é' * 200}{i}" for i in range(50)]))] * 100
    for rows in (many, wide):
        text = summary(Report(tuple(rows)))
        assert SUMMARY_BYTES_MAX * 0.9 < len(text.encode()) <= SUMMARY_BYTES_MAX
        assert text.endswith("`tallystick check` tells all of it.\n")


def test_many_changes_of_one_tool_are_counted():
    text = summary(Report((row(document(), document(parameters=[f"p{i}" for i in range(70)])),)))
    assert re.search(r"^\.\.\. and \d+ more$", text, flags=re.MULTILINE)
