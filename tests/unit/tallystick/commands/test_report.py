from pathlib import Path
from typing import Any

import pytest

from tallystick.commands.exit_code import ExitCode
from tallystick.commands.report import Report, Row, exit_code
from tallystick.lockfile.drift import drift_of
from tallystick.lockfile.entry import Entry, Level

LOCKFILE = Path("/shop/tallystick.lock")
DOCUMENT = {
    "name": "shop.search",
    "description": "Search.",
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
    "effect_class": "UNKNOWN",
    "capabilities": [],
}
RENAMED = {**DOCUMENT, "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}
ENTRY = Entry({**DOCUMENT, "version": "1.0.0"}, "2026-11-30T10:00:00Z", "shop:search")


def row(level, drift=None):
    return Row("shop.search", level, "shop:search", "/shop.py", 3, LOCKFILE, drift)


@pytest.mark.parametrize(
    ("level", "code", "strict_code"),
    [
        (None, ExitCode.DONE, ExitCode.DONE),
        (Level.UNCHANGED, ExitCode.DONE, ExitCode.DONE),
        (Level.TEXT, ExitCode.DONE, ExitCode.DIFFERS),
        (Level.COMPATIBLE, ExitCode.DIFFERS, ExitCode.DIFFERS),
        (Level.REVIEW, ExitCode.DIFFERS, ExitCode.DIFFERS),
        (Level.BREAKING, ExitCode.DIFFERS, ExitCode.DIFFERS),
        (Level.NEW, ExitCode.DIFFERS, ExitCode.DIFFERS),
        (Level.REMOVED, ExitCode.DIFFERS, ExitCode.DIFFERS),
    ],
)
def test_every_level_has_its_exit_code(level, code, strict_code):
    report = Report((row(Level.UNCHANGED), row(level)))
    assert exit_code(report) is code
    assert exit_code(report, strict=True) is strict_code
    assert report.to_json(strict=True)["matches"] is (strict_code is ExitCode.DONE)


@pytest.mark.parametrize(
    ("entry", "document", "versions"),
    [
        (ENTRY, DOCUMENT, ("1.0.0", "1.0.0")),
        (ENTRY, RENAMED, ("1.0.0", "2.0.0")),
        (None, DOCUMENT, (None, "1.0.0")),
        (ENTRY, None, ("1.0.0", None)),
    ],
)
def test_a_row_knows_the_step_of_its_version(entry, document, versions):
    drift = drift_of("shop.search", entry, document)
    found = row(drift.level, drift)
    assert (found.accepted_version, found.version) == versions
    told = found.to_json()
    assert (told["accepted_version"], told["version"]) == versions


def test_a_program_is_told_what_was_compared():
    drift = drift_of("shop.search", ENTRY, RENAMED)
    told: Any = row(drift.level, drift).to_json()
    assert told["level"] == "breaking"
    assert told["comparison"]["bump"] == "major"
    assert told["findings"] == []
    assert told["file"] == "/shop.py"
    assert told["line"] == 3


def test_a_program_is_told_what_was_not_checked():
    told = row(None).to_json()
    assert told["level"] == "not_checked"
    assert "comparison" not in told
    assert "findings" not in told
