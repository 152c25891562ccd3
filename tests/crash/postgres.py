"""The embedded PostgreSQL of a fleet, as somebody sees it who wants to kill it."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil

from server.embedded import stop
from server.embedded.home import Home
from server.embedded.postmaster import running_postmaster


def strike(folder: Path, victim: str) -> bool:
    """Kill the server's first process or its supervisor, or stop it in order.

    Returns False where there is none at the moment. Whoever uses it starts it again.
    """
    if victim == "postgres":
        return stop(folder)
    pid = _postmaster(folder) if victim == "postmaster" else _supervisor(folder)
    if pid is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _postmaster(folder: Path) -> int | None:
    postmaster = running_postmaster(Home(folder.resolve()).data)
    return postmaster.pid if postmaster else None


def _supervisor(folder: Path) -> int | None:
    postmaster = _postmaster(folder)
    if postmaster is None:
        return None
    with suppress(psutil.NoSuchProcess):
        supervisor = psutil.Process(postmaster).parent()
        if supervisor is not None and str(folder.resolve()) in " ".join(supervisor.cmdline()):
            return supervisor.pid
    return None
