"""`registry demo` as a newcomer runs it: in a process of its own, with nothing set up."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[2]
LONGEST_SECONDS = 240


@dataclass(frozen=True)
class Performed:
    """A demo that is over, and the folder for temporary data that it was given."""

    exit_code: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def told(self) -> Any:
        return json.loads(self.stdout)


@contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start the demo with nothing of Tallystick's in its environment; it has ended afterwards."""
    ours = ("TALLYSTICK_", "DATABASE_URL")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "demo", *arguments],
        cwd=ROOT,
        env=environment | {"TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            # Not SIGKILL: the demo has processes of its own to stop.
            process.terminate()


@pytest.fixture(scope="module")
def performed(tmp_path_factory: pytest.TempPathFactory) -> Performed:
    folder = tmp_path_factory.mktemp("demo")
    with demo(folder, "--json") as process:
        stdout, stderr = process.communicate(timeout=LONGEST_SECONDS)
    return Performed(process.returncode, stdout, stderr, folder)


def left_running(folder: Path) -> list[str]:
    """Return the processes that were given something in the folder."""
    found: list[str] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            traces = [process.cwd(), *process.cmdline(), process.environ().get("TMPDIR", "")]
            if any(str(folder) in trace for trace in traces):
                found.append(f"{process.pid}: {process.cmdline()}")
    return found


def test_every_check_holds(performed: Performed):
    assert performed.exit_code == 0, performed.stderr or performed.stdout
    failed = [check for check in performed.told["checks"] if not check["ok"]]
    assert not failed
    assert performed.told["ok"] is True
    assert performed.told["checks"]


def test_stdout_is_one_json_object_and_nothing_else(performed: Performed):
    assert isinstance(performed.told, dict)
    assert performed.stderr == ""


@pytest.mark.parametrize(
    "code",
    [
        "capability_not_granted",
        "contract_exists",
        "contract_in_use",
        "contract_migrating",
        "contract_retired",
        "credential_policy_changed",
        "effect_class_mismatch",
        "effect_conflict",
        "effect_not_retryable",
        "mixed_versions",
        "review_required",
        "tool_contract_not_found",
        "tool_schema_drift",
    ],
)
def test_the_refusal_was_really_met(performed: Performed, code: str):
    assert any(check["detail"].startswith(f"{code}: ") for check in performed.told["checks"])


def test_the_books_hold_each_effect_once(performed: Performed):
    lines = performed.told["books"]
    assert {line["state"] for line in lines} == {"SUCCEEDED"}
    assert all(len(line["bookings"]) == 1 for line in lines)
    calls = {line["call"] for line in lines}
    assert {"noon / invoice-sent", "noon / transfer-sent", "noon / invoice-unsent"} <= calls
    assert "noon / transfer-unsent" not in calls


def test_nothing_is_left_behind(performed: Performed):
    assert left_running(performed.folder) == []
    assert list(performed.folder.iterdir()) == []


def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path):
    with demo(tmp_path, "--json") as process:
        deadline = time.monotonic() + LONGEST_SECONDS
        while not list(tmp_path.glob("*/admin-token")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "the server never made its token"
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=LONGEST_SECONDS)
    assert process.returncode != 0
    assert stdout == ""
    assert left_running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
