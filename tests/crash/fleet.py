"""The processes: a service for many schedules, and for each a provider, workers and operators.

Servers, reconcilers and their PostgreSQL take seconds to start, and so they go on from schedule to
schedule. What each schedule does is under names of its own.
"""

import json
import os
import secrets
import signal
import socket
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx

from server.bootstrap import create_tenant
from server.embedded import EmbeddedPostgres, stop
from tallystick import ToolReference
from tests.crash import postgres
from tests.crash.catalogue import WEBHOOK_SOURCE, documents
from tests.crash.process import Environment, Process
from tests.crash.scenario import Fault, draw_clock, draw_plan, draw_retirement
from tests.crash.site import Site
from tests.crash.work import OTHER_TENANT, TENANT, WORKERS, Item, save
from tests.crash.worker import CLOCK

SERVERS: Final = 2
RECONCILERS: Final = 2
PORTS: Final = range(20_000, 32_000)
PORT_TRIES_MAX: Final = 100
START_SECONDS_MAX: Final = 90.0
POLL_SECONDS: Final = 0.05
VICTIM_SECONDS_MAX: Final = 20.0
UNREACHABLE: Final = 3
"""How a process of the service ends that finds no database; whoever runs it starts it again."""
WEBHOOK_SECRET: Final = "whsec_" + b64encode(bytes(32)).decode()
PASSING: Final = ("worker", "operators", "provider")
"""What a schedule has of its own."""


class Defect(AssertionError):
    """A process ended by itself, which none of them may do."""


@dataclass
class Fleet:
    """All processes on one home; leaving it ends them."""

    folder: Path
    members: dict[str, Process] = field(default_factory=dict[str, Process])
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    operators: list[str] = field(default_factory=list[str])
    log: list[str] = field(default_factory=list[str])
    struck: Counter[str] = field(default_factory=Counter[str])
    began_at: float = field(default_factory=time.monotonic)
    _calm: str = ""
    _outage: str = ""
    _outage_until: float = 0.0

    def __post_init__(self) -> None:
        server_ports = [_free_port() for _ in range(SERVERS)]
        self.urls = [f"http://127.0.0.1:{port}" for port in server_ports]
        self.provider_url = f"http://127.0.0.1:{_free_port()}"
        self.home = self.folder / "home"
        self.postgres = self.home / "postgres"
        self._http = httpx.Client(trust_env=False, timeout=1)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything. An impatient second Ctrl-C leaves nothing behind."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for member in self.members.values():
            member.kill()
        if self.postgres.exists():
            stop(self.postgres)
        self._http.close()
        signal.signal(signal.SIGINT, before)

    # --- starting -------------------------------------------------------------------------------

    def _start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        secret = {TENANT: {WEBHOOK_SOURCE: {"webhook": [WEBHOOK_SECRET]}}}
        self._secrets.touch(mode=0o600)
        self._secrets.write_text(json.dumps(secret))
        names = [f"server-{number}" for number in range(SERVERS)]
        for name, url in zip(names, self.urls, strict=True):
            port = url.rpartition(":")[2]
            self._add(name, "cli", "serve", "--no-reconcile", "--port", port)
            if name == names[0]:
                # The first one makes the database.
                self.await_service(START_SECONDS_MAX)
        for number in range(RECONCILERS):
            self._add(f"reconciler-{number}", "cli", "reconcile")
        self.tokens[TENANT] = (self.home / "admin-token").read_text().strip()
        with EmbeddedPostgres.attach(self.postgres) as running:
            self.tokens[OTHER_TENANT] = create_tenant(running.url, OTHER_TENANT)
        for tenant in self.tokens:
            with self.client(tenant) as http:
                grant = {"principal": "admin", "capability": "booking:write:{tenant}"}
                http.post("/v1/grants", json=grant).raise_for_status()
        with self.client(TENANT) as http:
            token = {"name": "second", "principal": "second", "roles": ["operator"]}
            second = http.post("/v1/tokens", json=token).raise_for_status().json()["token"]
        self.operators = [self.tokens[TENANT], second]

    def begin(self, seed: int, schedule: int, items: list[Item], folder: Path) -> None:
        """Publish the tools of a schedule, and let its workers and operators begin."""
        self.await_servers(START_SECONDS_MAX)
        self.log, self.struck, self.began_at = [], Counter[str](), time.monotonic()
        self._outage_until = 0.0
        for member in self.members.values():
            os.truncate(member.log, 0)
        plan = folder / "plan.json"
        self._calm, self._outage = (
            draw_plan(seed, schedule, webhook=self._webhook, is_down=is_down).model_dump_json()
            for is_down in (False, True)
        )
        plan.write_text(self._calm)
        port, books = self.provider_url.rpartition(":")[2], str(folder / "books.sqlite")
        provider = ("cli.demo.provider", "--port", port, "--books", books, "--plan", str(plan))
        self._add("provider", *provider, folder=folder)
        references = {tenant: self._publish(tenant, schedule) for tenant in self.tokens}
        self._await(self._has_provider, START_SECONDS_MAX, "the provider")
        save(items, folder / "work.json")
        now = time.monotonic()
        site = Site(
            urls=self.urls,
            provider_url=self.provider_url,
            tokens=self.tokens,
            operators=self.operators,
            references=references,
            began_at=now,
            retires_at=now + draw_retirement(seed, schedule, len(items)),
        )
        site.save(folder / "site.json")
        told = (str(folder), str(seed), str(schedule))
        self._add("operators", "tests.crash.operators", *told, folder=folder)
        for number in range(WORKERS):
            command = ("tests.crash.worker", *told, str(number))
            clock = partial(draw_clock, seed, schedule, number)
            self._add(f"worker-{number}", *command, folder=folder, clock=clock)

    def end(self) -> None:
        """End what was started for a schedule alone."""
        for name, member in list(self.members.items()):
            if member.kind in PASSING:
                member.kill()
                del self.members[name]

    def _add(
        self,
        name: str,
        *command: str,
        folder: Path | None = None,
        clock: Callable[[int], float] | None = None,
    ) -> None:
        def environment(start: int) -> Environment:
            stepped = {CLOCK: str(clock(start))} if clock else {}
            return self._environment() | stepped

        member = Process(name, folder or self.folder, [*command], environment)
        self.members[name] = member
        member.start()

    def _environment(self) -> Environment:
        foreign = ("TALLYSTICK_", "DATABASE_URL")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}
        return kept | {
            "TALLYSTICK_HOME": str(self.home),
            "TALLYSTICK_LEASE_SECONDS_MAX": "1",
            "TALLYSTICK_SWEEP_SECONDS": "0.2",
            "TALLYSTICK_SECRETS_FILE": str(self._secrets),
            "TALLYSTICK_EVIDENCE_PRIVATE_HOSTS": self.provider_url.removeprefix("http://"),
        }

    @property
    def _secrets(self) -> Path:
        return self.folder / "secrets.json"

    @property
    def _webhook(self) -> dict[str, str]:
        address = f"{self.urls[0]}/v1/webhooks/{TENANT}/{WEBHOOK_SOURCE}"
        return {"url": address, "secret": WEBHOOK_SECRET}

    def _publish(self, tenant: str, schedule: int) -> dict[str, list[ToolReference]]:
        references: dict[str, list[ToolReference]] = {}
        with self.client(tenant) as http:
            for document in documents(schedule, self.provider_url):
                answer = http.post("/v1/contracts", json={"document": document})
                published = answer.raise_for_status().json()["reference"]
                tool = document["name"].rpartition(".")[2]
                references.setdefault(tool, []).append(ToolReference.from_json(published))
        return references

    def client(self, tenant: str) -> httpx.Client:
        """Return a client of the first server with a tenant's token."""
        headers = {"Authorization": f"Bearer {self.tokens[tenant]}"}
        return httpx.Client(base_url=self.urls[0], headers=headers, trust_env=False, timeout=30)

    @contextmanager
    def clients(self) -> Generator[dict[str, httpx.Client]]:
        """Hold a client of each tenant."""
        with ExitStack() as stack:
            yield {tenant: stack.enter_context(self.client(tenant)) for tenant in self.tokens}

    # --- waiting --------------------------------------------------------------------------------

    def work(self, seconds: float) -> None:
        """Let the fleet work for a while."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._tend()
            time.sleep(POLL_SECONDS)

    def await_service(self, seconds_max: float) -> None:
        """Wait until a server answers, and has its database."""
        self._await(lambda: any(map(self._is_ready, self.urls)), seconds_max, "a server")
        self.note("the service answers")

    def await_servers(self, seconds_max: float) -> None:
        """Wait until every server answers."""
        self._await(lambda: all(map(self._is_ready, self.urls)), seconds_max, "every server")

    def await_end(self, seconds_max: float) -> None:
        """Wait until all work is closed, and every old version retired."""
        members = [one for one in self.members.values() if one.kind in ("worker", "operators")]
        self._await(lambda: all(one.status == 0 for one in members), seconds_max, "work to end")
        self.note("all work is closed")

    def _has_provider(self) -> bool:
        return self._answers(f"{self.provider_url}/plan")

    def _is_ready(self, server: str) -> bool:
        return self._answers(f"{server}/readyz")

    def _answers(self, url: str) -> bool:
        with suppress(httpx.TransportError):
            return self._http.get(url).is_success
        return False

    def _await(self, is_so: Callable[[], bool], seconds_max: float, what: str) -> None:
        deadline = time.monotonic() + seconds_max
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not after {seconds_max:g} s\n{self._tails()}")
            self._tend()
            time.sleep(POLL_SECONDS)

    def _tend(self) -> None:
        """Start again what has been down long enough, and what ended for want of a database.

        Raises Defect for a process that ended by itself in any other way.
        """
        now = time.monotonic()
        if self._outage_until and now >= self._outage_until and self._plans(self._calm):
            self._outage_until = 0.0
            self.note("the provider is back")
        for name, member in self.members.items():
            if member.is_down:
                if now >= member.down_until:
                    self.note(f"started {name}")
                    member.start()
            elif member.paused_until and now >= member.paused_until:
                self.note(f"resumed {name}")
                member.resume()
            elif member.status is not None:
                self._check(member, member.status)

    def _check(self, member: Process, status: int) -> None:
        if member.kind in ("worker", "operators") and status == 0:
            return
        if member.kind not in ("server", "reconciler") or status != UNREACHABLE:
            # Why a worker ends is often in what the servers say.
            raise Defect(f"{member.name} ended by itself with {status}\n{self._tails(member)}")
        self.note(f"{member.name} found no database")
        member.kill(0.2)

    def _tails(self, *first: Process) -> str:
        servers = (one for one in self.members.values() if one.kind == "server")
        return "\n\n".join(one.tail() for one in (*first, *servers))

    def note(self, what: str) -> None:
        self.log.append(f"{time.monotonic() - self.began_at:7.2f} s  {what}")

    # --- faults ---------------------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
        """Let a fault happen, as soon as one of its victims runs."""
        deadline = time.monotonic() + VICTIM_SECONDS_MAX
        while not (has_struck := self._has_struck(fault)):
            ended = [one.status == 0 for one in self.members.values() if one.kind == fault.victim]
            if time.monotonic() > deadline or (ended and all(ended)):
                break
            self.work(POLL_SECONDS)
        self.note(f"{fault}{'' if has_struck else ': there is none any more'}")
        if has_struck:
            self.struck[str(fault)] += 1

    def _has_struck(self, fault: Fault) -> bool:
        match fault.kind, fault.victim:
            case "outage", _:
                self._outage_until = time.monotonic() + fault.seconds
                return self._plans(self._outage)
            case _, "postgres" | "postmaster" | "supervisor":
                return postgres.strike(self.postgres, fault.victim)
            case kind, _:
                return self._strike(kind, fault)

    def _strike(self, kind: str, fault: Fault) -> bool:
        running = [
            one for one in self.members.values() if one.kind == fault.victim and one.is_running
        ]
        if not running:
            return False
        victim = running[fault.number % len(running)]
        self.note(f"{kind} {victim.name} for {fault.seconds:.1f} s")
        if kind == "kill":
            victim.kill(fault.seconds)
        else:
            victim.pause(fault.seconds)
        return True

    def _plans(self, plan: str) -> bool:
        """Let the provider behave in another way; False if it is not there."""
        with suppress(httpx.TransportError):
            address, headers = f"{self.provider_url}/plan", {"Content-Type": "application/json"}
            self._http.put(address, content=plan, headers=headers).raise_for_status()
            return True
        return False


def _free_port() -> int:
    """Return a port for a process that takes it some seconds later, and again after a kill.

    It lies below those that systems give to outgoing connections, one of which could take it first.
    """
    with socket.socket() as probe:
        for _ in range(PORT_TRIES_MAX):
            port = PORTS.start + secrets.randbelow(len(PORTS))
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise TimeoutError(f"no port from {PORTS.start} to {PORTS.stop} is free")
