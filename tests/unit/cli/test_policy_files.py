"""Policies as files: checked, tried, run under and replayed, without a service."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
POLICY = """\
version: "0.1"
id: shop
title: A shop
tools:
  look: {risk: read}
  pay: {risk: high_risk}
facts:
  - {name: total, from_tool: look, path: total}
rules:
  - name: looked
    type: require_prior_call
    tool: pay
    prior_tool: look
    effect: block
  - name: within
    type: compare
    tool: pay
    left: {source: arg, key: amount}
    op: gt
    right: {source: fact, key: total}
    effect: block
  - name: large
    type: compare
    tool: pay
    left: {source: arg, key: amount}
    op: gte
    right: {source: const, value: 100}
    effect: needs_human
"""
CASES = """\
- name: nothing is paid unseen
  call: {tool: pay, arguments: {amount: 1}}
  expect: {decision: block, rule: looked}
- name: a payment passes
  history: [{tool: look, result: {total: 50}}]
  call: {tool: pay, arguments: {amount: 1}}
  expect: {decision: allow}
"""
LOOK = {
    "tool": "look",
    "arguments": {},
    "decision": "allow",
    "gate": None,
    "code": "ok",
    "true_code": "ok",
    "rule": None,
    "message": "",
    "result": {"total": 150},
}
PAY = {**LOOK, "tool": "pay", "arguments": {"amount": 5}, "result": {}}
HELD = {
    **LOOK,
    "tool": "pay",
    "arguments": {"amount": 120},
    "decision": "needs_human",
    "gate": "policy",
    "code": "needs_human",
    "true_code": "needs_human",
    "rule": "large",
    "message": 'The rule "large" wants a person.',
}
BLOCKED = {
    **HELD,
    "decision": "block",
    "code": "policy_blocked",
    "true_code": "policy_blocked",
    "rule": "looked",
}
HOSTILE = "\x1b[31m\x9b[/bold]\u202eforged\nline"


@pytest.fixture(autouse=True)
def nothing_is_asked(wire, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    yield
    assert wire.requests == []


@pytest.fixture
def policy(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY, encoding="utf-8")
    return str(file)


@pytest.fixture
def write(tmp_path):
    def write_it(name, text):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write_it


@pytest.fixture
def runner(write):
    """Return a command that writes a trace as it is told to, and then does as it is told."""

    def command(*lines, after=""):
        trace = "".join(
            f"{json.dumps(line)}\n" if isinstance(line, dict) else line for line in lines
        )
        program = (
            "import os, signal, sys, time\n"
            "with open(os.environ['TALLYSTICK_TRACE'], 'a') as trace:\n"
            f"    trace.write({trace!r})\n"
            f"{after}\n"
        )
        return shlex.join([sys.executable, write("runner.py", program)])

    return command


# --- lint -----------------------------------------------------------------------------------------


def test_lint_has_nothing_to_say_of_a_good_policy(run, policy):
    result = run("policy", "lint", policy)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "1 policy, and nothing to say of it.\n"


def test_lint_tells_every_fault_of_every_file(run, policy, write):
    bad = write(
        "bad.yaml", POLICY.replace("risk: read", "risk: red").replace("op: gt\n", "op: g\n")
    )
    result = run("policy", "lint", policy, bad)
    assert result.exit_code == 1
    first, second, last = result.stdout.splitlines()
    assert first.startswith(f"{bad}:5:16 error one of read, write, high_risk belongs here")
    assert first.endswith("[invalid_policy]")
    assert second.startswith(f"{bad}:19:9 error ")
    assert last == "2 policies: 2 errors, 0 warnings."


def test_a_warning_fails_a_strict_check_alone(run, write):
    loose = write("loose.yaml", POLICY + "budgets: {max_total_calls: 5, max_write_calls: 9}\n")
    assert run("policy", "lint", loose).exit_code == 0
    result = run("policy", "lint", loose, "--strict", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert (answer["errors"], answer["warnings"]) == (0, 1)
    [finding] = answer["files"][0]["findings"]
    assert (finding["severity"], finding["code"]) == ("warning", "loose_budget")


def test_lint_annotates_lines_for_github(run, write):
    bad = write("bad.yaml", POLICY.replace("risk: read", "risk: red"))
    result = run("policy", "lint", bad, "--format", "github")
    assert result.exit_code == 1
    assert f"::error file={bad},line=5,col=16,title=invalid_policy::one of " in result.stdout


# --- test -----------------------------------------------------------------------------------------


def test_a_table_that_passes(run, policy, write):
    result = run("policy", "test", policy, write("cases.yaml", CASES))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "ok      nothing is paid unseen",
        "ok      a payment passes",
        "2 of 2 cases passed.",
    ]


def test_a_case_that_fails_is_told_with_its_line(run, policy, write):
    table = write("cases.yaml", CASES.replace("rule: looked", "rule: within"))
    result = run("policy", "test", policy, table)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "FAILED  nothing is paid unseen",
        "          rule:     expected within, found looked",
        '          The rule "looked" refuses pay: call look first.',
        "          line 1",
        "ok      a payment passes",
        "1 of 2 cases passed.",
    ]
    answer = json.loads(run("policy", "test", policy, table, "--json").stdout)
    assert (answer["passed"], answer["failed"]) == (1, 1)
    assert answer["cases"][0]["mismatches"] == [
        {"what": "rule", "expected": "within", "found": "looked"}
    ]


def test_a_table_that_is_none_is_refused_with_its_faults(run, policy, write):
    table = write("cases.yaml", CASES.replace("decision: allow", "decision: alow"))
    result = run("policy", "test", policy, table)
    assert result.exit_code == 1
    assert "[invalid_policy_table]" in result.stderr
    assert '7:22 one of allow, needs_human, block belongs here, not "alow"' in result.stderr
    assert f"Error: {table}: line 7 column 22" in result.stderr.replace("\n", "")
    annotated = run("policy", "test", policy, table, "--format", "github")
    assert annotated.exit_code == 1
    assert f"::error file={table},line=7,col=22,title=invalid_policy_table::" in annotated.stdout


def test_github_gets_annotations_and_a_summary(run, policy, write, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    table = write("cases.yaml", CASES.replace("rule: looked", "rule: within"))
    environment = {"GITHUB_STEP_SUMMARY": str(summary)}
    result = run("policy", "test", policy, table, "--format", "github", env=environment)
    assert result.exit_code == 1
    assert (
        f"::error file={table},line=1,title=nothing is paid unseen::"
        "rule: expected within, found looked"
    ) in result.stdout
    told = summary.read_text(encoding="utf-8")
    assert told.startswith("before\n### shop&#58; 1 of 2 cases passed\n")
    assert (
        "| nothing is paid unseen | rule <code>within</code> | rule <code>looked</code> |" in told
    )


def test_without_being_asked_nothing_is_summarised(run, policy, write, tmp_path):
    summary = tmp_path / "summary.md"
    environment = {"GITHUB_STEP_SUMMARY": str(summary)}
    assert run("policy", "test", policy, write("c.yaml", CASES), env=environment).exit_code == 0
    assert not summary.exists()


# --- explain --------------------------------------------------------------------------------------


def test_explain_tells_which_rule_decides_and_what_each_found(run, policy):
    result = run("policy", "explain", policy, "--tool", "pay", "--arguments", '{"amount": 120}')
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "→ looked  fires: look has succeeded 0 times",
        (
            "  within  fires: amount = 120 gt total (from look) = null "
            "cannot be told: a value is not there"
        ),
        "  large   fires: amount = 120 gte 100 holds",
        'The rule "looked" refuses pay: call look first.',
        "block  pay by looked",
    ]


def test_explain_takes_a_history_and_arguments_from_files(run, policy, write):
    history = write("history.yaml", "- {tool: look, result: {total: 50}}\n")
    arguments = write("arguments.json", '{"amount": 5}')
    given = ["--tool", "pay", "--arguments", f"@{arguments}", "--history", history]
    result = run("policy", "explain", policy, *given)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "allow  pay")
    answer = json.loads(run("policy", "explain", policy, *given, "--json").stdout)
    assert (answer["decision"], answer["rule"], answer["arguments"]) == (
        "allow",
        None,
        {"amount": 5},
    )
    within = next(each for each in answer["findings"] if each["rule"] == "within")
    assert within["comparison"]["right"] == {
        "source": "fact",
        "key": "total",
        "from_tool": "look",
        "value": 50,
    }


def test_json_tells_what_needs_a_person(run, policy, write):
    history = write("history.yaml", "- {tool: look, result: {total: 500}}\n")
    result = run(
        *("policy", "explain", policy, "--tool", "pay", "--arguments", '{"amount": 120}'),
        *("--history", history, "--json"),
    )
    assert result.exit_code == 1
    assert json.loads(result.stdout)["decision"] == "needs_human"


@pytest.mark.parametrize("given", ["[1]", "{", '{"a": 1, "a": 2}', "@nowhere.json"])
def test_arguments_are_a_json_object(run, policy, given):
    result = run("policy", "explain", policy, "--tool", "pay", "--arguments", given)
    assert result.exit_code == 2


# --- run ------------------------------------------------------------------------------------------


def started(run, policy, command, *options):
    return run("policy", "run", policy, "--runner-cmd", command, *options)


def test_a_run_whose_calls_all_ran_passes(run, policy, runner):
    result = started(run, policy, runner(LOOK, PAY))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "shop  A shop",
        "  1  look  allow",
        "  2  pay   allow",
        "PASS  2 calls: 2 ran.",
    ]


def test_a_run_with_a_refused_call_fails(run, policy, runner):
    # The command may end as it likes after a refusal.
    result = started(run, policy, runner(BLOCKED, after="sys.exit(3)"))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "FAIL  1 call: 0 ran, 1 refused."
    assert "  1  pay  block        looked" in result.stdout


def test_a_run_that_waits_for_a_person_says_so(run, policy, runner):
    result = started(run, policy, runner(LOOK, HELD))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "NEEDS HUMAN  2 calls: 1 ran, 1 held for a person."
    answer = json.loads(started(run, policy, runner(LOOK, HELD), "--json").stdout)
    assert answer["verdict"] == "needs_human"
    assert [each["outcome"] for each in answer["calls"]] == ["allow", "needs_human"]


def test_a_refusal_is_graver_than_a_wait(run, policy, runner):
    answer = json.loads(started(run, policy, runner(HELD, BLOCKED), "--json").stdout)
    assert answer["verdict"] == "fail"


def test_a_person_who_said_no_has_refused(run, policy, runner):
    rejected = {**HELD, "code": "policy_blocked", "true_code": "approval_rejected"}
    answer = json.loads(started(run, policy, runner(rejected), "--json").stdout)
    assert answer["verdict"] == "fail"


def test_a_person_who_said_yes_is_named(run, policy, runner):
    approved = {**PAY, "decision": "needs_human", "rule": "large", "approved_by": "grace"}
    result = started(run, policy, runner(LOOK, approved))
    assert result.exit_code == 0
    assert "  2  pay   allow        approved by grace" in result.stdout


def test_an_earlier_gate_counts_too(run, policy, runner):
    wrong = {**BLOCKED, "gate": "arguments", "true_code": "invalid_arguments", "rule": None}
    result = started(run, policy, runner(wrong))
    assert result.exit_code == 1
    assert "  1  pay  block        arguments: invalid_arguments" in result.stdout


# what a command does, and what is said of it
@pytest.mark.parametrize(
    ("lines", "after", "reason"),
    [
        ([LOOK], "sys.exit(3)", "The command ended with exit status 3."),
        ([LOOK], "os.kill(os.getpid(), signal.SIGKILL)", "The command was ended by SIGKILL."),
        ([], "", "The command made no call through a PolicyRuntime."),
        ([LOOK, '{"tool": "pay"'], "", "Its trace cannot be judged: line 2 is none of a trace: "),
        ([LOOK, "nonsense\n", PAY], "", "Its trace cannot be judged: line 2 is none of a trace: "),
        ([{**LOOK, "policy": "sha256:0"}], "", "Another policy was in force"),
        ([{**LOOK, "policy": None}], "", "Another policy was in force"),
    ],
)
def test_a_run_that_cannot_be_judged_fails_with_its_reason(
    run, policy, runner, lines, after, reason
):
    result = started(run, policy, runner(*lines, after=after))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith(f"FAIL  {reason}")
    answer = json.loads(started(run, policy, runner(*lines, after=after), "--json").stdout)
    assert (answer["verdict"], answer["reason"].startswith(reason)) == ("fail", True)
    # What came before is told.
    assert [each["tool"] for each in answer["calls"]] == [
        each["tool"] for each in lines[:1] if isinstance(each, dict)
    ]


def test_a_command_that_hangs_is_stopped_with_all_that_it_started(run, policy, runner, tmp_path):
    child = tmp_path / "child"
    after = (
        "import subprocess\n"
        "inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(inner.pid))\n"
        "time.sleep(600)"
    )
    result = started(run, policy, runner(LOOK, after=after), "--timeout", "5")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "FAIL  The command was stopped: its time was up."
    assert is_gone(int(child.read_text()))


def test_a_command_that_does_not_want_to_end_is_made_to(run, policy, runner, monkeypatch):
    monkeypatch.setattr("cli.runner.GRACE_SECONDS", 0.2)
    after = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    result = started(run, policy, runner(LOOK, after=after), "--timeout", "3")
    assert result.stdout.splitlines()[-1] == "FAIL  The command was stopped: its time was up."


def is_gone(number):
    """Wait until a process is gone, or is but an entry that its parent has not read."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_signal_is_passed_on_and_obeyed(policy, runner, tmp_path):
    told = tmp_path / "told"
    after = (
        "def tell(*_):\n"
        f"    open({str(told)!r}, 'w').write('SIGTERM')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, tell)\n"
        "print('ready', file=sys.stderr, flush=True)\n"
        "time.sleep(600)"
    )
    command = ["-m", "cli", "policy", "run", policy, "--runner-cmd", runner(LOOK, after=after)]
    with subprocess.Popen(
        [sys.executable, *command],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    assert told.read_text() == "SIGTERM"


def test_no_shell_reads_the_command(run, policy, tmp_path):
    mark = tmp_path / "mark"
    result = started(run, policy, f"{sys.executable} -c pass ; touch {mark}")
    assert result.exit_code == 1
    assert not mark.exists()


def test_a_command_that_cannot_be_started_is_refused(run, policy):
    result = started(run, policy, "/nowhere/at-all --option")
    assert result.exit_code == 1
    assert (
        "Error: /nowhere/at-all cannot be started: No such file or directory. [runner_failed]"
        in result.stderr
    )


@pytest.mark.parametrize("command", ["", "   ", "python 'unclosed"])
def test_a_command_that_is_none_is_wrong_usage(run, policy, command):
    assert started(run, policy, command).exit_code == 2


def test_a_policy_that_is_none_starts_nothing(run, write, tmp_path):
    mark = tmp_path / "mark"
    result = started(run, write("bad.yaml", "id: 1"), f"touch {mark}")
    assert result.exit_code == 1
    assert "[invalid_policy]" in result.stderr
    assert not mark.exists()


def test_the_policy_is_named_by_its_whole_path(run, policy, write, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    program = write("p.py", "import os\nopen('seen', 'w').write(os.environ['TALLYSTICK_POLICY'])\n")
    started(run, "policy.yaml", shlex.join([sys.executable, program]))
    assert (tmp_path / "seen").read_text() == str(Path(policy).resolve())


def test_a_trace_is_kept_afresh_and_replayed(run, policy, runner, write, tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text("of yesterday\n")
    assert started(run, policy, runner(LOOK, PAY), "--record", str(trace)).exit_code == 0
    assert len(trace.read_text().splitlines()) == 2

    same = run("policy", "replay", policy, str(trace))
    assert same.exit_code == 0
    assert same.stdout.splitlines() == [
        "shop  A shop",
        "  1  look  allow        as before",
        "  2  pay   allow        as before",
        "2 calls: 0 decided otherwise, 0 not known.",
    ]

    stricter = write("stricter.yaml", POLICY.replace("value: 100", "value: 5"))
    result = run("policy", "replay", stricter, str(trace))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2:] == [
        "  2  pay   allow        → needs human  large",
        '     The rule "large" wants a person\'s approval for pay.',
        "2 calls: 1 decided otherwise, 0 not known.",
    ]
    answer = json.loads(run("policy", "replay", stricter, str(trace), "--json").stdout)
    assert (answer["changed"], answer["unknown"]) == (1, 0)
    assert answer["calls"][1]["after"] == {
        "decision": "needs_human",
        "rule": "large",
        "code": "needs_human",
    }


def test_a_replay_says_what_the_record_does_not_tell(run, policy, write):
    hidden = {**LOOK, "result": {"total": {"x-redacted": True}}}
    trace = write("trace.jsonl", f"{json.dumps(hidden)}\n{json.dumps(PAY)}\n")
    result = run("policy", "replay", policy, trace)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2:] == [
        "  2  pay   allow        → not known",
        '     The record does not tell for "within": the record of look is redacted.',
        "2 calls: 0 decided otherwise, 1 not known.",
    ]


def test_a_broken_trace_is_refused_with_its_line(run, policy, write):
    result = run(
        "policy", "replay", policy, write("trace.jsonl", f"{json.dumps(LOOK)}\nnonsense\n")
    )
    assert result.exit_code == 1
    assert "line 2 is none of a trace" in result.stderr
    assert "[invalid_trace]" in result.stderr


def test_a_replay_of_nothing_says_so(run, policy, write):
    result = run("policy", "replay", policy, write("trace.jsonl", ""))
    assert result.exit_code == 0
    assert "nothing was judged" in result.stdout


@pytest.mark.parametrize("name", ["run", "replay"])
def test_github_gets_a_summary_of_a_run(run, policy, runner, write, tmp_path, name):
    summary = tmp_path / "summary.md"
    trace = write("trace.jsonl", f"{json.dumps(BLOCKED)}\n")
    given = ["--runner-cmd", runner(BLOCKED)] if name == "run" else [trace]
    environment = {"GITHUB_STEP_SUMMARY": str(summary)}
    result = run("policy", name, policy, *given, "--format", "github", env=environment)
    told = summary.read_text(encoding="utf-8")
    if name == "run":
        assert result.exit_code == 1
        assert told.startswith("### FAIL shop\n\n1 call")
        assert "| 1 | <code>pay</code> | block | <code>looked</code> | The rule " in told
    else:
        assert result.exit_code == 0
        assert told.startswith("### Replay under shop\n")


# --- presets --------------------------------------------------------------------------------------


def test_the_presets_are_listed(run):
    answer = json.loads(run("policy", "presets", "--json").stdout)
    assert [each["preset"] for each in answer["presets"]] == [
        "email",
        "file-deletion",
        "payments",
        "refund",
    ]
    assert "refund" in run("policy", "presets").stdout


def test_a_preset_is_shown_and_written_with_its_cases(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = run("policy", "init", "refund")
    assert shown.exit_code == 0
    written = run("policy", "init", "refund", "--output", "mine.yaml")
    assert written.stdout.splitlines() == [
        "wrote mine.yaml and mine.cases.yaml",
        "  registry policy test mine.yaml mine.cases.yaml",
    ]
    assert (tmp_path / "mine.yaml").read_text(encoding="utf-8") == shown.stdout
    assert run("policy", "lint", "mine.yaml", "--strict").exit_code == 0
    assert run("policy", "test", "mine.yaml", "mine.cases.yaml").exit_code == 0


def test_a_preset_overwrites_nothing(run, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("mine\n")
    result = run("policy", "init", "refund", "--output", str(file))
    assert result.exit_code == 2
    assert file.read_text() == "mine\n"


def test_an_unknown_preset_is_wrong_usage(run):
    result = run("policy", "init", "refunds")
    assert result.exit_code == 2
    assert "refund" in result.stderr


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", "POLICY", "--format", "github", "--json"],
        ["test", "POLICY", "POLICY", "--format", "github", "--json"],
        ["replay", "POLICY", "POLICY", "--format", "github", "--json"],
        ["run", "POLICY", "--runner-cmd", "true", "--format", "github", "--json"],
        ["lint", "nowhere.yaml"],
        ["lint"],
        ["run", "POLICY"],
        ["run", "POLICY", "--runner-cmd", "true", "--timeout", "0"],
        ["run", "POLICY", "--runner-cmd", "true", "--record", "nowhere/at/all"],
        ["explain", "POLICY"],
    ],
)
def test_wrong_usage_is_2(run, policy, arguments):
    result = run("policy", *(policy if each == "POLICY" else each for each in arguments))
    assert result.exit_code == 2


def test_none_of_them_needs_a_service(run, policy):
    environment = {"TALLYSTICK_TOKEN": None, "TALLYSTICK_URL": None, "TALLYSTICK_HOME": None}
    assert run("policy", "lint", policy, env=environment).exit_code == 0


def test_what_others_wrote_drives_no_terminal(run, policy, runner, write):
    hostile = {
        **BLOCKED,
        "tool": f"pay{HOSTILE}",
        "rule": f"rule{HOSTILE}",
        "message": f"no{HOSTILE}",
    }
    trace = write("trace.jsonl", f"{json.dumps(hostile)}\n")
    table = write(
        "cases.yaml",
        f"- name: {json.dumps(HOSTILE)}\n  call: {{tool: pay}}\n"
        f"  expect: {{decision: allow, rule: {json.dumps(HOSTILE)}}}\n",
    )
    outputs = [
        started(run, policy, runner(hostile)).stdout,
        run("policy", "replay", policy, trace).stdout,
        run("policy", "test", policy, table).stdout,
        run("policy", "test", policy, table, "--format", "github").stdout,
        run("policy", "explain", policy, "--tool", f"pay{HOSTILE}").stdout,
        run("policy", "lint", write("bad.yaml", f"{json.dumps(HOSTILE)}: 1\n")).stdout,
    ]
    for output in outputs:
        assert output
        assert not {"\x1b", "\x9b", "\u202e"} & set(output)
        assert "\nline" not in output


def test_the_environment_is_handed_on(run, policy, write, tmp_path):
    seen = tmp_path / "seen"
    program = write("p.py", f"import os\nopen({str(seen)!r}, 'w').write(os.environ['MINE'])\n")
    run(
        *("policy", "run", policy, "--runner-cmd", shlex.join([sys.executable, program])),
        env={"MINE": "here"},
    )
    assert seen.read_text() == "here"
    assert "TALLYSTICK_TRACE" not in os.environ


@pytest.mark.parametrize("page", ["README.md", "docs/policy.md"])
def test_the_pages_show_what_the_command_says(run, monkeypatch, tmp_path, page):
    shown = (ROOT / page).read_text(encoding="utf-8").split("$ registry policy ")[1:]
    assert shown
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for each in shown:
        given, *lines = each.partition("```")[0].splitlines()
        arguments = shlex.split(given.replace('"python ', f'"{sys.executable} '))
        said = run("policy", *arguments, env={"COLUMNS": "120"}).stdout.splitlines()
        assert lines
        assert [line for line in lines if line] == [line for line in said if line], given
