"""One process of a fleet: started, killed, paused, and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TAIL_LINES: Final = 30

Environment = dict[str, str]


@dataclass
class Process:
    """A process by the command that starts it again.

    ``folder`` is where its log is. ``environment`` is asked for at each start, with its number.
    """

    name: str
    folder: Path
    command: list[str]
    environment: Callable[[int], Environment]
    starts: int = 0
    down_until: float = 0.0
    paused_until: float = 0.0
    _running: subprocess.Popen[bytes] | None = None

    @property
    def kind(self) -> str:
        return self.name.split("-")[0]

    @property
    def is_running(self) -> bool:
        """Whether it runs, and is not paused."""
        return self.status is None and not self.is_down and not self.paused_until

    @property
    def is_down(self) -> bool:
        """Whether it was killed, and is to be started again."""
        return self._running is None

    @property
    def status(self) -> int | None:
        """How it ended by itself, or None."""
        return self._running.poll() if self._running else None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                [sys.executable, "-m", *self.command],
                cwd=ROOT,
                env=self.environment(self.starts),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.starts += 1

    def kill(self, down_seconds: float = 0.0) -> None:
        """Kill it and its children, paused or not; it is to be started again after a while."""
        if self._running is not None:
            if self._running.poll() is None:
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()
        self._running = None
        self.paused_until = 0.0
        self.down_until = time.monotonic() + down_seconds

    def pause(self, seconds: float) -> None:
        """Stop it and its children where they are, for a while."""
        assert self._running is not None
        os.killpg(self._running.pid, signal.SIGSTOP)
        self.paused_until = time.monotonic() + seconds

    def resume(self) -> None:
        assert self._running is not None
        os.killpg(self._running.pid, signal.SIGCONT)
        self.paused_until = 0.0

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def tail(self) -> str:
        """Return the end of what it said."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([f"{self.name} said:", *lines[-TAIL_LINES:]])
