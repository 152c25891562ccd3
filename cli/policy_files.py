"""Policies as files: check them, try them, run a command under one. Nothing here asks a service."""

import os
import shlex
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from cli import policy_file_views as views
from cli import policy_github as github
from cli.command import NOWHERE, ExitCode, Invocation, command
from cli.connection import JsonObject
from tallystick.canonical import Json, MalformedJson, parse_json
from tallystick.document import DOCUMENT_BYTES_MAX
from tallystick.errors import InvalidPolicy, InvalidPolicyTable, TooLarge

if TYPE_CHECKING:
    from tallystick.policy import Policy

app = typer.Typer()

_PANEL: Final = "Policies as files, without a service"


class Written(StrEnum):
    """How an answer is written."""

    TEXT = "text"
    GITHUB = "github"


PolicyFile = Annotated[
    Path, typer.Argument(metavar="POLICY", exists=True, dir_okay=False, help="A policy file.")
]
FormatOption = Annotated[
    Written,
    typer.Option(
        "--format",
        help="github adds annotations of lines (lint, test), or a summary of the job (test, run, "
        "replay).",
    ),
]


# --- checking -------------------------------------------------------------------------------------


@app.command(rich_help_panel=_PANEL)
@command(NOWHERE)
def lint(
    invocation: Invocation,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", exists=True, dir_okay=False, help="Policies.")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Let a warning fail it, too.")] = False,
    written: FormatOption = Written.TEXT,
) -> int:
    """Tell every fault of policy files, and what in them can hardly be meant, with its line."""
    _check_format(invocation, written)
    told = [_linted(file) for file in files]
    findings = [finding for each in told for finding in each["findings"]]
    errors = sum(finding["severity"] == "error" for finding in findings)
    answer: JsonObject = {"files": told, "errors": errors, "warnings": len(findings) - errors}
    invocation.show(answer, github.lint if written is Written.GITHUB else views.lint)
    is_refused = errors or (strict and findings)
    return ExitCode.REFUSED if is_refused else ExitCode.DONE


@app.command("test", rich_help_panel=_PANEL)
@command(NOWHERE)
def try_cases(
    invocation: Invocation,
    policy: PolicyFile,
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", exists=True, dir_okay=False, help="Cases, in YAML.")
    ],
    written: FormatOption = Written.TEXT,
) -> int:
    """Ask a policy about a table of calls, and tell where it says something else than expected."""
    from tallystick.policy.table import read_cases
    from tallystick.policy.table import run as run_cases

    _check_format(invocation, written)
    judged = _policy(policy)
    try:
        with _named(table):
            expected = read_cases(_text(table), judged)
    except InvalidPolicyTable as refusal:
        if written is Written.GITHUB:
            invocation.show({"files": [_faults(table, refusal)]}, github.faults)
        raise
    results = run_cases(judged, expected)
    failed = sum(not each.passed for each in results)
    answer: JsonObject = {
        "policy": judged.id,
        "digest": judged.digest,
        "file": str(policy),
        "table": str(table),
        "passed": len(results) - failed,
        "failed": failed,
        "cases": [each.to_json() for each in results],
    }
    invocation.show(answer, github.cases if written is Written.GITHUB else views.cases)
    _summarise(written, github.cases_summary, answer)
    return ExitCode.REFUSED if failed else ExitCode.DONE


@app.command(rich_help_panel=_PANEL)
@command(NOWHERE)
def explain(
    invocation: Invocation,
    policy: PolicyFile,
    tool: Annotated[str, typer.Option(metavar="NAME", help="The tool that is to be called.")],
    arguments: Annotated[
        str, typer.Option(metavar="JSON|@FILE", help="Its arguments, a JSON object.")
    ] = "{}",
    history: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="What had happened, as a case of `test` has it."
        ),
    ] = None,
) -> int:
    """Say for one call which rule decides, and what each rule found. Ends with 1 if it may not run.

    It shows values of arguments and facts, which no model is told.
    """
    from tallystick.policy import Call, History, decide
    from tallystick.policy.table import read_history

    judged = _policy(policy)
    call = Call(tool, _arguments(arguments))
    before = History()
    if history is not None:
        with _named(history):
            before = read_history(_text(history), judged)
    verdict = decide(judged, call, before)
    answer: JsonObject = {
        "policy": judged.id,
        "digest": judged.digest,
        "tool": tool,
        "arguments": dict(call.arguments),
        "decision": verdict.decision.value,
        "rule": verdict.rule,
        "code": verdict.code,
        "message": verdict.message,
        "findings": [finding.to_json() for finding in verdict.findings],
    }
    invocation.show(answer, views.explanation)
    return ExitCode.DONE if answer["decision"] == "allow" else ExitCode.REFUSED


def _linted(file: Path) -> JsonObject:
    from tallystick.policy.lint import lint as lint_policy

    try:
        policy = _policy(file)
    except InvalidPolicy as refusal:
        return _faults(file, refusal)
    found = [finding.to_json() for finding in lint_policy(policy)]
    return {"file": str(file), "policy": policy.id, "findings": found}


def _faults(file: Path, refusal: InvalidPolicy | InvalidPolicyTable) -> JsonObject:
    faults = cast("list[JsonObject]", refusal.facts["faults"])
    findings = [{"code": refusal.code, "severity": "error", **fault} for fault in faults]
    return {"file": str(file), "policy": None, "findings": findings}


def _arguments(given: str) -> dict[str, Json]:
    text = given
    if given.startswith("@"):
        text = _text(Path(given[1:]))
    try:
        value = parse_json(text)
    except MalformedJson as fault:
        raise typer.BadParameter(f"--arguments: {fault}.") from None
    if not isinstance(value, dict):
        raise typer.BadParameter("--arguments takes a JSON object.")
    return value


# --- running --------------------------------------------------------------------------------------


@app.command(rich_help_panel=_PANEL)
@command(NOWHERE)
def run(
    invocation: Invocation,
    policy: PolicyFile,
    runner_cmd: Annotated[
        str, typer.Option(metavar="COMMAND", help="What to run, without a shell.")
    ],
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=86_400, help="How long it may take.")
    ] = 300,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Keep the trace here.")
    ] = None,
    written: FormatOption = Written.TEXT,
) -> int:
    """Run a command whose `PolicyRuntime` is held to a policy: PASS, FAIL or NEEDS HUMAN.

    The command finds the policy in TALLYSTICK_POLICY, and writes its trace to TALLYSTICK_TRACE.
    What it prints goes to stderr. Ends with 0 only if every call ran.
    """
    from cli.policy_run import judge, read_trace
    from cli.runner import run_command

    _check_format(invocation, written)
    judged = _policy(policy)
    arguments = _command(runner_cmd)
    with _trace_file(record) as trace:
        environment = {
            **os.environ,
            "TALLYSTICK_POLICY": str(policy.resolve()),
            "TALLYSTICK_TRACE": str(trace),
        }
        ended = run_command(arguments, environment, timeout_seconds=timeout)
        calls, fault = read_trace(trace)
    answer = judge(judged, calls, ended, fault)
    invocation.show(answer, views.run)
    _summarise(written, github.run_summary, answer)
    return ExitCode.DONE if answer["verdict"] == "pass" else ExitCode.REFUSED


@app.command(rich_help_panel=_PANEL)
@command(NOWHERE)
def replay(
    invocation: Invocation,
    policy: PolicyFile,
    trace: Annotated[
        Path,
        typer.Argument(metavar="TRACE", exists=True, dir_okay=False, help="As --record has it."),
    ],
    written: FormatOption = Written.TEXT,
) -> int:
    """Judge the calls of a recorded run again, under another policy. Nothing runs.

    Ends with 1 if a decision is another one now, or if the record does not tell what it is.
    """
    from cli.policy_run import read_trace, replayed

    _check_format(invocation, written)
    judged = _policy(policy)
    calls, fault = read_trace(trace)
    if fault is not None:
        raise fault
    answer = replayed(judged, calls)
    invocation.show(answer, views.replay)
    _summarise(written, github.replay_summary, answer)
    return ExitCode.REFUSED if answer["changed"] or answer["unknown"] else ExitCode.DONE


def _command(text: str) -> list[str]:
    try:
        arguments = shlex.split(text)
    except ValueError as fault:
        raise typer.BadParameter(f"--runner-cmd: {fault}.") from None
    if not arguments:
        raise typer.BadParameter("--runner-cmd names no program.")
    return arguments


@contextmanager
def _trace_file(record: Path | None) -> Generator[Path]:
    if record is None:
        with tempfile.TemporaryDirectory(prefix="tallystick-") as folder:
            yield Path(folder) / "trace.jsonl"
        return
    try:
        record.write_bytes(b"")
    except OSError as fault:
        raise typer.BadParameter(f"{record} cannot be written: {fault.strerror}.") from fault
    yield record.resolve()


# --- presets --------------------------------------------------------------------------------------


@app.command(rich_help_panel=_PANEL)
@command(NOWHERE)
def presets(invocation: Invocation) -> None:
    """List the policies that one can start from."""
    from tallystick.policy import Policy, presets

    policies = {name: Policy.parse(presets.text(name)) for name in presets.names()}
    answer: JsonObject = {
        "presets": [
            {"preset": name, "title": policy.title, "tools": sorted(policy.tools)}
            for name, policy in policies.items()
        ]
    }
    invocation.show(answer, views.presets)


@app.command(rich_help_panel=_PANEL)
@command(NOWHERE)
def init(
    invocation: Invocation,
    preset: Annotated[str, typer.Argument(help="As `registry policy presets` lists them.")],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Write it here, with its cases beside it."
        ),
    ] = None,
) -> None:
    """Show a policy to start from, or write it to a file, with a table of cases that it passes."""
    from tallystick.policy import presets

    if preset not in presets.names():
        raise typer.BadParameter(f"The presets are {', '.join(presets.names())}.")
    policy, cases = presets.text(preset), presets.cases(preset)
    answer: JsonObject = {"preset": preset, "policy": policy, "cases": cases, "files": []}
    if output is not None:
        table = output.with_name(f"{output.stem}.cases{output.suffix or '.yaml'}")
        for file, text in ((output, policy), (table, cases)):
            _write_new(file, text)
            answer["files"].append(str(file))
    invocation.show(answer, views.preset)


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise typer.BadParameter(f"{file} is there already.") from None
    except OSError as fault:
        raise typer.BadParameter(f"{file} cannot be written: {fault.strerror}.") from fault


# --- files and answers ----------------------------------------------------------------------------


def _policy(file: Path) -> "Policy":
    from tallystick.policy import Policy

    try:
        with _named(file):
            return Policy.load(file)
    except OSError as fault:
        raise typer.BadParameter(f"{file} cannot be read: {fault.strerror}.") from fault


@contextmanager
def _named(file: Path) -> Generator[None]:
    """Have a refusal say of which file it is."""
    try:
        yield
    except (InvalidPolicy, InvalidPolicyTable, TooLarge) as refusal:
        raise type(refusal)(
            f"{file}: {refusal.detail}", pointer=refusal.pointer, facts=refusal.facts
        ) from refusal


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            # One byte more than allowed is enough for the reader to know.
            return stream.read(DOCUMENT_BYTES_MAX + 1).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{file} is not UTF-8.") from None
    except OSError as fault:
        raise typer.BadParameter(f"{file} cannot be read: {fault.strerror}.") from fault


def _check_format(invocation: Invocation, written: Written) -> None:
    if written is Written.GITHUB and invocation.output.as_json:
        raise typer.BadParameter("--json and --format github exclude one another.")


def _summarise(written: Written, summary: Callable[[JsonObject], str], answer: JsonObject) -> None:
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if written is not Written.GITHUB or not file:
        return
    try:
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(summary(answer) + "\n")
    except OSError as fault:
        raise typer.BadParameter(f"{file} cannot be written: {fault.strerror}.") from fault
