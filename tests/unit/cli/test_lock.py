"""`registry lock` is the library's own command, on the way to the service that `registry` has."""

import json
import socket

import httpx
import pytest
from typer.testing import CliRunner

from cli.app import app
from tallystick.lockfile.entry import EMPTY, Entry
from tallystick.lockfile.text import write_lock
from tallystick.tool_contract import Contract

CONTRACT = Contract.of(
    name="shop.search",
    version="1.0.0",
    description="Searches the shop.",
    input_schema={"type": "object"},
    capabilities=["shop:read:{tenant}"],
    effect_class="PURE",
)
PUBLISHED = {
    "state": "ACTIVE",
    "suspended": False,
    "document": dict(CONTRACT.document),
    "reference": CONTRACT.reference(credential_version=0, tenant="t").to_json(),
    "published": True,
    "equivalent_to": ["0.9.0"],
    "warnings": [{"code": "accepts_nothing", "path": "/", "detail": "No call\x1b[2J is valid."}],
}


@pytest.fixture(autouse=True)
def lockfile(tmp_path, monkeypatch):
    """A working folder with a lockfile that holds one tool."""
    monkeypatch.delenv("TALLYSTICK_LOCKFILE", raising=False)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tallystick.lock"
    entry = Entry(CONTRACT.document, "2026-01-02T03:04:05Z")
    file.write_text(write_lock(EMPTY.with_entry(entry)), encoding="utf-8")
    return file


def test_it_stands_among_the_commands_for_contracts(run):
    lines = run("--help").stdout.splitlines()
    panel = next(number for number, line in enumerate(lines) if "─ Contracts ─" in line)
    end = next(number for number, line in enumerate(lines) if number > panel and "╰─" in line)
    assert [line for line in lines[panel:end] if line.startswith("│ lock ")]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_its_help_is_that_of_the_library(run, arguments):
    result = run("lock", *arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith("usage: registry lock [-h]")
    for name in ("check", "diff", "accept", "list", "show", "import", "push", "pull"):
        assert f"\n    {name} " in result.stdout
    assert "tallystick check" not in result.stdout


@pytest.mark.parametrize("name", ["check", "push", "pull"])
def test_so_is_the_help_of_its_commands(run, name):
    result = run("lock", name, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"usage: registry lock {name} [-h]")


def test_arguments_are_handed_on_as_they_are(run, lockfile):
    other = lockfile.with_name("other.lock")
    lockfile.rename(other)
    given = ["lock", "show", "--lockfile", "other.lock", "--", "search"]
    assert json.loads(run(*given).stdout) == CONTRACT.document
    # An option that `registry` commands have too is the library's, once its command is named.
    elsewhere = run("lock", "list", "--url", "http://elsewhere.test")
    assert elsewhere.exit_code == 2
    assert "unrecognized arguments: --url" in elsewhere.stderr


@pytest.mark.parametrize("arguments", [["lock", "list", "--json"], ["lock", "--json", "list"]])
def test_json_may_be_asked_for_on_either_side_of_the_command(run, arguments):
    [tool] = json.loads(run(*arguments).stdout)["tools"]
    assert (tool["name"], tool["version"]) == ("shop.search", "1.0.0")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list"], 0),
        (["show", "nothing"], 2),
        (["no-such-command"], 2),
        (["list", "--no-such-option"], 2),
        ([], 2),
    ],
)
def test_its_exit_code_is_that_of_the_library(run, wire, arguments, code):
    result = run("lock", *arguments)
    assert result.exit_code == code
    assert ("registry lock" in result.stderr) == (code != 0)
    assert wire.requests == []


def test_what_needs_no_registry_needs_no_token(run):
    environment = {"TALLYSTICK_TOKEN": None, "TALLYSTICK_URL": None}
    assert run("lock", "list", env=environment).exit_code == 0


def test_push_goes_the_way_of_registry(run, wire):
    wire.answer("POST /v1/contracts", PUBLISHED, status=201)
    result = run("lock", "push")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "published  shop.search@1.0.0",
        "    It is proven to mean the same as 0.9.0.",
        "    Warning: No call\\x1b[2J is valid.",
    ]
    assert wire.sent() == [("POST /v1/contracts", {"document": dict(CONTRACT.document)})]
    [request] = wire.requests
    assert request.headers["Authorization"] == "Bearer the-token-of-a-test"
    assert str(request.url) == "http://registry.test/v1/contracts"


def test_a_url_may_be_given_as_to_every_command(run, wire):
    wire.answer("POST /prefix/v1/contracts", PUBLISHED)
    assert run("lock", "--url", "https://other.test/prefix/", "push").exit_code == 0
    assert str(wire.requests[0].url) == "https://other.test/prefix/v1/contracts"


def test_a_refusal_is_1(lockfile):
    problem = json.dumps({"code": "forbidden", "detail": "Only an admin publishes."})
    answer = httpx.Response(
        403, content=problem, headers={"Content-Type": "application/problem+json"}
    )
    result = CliRunner().invoke(
        app,
        ["lock", "push"],
        env={"TALLYSTICK_TOKEN": "t", "TALLYSTICK_URL": "http://registry.test"},
        obj=httpx.MockTransport(lambda _request: answer),
    )
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "refused  shop.search@1.0.0",
        "    Only an admin publishes. [forbidden]",
    ]


@pytest.mark.parametrize("command", ["push", "pull"])
def test_nobody_listening_is_3(command, lockfile):
    before = lockfile.read_bytes()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound, and not listening
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        environment = {"TALLYSTICK_TOKEN": "t", "TALLYSTICK_URL": url}
        result = CliRunner().invoke(app, ["lock", command], env=environment)
    assert result.exit_code == 3
    assert url in result.output
    assert lockfile.read_bytes() == before


@pytest.mark.parametrize("command", ["push", "pull"])
def test_elsewhere_a_token_must_be_given(run, wire, command):
    result = run("lock", command, env={"TALLYSTICK_TOKEN": None})
    assert result.exit_code == 1
    assert "TALLYSTICK_TOKEN is not set." in result.stderr
    assert wire.requests == []


def test_on_this_machine_the_admin_token_is_found(run, wire, tmp_path):
    (tmp_path / "admin-token").write_text("admin-secret\n", encoding="ascii")
    wire.answer("POST /v1/contracts", PUBLISHED)
    environment = {
        "TALLYSTICK_HOME": str(tmp_path),
        "TALLYSTICK_TOKEN": None,
        "TALLYSTICK_URL": "http://127.0.0.1:1",
    }
    result = run("lock", "push", env=environment)
    assert result.exit_code == 0
    assert wire.requests[0].headers["Authorization"] == "Bearer admin-secret"
    assert "admin-secret" not in result.output


@pytest.mark.parametrize("url", ["registry.test", "http://[registry.test", "ftp://registry.test"])
def test_a_url_that_cannot_be_one_is_2(run, url):
    result = run("lock", "push", env={"TALLYSTICK_URL": url})
    assert result.exit_code == 2
    assert "TALLYSTICK_URL" in result.stderr
