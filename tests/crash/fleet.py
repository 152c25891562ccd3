"""The processes of a crash test: started, killed, started again, and all ended at the end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
import psutil

from server.embedded import stop
from server.embedded.home import Home
from server.embedded.postmaster import running_postmaster
from tests.crash import scenario
from tests.crash.scenario import Fault
from tests.crash.worker import WORKERS

ROOT: Final = Path(__file__).parents[2]
START_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.05
UNREACHABLE: Final = 3
"""How a process of the service ends that finds no database; whoever runs it starts it again."""


@dataclass
class Member:
    """One process of the fleet, by the command that starts it again."""

    command: list[str]
    process: subprocess.Popen[str] | None = None
    starts: int = 0
    down_until: float = 0.0


@dataclass
class Fleet:
    """A provider, a server, a reconciler and workers on one home; leaving it ends them all."""

    folder: Path
    seed: int
    members: dict[str, Member] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    began_at: float = field(default_factory=time.monotonic)
    url: str = ""
    provider_url: str = ""

    def __post_init__(self) -> None:
        self.url = f"http://127.0.0.1:{_free_port()}"
        self.home = self.folder / "home"
        self.books = self.folder / "books.sqlite"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for name in self.members:
            self._kill(name)
        if (self.home / "postgres").exists():
            stop(self.home / "postgres")

    # --- starting -------------------------------------------------------------------------------

    def start(self, items: list[scenario.Item]) -> None:
        """Start everything, publish the tools, and let the workers begin."""
        self._add("provider", "cli.demo.provider", "--books", str(self.books))
        self.provider_url = json.loads(self._first_line("provider"))["url"]
        self._add("server", "cli", "serve", "--no-reconcile", "--port", self.url.split(":")[-1])
        self.await_service(START_SECONDS_MAX)
        self._add("reconciler", "cli", "reconcile")
        self._publish()
        scenario.save(items, self.folder / "work.json")
        (self.folder / "provider.url").write_text(self.provider_url)
        for number in range(WORKERS):
            worker = (str(self.folder), str(self.seed), str(number))
            self._add(f"worker-{number}", "tests.crash.worker", *worker)

    def _add(self, name: str, module: str, *arguments: str) -> None:
        self.members[name] = Member([sys.executable, "-m", module, *arguments])
        self._start(name)

    def _start(self, name: str) -> None:
        member = self.members[name]
        generation = [str(member.starts)] if name.startswith("worker") else []
        member.starts += 1
        with (self.folder / f"{name}.log").open("ab") as log:
            member.process = subprocess.Popen(
                [*member.command, *generation],
                cwd=ROOT,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if name == "provider" else log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        foreign = ("TALLYSTICK_", "DATABASE_URL")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}
        token = self.home / "admin-token"
        return kept | {
            "TALLYSTICK_HOME": str(self.home),
            "TALLYSTICK_SWEEP_SECONDS": "0.2",
            "TALLYSTICK_EVIDENCE_PRIVATE_HOSTS": self.provider_url.removeprefix("http://"),
            "TALLYSTICK_URL": self.url,
            "TALLYSTICK_TOKEN": token.read_text().strip() if token.exists() else "",
        }

    def _first_line(self, name: str) -> str:
        process = self.members[name].process
        assert process is not None
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, f"the {name} did not start: {self._tail(name)}"
        return line

    def _publish(self) -> None:
        references: dict[str, list[Any]] = {}
        with self.client() as http:
            for document in scenario.documents(self.provider_url):
                for capability in document["capabilities"]:
                    grant = {"principal": "admin", "capability": capability}
                    http.post("/v1/grants", json=grant).raise_for_status()
                answer = http.post("/v1/contracts", json={"document": document})
                published = answer.raise_for_status().json()
                references.setdefault(document["name"], []).append(published["reference"])
        (self.folder / "references.json").write_text(json.dumps(references))

    def client(self) -> httpx.Client:
        """Return a client of the service with the admin's token."""
        token = self._environment()["TALLYSTICK_TOKEN"]
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=30)

    # --- waiting --------------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """Let the fleet work for a while."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._tend()
            time.sleep(POLL_SECONDS)

    def await_service(self, seconds_max: float) -> None:
        """Wait until the service answers, and has its database."""
        is_ready = self._await(self._is_ready, seconds_max)
        assert is_ready, f"no answer after {seconds_max:g} s: {self._tail('server')}"
        self.note("the service answers")

    def have_workers_ended(self, seconds_max: float) -> bool:
        """Tell whether every worker ends, because all its work is closed."""
        workers = [member for name, member in self.members.items() if name.startswith("worker")]
        have_ended = self._await(
            lambda: all(one.process and one.process.poll() == 0 for one in workers), seconds_max
        )
        self.note("all work is closed" if have_ended else "there still is work")
        return have_ended

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False, timeout=1).is_success
        except httpx.TransportError:
            return False

    def _await(self, is_so: Callable[[], bool], seconds_max: float) -> bool:
        deadline = time.monotonic() + seconds_max
        while not is_so():
            if time.monotonic() > deadline:
                return False
            self._tend()
            time.sleep(POLL_SECONDS)
        return True

    # --- faults ---------------------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
        """Kill the victim of a fault. What nobody else starts again, this does, after a while."""
        match fault.victim:
            case "postmaster":
                self._kill_postgres(fault, self._postmaster_pid())
            case "supervisor":
                self._kill_postgres(fault, self._supervisor_pid())
                # The processes that use it wait for it; the next one to start starts it again.
                self._fell("reconciler", fault.down_seconds)
            case "worker":
                self._fell(f"worker-{fault.number % WORKERS}", fault.down_seconds)
            case victim:
                self._fell(victim, fault.down_seconds)

    def _tend(self) -> None:
        """Start again what has been down long enough, and what ended for want of a database.

        Raises AssertionError for a process that ended by itself in any other way.
        """
        for name, member in self.members.items():
            process = member.process
            if process is None:
                if time.monotonic() >= member.down_until:
                    self.note(f"started {name}")
                    self._start(name)
                continue
            status = process.poll()
            if status is None or (name.startswith("worker") and status == 0):
                continue
            # Why a worker ends is often in what the server says.
            ended = f"{name} ended by itself: {self._tail(name)}\n\n{self._tail('server')}"
            assert name in ("server", "reconciler"), ended
            assert status == UNREACHABLE, f"{name} ended with {status}: {self._tail(name)}"
            self.note(f"{name} found no database")
            self._down(name, 0.2)

    def note(self, what: str) -> None:
        self.log.append(f"{time.monotonic() - self.began_at:7.2f} s  {what}")

    def _tail(self, name: str) -> str:
        """Return the end of what a process said."""
        lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-60:])

    def _fell(self, name: str, down_seconds: float) -> None:
        self._kill(name)
        self._down(name, down_seconds)
        self.note(f"killed {name}")

    def _down(self, name: str, seconds: float) -> None:
        member = self.members[name]
        member.process = None
        member.down_until = time.monotonic() + seconds

    def _kill(self, name: str) -> None:
        process = self.members[name].process
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _kill_postgres(self, fault: Fault, pid: int | None) -> None:
        note = f"the {fault.victim} does not run at the moment"
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                note = f"killed the {fault.victim}"
        self.note(note)

    def _postmaster_pid(self) -> int | None:
        postmaster = running_postmaster(Home((self.home / "postgres").resolve()).data)
        return postmaster.pid if postmaster else None

    def _supervisor_pid(self) -> int | None:
        postmaster = self._postmaster_pid()
        if postmaster is None:
            return None
        with suppress(psutil.NoSuchProcess):
            supervisor = psutil.Process(postmaster).parent()
            if supervisor is not None and str(self.home.resolve()) in " ".join(
                supervisor.cmdline()
            ):
                return supervisor.pid
        return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
