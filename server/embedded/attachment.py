"""How a process uses the embedded server: attach to it, close, and stop it for everybody."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from server.embedded.errors import EmbeddedPostgresError
from server.embedded.home import ADDRESS, POLL_SECONDS, SUPERUSER, Home, log_tail, open_log
from server.embedded.postmaster import Postmaster, end_leftovers, running_postmaster

DATABASE: Final = "tallystick"
CONNECT_TIMEOUT_SECONDS: Final = 5
STOP_TIMEOUT_SECONDS: Final = 60.0


class EmbeddedPostgres:
    """One use of the server of a data folder; `attach` makes it, and leaving the `with` ends it.

    A use ends with `close` or with its process, however that dies. A process forked from a user
    uses the server too, until it ends or closes its copy. One process may attach several times.

    Attributes:
        url: The address of the database, as its owner and superuser. It contains the password.
        port: The TCP port on the loopback.
    """

    def __init__(self, home: Home, port: int, use: int) -> None:
        self._home = home
        self._use: int | None = use
        self.port = port
        password = home.password.read_text(encoding="utf-8")
        self.url = f"postgresql://{SUPERUSER}:{password}@{ADDRESS}:{port}/{DATABASE}"

    @classmethod
    def attach(cls, home: Path, *, start_timeout_seconds: float = 60) -> Self:
        """Use the server of this folder: the one that runs, or a new one.

        Any number of processes may do so at once, on a folder that does not even exist yet. The
        database is made if it is missing.

        Raises:
            EmbeddedPostgresError: no PostgreSQL is installed, the folder is of another major
                version, the start failed or took too long, or the platform is not supported.
        """
        if sys.platform == "win32":
            raise EmbeddedPostgresError(
                "The embedded PostgreSQL runs on Linux and macOS only; elsewhere, set DATABASE_URL."
            )
        deadline = time.monotonic() + start_timeout_seconds
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            place = Home(home.resolve())
            with place.gate(deadline):
                use = place.use()
                try:
                    return cls(place, _await_server(place, deadline).port, use)
                except BaseException:
                    os.close(use)
                    raise
        except OSError as error:
            raise EmbeddedPostgresError(f"The folder {home} cannot be used: {error}.") from error

    @property
    def postmaster_pid(self) -> int:
        """The pid of the server's first process. A restart changes it.

        Raises:
            EmbeddedPostgresError: no server runs at the moment.
        """
        postmaster = running_postmaster(self._home.data)
        if postmaster is None:
            raise EmbeddedPostgresError(f"No server runs for {self._home.folder}.")
        return postmaster.pid

    def close(self) -> None:
        """End this use. The server stops a little after the last one. Twice is as good as once."""
        use, self._use = self._use, None
        if use is not None:
            # Never unlock by hand: a forked process shares the lock and may go on using the server.
            os.close(use)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def stop(home: Path) -> bool:
    """Stop the server of this folder, whoever uses it; return whether one ran.

    Raises:
        EmbeddedPostgresError: it did not stop.
    """
    place = Home(home.resolve())
    if not place.gate_lock.exists():
        return False
    deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
    with place.gate(deadline):
        if not place.is_supervised():
            return end_leftovers(place.data)
        place.stop_request.touch()
        try:
            while place.is_supervised():
                if time.monotonic() > deadline:
                    raise EmbeddedPostgresError(f"The server of {place.folder} does not stop.")
                time.sleep(POLL_SECONDS)
        finally:
            place.stop_request.unlink(missing_ok=True)
    return True


def _await_server(home: Home, deadline: float) -> Postmaster:
    """Return a server that accepts connections; start a supervisor if there is none."""
    started, trouble = False, "it is not ready yet"
    while time.monotonic() < deadline:
        if not home.is_supervised():
            if started:
                raise EmbeddedPostgresError(_why_it_ended(home))
            _start_supervisor(home)
            started = True
            continue
        postmaster = running_postmaster(home.data)
        # A supervisor that was killed leaves a server behind that answers for a moment longer.
        own = postmaster is not None and postmaster.parent == home.supervisor_pid()
        if postmaster is not None and own and postmaster.ready:
            trouble = _ensure_database(home, postmaster.port)
            if not trouble:
                return postmaster
        time.sleep(POLL_SECONDS)
    raise EmbeddedPostgresError(
        f"The server of {home.folder} did not start in time: {trouble}; "
        f"it last said: {log_tail(home.log)}"
    )


def _start_supervisor(home: Home) -> None:
    home.failure.unlink(missing_ok=True)
    home.stop_request.unlink(missing_ok=True)
    root = Path(__file__).parents[2]
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    with open_log(home.supervisor_log) as log:
        subprocess.run(
            # -P: a file in the working directory must not pass for a module.
            [sys.executable, "-P", "-m", "server.embedded", str(home.folder)],
            cwd="/",
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            check=False,
        )


def _why_it_ended(home: Home) -> str:
    if home.failure.exists():
        return home.failure.read_text(encoding="utf-8")
    return f"The supervisor of {home.folder} ended; it last said: {log_tail(home.supervisor_log)}"


def _ensure_database(home: Home, port: int) -> str:
    """Make the database if it is missing; return what keeps us from it, or nothing."""
    # Imported here: the supervisor loads this package too and needs no client.
    import psycopg  # noqa: PLC0415

    try:
        with psycopg.connect(
            host=ADDRESS,
            port=port,
            user=SUPERUSER,
            password=home.password.read_text(encoding="utf-8"),
            dbname="postgres",
            sslmode="disable",
            gssencmode="disable",
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            autocommit=True,
        ) as connection:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(known, (DATABASE,)).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")
    except psycopg.Error as error:
        return " ".join(str(error).split())
    return ""
