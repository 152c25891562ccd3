"""What others run of this repository: the GitHub Action and the pre-commit hook, as they are.

The Action's script is run by bash as GitHub runs it, in a project of its own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.tidy.rules import ROOT

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not on PATH; the Action runs in it")

TOOL = '''
import tallystick


@tallystick.contract
def search({parameter}: str) -> list[str]:
    """Search documents by their words."""
    return [{parameter}]
'''


# What the machine says of lockfiles is not meant for these projects.
ENVIRONMENT = {name: each for name, each in os.environ.items() if "TALLYSTICK" not in name}


def read_yaml(name: str):
    return YAML(typ="safe", pure=True).load((ROOT / name).read_text(encoding="utf-8"))


@cache
def action() -> dict:
    return read_yaml("action.yml")


def step() -> dict:
    (only,) = action()["runs"]["steps"]
    return only


def tallystick(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tallystick", *arguments],
        cwd=cwd,
        env={**ENVIRONMENT, "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )


def unknown_options(script: str, help_text: str) -> set[str]:
    """Return the options that a script gives to `tallystick check` and that its help has not."""
    used = set(re.findall(r"(?<=[\s(])--[a-z][a-z-]+", script))
    return used - set(re.findall(r"--[a-z][a-z-]+", help_text))


# --- as written -----------------------------------------------------------------------------------


def test_the_action_has_what_github_asks_for():
    assert {"name", "description", "inputs", "outputs", "runs"} <= action().keys()
    assert action()["runs"]["using"] == "composite"
    assert all(each["description"] and "default" in each for each in action()["inputs"].values())
    assert step()["shell"] == "bash"


def test_every_input_is_used_and_every_used_one_declared():
    used = {
        name: re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value)
        for name, value in step()["env"].items()
    }
    assert all(used.values())
    assert {found[1] for found in used.values() if found} == action()["inputs"].keys()
    assert {name for name in used if f"${name}" not in step()["run"]} == set()


def test_no_expression_stands_in_the_script():
    assert "${{" not in step()["run"]


def test_neither_names_a_place_to_download_from():
    for name in ("action.yml", ".pre-commit-hooks.yaml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"://|index-url|find-links", text)


def test_the_options_of_the_action_are_those_of_the_command():
    shown = tallystick("check", "--help", cwd=ROOT).stdout
    assert unknown_options(step()["run"], shown) == set()


def test_an_unknown_option_is_seen():
    assert unknown_options("check --formt=x (--path y)", "--format --path") == {"--formt"}


def test_the_hook_runs_a_command_that_exists():
    scripts = tomllib.loads((ROOT / "sdk/pyproject.toml").read_text(encoding="utf-8"))["project"][
        "scripts"
    ]
    (hook,) = read_yaml(".pre-commit-hooks.yaml")
    program, command = hook["entry"].split()

    assert program in scripts
    assert tallystick(command, "--help", cwd=ROOT).returncode == 0
    # The modules need the project's environment, and files' names are no names of modules.
    assert (hook["language"], hook["pass_filenames"]) == ("system", False)


# --- as run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One run of the Action's step: how it ended, and what it left for GitHub."""

    code: int
    log: str
    output: str
    summary: str


@dataclass(frozen=True)
class Project:
    """A repository with one tool, which its lockfile accepts."""

    folder: Path
    github: Path

    def declare(self, parameter: str) -> None:
        (self.folder / "shop.py").write_text(TOOL.format(parameter=parameter), encoding="utf-8")

    def run(self, **inputs: str) -> Run:
        """Run the step with some inputs given, and the others as they are by default."""
        assert BASH is not None
        given = {"python": sys.executable} | {
            name.replace("_", "-"): value for name, value in inputs.items()
        }
        assert given.keys() <= action()["inputs"].keys()
        values = {name: each["default"] for name, each in action()["inputs"].items()} | given
        output, summary = self.github / "output", self.github / "summary"
        for file in (output, summary):
            file.write_bytes(b"")
        run = subprocess.run(
            [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", step()["run"]],
            cwd=self.folder,
            env={
                **ENVIRONMENT,
                "CI": "true",
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(summary),
                "GITHUB_WORKSPACE": str(self.folder),
                **{name: values[value.split()[1][7:]] for name, value in step()["env"].items()},
            },
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )
        return Run(
            run.returncode,
            run.stdout + run.stderr,
            output.read_text(encoding="utf-8"),
            summary.read_text(encoding="utf-8"),
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project", tmp_path / "github")
    made.folder.mkdir()
    made.github.mkdir()
    (made.folder / "pyproject.toml").write_text(
        '[tool.tallystick]\nmodules = ["shop"]\n', encoding="utf-8"
    )
    made.declare("query")
    accepted = tallystick("accept", "--all", cwd=made.folder)
    assert accepted.returncode == 0, accepted.stderr
    return made


@needs_bash
def test_a_tool_that_matches_passes(project: Project):
    run = project.run()
    assert run.code == 0, run.log
    assert run.output == "exit-code=0\n"
    assert "::error" not in run.log


@needs_bash
def test_a_renamed_parameter_fails_and_is_shown_at_its_line(project: Project):
    project.declare("search_query")
    lockfile = (project.folder / "tallystick.lock").read_bytes()

    run = project.run(sarif_file="findings.sarif")

    assert run.code == 1, run.log
    assert run.output == "exit-code=1\n"
    assert re.search(r"^::error file=shop\.py,line=\d+,", run.log, flags=re.MULTILINE)
    assert "tallystick accept shop.search" in run.summary
    sarif = json.loads((project.folder / "findings.sarif").read_text(encoding="utf-8"))
    (result,) = sarif["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "shop.py"
    assert (project.folder / "tallystick.lock").read_bytes() == lockfile


@needs_bash
def test_strict_fails_for_text_alone(project: Project):
    source = project.folder / "shop.py"
    text = source.read_text(encoding="utf-8").replace("by their words", "by their meaning")
    source.write_text(text, encoding="utf-8")

    assert project.run().code == 0
    assert project.run(strict="true").code == 1


@needs_bash
def test_what_cannot_be_told_is_no_pass(project: Project):
    (project.folder / "shop.py").write_text("import no_such_module_anywhere\n", encoding="utf-8")
    for inputs in ({}, {"sarif_file": "findings.sarif"}):
        run = project.run(**inputs)
        assert run.code == 2, run.log
        assert run.output == "exit-code=2\n"
        assert "no_such_module_anywhere" in run.log


@needs_bash
def test_modules_folders_and_a_lockfile_can_be_given(project: Project):
    nested = project.folder / "a folder"
    nested.mkdir()
    for name in ("shop.py", "tallystick.lock"):
        (project.folder / name).rename(nested / name)
    (project.folder / "pyproject.toml").unlink()

    given = {"lockfile": "a folder/tallystick.lock", "path": "\na folder\n"}
    assert project.run(modules="  shop\n", **given).code == 0
    assert project.run(modules="shop\n  warehouse", **given).code == 2


@needs_bash
def test_inputs_are_data(project: Project):
    hostile = "$(touch pwned) `touch pwned` ; touch pwned"
    for name in ("modules", "lockfile", "path", "sarif_file", "strict"):
        project.run(**{name: hostile})
        assert not (project.folder / "pwned").exists()


@needs_bash
@pytest.mark.parametrize(
    ("is_there", "installs"), [(True, []), (False, [f"-m pip install {ROOT.as_posix()}/sdk"])]
)
def test_it_installs_only_what_is_not_there(project: Project, is_there: bool, installs: list[str]):
    log = project.github / "calls"
    python = project.github / "python"
    python.write_text(
        f"""#!/bin/sh
echo "$*" >> '{log}'
case "$1 $2" in
    "-c import tallystick"*) exit {0 if is_there else 1} ;;
    "-m pip") exit 0 ;;
esac
exec '{sys.executable}' "$@"
""",
        encoding="utf-8",
    )
    python.chmod(0o755)

    assert project.run(python=str(python)).code == 0
    calls = log.read_text(encoding="utf-8").splitlines()
    assert [each for each in calls if "pip" in each] == installs
