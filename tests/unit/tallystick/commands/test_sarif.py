import json
from pathlib import Path
from typing import Any

import pytest

from tallystick.commands.report import Report, Row
from tallystick.commands.sarif import log
from tallystick.lockfile.drift import drift_of
from tallystick.lockfile.entry import Entry, Level

ROOT = Path("/repository")
LOCKFILE = ROOT / "tallystick.lock"


def document(name="shop.search", *, parameter="query", **fields):
    return {
        "name": name,
        "description": "Search.",
        "input_schema": {
            "type": "object",
            "properties": {parameter: {"type": "string"}},
            "required": [parameter],
            "additionalProperties": False,
        },
        "effect_class": "UNKNOWN",
        "capabilities": [],
        **fields,
    }


def row(old, new, *, file="/repository/src/a b.py", line=7):
    name = (old or new)["name"]
    entry = old and Entry({**old, "version": "1.0.0"}, "2026-11-30T10:00:00Z", "shop:search")
    drift = drift_of(name, entry, new)
    place = (None, None) if new is None else (file, line)
    return Row(name, drift.level, "shop.tools:Shop.search", *place, LOCKFILE, drift)


SAME = row(document("shop.same"), document("shop.same"))
ROWS = {
    Level.BREAKING: row(document(), document(parameter="search_query")),
    Level.REMOVED: row(document("shop.removed"), None),
    Level.NEW: row(None, document("shop.added")),
    Level.REVIEW: row(
        document("shop.wide"), document("shop.wide", capabilities=["http:read:search"])
    ),
    Level.COMPATIBLE: row(
        document("shop.free"), document("shop.free", input_schema={"type": "object"})
    ),
    Level.TEXT: row(document("shop.told"), document("shop.told", title="Search")),
}


def run(*rows) -> Any:
    made: Any = log(Report(rows), ROOT, "1.2.3")
    (only,) = made["runs"]
    return only


def test_the_log_names_its_format_and_its_tool():
    made = log(Report((SAME,)), ROOT, "1.2.3")
    assert made["version"] == "2.1.0"
    assert str(made["$schema"]).endswith("/sarif-schema-2.1.0.json")
    assert run(SAME)["tool"]["driver"]["name"] == "Tallystick"
    assert run(SAME)["tool"]["driver"]["version"] == "1.2.3"
    assert run(SAME)["results"] == []


@pytest.mark.parametrize(
    ("level", "severity"),
    [
        (Level.BREAKING, "error"),
        (Level.REMOVED, "error"),
        (Level.NEW, "error"),
        (Level.REVIEW, "warning"),
        (Level.COMPATIBLE, "warning"),
        (Level.TEXT, "note"),
    ],
)
def test_every_level_has_a_rule_with_help(level, severity):
    assert ROWS[level].level is level
    made = run(SAME, ROWS[level])
    (result,) = made["results"]
    rule = made["tool"]["driver"]["rules"][result["ruleIndex"]]

    assert result["ruleId"] == rule["id"] == level.value
    assert result["level"] == rule["defaultConfiguration"]["level"] == severity
    assert rule["shortDescription"]["text"].endswith(".")
    assert "tallystick accept" in rule["help"]["text"]
    assert "tallystick accept" in rule["help"]["markdown"]


def test_the_gravest_results_come_first():
    made = run(*reversed(ROWS.values()))
    assert [each["ruleId"] for each in made["results"]] == [level.value for level in ROWS]


def test_a_result_says_where_what_and_what_to_do():
    (result,) = run(ROWS[Level.BREAKING])["results"]
    (location,) = result["locations"]

    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "src/a%20b.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "shop.tools.Shop.search"}]
    first, *_, last = result["message"]["text"].splitlines()
    assert first == "shop.search is not what tallystick.lock accepts: it breaks callers."
    assert last == "Accept it: tallystick accept shop.search"
    assert "A call that worked fails now" in result["message"]["text"]
    assert result["properties"]["failingCall"] == {"query": ""}
    assert result["properties"]["acceptedVersion"] == "1.0.0"
    assert result["properties"]["version"] == "2.0.0"
    assert result["properties"]["changes"]


def test_a_removed_tool_is_located_in_its_lockfile():
    (result,) = run(ROWS[Level.REMOVED])["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "tallystick.lock", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1},
    }


def test_a_file_outside_the_repository_has_a_whole_address():
    (result,) = run(row(None, document(), file="/elsewhere/shop.py"))["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///elsewhere/shop.py"}


def test_the_repository_may_lie_anywhere():
    assert str(ROOT) not in json.dumps(log(Report(tuple(ROWS.values())), ROOT, "1.2.3"))


def test_a_fingerprint_outlives_a_move_and_another_change():
    before = row(document(), document(parameter="q"))
    after = row(document(), document(parameter="words"), file="/repository/tools.py", line=99)
    other = row(document("shop.other"), document("shop.other", parameter="q"))
    found = [each["partialFingerprints"] for each in run(before, after, other)["results"]]
    assert found[0] == found[1] != found[2]


def test_the_same_report_gives_the_same_log():
    report = Report(tuple(ROWS.values()))
    assert json.dumps(log(report, ROOT, "1.2.3")) == json.dumps(log(report, ROOT, "1.2.3"))


def test_the_text_of_others_is_neither_placeholder_nor_link_nor_control():
    hostile = document(parameter="{0}\n[click](evil) \x1b[31m")
    (result,) = run(row(document(), hostile))["results"]
    text = result["message"]["text"]
    assert "{{0}}" in text
    assert "](" not in text
    assert all(line.isprintable() for line in text.splitlines())


def test_what_was_not_checked_is_a_notification():
    unseen = Row("far.tool", None, "far:tool", None, None, LOCKFILE, None)
    (invocation,) = run(SAME, unseen)["invocations"]
    (told,) = invocation["toolExecutionNotifications"]
    assert invocation["executionSuccessful"] is True
    assert told["level"] == "note"
    assert "far.tool" in told["message"]["text"]
    assert run(SAME)["invocations"][0]["toolExecutionNotifications"] == []
