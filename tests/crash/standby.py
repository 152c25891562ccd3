"""A PostgreSQL primary and its standby, made from the programs that the embedded one runs.

Each is a copy of one data folder. They are killed without mercy, and end with the test.
"""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, LiteralString

import psutil
import psycopg

from server.embedded.account import give, server_account, spawn, within_reach
from server.embedded.attachment import DATABASE
from server.embedded.binaries import find_binaries
from server.embedded.cluster import SETTINGS, make_cluster
from server.embedded.home import ADDRESS, SUPERUSER, Home, log_tail, open_log

WAIT_SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.05


class Node:
    """One PostgreSQL server, and the folder with its data."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.home = Home(folder.resolve())
        self.port = free_port()
        self._account = server_account(self.home)
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def password(self) -> str:
        return self.home.password.read_text()

    @property
    def url(self) -> str:
        return f"postgresql://{SUPERUSER}:{self.password}@{ADDRESS}:{self.port}/{DATABASE}"

    def ask(self, statement: LiteralString, *, database: str = "postgres") -> list[tuple[object]]:
        """Run a statement as the superuser."""
        with psycopg.connect(
            self.url, dbname=database, autocommit=True, connect_timeout=5
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def make(self) -> None:
        """Make the data folder, with an empty database of the service's."""
        make_cluster(self.home, find_binaries(self._account), self._account)
        self.start(fsync="off")
        self.ask(f"CREATE DATABASE {DATABASE}")

    def copy(self, other: "Node") -> None:
        """Take the data of a server that is shut down."""
        shutil.copytree(other.home.cluster, self.home.cluster)
        for path in (self.home.cluster, *self.home.cluster.rglob("*")):
            give(path, self._account)

    def follow(self, primary: "Node") -> None:
        """Start as a standby of a server that has the same data."""
        way = f"host={ADDRESS} port={primary.port} user={SUPERUSER} password={self.password}"
        (self.home.data / "standby.signal").touch()
        with (self.home.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = '{way}'\n")
        self.start()
        await_that(
            lambda: primary.ask("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")
        )

    def unfollow(self) -> None:
        """Receive nothing more, as a standby that has lost its primary from sight."""
        self.ask("ALTER SYSTEM RESET primary_conninfo")
        self.ask("SELECT pg_reload_conf()")
        await_that(lambda: not self.ask("SELECT 1 FROM pg_stat_wal_receiver"))

    def promote(self) -> None:
        """Take over."""
        self.ask("SELECT pg_promote()")

    def start(self, **settings: str) -> None:
        """Start the server, and wait until it answers."""
        given = SETTINGS | settings
        with (
            within_reach(self.home.cluster, self._account) as (name, descriptors),
            open_log(self.home.log) as log,
        ):
            self._server = spawn(
                [
                    find_binaries(self._account).folder / "postgres",
                    "-D",
                    f"{name}/{self.home.data.name}",
                    f"--port={self.port}",
                    *(f"--{name}={value}" for name, value in given.items()),
                ],
                self._account,
                output=log.fileno(),
                on_orphaned=signal.SIGINT,
                descriptors=descriptors,
            )
        await_that(self._answers)

    def _answers(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, log_tail(self.home.log)
        with suppress(psycopg.OperationalError):
            return bool(self.ask("SELECT 1"))
        return False

    def shut_down(self) -> None:
        """Stop the server in order, if it runs."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill every process of the server at once, if it runs."""
        self._end(signal.SIGKILL)

    def _end(self, request: signal.Signals) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        family = [psutil.Process(server.pid)]
        if request is signal.SIGKILL:
            family += family[0].children(recursive=True)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(request)
        server.wait(WAIT_SECONDS_MAX)


@contextmanager
def pair(folder: Path, model: Node, *, synchronous: bool) -> Generator[tuple[Node, Node]]:
    """Run a primary with its standby, both on the data of a server that is shut down."""
    primary, standby = Node(folder / "primary"), Node(folder / "standby")
    try:
        for node in (primary, standby):
            node.copy(model)
        primary.start(synchronous_standby_names="ANY 1 (*)" if synchronous else "")
        standby.follow(primary)
        yield primary, standby
    finally:
        for node in (primary, standby):
            node.kill()


def address_of(*nodes: Node) -> str:
    """Return one address of several servers: whichever of them takes writes."""
    hosts = ",".join(f"{ADDRESS}:{node.port}" for node in nodes)
    to = f"{hosts}/{DATABASE}?target_session_attrs=read-write"
    return f"postgresql://{SUPERUSER}:{nodes[0].password}@{to}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


def await_that(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(POLL_SECONDS)
