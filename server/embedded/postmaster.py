"""Sees which server processes serve a data folder, and ends those that nobody supervises.

A pid file alone proves nothing: after a crash its number may belong to a stranger. A process counts
only if it is a living `postgres` whose working directory is the data folder.
"""

import contextlib
import signal
import time
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from server.embedded.errors import EmbeddedPostgresError
from server.embedded.home import POLL_SECONDS

FAST_STOP_SECONDS: Final = 30.0
IMMEDIATE_STOP_SECONDS: Final = 10.0


class Postmaster(NamedTuple):
    """The server's first process, as it says itself in its pid file."""

    pid: int
    port: int
    ready: bool
    parent: int


def running_postmaster(data: Path) -> Postmaster | None:
    """Return the server of this data folder, if one lives.

    The pid file has a line each for: pid, data folder, start, port, socket folder, address, shared
    memory, state (PostgreSQL documentation, "Database File Layout").
    """
    with contextlib.suppress(OSError, ValueError, IndexError, psutil.Error):
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        pid, port, state = int(lines[0]), int(lines[3]), lines[7:8]
        if _serves(process := psutil.Process(pid), data):
            ready = [line.strip() for line in state] == ["ready"]
            return Postmaster(pid, port, ready, process.ppid())
    return None


def end_leftovers(data: Path) -> bool:
    """End what a dead supervisor or postmaster left behind, and the stale pid file with it.

    Only with the supervisor's lock, or with the gate while there is no supervisor. Returns whether
    a process had to end.

    Raises:
        EmbeddedPostgresError: a process would not end.
    """
    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return False
    found = bool(_serving(data))
    if postmaster := running_postmaster(data):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(postmaster.pid).send_signal(signal.SIGINT)
        _await_end(data, FAST_STOP_SECONDS)
    # Orphaned children end by themselves once they notice; one in a long statement notices late.
    for process in _serving(data):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGQUIT)
    if not _await_end(data, IMMEDIATE_STOP_SECONDS):
        raise EmbeddedPostgresError(f"Processes of an earlier server still serve {data}.")
    pid_file.unlink(missing_ok=True)
    return found


def _await_end(data: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while _serving(data):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _serving(data: Path) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _serves(process, data)]


def _serves(process: psutil.Process, data: Path) -> bool:
    # A zombie has no working directory: asking for it is refused, so it does not count.
    with contextlib.suppress(psutil.Error, OSError):
        return process.name().startswith("postgres") and Path(process.cwd()) == data
    return False
