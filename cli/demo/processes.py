"""The demo's processes: the provider, the server, the reconciler, and workers that get killed.

The first three run until the end, and outlive the demo if it is kept; a worker never does.
"""

import asyncio
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx

from cli.connection import JsonObject
from tallystick.errors import RegistryUnavailable

ADDRESS: Final = "127.0.0.1"
PORTS: Final = range(20_000, 32_000)
PORT_TRIES_MAX: Final = 100
START_SECONDS_MAX: Final = 60.0
STEP_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 15.0
POLL_SECONDS: Final = 0.05
LOG_LINES: Final = 12
LEASE_SECONDS_MAX: Final = 2
SWEEP_SECONDS: Final = 0.2


class Services:
    """The services of one demo, in a new home folder. Leaving the `with` ends them all.

    Attributes:
        home: The home folder, with a log for each service.
        url: The server's address, once it is started.
        provider_url: The provider's.
        kept: Set to leave the services running, and the folder where it is.
    """

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="tallystick-demo-"))
        self.url = f"http://{ADDRESS}:{_free_port()}"
        self.provider_url = ""
        self.kept = False
        self._running: dict[str, subprocess.Popen[str]] = {}

    @property
    def pids(self) -> list[int]:
        """The services' process ids."""
        return [process.pid for process in self._running.values()]

    @property
    def token(self) -> str:
        """The admin token, once the server is started."""
        return (self.home / "admin-token").read_text(encoding="ascii").strip()

    def start(self) -> None:
        """Start the provider, the server and the reconciler, and return once the server answers.

        Raises RegistryUnavailable when one of them does not start.
        """
        provider = self._spawn(
            "provider", "cli.demo.provider", "--books", self.home / "books.sqlite"
        )
        assert provider.stdout is not None
        line = provider.stdout.readline()
        if not line:
            raise RegistryUnavailable(f"The provider did not start: {self._log('provider')}")
        self.provider_url = json.loads(line)["url"]
        port = self.url.rpartition(":")[2]
        self._spawn("server", "cli", "serve", "--no-reconcile", "--port", port)
        self._await_server()
        self._spawn("reconciler", "cli", "reconcile")

    def check_alive(self) -> None:
        """Raise RegistryUnavailable when a service has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise RegistryUnavailable(f"The {name} has ended: {self._log(name)}")

    def environment(self) -> dict[str, str]:
        """Return the environment of every process: ours alone says where things are."""
        foreign = ("TALLYSTICK_", "DATABASE_URL")
        inherited = {
            name: text for name, text in os.environ.items() if not name.startswith(foreign)
        }
        return inherited | {
            "TALLYSTICK_HOME": str(self.home),
            "TALLYSTICK_HOST": ADDRESS,
            "TALLYSTICK_LEASE_SECONDS_MAX": str(LEASE_SECONDS_MAX),
            "TALLYSTICK_SWEEP_SECONDS": str(SWEEP_SECONDS),
            "TALLYSTICK_EVIDENCE_PRIVATE_HOSTS": self.provider_url.removeprefix("http://"),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.kept:
            return
        # An impatient second Ctrl-C must not leave anything behind.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for process in reversed(self._running.values()):
            process.terminate()
        for process in self._running.values():
            _end(process)
        _stop_database(self.home / "postgres")
        shutil.rmtree(self.home)
        signal.signal(signal.SIGINT, before)

    def _spawn(self, name: str, module: str, *arguments: str | Path) -> "subprocess.Popen[str]":
        with (self.home / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, arguments)],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if name == "provider" else log,
                stderr=log,
                text=True,
                # Ctrl-C at the terminal is for the demo, which ends the others in order.
                start_new_session=True,
            )
        self._running[name] = process
        return process

    def _await_server(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        with httpx.Client(trust_env=False) as http:
            while time.monotonic() < deadline:
                self.check_alive()
                try:
                    if http.get(f"{self.url}/readyz").is_success:
                        return
                except httpx.TransportError:
                    pass
                time.sleep(POLL_SECONDS)
        raise RegistryUnavailable(f"The server did not start in time: {self._log('server')}")

    def _log(self, name: str) -> str:
        lines = (
            (self.home / f"{name}.log").read_text(encoding="utf-8", errors="replace").splitlines()
        )
        return "\n".join(lines[-LOG_LINES:])


class Worker:
    """A worker process that runs one effect, and says each step that it takes."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def hear(self, event: str) -> JsonObject:
        """Return the worker's line about a step. Raises RegistryUnavailable if it never comes."""
        assert self._process.stdout is not None
        async with asyncio.timeout(STEP_SECONDS_MAX):
            async for line in self._process.stdout:
                told = json.loads(line)
                if told["event"] == event:
                    return told
        raise RegistryUnavailable(
            f"The worker ended before the step {event!r}; workers.log says why."
        )

    async def kill(self) -> int:
        """Send SIGKILL, unless it has ended; return the status it ended with."""
        if self._process.returncode is None:
            self._process.kill()
        return await self._process.wait()


@asynccontextmanager
async def working(
    services: Services, effect_id: str, *, pause: str | None = None
) -> AsyncGenerator[Worker]:
    """Start a worker on an effect; it is gone when the context is left.

    Args:
        services: What it works with.
        effect_id: The effect to run.
        pause: Where it stops and waits: `before_send` or `after_send`.
    """
    reach = {"TALLYSTICK_URL": services.url, "TALLYSTICK_TOKEN": services.token}
    paused = ["--pause", pause] if pause else []
    with (services.home / "workers.log").open("ab") as log:
        worker = Worker(
            await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "cli.demo.worker", effect_id, "--provider", services.provider_url, *paused),
                env=services.environment() | reach,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                start_new_session=True,
            )
        )
    try:
        yield worker
    finally:
        await worker.kill()


def _free_port() -> int:
    """Return a port for the server, which takes it some seconds later.

    It lies below those that systems give to outgoing connections, one of which could take it first.
    """
    with socket.socket() as probe:
        for _ in range(PORT_TRIES_MAX):
            port = PORTS.start + secrets.randbelow(len(PORTS))
            with suppress(OSError):
                probe.bind((ADDRESS, port))
                return port
    raise RegistryUnavailable(f"No port from {PORTS.start} to {PORTS.stop} is free.")


def _end(process: "subprocess.Popen[str]") -> None:
    """Wait for a process that was asked to end, and kill it if it does not."""
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _stop_database(home: Path) -> None:
    from server.embedded import stop

    if home.exists():
        stop(home)
