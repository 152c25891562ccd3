"""Runs somebody's command: bounded in time, without a shell, in a process group of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from tallystick.errors import LocalRefusal

GRACE_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05
_STDERR: Final = 2
_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RunnerFailed(LocalRefusal):
    """The command cannot be started."""

    code = "runner_failed"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Args:
        status: Its exit status, or the number of the signal that ended it, as a negative number.
        is_late: Whether it was stopped, since its time was up.
    """

    status: int
    is_late: bool = False

    def __str__(self) -> str:
        if self.is_late:
            return "The command was stopped: its time was up."
        if self.status < 0:
            return f"The command was ended by {signal.Signals(-self.status).name}."
        return f"The command ended with exit status {self.status}."


def run_command(
    arguments: Sequence[str], environment: Mapping[str, str], *, timeout_seconds: float
) -> Ended:
    """Run a command to its end.

    What it writes goes to stderr, so that stdout is the caller's own. A signal that this process
    gets is passed on to the command, and obeyed when the command has ended. When the time is up,
    the command and what it started is asked to end, and after `GRACE_SECONDS` is made to.

    Args:
        arguments: The program and its arguments.
        environment: Its whole environment.
        timeout_seconds: How long it may take.

    Raises:
        RunnerFailed: It cannot be started.
    """
    # Its output must not come before ours that is already written.
    sys.stdout.flush()
    with _passing_on() as relay:
        try:
            process = subprocess.Popen(
                arguments,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise RunnerFailed(f"{arguments[0]} cannot be started: {why}") from error
        relay.start(process)
        try:
            return Ended(process.wait(timeout_seconds))
        except subprocess.TimeoutExpired:
            return Ended(_stopped(process), is_late=True)


def _stopped(process: subprocess.Popen[bytes]) -> int:
    _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    # As long as it is not waited for, its number is nobody else's, even if it has ended.
    while not _has_ended(process) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    _signal_group(process, signal.SIGKILL)
    return process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    if process.returncode is None:
        os.killpg(process.pid, number)


class _Relay:
    """Passes signals on to a process, also those that came before it was started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.received: list[int] = []

    def start(self, process: subprocess.Popen[bytes]) -> None:
        """Pass on what came so far, and from now on what comes."""
        self._process = process
        for number in self.received:
            _signal_group(process, number)

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.received.append(number)
        if self._process is not None:
            _signal_group(self._process, number)


@contextmanager
def _passing_on() -> Generator[_Relay]:
    """Have signals passed on instead of obeyed; in the end, obey the first that came."""
    relay = _Relay()
    before = {number: signal.signal(number, relay) for number in _PASSED_ON}
    try:
        yield relay
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if relay.received:
            signal.raise_signal(relay.received[0])
