"""Makes the database cluster of a data folder, and runs its server."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from server.embedded.account import Account, give, spawn, within_reach
from server.embedded.binaries import CHOICE, Binaries
from server.embedded.errors import EmbeddedPostgresError
from server.embedded.home import ADDRESS, SUPERUSER, Home, open_log, tail
from server.embedded.postmaster import FAST_STOP_SECONDS, IMMEDIATE_STOP_SECONDS

# On the command line, so that they hold for an old folder too. Durability is spelled out because
# the ledger stands on it.
SETTINGS: Final = {
    "listen_addresses": ADDRESS,
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def make_cluster(home: Home, binaries: Binaries, account: Account) -> None:
    """Make the cluster and its password, if it is not there yet.

    It is made under another name and renamed when done, so that a kill leaves no half of it.

    Raises:
        EmbeddedPostgresError: `initdb` failed.
    """
    if home.cluster.exists():
        return
    for abandoned in home.folder.glob("postgres.new-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    draft = Home(Path(tempfile.mkdtemp(prefix="postgres.new-", dir=home.folder)))
    draft.cluster.mkdir(mode=0o700)
    _write_durably(draft.password, secrets.token_urlsafe(24))
    give(draft.cluster, account)
    give(draft.password, account)
    with within_reach(draft.cluster, account) as (name, descriptors):
        initdb = spawn(
            [
                binaries.folder / "initdb",
                f"--pgdata={name}/{home.data.name}",
                f"--pwfile={name}/{home.password.name}",
                f"--username={SUPERUSER}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--no-locale",
            ],
            account,
            output=subprocess.PIPE,
            on_orphaned=signal.SIGKILL,
            descriptors=descriptors,
        )
        said = initdb.communicate()[0].decode(errors="replace")
    if initdb.returncode != 0:
        raise EmbeddedPostgresError(f"initdb failed in {home.folder}: {tail(said)}")
    draft.cluster.rename(home.cluster)
    draft.folder.rmdir()
    _sync_folder(home.folder)


def check_major(home: Home, binaries: Binaries) -> None:
    """Refuse programs of another major version than the one that made the data.

    Raises:
        EmbeddedPostgresError: they differ, or the folder is not a PostgreSQL data folder.
    """
    try:
        major = (home.data / "PG_VERSION").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise EmbeddedPostgresError(f"{home.data} is not a PostgreSQL data folder.") from None
    if major != str(binaries.major):
        raise EmbeddedPostgresError(
            f"PostgreSQL {major} made the data folder {home.data}, but the programs in "
            f"{binaries.folder} are of PostgreSQL {binaries.major}: name a bin folder of "
            f"PostgreSQL {major} in {CHOICE}, or dump and restore the data."
        )


@contextmanager
def serving(home: Home, binaries: Binaries, account: Account) -> Generator[subprocess.Popen[bytes]]:
    """Run the server; on leaving, shut it down: clients are disconnected, commits are safe."""
    settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
    with (
        within_reach(home.cluster, account) as (name, descriptors),
        open_log(home.log) as log,
    ):
        server = spawn(
            [
                binaries.folder / "postgres",
                "-D",
                f"{name}/{home.data.name}",
                f"--port={_free_port(home)}",
                *settings,
            ],
            account,
            output=log.fileno(),
            on_orphaned=signal.SIGINT,
            descriptors=descriptors,
        )
    try:
        yield server
    finally:
        # PostgreSQL documentation, "Shutting Down the Server": fast, then immediate.
        for request, seconds in (
            (signal.SIGINT, FAST_STOP_SECONDS),
            (signal.SIGQUIT, IMMEDIATE_STOP_SECONDS),
        ):
            server.send_signal(request)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(seconds)
                break
        else:
            server.kill()


def _free_port(home: Home) -> int:
    """Return the port of the last start if it is free, so that connection pools find it again."""
    last = home.port.read_text(encoding="utf-8") if home.port.exists() else ""
    for wanted in (int(last) if last.isdecimal() else 0, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            # As the server does: connections that are still closing do not hold the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((ADDRESS, wanted))
            port: int = probe.getsockname()[1]
            home.port.write_text(str(port), encoding="utf-8")
            return port
    raise EmbeddedPostgresError(f"There is no free port on {ADDRESS}.")


def _write_durably(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
