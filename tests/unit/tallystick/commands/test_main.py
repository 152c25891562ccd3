"""How the command is called, and what it says of a wrong call. Nothing here imports a tool."""

import json

import pytest

from tallystick.commands.main import main

COMMANDS = ("check", "diff", "accept", "list", "show", "import", "push", "pull")
CONTRACT = {
    "name": "shop.search",
    "version": "1.2.0",
    "description": "Sucht \x1b[2J Größen.",
    "input_schema": {"type": "object"},
    "effect_class": "UNKNOWN",
    "capabilities": [],
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Stand in an empty project, with nothing in the environment that decides."""
    for name in ("TALLYSTICK_LOCKFILE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lockfile(folder):
    """Return a lockfile with one tool."""
    from tallystick.lockfile.entry import Entry, Lock
    from tallystick.lockfile.text import write_lock

    path = folder / "tallystick.lock"
    entry = Entry(CONTRACT, "2026-11-30T10:00:00Z", "shop:search")
    path.write_text(write_lock(Lock().with_entry(entry)), encoding="utf-8")
    return path


def test_it_says_its_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tallystick 0.")


@pytest.mark.parametrize("prog", ["tallystick", "registry lock"])
def test_help_names_every_command_by_its_own_name(prog, capsys):
    assert main(["--help"], prog=prog) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"usage: {prog} ")
    for command in COMMANDS:
        assert f"\n    {command} " in told


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    assert main([command, "--help"], prog="registry lock") == 0
    told = capsys.readouterr().out
    assert told.startswith(f"usage: registry lock {command} ")
    assert f"examples:\n  registry lock {command}" in told
    assert "--lockfile FILE" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["chekc"], "invalid choice: 'chekc'"),
        (["check", "--stric"], "unrecognized arguments: --stric"),
        (["show"], "the following arguments are required: TOOL"),
        (["check", "--format", "xml"], "invalid choice: 'xml'"),
    ],
)
def test_a_wrong_call_is_2(arguments, told, capsys):
    assert main(arguments) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert told in written.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check"], "There is no module to look at"),
        (["check", "shop", "--path", "nowhere"], "--path: there is no folder"),
        (["check", "no_such_module"], "There is no module no_such_module in"),
        (["check", "shop/tools.py"], "is a file: name the module, such as shop.tools."),
        (["check", "shop:tools"], "'shop:tools' is no name of a module"),
        (["check", ""], "'' is no name of a module"),
        (["check", "json"], "There is nothing to check: no tool is declared in json."),
        (["check", "--json", "--format", "sarif"], "exclude one another"),
        (["accept"], "Name the tools to accept, or give --all"),
        (["accept", "search", "--all"], "Name the tools to accept, or give --all"),
        (["diff", "-m", "no_such_module"], "There is no module no_such_module in"),
        (["import", "nowhere.lock", "-m", "shop"], "nowhere.lock cannot be read"),
        (["show", "search"], "There is no tool search."),
    ],
)
def test_what_cannot_work_is_2_and_one_sentence(arguments, told, capsys, restored_path):
    assert main(arguments) == 2
    written = capsys.readouterr()
    assert told in written.out + written.err
    if "--json" not in arguments:
        assert written.out == ""
        assert written.err.startswith("tallystick: ")
        assert written.err.count("\n") == 1


@pytest.fixture
def restored_path(monkeypatch):
    """Undo what importing code does to the search path."""
    import sys

    monkeypatch.setattr(sys, "path", list(sys.path))


def test_an_empty_lockfile_is_listed_as_such(folder, capsys):
    assert main(["list"]) == 0
    assert capsys.readouterr().out == f"{folder / 'tallystick.lock'} holds no tools.\n"
    assert main(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tools"] == []


def test_the_list_has_a_row_for_each_tool(lockfile, capsys):
    assert main(["list"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["TOOL", "VERSION"]
    name, version, effect_class, digits, accepted_at = row.split()
    assert (name, version, effect_class) == ("shop.search", "1.2.0", "UNKNOWN")
    assert accepted_at == "2026-11-30T10:00:00Z"

    assert main(["list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["lockfile"] == str(lockfile)
    assert told["tools"][0]["contract_digest"].startswith(f"sha256:{digits}")
    assert told["tools"][0]["source"] == "shop:search"


def test_a_contract_is_shown_as_it_is_and_moves_no_cursor(lockfile, capsys):
    assert main(["show", "search"]) == 0
    written = capsys.readouterr().out
    assert json.loads(written) == CONTRACT
    assert "\x1b" not in written


def test_the_environment_may_name_the_lockfile(lockfile, monkeypatch, capsys):
    lockfile.rename(lockfile.with_name("other.lock"))
    monkeypatch.setenv("TALLYSTICK_LOCKFILE", "other.lock")
    assert main(["show", "search"]) == 0
    monkeypatch.delenv("TALLYSTICK_LOCKFILE")
    assert main(["show", "search"]) == 2
    assert main(["show", "search", "--lockfile", "other.lock"]) == 0
