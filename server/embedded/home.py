"""The files of one data folder, and the three locks by which its processes agree.

- The gate is held by whoever starts or stops the server, or asks whether one runs. So an attach
  never meets a server that is being stopped.
- Each user holds the users' lock, shared, for as long as it lives. The kernel lets go of it for
  a killed process, so that there is no count to repair.
- The supervisor holds its own lock for as long as it lives: held means supervised. The file says
  its pid, by which a server of its own is told from one that its predecessor left behind.

Lock files are never deleted: two processes could then hold "the same" lock on two files.
"""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from server.embedded.errors import EmbeddedPostgresError

if sys.platform != "win32":
    import fcntl

ADDRESS: Final = "127.0.0.1"
SUPERUSER: Final = "postgres"
POLL_SECONDS: Final = 0.02
LOG_BYTES_MAX: Final = 10_000_000
LOG_TAIL_LINES: Final = 8
LOG_TAIL_BYTES: Final = 8_000


@dataclass(frozen=True, slots=True)
class Home:
    """One data folder, as an absolute path without symbolic links."""

    folder: Path

    @property
    def cluster(self) -> Path:
        """The server's data and password. It is there complete, or not at all."""
        return self.folder / "postgres"

    @property
    def data(self) -> Path:
        """PostgreSQL's own data folder."""
        return self.cluster / "data"

    @property
    def password(self) -> Path:
        """The superuser's password, for the owner's eyes only."""
        return self.cluster / "password"

    @property
    def port(self) -> Path:
        """The port of the last start."""
        return self.folder / "postgres.port"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.folder / "postgres.log"

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor says."""
        return self.folder / "postgres.supervisor.log"

    @property
    def failure(self) -> Path:
        """The sentence in which the last supervisor said why it gave up."""
        return self.folder / "postgres.failure"

    @property
    def stop_request(self) -> Path:
        """While this file exists, the supervisor stops, whoever uses the server."""
        return self.folder / "postgres.stop"

    @property
    def gate_lock(self) -> Path:
        """Held to start or to stop."""
        return self.folder / "postgres.lock"

    @property
    def users_lock(self) -> Path:
        """Held, shared, by each user."""
        return self.folder / "postgres.users"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the supervisor; its text is the supervisor's pid."""
        return self.folder / "postgres.supervisor"

    @contextmanager
    def gate(self, deadline: float) -> Generator[None]:
        """Hold the gate; wait for it until `time.monotonic()` reaches the deadline.

        Raises:
            EmbeddedPostgresError: others held it for all that time.
        """
        descriptor = open_lock(self.gate_lock)
        try:
            while not try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise EmbeddedPostgresError(
                        f"Other processes were starting or stopping the server of {self.folder} "
                        "for too long."
                    )
                time.sleep(POLL_SECONDS)
            yield
        finally:
            # Unlocked by hand: a process forked meanwhile by another thread has a copy.
            unlock(descriptor)
            os.close(descriptor)

    def use(self) -> int:
        """Become a user, until the descriptor that this returns is closed. Only with the gate."""
        descriptor = open_lock(self.users_lock)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    def is_supervised(self) -> bool:
        """Whether a supervisor lives. Only with the gate: to ask, this takes its lock briefly."""
        descriptor = open_lock(self.supervisor_lock)
        try:
            if not try_lock(descriptor):
                return True
            unlock(descriptor)
            return False
        finally:
            os.close(descriptor)

    def supervisor_pid(self) -> int | None:
        """Return the pid of the supervisor, unless it is yet to write it."""
        text = self.supervisor_lock.read_text(encoding="utf-8")
        return int(text) if text.isdecimal() else None


def open_lock(path: Path) -> int:
    """Open a lock file, and make it if need be. The descriptor is not inherited by programs."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def try_lock(descriptor: int) -> bool:
    """Lock the file for this descriptor alone, unless another has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Let go of the lock that the descriptor holds, if it does."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def open_log(path: Path) -> BinaryIO:
    """Open a log to append to it; one that has grown long starts anew."""
    log = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")
    if os.fstat(log.fileno()).st_size > LOG_BYTES_MAX:
        log.truncate(0)
    return log


def tail(text: str) -> str:
    """Return the last lines of a log in one line, fit for an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-LOG_TAIL_LINES:]) or "(nothing)"


def log_tail(path: Path) -> str:
    """Return the last lines of a log file in one line."""
    if not path.exists():
        return tail("")
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
        return tail(log.read().decode(errors="replace"))
