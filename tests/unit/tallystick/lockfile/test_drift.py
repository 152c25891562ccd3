"""What lies between an accepted contract and the code's, and the version that it asks for."""

import json
import subprocess
import sys

import pytest

from tallystick.errors import InvalidContract, LockfileInvalid
from tallystick.lockfile.drift import Drift, drift_of
from tallystick.lockfile.entry import Level
from tests.unit.tallystick.lockfile.tools import SEARCH, a_document, an_entry, taking

TEXT = {"type": "string"}
RENAMED = (taking({"query": TEXT}, "query"), taking({"search_query": TEXT}, "search_query"))
NEW_DEFAULT = tuple(taking({"limit": {"type": "integer", "default": each}}) for each in (10, 20))
EXTENDED = (taking({"query": TEXT}), taking({"query": TEXT, "language": TEXT}))
REWORDED = (SEARCH, a_document(description="Find things."))
RECLASSED = (SEARCH, a_document(effect_class="PURE"))


def drift(old: dict, new: dict) -> Drift:
    return drift_of("shop.tools.search", an_entry(old), new)


# --- the ends of the scale ------------------------------------------------------------------------


def test_same_contract_is_unchanged_in_whatever_order_it_is_written():
    shuffled = dict(reversed(SEARCH.items()))
    found = drift(SEARCH, shuffled)
    assert (found.level, found.comparison, found.findings) == (Level.UNCHANGED, None, ())
    assert found.document == {**SEARCH, "version": "1.0.0"}


def test_equal_numbers_are_unchanged():
    old, new = (taking({"limit": {"type": "number", "default": each}}) for each in (1, 1.0))
    assert drift(old, new).level is Level.UNCHANGED


def test_what_python_takes_for_equal_and_json_does_not_is_a_change():
    old, new = (taking({"on": {"default": {"of": [1, each]}}}) for each in (0, False))
    assert drift(old, new).level is Level.REVIEW


def test_tool_without_an_entry_is_new():
    found = drift_of("shop.tools.search", None, SEARCH)
    assert (found.level, found.entry, found.comparison) == (Level.NEW, None, None)
    assert found.document == {**SEARCH, "version": "1.0.0"}
    assert drift_of("shop.tools.search", None, a_document(version="3.1")).document == {
        **SEARCH,
        "version": "3.1.0",
    }


def test_entry_without_code_is_removed():
    entry = an_entry()
    found = drift_of(entry.name, entry, None)
    assert (found.level, found.entry, found.document) == (Level.REMOVED, entry, None)


# --- versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepted", "pair", "version"),
    [
        ("1.0.0", RENAMED, "2.0.0"),
        ("1.2.3", NEW_DEFAULT, "2.0.0"),
        ("1.2.3", EXTENDED, "1.3.0"),
        ("1.2.3", REWORDED, "1.2.4"),
        ("0.9.0", RECLASSED, "1.0.0"),
    ],
)
def test_version_rises_as_the_change_asks_for(accepted, pair, version):
    old, new = pair
    found = drift_of("shop.tools.search", an_entry(old, accepted), new)
    assert found.document is not None
    assert found.document["version"] == version
    assert found.comparison is not None
    assert str(found.comparison.new.version) == version
    assert found.findings == ()


@pytest.mark.parametrize(
    ("stated", "pair", "needed"),
    [
        ("1.0.0", RENAMED, "2.0.0"),
        ("1.9.0", RENAMED, "2.0.0"),
        ("1.0", EXTENDED, "1.1.0"),
        ("1.0.0", REWORDED, "1.0.1"),
        ("0.9.0", (SEARCH, SEARCH), "1.0.0"),
    ],
)
def test_stated_version_that_is_too_low_is_found_and_kept(stated, pair, needed):
    old, new = pair
    found = drift(old, {**new, "version": stated})
    assert found.document is not None
    assert found.document["version"] == (stated if stated.count(".") > 1 else f"{stated}.0")
    (finding,) = found.findings
    assert finding.to_json() == {
        "code": "version_too_low",
        "path": "/version",
        "detail": f"The code states version {found.document['version']}; this change asks for"
        f" {needed} or higher.",
    }


@pytest.mark.parametrize("stated", ["2.0.0", "2.1", "7.0.0"])
def test_stated_version_that_is_high_enough_is_taken(stated):
    old, new = RENAMED
    assert drift(old, {**new, "version": stated}).findings == ()


def test_only_a_higher_version_is_a_text():
    found = drift(SEARCH, a_document(version="1.1"))
    assert (found.level, found.findings) == (Level.TEXT, ())
    assert found.document is not None
    assert found.document["version"] == "1.1.0"


@pytest.mark.parametrize("stated", ["1.0", "1.0.0", None])
def test_version_that_is_accepted_is_unchanged(stated):
    document = SEARCH if stated is None else a_document(version=stated)
    assert drift(SEARCH, document).level is Level.UNCHANGED


# --- bad input ------------------------------------------------------------------------------------


def test_code_that_is_no_contract_is_refused_as_such():
    with pytest.raises(InvalidContract) as caught:
        drift(SEARCH, a_document(effect_class="SAFE"))
    assert caught.value.pointer == "/effect_class"
    with pytest.raises(InvalidContract):
        drift(SEARCH, a_document(version="one"))


def test_entry_that_is_no_contract_is_the_lockfiles_fault():
    with pytest.raises(LockfileInvalid) as caught:
        drift(a_document(effect_class="SAFE"), SEARCH)
    assert str(caught.value).startswith(
        "the lockfile's contract of shop.tools.search is not valid (effect_class: "
    )
    assert str(caught.value).endswith("): restore the file from version control.")


# --- what an import pays --------------------------------------------------------------------------


def test_unchanged_tool_loads_nothing_heavy():
    program = f"""
import sys
from tallystick.lockfile.drift import drift_of
from tallystick.lockfile.entry import Entry
from tallystick.lockfile.location import lockfile_for
from tallystick.lockfile.storage import read
import json
document = json.loads({json.dumps(SEARCH)!r})
assert drift_of("a", Entry({{**document, "version": "1.0.0"}}, ""), document).level == "unchanged"
print([each for each in sys.modules if each.split(".")[0] in {{
    "pydantic", "filelock", "jsonschema_rs", "rfc8785", "httpx", "docstring_parser"
}} or each.startswith(("tallystick.compatibility", "tallystick.tool_contract"))])
"""
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    assert said.stdout == "[]\n"
