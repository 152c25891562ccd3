"""How a command ends: 0 done, 1 refused, 2 wrong usage, 3 unreachable, 130 interrupted."""

import json
import os
import socket
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.hints import HINTS
from tallystick.errors import Outage, Refusal, error_for

REFUSALS = sorted({leaf.code for leaf in Refusal.__subclasses__()})
OUTAGES = sorted({leaf.code for leaf in Outage.__subclasses__()})


@pytest.mark.parametrize("code", [*REFUSALS, "a_code_of_tomorrow"])
def test_a_refusal_is_1(code, run, wire):
    wire.refuse("GET /v1/whoami", code)
    result = run("whoami")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"Error: This is {code}. [{code}]" in result.stderr


@pytest.mark.parametrize("code", OUTAGES)
def test_an_outage_is_3(code, run, wire):
    wire.refuse("GET /v1/whoami", code, status=503)
    assert run("whoami").exit_code == 3


@pytest.mark.parametrize("code", HINTS)
def test_a_hint_belongs_to_a_code_that_exists(code, run, wire):
    assert error_for(code).__name__ != "UnknownRefusal"
    wire.refuse("GET /v1/whoami", code)
    assert f"hint {HINTS[code]}" in run("whoami").stderr


def test_a_pointer_is_shown(run, wire):
    wire.refuse("GET /v1/whoami", "invalid_request", pointer="/capability")
    assert "at   /capability" in run("whoami").stderr


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_nobody_listening_is_3():
    url = f"http://127.0.0.1:{closed_port()}"
    environment = {"TALLYSTICK_TOKEN": "t", "TALLYSTICK_URL": None}
    result = CliRunner().invoke(app, ["list", "--url", url], env=environment)
    assert result.exit_code == 3
    assert f"The registry at {url} cannot be reached. [registry_unavailable]" in result.stderr


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>Hello</html>"),
        httpx.Response(200, json=["not", "an", "object"]),
        httpx.Response(302, headers={"Location": "http://elsewhere.test/"}),
        httpx.Response(502, text="Bad gateway"),
        httpx.Response(500, json={"message": "not a problem document"}),
    ],
)
def test_an_answer_of_no_registry_is_3(answer):
    result = CliRunner().invoke(
        app,
        ["list", "--url", "http://user:secret@registry.test"],
        env={"TALLYSTICK_TOKEN": "t"},
        obj=httpx.MockTransport(lambda _request: answer),
    )
    assert result.exit_code == 3
    assert f"http://registry.test answered {answer.status_code}" in result.stderr
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["no-such-command"], "No such command"),
        (["list", "--no-such-option"], "No such option"),
        (["list", "--state", "SLEEPING"], "SLEEPING"),
        (["show"], "Missing argument"),
        (["show", "billing.send_invoice"], "NAME@VERSION"),
        (["show", "@1.0"], "NAME@VERSION"),
        (["publish", "no-such-file.yaml"], "does not exist"),
        (["publish", "."], "is a directory"),
        (["publish", "FILE", "--reviewer", "ada"], "together"),
        (["retire", "billing.send_invoice@1.0", "--timeout", "1"], "--wait"),
        (["list", "--url", "ftp://registry.test"], "server"),
        (["list", "--url", "http://[registry"], "server"),
        (["effects", "list", "--limit", "0"], "--limit"),
        (["effects", "resolve", "an-id", "--to", "DISPATCHED"], "DISPATCHED"),
        (["serve", "--port", "99999"], "--port"),
        (["compare", "billing.send_invoice@1.0"], "Missing argument"),
        (["compare", "FILE", "no-such-file.yaml"], "NAME@VERSION"),
        (["compare", "FILE", "@1.0"], "NAME@VERSION"),
        (["compare", "FILE", "FILE", "--producer", "nobody"], "nobody"),
    ],
)
def test_wrong_usage_is_2_and_asks_nobody(arguments, complaint, run, wire, write_contract):
    result = run(*(each if each != "FILE" else write_contract() for each in arguments))
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stdout == ""
    assert wire.requests == []


def test_no_arguments_is_the_help():
    result = CliRunner().invoke(app, [])
    assert "publish" in result.output
    assert "Exit codes" in result.output


def test_ctrl_c_is_130_and_quiet():
    def interrupt(_request: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    result = CliRunner().invoke(
        app,
        ["list", "--url", "http://registry.test"],
        env={"TALLYSTICK_TOKEN": "t"},
        obj=httpx.MockTransport(interrupt),
    )
    assert result.exit_code == 130
    assert result.output.strip() == ""


def test_a_reader_that_has_gone_is_no_error_message():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cli", "version"],
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.stderr == b""


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_version(arguments, run):
    result = run(*arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith("tallystick ")
    assert json.loads(run("version", "--json").stdout)["version"] in result.stdout
