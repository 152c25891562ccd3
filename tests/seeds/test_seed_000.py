"""The promises of a lockfile for tools: the table of changes row by row, and what a user sees."""

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tallystick.lockfile.drift import Drift, drift_of
from tallystick.lockfile.entry import Entry, Level
from tallystick.signatures.document import document_of
from tallystick.signatures.terms import Terms
from tallystick.tool_contract import Contract

# --- the table of changes -------------------------------------------------------------------------


def search(query: str, max_results: int = 10) -> list[str]:
    """Search documents by query."""
    return [query] * max_results


def renamed(search_query: str, max_results: int = 10) -> list[str]:
    """Search documents by query."""
    return [search_query] * max_results


def required_removed(max_results: int = 10) -> list[str]:
    """Search documents by query."""
    return [""] * max_results


def required_of_another_type(query: int, max_results: int = 10) -> list[str]:
    """Search documents by query."""
    return [str(query)] * max_results


def optional_removed(query: str) -> list[str]:
    """Search documents by query."""
    return [query]


def made_required(query: str, max_results: int) -> list[str]:
    """Search documents by query."""
    return [query] * max_results


def optional_added(query: str, max_results: int = 10, offset: int = 0) -> list[str]:
    """Search documents by query."""
    return [query] * (max_results + offset)


def made_optional(query: str = "", max_results: int = 10) -> list[str]:
    """Search documents by query."""
    return [query] * max_results


def described_otherwise(query: str, max_results: int = 10) -> list[str]:
    """Find documents.

    Args:
        query: What they have to contain.
        max_results: How many are wanted.

    Returns:
        Their titles.
    """
    return [query] * max_results


def in_two_units(unit: Literal["celsius", "fahrenheit"]) -> str:
    """Tell the weather."""
    return unit


def in_one_unit(unit: Literal["celsius"]) -> str:
    """Tell the weather."""
    return unit


class Filter(BaseModel):
    """What holds of a document; filters hold filters, so that a proof has no end by itself."""

    extra: "bool | Filter | None" = None
    any: "list[Filter] | None" = None
    where: "dict[str, Filter] | None" = None
    items: "list[Any] | Filter | None" = None
    no: "Filter | None" = None
    yes: "Filter | None" = None


def filtered(filter: Filter) -> str:  # noqa: A002 -- a good name for it
    """Search documents."""
    return str(filter)


def filtered_and_explained(filter: Filter) -> str:  # noqa: A002
    """Search documents.

    Args:
        filter: What has to hold of them.
    """
    return str(filter)


def drift(old: Callable[..., Any], new: Callable[..., Any]) -> Drift:
    """Return what lies between a function that was accepted, and the one that is there now."""
    terms = Terms(name="search")
    accepted = Entry({**document_of(old, terms), "version": "1.0.0"}, "2026-11-30T10:00:00Z")
    return drift_of("search", accepted, document_of(new, terms))


@pytest.mark.parametrize(
    ("old", "new", "level", "version"),
    [
        (search, renamed, Level.BREAKING, "2.0.0"),
        (search, required_removed, Level.BREAKING, "2.0.0"),
        (search, required_of_another_type, Level.BREAKING, "2.0.0"),
        (search, optional_removed, Level.BREAKING, "2.0.0"),
        (search, made_required, Level.BREAKING, "2.0.0"),
        (in_two_units, in_one_unit, Level.BREAKING, "2.0.0"),
        (search, optional_added, Level.COMPATIBLE, "1.1.0"),
        (search, made_optional, Level.COMPATIBLE, "1.1.0"),
        (in_one_unit, in_two_units, Level.COMPATIBLE, "1.1.0"),
        (search, described_otherwise, Level.TEXT, "1.0.1"),
        (filtered, filtered_and_explained, Level.TEXT, "1.0.1"),
        (search, search, Level.UNCHANGED, "1.0.0"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_every_row_of_the_table(
    old: Callable[..., Any], new: Callable[..., Any], level: Level, version: str
):
    found = drift(old, new)
    assert found.level is level
    assert found.document is not None
    assert found.document["version"] == version


def test_a_call_of_the_old_schema_shows_what_breaks():
    found = drift(search, renamed)
    assert found.comparison is not None
    told: Any = found.comparison.to_json()
    assert told["old_calls"]["declared"]["verdict"] == "incompatible"
    witness = told["old_calls"]["declared"]["witness"]["value"]
    assert "query" in witness
    renames = [each for each in told["changes"] if each["kind"] == "renamed"]
    assert [each["path"] for each in renames] == ["/input_schema/properties/query"]


def test_the_structure_is_hashed_without_order_and_without_text():
    """Identical schemas have one hash; a changed docstring is another text, and no other schema."""
    document = {**document_of(search, Terms(name="search")), "version": "1.0.0"}
    text = json.dumps(document)
    turned = json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert list(turned) != list(document)
    contract = Contract.parse(document)
    assert Contract.parse(turned).contract_digest == contract.contract_digest
    rewritten = Contract.parse(
        {**document_of(described_otherwise, Terms(name="search")), "version": "1.0.0"}
    )
    assert rewritten.schema_hash == contract.schema_hash
    assert rewritten.prompt_hash != contract.prompt_hash


# --- what a user sees -----------------------------------------------------------------------------

TOOLS = '''
from typing import Literal

from tallystick import contract


@contract
def search(query: str, max_results: int = 10) -> list[str]:
    """Search documents by query."""
    return [query] * max_results


@contract
def get_weather(city: str, units: str = "celsius") -> dict[str, str]:
    """Get current weather for a city."""
    return {city: units}
'''
RENAMED = TOOLS.replace("query:", "search_query:").replace("[query]", "[search_query]")
WITH_OFFSET = TOOLS.replace("max_results: int = 10", "max_results: int = 10, offset: int = 0")


@dataclass(frozen=True)
class Project:
    """A folder of one module, `tools`, as a developer has it."""

    folder: Path

    @property
    def lockfile(self) -> Path:
        return self.folder / "tallystick.lock"

    def write(self, code: str) -> None:
        (self.folder / "tools.py").write_text(code)

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the folder, and not as in CI."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in ("CI", "NO_COLOR") and not name.startswith("TALLYSTICK_")
        }
        return subprocess.run(
            [sys.executable, "-B", *arguments],
            cwd=self.folder,
            env=inherited | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def imports(self, then: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return self.python("-W", "always", "-c", f"import tools\n{then}", **environment)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "tallystick", *arguments)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose tools are accepted."""
    (tmp_path / "pyproject.toml").touch()
    new = Project(tmp_path)
    new.write(TOOLS)
    done = new.imports()
    assert done.returncode == 0, done.stderr
    return new


def test_the_first_import_registers_and_the_next_ones_change_nothing(project: Project):
    written = project.lockfile.read_bytes()
    entries = json.loads(written)["tools"]
    assert set(entries) == {"tools.search", "tools.get_weather"}
    properties = entries["tools.search"]["contract"]["input_schema"]["properties"]
    assert list(properties) == ["max_results", "query"]
    assert project.imports().returncode == 0
    assert project.lockfile.read_bytes() == written


def test_a_renamed_parameter_stops_the_import_until_it_is_accepted(project: Project):
    accepted = project.lockfile.read_bytes()
    project.write(RENAMED)
    refused = project.imports("print('serving')")
    assert refused.returncode == 1
    assert refused.stdout == ""
    for told in ("ContractChanged", "tools.search", "query", "search_query", "tallystick accept"):
        assert told in refused.stderr
    assert project.lockfile.read_bytes() == accepted
    assert project.command("accept", "search").returncode == 0
    assert project.imports("print('serving')").stdout == "serving\n"


def test_check_exits_with_0_if_all_match_and_with_1_if_any_changed(project: Project):
    matching = project.command("check")
    assert matching.returncode == 0
    assert "tools.search" in matching.stdout
    assert "tools.get_weather" in matching.stdout
    project.write(RENAMED)
    differing = project.command("check")
    assert differing.returncode == 1
    lines = [line.lower() for line in differing.stdout.splitlines()]
    assert any("search" in line and "break" in line for line in lines)
    assert any("get_weather" in line and "unchanged" in line for line in lines)


def test_check_is_not_blind_to_what_nobody_imported_since(project: Project):
    """It reads the code itself; it needs no import that failed before."""
    project.write(WITH_OFFSET)
    assert project.command("check").returncode == 1


def test_diff_tells_of_all_or_of_one(project: Project):
    project.write(RENAMED.replace("units: str", "unit: str").replace("city: units", "city: unit"))
    everything = project.command("diff")
    assert everything.returncode == 0
    for told in ("search_query", "units"):
        assert told in everything.stdout
    one = project.command("diff", "get_weather")
    assert one.returncode == 0
    assert "units" in one.stdout
    assert "search_query" not in one.stdout


def test_accept_takes_one_or_all(project: Project):
    project.write(RENAMED.replace("units: str", "unit: str").replace("city: units", "city: unit"))
    assert project.command("accept", "get_weather").returncode == 0
    assert project.command("check", "--json").returncode == 1
    assert project.command("accept", "--all").returncode == 0
    assert project.command("check").returncode == 0
    assert project.imports().returncode == 0


def test_list_and_show(project: Project):
    listed = project.command("list")
    assert listed.returncode == 0
    for told in ("tools.search", "tools.get_weather", "1.0.0"):
        assert told in listed.stdout
    shown = project.command("show", "search")
    assert shown.returncode == 0
    contract = json.loads(shown.stdout)
    assert contract["name"] == "tools.search"
    assert contract["description"] == "Search documents by query."
    assert contract["input_schema"]["properties"]["query"] == {"type": "string"}
    assert contract["input_schema"]["required"] == ["query"]


def test_a_reviewer_sees_in_the_lockfile_what_changed(project: Project):
    """One line for each fact, so that a renamed parameter is its own lines in a pull request."""
    before = project.lockfile.read_text().splitlines()
    project.write(RENAMED)
    project.command("accept", "--all")
    after = project.lockfile.read_text().splitlines()
    changed = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
    assert any(line.startswith("-") and '"query"' in line for line in changed)
    assert any(line.startswith("+") and '"search_query"' in line for line in changed)
    assert not any("get_weather" in line or "celsius" in line for line in changed)


@pytest.mark.parametrize("mode", ["eager", "lazy"])
def test_a_changed_docstring_never_stops_anything(project: Project, mode: str):
    terms = f"@contract(mode={mode!r})"
    project.write(
        TOOLS.replace("@contract", terms).replace("Search documents by query.", "Find documents.")
    )
    done = project.imports("print(tools.search('a', 1))")
    assert (done.returncode, done.stdout, done.stderr) == (0, "['a']\n", "")
    assert project.command("check").returncode == 0


def test_breaking_only_warns_of_what_breaks_nobody(project: Project):
    project.write(WITH_OFFSET)
    assert project.imports().returncode == 1
    project.write(WITH_OFFSET.replace("@contract", "@contract(breaking_only=True)"))
    warned = project.imports("print('serving')")
    assert (warned.returncode, warned.stdout) == (0, "serving\n")
    assert "ContractChangedWarning" in warned.stderr
    assert "tools.search" in warned.stderr
    project.write(RENAMED.replace("@contract", "@contract(breaking_only=True)"))
    assert project.imports().returncode == 1


def test_a_lazy_tool_is_checked_at_its_first_call(project: Project):
    project.write(RENAMED.replace("@contract", "@contract(mode='lazy')"))
    done = project.imports(
        "import inspect\n"
        "print(*inspect.signature(tools.search).parameters)\n"
        "for _ in range(2):\n"
        "    try: tools.search('a')\n"
        "    except Exception as error: print(type(error).__name__)\n"
        "print(tools.get_weather('Graz'))"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "search_query max_results",
        "ContractChanged",
        "ContractChanged",
        "{'Graz': 'celsius'}",
    ]


def test_the_function_itself_comes_back(project: Project):
    """Nothing is called between a caller and the function."""
    project.write(TOOLS + "\ndef plain(a: str) -> str:\n    '''Echo.'''\n    return a\n")
    done = project.imports("print(tools.contract(tools.plain) is tools.plain)")
    assert (done.returncode, done.stdout) == (0, "True\n")


def test_a_lockfile_of_ones_own(project: Project):
    project.write(TOOLS.replace("@contract", "@contract(lockfile='locks/agent.lock')"))
    (project.folder / "locks").mkdir()
    before = project.lockfile.read_bytes()
    assert project.imports().returncode == 0
    own = project.folder / "locks" / "agent.lock"
    assert set(json.loads(own.read_text())["tools"]) == {"tools.search", "tools.get_weather"}
    assert project.lockfile.read_bytes() == before
    assert project.command("check", "--lockfile", str(own)).returncode == 0


def test_in_ci_nothing_is_registered_behind_anybodys_back(project: Project):
    before = project.lockfile.read_bytes()
    project.write(TOOLS + "\n@contract\ndef summarize(text: str) -> str:\n    '''Sum up.'''\n")
    refused = project.imports(CI="true")
    assert refused.returncode == 1
    assert "LockfileEntryMissing" in refused.stderr
    assert project.lockfile.read_bytes() == before
    assert project.command("check").returncode == 1
