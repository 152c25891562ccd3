"""Where a command goes, and with which token."""

import socket

import pytest

ME = {"tenant": "default", "principal": "admin", "roles": ["admin"]}


def test_the_token_of_the_environment_is_sent(run, wire):
    wire.answer("GET /v1/whoami", ME)
    assert run("whoami").exit_code == 0
    assert wire.requests[0].headers["Authorization"] == "Bearer the-token-of-a-test"


def test_an_option_is_stronger_than_the_environment(run, wire):
    wire.answer("GET /prefix/v1/whoami", ME)
    run("whoami", "--url", "https://other.test/prefix/")
    assert str(wire.requests[0].url) == "https://other.test/prefix/v1/whoami"


def test_elsewhere_a_token_must_be_given(run, wire):
    result = run("whoami", env={"TALLYSTICK_TOKEN": None})
    assert result.exit_code == 1
    assert "TALLYSTICK_TOKEN is not set. [unauthenticated]" in result.stderr
    assert wire.requests == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_on_this_machine_the_admin_token_is_found(host, run, wire, tmp_path):
    (tmp_path / "admin-token").write_text("admin-secret\n", encoding="ascii")
    wire.answer("GET /v1/whoami", ME)
    given = ["--url", f"http://{host}:1", "--home", str(tmp_path)]
    result = run("whoami", *given, env={"TALLYSTICK_TOKEN": None})
    assert result.exit_code == 0
    assert wire.requests[0].headers["Authorization"] == "Bearer admin-secret"
    assert "admin-secret" not in result.output


def test_the_admin_token_never_leaves_this_machine(run, wire, tmp_path):
    (tmp_path / "admin-token").write_text("admin-secret\n", encoding="ascii")
    result = run("whoami", "--home", str(tmp_path), env={"TALLYSTICK_TOKEN": None})
    assert result.exit_code == 1
    assert wire.requests == []


def test_a_missing_admin_token_is_named_by_its_file(run, tmp_path):
    given = ["--url", "http://127.0.0.1:1", "--home", str(tmp_path)]
    result = run("whoami", *given, env={"TALLYSTICK_TOKEN": None})
    assert result.exit_code == 1
    assert str(tmp_path / "admin-token") in result.stderr


def test_a_segment_of_a_path_is_quoted(run, wire):
    wire.refuse("GET /v1/effects/../whoami", "not_found", status=404)
    assert run("effects", "show", "../whoami").exit_code == 1
    assert wire.requests[0].url.raw_path == b"/v1/effects/..%2Fwhoami"


SECRET = "hunter2"
IN_PROCESS = [["list"], ["init"], ["reconcile"], ["publish", "FILE"]]


@pytest.mark.parametrize("arguments", IN_PROCESS)
def test_a_database_that_does_not_answer_is_3(arguments, run, tmp_path, write_contract):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound, and not listening
        database = f"postgresql://ada:{SECRET}@127.0.0.1:{bound.getsockname()[1]}/ledger"
        environment = {"TALLYSTICK_URL": None, "DATABASE_URL": database}
        given = [each if each != "FILE" else write_contract() for each in arguments]
        result = run(*given, "--home", str(tmp_path), env=environment)
    assert result.exit_code == 3
    assert (
        "Error: The database cannot be reached or prepared. [registry_unavailable]" in result.stderr
    )
    assert SECRET not in result.output


@pytest.mark.parametrize("arguments", [["list"], ["init"], ["serve"], ["reconcile"]])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", f"postgresql://ada:{SECRET}@[/"),
        ("DATABASE_URL", f"{SECRET} is no database"),
        ("TALLYSTICK_PORT", SECRET),
    ],
)
def test_a_setting_that_cannot_be_one_is_2(name, value, arguments, run, tmp_path):
    environment = {"TALLYSTICK_URL": None, name: value}
    result = run(*arguments, "--home", str(tmp_path), env=environment)
    assert result.exit_code == 2
    assert name in result.stderr
    assert SECRET not in result.output


@pytest.mark.parametrize("arguments", [["list"], ["init"], ["reconcile"]])
def test_a_home_that_cannot_be_made_is_3(arguments, run, tmp_path):
    (tmp_path / "file").touch()
    home = tmp_path / "file" / "home"
    result = run(*arguments, "--home", str(home), env={"TALLYSTICK_URL": None})
    assert result.exit_code == 3
    assert "The service cannot start" in result.stderr
