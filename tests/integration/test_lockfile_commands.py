"""The story of somebody who declares tools: in a fresh folder, with the command as it is run."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SECONDS_MAX = 120
TOOLS = '''
from tallystick import contract


@contract
def search(query: str, max_results: int = 10) -> list[str]:
    """Search documents by query."""
    return [query] * max_results


@contract
def get_weather(city: str) -> str:
    """Get the current weather of a city."""
    return city
'''
RENAMED = ("query: str", "search_query: str"), ("[query]", "[search_query]")
REWORDED = (("Search documents by query.", "Find documents by their words."),)


@dataclass(frozen=True)
class Project:
    """A folder with a package `shop`, whose `tools.py` declares what a test writes."""

    folder: Path

    @property
    def lockfile(self) -> Path:
        return self.folder / "tallystick.lock"

    @property
    def tools(self) -> Path:
        return self.folder / "shop" / "tools.py"

    def edit(self, *replacements: tuple[str, str]) -> None:
        text = self.tools.read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        self.tools.write_text(text, encoding="utf-8")

    def write(self, path: str, text: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def python(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment(**variables),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "tallystick", *arguments, **variables)

    def imports(self, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.python("-c", "import shop.tools", **variables)


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without what would decide for a test."""
    decisive = ("CI", "NO_COLOR", "PYTHONPATH", "TERM")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in decisive and not name.startswith(("TALLYSTICK_", "GITHUB_"))
    }
    # An edit within the same second, to the same length, must not be hidden by a cached module.
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **variables}


def new_project(folder: Path) -> Project:
    made = Project(folder)
    made.write("pyproject.toml", '[project]\nname = "shop"\n')
    made.write("shop/__init__.py", "")
    made.write("shop/tools.py", TOOLS)
    return made


@pytest.fixture
def project(tmp_path) -> Project:
    """Return a project that nobody has run yet."""
    return new_project(tmp_path)


@pytest.fixture(scope="module")
def imported_once(tmp_path_factory) -> Project:
    """Return a project to copy: its tools were imported once, and so accepted."""
    made = new_project(tmp_path_factory.mktemp("imported"))
    first = made.imports()
    assert first.returncode == 0, first.stderr
    return made


@pytest.fixture
def accepted(imported_once, tmp_path) -> Project:
    """Return a project whose tools are accepted."""
    shutil.copytree(imported_once.folder, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)


def test_from_the_first_import_to_an_accepted_change(project):
    first = project.imports()
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    assert sorted(json.loads(project.lockfile.read_text())["tools"]) == [
        "shop.tools.get_weather",
        "shop.tools.search",
    ]
    assert project("check").returncode == 0

    project.edit(*RENAMED)
    before = project.lockfile.read_bytes()
    refused = project.imports()
    assert refused.returncode == 1
    assert "shop.tools.search is not what tallystick.lock accepts: it breaks callers" in (
        refused.stderr
    )
    assert "renamed to search_query" in refused.stderr
    assert "tallystick accept shop.tools.search" in refused.stderr

    check = project("check")
    assert check.returncode == 1
    assert "breaks callers" in check.stdout
    assert "1 of 2 tools is not what tallystick.lock accepts." in check.stdout
    assert f"shop{os.sep}tools.py:5" in check.stdout
    assert "tallystick accept shop.tools.search" in check.stdout

    diff = project("diff", "search")
    assert diff.returncode == 0
    assert "A call that worked with 1.0.0 and fails with 2.0.0:" in diff.stdout
    assert project.lockfile.read_bytes() == before

    accept = project("accept", "search")
    assert (accept.returncode, accept.stderr) == (0, "")
    assert accept.stdout.split() == ["accepted", "shop.tools.search", "1.0.0", "->", "2.0.0"]
    assert project("check").returncode == 0
    assert project.imports().returncode == 0
    assert '"search_query"' in project("show", "search").stdout


def test_a_docstring_that_changes_is_told_and_fails_nothing(accepted):
    accepted.edit(*REWORDED)
    assert accepted.imports().returncode == 0

    check = accepted("check")
    assert check.returncode == 0
    assert "changes in text alone" in check.stdout
    assert "1.0.0 -> 1.0.1" in check.stdout
    assert "2 tools are what tallystick.lock accepts." in check.stdout

    assert accepted("check", "--strict").returncode == 1


def test_a_check_writes_nothing(project):
    check = project("check", "shop.tools")

    assert check.returncode == 1
    assert "is not accepted yet" in check.stdout
    assert "2 of 2 tools are not what tallystick.lock accepts." in check.stdout
    assert not project.lockfile.exists()
    assert not (project.folder / ".tallystick").exists()


def test_new_tools_are_accepted_and_removed_ones_go(accepted):
    accepted.edit(("def get_weather(", "def get_forecast("))

    check = accepted("check")
    assert check.returncode == 1
    assert "is not accepted yet" in check.stdout
    assert "is no longer declared by the code" in check.stdout
    assert "tallystick accept --all" in check.stdout

    accept = accepted("accept", "--all")
    assert accept.returncode == 0
    assert [line.split()[:2] for line in accept.stdout.splitlines()] == [
        ["added", "shop.tools.get_forecast"],
        ["removed", "shop.tools.get_weather"],
    ]
    assert accepted("check").returncode == 0
    again = accepted("accept", "--all")
    assert again.stdout == "Nothing to accept: the code matches the lockfile.\n"


def test_the_installed_command_is_the_same(accepted):
    command = Path(sys.executable).with_name("tallystick")
    if not command.exists():
        pytest.skip("the script `tallystick` is not installed beside this Python")
    run = subprocess.run(
        [command, "check"],
        cwd=accepted.folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "2 tools are what tallystick.lock accepts." in run.stdout


# --- where the code is ----------------------------------------------------------------------------


def test_a_new_module_is_found_by_the_project_settings(accepted):
    accepted.write("more/elsewhere.py", TOOLS.replace("search", "look_up"))
    accepted.write(
        "pyproject.toml", '[tool.tallystick]\nmodules = ["elsewhere"]\npath = ["more"]\n'
    )

    report = json.loads(accepted("check", "--json").stdout)

    # What the lockfile names is looked at too: a tool must not get lost by the settings.
    assert {row["name"]: row["level"] for row in report["tools"]} == {
        "elsewhere.get_weather": "new",
        "elsewhere.look_up": "new",
        "shop.tools.get_weather": "unchanged",
        "shop.tools.search": "unchanged",
    }


def test_code_below_src_is_found_from_a_folder_below(accepted):
    (accepted.folder / "src").mkdir()
    (accepted.folder / "shop").rename(accepted.folder / "src" / "shop")
    below = accepted.folder / "docs" / "guide"
    below.mkdir(parents=True)

    assert Project(below)("check").returncode == 0


def test_a_module_that_is_gone_takes_its_tools_along(accepted):
    accepted.write("shop/other.py", TOOLS.replace("search", "look_up"))
    assert accepted("accept", "--all", "-m", "shop.other").returncode == 0
    (accepted.folder / "shop" / "other.py").unlink()

    check = accepted("check")

    assert check.returncode == 1
    assert "Not found: shop.other" in check.stdout
    assert "2 of 4 tools are not what tallystick.lock accepts." in check.stdout
    assert accepted("accept", "--all").returncode == 0
    assert accepted("check").returncode == 0


def test_from_the_wrong_place_nothing_is_thrown_away(accepted, tmp_path_factory):
    moved = tmp_path_factory.mktemp("elsewhere") / "tallystick.lock"
    moved.write_bytes(accepted.lockfile.read_bytes())
    before = moved.read_bytes()
    wrong = Project(moved.parent)

    refused = wrong("accept", "--all")
    assert refused.returncode == 2
    assert "--path" in refused.stderr
    assert moved.read_bytes() == before

    found = wrong("check", "--path", str(accepted.folder), "--lockfile", "tallystick.lock")
    assert found.returncode == 0


def test_what_was_not_imported_is_said(accepted):
    accepted.write("shop/other.py", TOOLS.replace("get_weather", "look_up"))
    assert accepted("accept", "--all", "-m", "shop.other").returncode == 0

    check = accepted("check", "shop.other")

    assert check.returncode == 0
    assert "was not checked" in check.stdout
    assert "2 tools were not checked" in check.stdout
    refused = accepted("accept", "shop.tools.search", "-m", "shop.other")
    assert refused.returncode == 2
    assert "name its module with -m" in refused.stderr


def test_another_lockfile_can_be_asked(accepted):
    other = accepted.folder / "main.lock"
    other.write_bytes(accepted.lockfile.read_bytes())
    accepted.edit(*RENAMED)
    assert accepted("accept", "search").returncode == 0

    assert accepted("check").returncode == 0
    assert accepted("check", "--lockfile", "main.lock").returncode == 1


def test_what_a_module_prints_is_no_part_of_the_answer(accepted):
    accepted.write("shop/tools.py", f"print('loading')\n{TOOLS}")
    check = accepted("check", "--json")
    assert json.loads(check.stdout)["matches"] is True
    assert "loading" in check.stderr


# --- what can be wrong ----------------------------------------------------------------------------

WHOLE = '{\n  "tallystick_lock": 1,\n  "tools": {}\n}\n'


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not JSON"),
        (b"not json", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8"),
        (b'{"tallystick_lock": 2, "tools": []}', "was written by a newer Tallystick"),
        (b'{"tools": {}}', "does not have the shape of a lockfile"),
        (b"<<<<<<< ours\n" + WHOLE.encode(), "has a merge marker in line 1"),
        (b'{"_toolpact": "1", "functions": {}}', "is a lockfile of toolpact"),
    ],
)
@pytest.mark.parametrize("command", [["check", "shop.tools"], ["accept", "--all"], ["list"]])
def test_a_damaged_lockfile_is_2_and_stays_as_it_is(project, content, told, command):
    project.lockfile.write_bytes(content)

    run = project(*command)

    assert run.returncode == 2
    assert run.stdout == ""
    assert told in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert project.lockfile.read_bytes() == content


def test_an_edit_by_hand_is_found_and_accepting_mends_it(accepted):
    text = accepted.lockfile.read_text()
    accepted.lockfile.write_text(text.replace("Search documents", "Seek documents"))

    check = accepted("check")
    assert check.returncode == 2
    assert "tallystick accept shop.tools.search" in check.stderr
    # Accepting another tool must not make the edit look accepted.
    assert accepted("accept", "get_weather").returncode == 0
    assert accepted("check").returncode == 2

    assert accepted("accept", "search").returncode == 0
    assert accepted("check").returncode == 0


def test_hashes_that_do_not_fit_are_repaired(accepted):
    lock = json.loads(accepted.lockfile.read_text())
    lock["tools"]["shop.tools.search"]["schema_hash"] = f"sha256:{'0' * 64}"
    accepted.lockfile.write_text(json.dumps(lock))

    assert accepted("check").returncode == 2
    accept = accepted("accept", "--all")
    assert accept.stdout.split() == ["repaired", "shop.tools.search", "1.0.0"]
    assert accepted("check").returncode == 0


def test_a_lockfile_in_a_folder_that_cannot_be_written(accepted):
    accepted.edit(*RENAMED)
    before = accepted.lockfile.read_bytes()
    guard = accepted.folder / ".tallystick"
    for file in guard.iterdir():
        file.unlink()
    guard.rmdir()
    # A file where the guard's folder should be holds for root too, unlike a read-only folder.
    guard.write_text("")

    refused = accepted("accept", "search")

    assert refused.returncode == 2
    assert "tallystick.lock cannot be written" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert accepted.lockfile.read_bytes() == before


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("import shop.missing\n", "tools.py:1: ModuleNotFoundError: No module named"),
        ("\n1 / 0\n", "tools.py:2: ZeroDivisionError: division by zero"),
        ("def broken(:\n", "tools.py:1: SyntaxError: invalid syntax"),
        ("raise SystemExit(0)\n", "tools.py:1: it ends the process"),
        ("from tallystick import contract\n@contract\ndef f(x): pass\n", "docstring"),
    ],
)
def test_a_module_that_fails_is_2_with_its_place(accepted, fault, told):
    before = accepted.lockfile.read_bytes()
    accepted.tools.write_text(fault)

    for command in (["check"], ["accept", "--all"]):
        run = accepted(*command)
        assert run.returncode == 2
        assert run.stdout == ""
        assert told in run.stderr
        assert len(run.stderr.splitlines()) == 1
    assert accepted.lockfile.read_bytes() == before


def test_all_of_a_failure_is_shown_on_request(accepted):
    accepted.tools.write_text("def fail():\n    raise ValueError('no')\n\nfail()\n")
    run = accepted("check", "--traceback")
    assert run.returncode == 2
    assert "Traceback (most recent call last)" in run.stderr
    assert run.stderr.splitlines()[-1].startswith("tallystick: shop.tools cannot be imported")


@pytest.mark.parametrize("command", ["show", "diff", "accept"])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("serch", "There is no tool serch. Do you mean shop.tools.search?"),
        ("zzz", "There is no tool zzz. There are: shop.tools.get_weather, shop.tools.search."),
    ],
)
def test_an_unknown_tool_is_2_and_names_the_nearest(accepted, command, given, told):
    run = accepted(command, given)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"tallystick: {told}\n"


def test_an_error_for_programs_is_json_too(accepted):
    run = accepted("show", "serch", "--json")
    assert run.returncode == 2
    assert json.loads(run.stdout)["code"] == "tool_not_declared"


# --- from toolpact --------------------------------------------------------------------------------


def toolpact_lock(**functions: dict) -> str:
    entries = {
        name: {
            "accepted_at": "2026-07-12T10:00:00Z",
            "breaking": False,
            "hash": "sha256:a3f9b2c1d4e5f678",
            "schema": {"name": name, "description": "", "parameters": parameters},
        }
        for name, parameters in functions.items()
    }
    return json.dumps({"_toolpact": "1", "functions": entries})


def test_a_toolpact_lockfile_is_taken_over(project):
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    old_search = {
        "type": "object",
        "properties": {"words": {"type": "string"}},
        "required": ["words"],
    }
    project.write("toolpact.lock", toolpact_lock(get_weather=city, search=old_search, gone=city))

    run = project("import", "toolpact.lock", "-m", "shop.tools")

    assert run.returncode == 1
    assert [line.split()[:3] for line in run.stdout.splitlines()] == [
        ["imported", "get_weather", "shop.tools.get_weather"],
        ["imported", "search", "shop.tools.search"],
        ["left", "out", "gone"],
    ]
    levels = {
        row["name"]: row["level"] for row in json.loads(project("check", "--json").stdout)["tools"]
    }
    assert levels == {"shop.tools.get_weather": "unchanged", "shop.tools.search": "breaking"}
    assert "2026-07-12T10:00:00Z" in project("list").stdout

    again = project("import", "toolpact.lock")
    assert again.returncode == 1
    assert "shop.tools.search is accepted already" in again.stdout


@pytest.mark.parametrize("content", ["{}", "nothing", WHOLE])
def test_what_is_no_toolpact_lockfile_is_refused(project, content):
    project.write("toolpact.lock", content)
    run = project("import", "toolpact.lock", "-m", "shop.tools")
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1
    assert not project.lockfile.exists()


# --- for programs and terminals -------------------------------------------------------------------


def test_formats_for_pipelines(accepted):
    accepted.edit(*RENAMED)
    summary = accepted.folder / "summary.md"

    github = accepted("check", "--format", "github", GITHUB_STEP_SUMMARY=str(summary))
    assert github.returncode == 1
    assert "::error file=shop/tools.py,line=5" in github.stdout
    assert "shop.tools.search" in summary.read_text()

    sarif = accepted("check", "--format", "sarif", "--output", "out.sarif")
    assert (sarif.returncode, sarif.stdout) == (1, "")
    assert json.loads((accepted.folder / "out.sarif").read_text())["version"] == "2.1.0"


def test_a_reader_that_goes_away_is_no_defect(accepted):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stdout:
        run = subprocess.run(
            [sys.executable, "-m", "tallystick", "list"],
            cwd=accepted.folder,
            env=environment(),
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    assert (run.returncode, run.stderr) == (1, "")


def test_an_interrupt_is_130(accepted):
    accepted.tools.write_text(
        f"import os\nos.kill(os.getpid(), {int(signal.SIGINT)})\nwhile True:\n    pass\n"
    )
    run = accepted("check")
    assert (run.returncode, run.stderr) == (130, "")


def on_terminal(project: Project, *arguments: str, **variables: str) -> str:
    """Run the command with a terminal for stdout, and return what it wrote."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        run = subprocess.Popen(
            [sys.executable, "-m", "tallystick", *arguments],
            cwd=project.folder,
            env=environment(**variables),
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        written = b""
        try:
            while part := terminal.read(4096):
                written += part
        except OSError:
            pass  # Linux says so when the other side is closed.
        run.wait(SECONDS_MAX)
    return written.decode()


def test_colour_is_for_terminals_that_want_it(accepted):
    accepted.edit(*RENAMED)
    assert "\x1b[" in on_terminal(accepted, "check", TERM="xterm")
    assert "\x1b[" not in on_terminal(accepted, "check", TERM="xterm", NO_COLOR="1")
    assert "\x1b[" not in accepted("check").stdout


def test_a_text_of_others_moves_no_cursor(accepted):
    accepted.edit(("Search documents by query.", "Search \\x1b[2J\\u202e documents."))
    for command in (["check"], ["diff"]):
        written = accepted(*command).stdout
        assert "\x1b" not in written
        assert "\u202e" not in written


def test_the_readme_shows_what_the_command_says(project: Project):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    _, _, section = readme.partition("## Contracts from code\n")
    _, code, rest = section.split("```", 2)
    _, _, told = rest.partition("$ tallystick check shop.tools\n")
    shown = set(told.partition("```")[0].splitlines())
    project.tools.write_text(code.removeprefix("python\n"), encoding="utf-8")
    assert project.imports().returncode == 0
    project.edit(RENAMED[0])
    checked = project("check", "shop.tools")
    assert len(shown) > 6
    assert shown - {"..."} <= set(checked.stdout.splitlines())
