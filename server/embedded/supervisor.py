"""The process whose child is the server. It belongs to nobody, and goes when nobody is left."""

import logging
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Final

from server.embedded.account import server_account
from server.embedded.binaries import find_binaries
from server.embedded.cluster import check_major, make_cluster, serving
from server.embedded.errors import EmbeddedPostgresError
from server.embedded.home import Home, log_tail, open_lock, try_lock, unlock
from server.embedded.postmaster import end_leftovers

LINGER: Final = "TALLYSTICK_PG_LINGER_SECONDS"
LINGER_SECONDS_DEFAULT: Final = 2.0
TICK_SECONDS: Final = 0.1
# A server that ends this often in this time is not started again.
STARTS_MAX: Final = 5
STARTS_WINDOW_SECONDS: Final = 60.0

LOG: Final = logging.getLogger(__name__)


def supervise(folder: Path) -> None:
    """Return once a supervisor of the folder lives, and be it in a process that nobody waits for.

    The lock is taken before the fork. So whoever started this knows when it returns: there is
    a supervisor, or it has ended.
    """
    home = Home(folder)
    supervision = open_lock(home.supervisor_lock)
    if not try_lock(supervision):
        os._exit(0)
    os.truncate(supervision, 0)  # before the fork: nobody may read a predecessor's pid
    if os.fork():
        os._exit(0)
    os.write(supervision, str(os.getpid()).encode())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    gate = open_lock(home.gate_lock)
    try:
        _serve(home, gate)
    except (EmbeddedPostgresError, OSError) as failure:
        LOG.critical("%s", failure)
        home.failure.write_text(str(failure), encoding="utf-8")
    finally:
        # The order matters: who gets the gate next must find nobody supervising.
        os.close(supervision)
        os.close(gate)


def _leave(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def _serve(home: Home, gate: int) -> None:
    account = server_account(home)
    binaries = find_binaries(account)
    make_cluster(home, binaries, account)
    check_major(home, binaries)
    usage = _Usage(gate, open_lock(home.users_lock), _linger_seconds())
    starts: deque[float] = deque(maxlen=STARTS_MAX)
    while len(starts) < STARTS_MAX or time.monotonic() - starts[0] > STARTS_WINDOW_SECONDS:
        starts.append(time.monotonic())
        end_leftovers(home.data)
        with serving(home, binaries, account) as server:
            LOG.info("started server %d from %s", server.pid, binaries.folder)
            while server.poll() is None:
                if home.stop_request.exists() or usage.has_ended():
                    LOG.info("stopping the server: asked to, or no user is left")
                    return
                time.sleep(TICK_SECONDS)
        LOG.warning("server %d ended with status %d", server.pid, server.returncode)
    raise EmbeddedPostgresError(
        f"The server of {home.folder} ended {STARTS_MAX} times; it last said: {log_tail(home.log)}"
    )


def _linger_seconds() -> float:
    text = os.environ.get(LINGER) or str(LINGER_SECONDS_DEFAULT)
    try:
        return float(text)
    except ValueError:
        raise EmbeddedPostgresError(f"{LINGER} must be a number of seconds, not {text}.") from None


class _Usage:
    """Watches whether anyone uses the server."""

    def __init__(self, gate: int, users: int, linger_seconds: float) -> None:
        self._gate = gate
        self._users = users
        self._linger_seconds = linger_seconds
        self._unused_since: float | None = None

    def has_ended(self) -> bool:
        """Whether there was no user for the linger time; if so, this holds the gate from now on.

        Holding it, the supervisor stops the server before a newcomer can rely on it.
        """
        if not try_lock(self._gate):  # a newcomer is at the gate
            self._unused_since = None
            return False
        if not try_lock(self._users):
            self._unused_since = None
        else:
            unlock(self._users)
            now = time.monotonic()
            if self._unused_since is None:
                self._unused_since = now
            if now - self._unused_since >= self._linger_seconds:
                return True
        unlock(self._gate)
        return False
