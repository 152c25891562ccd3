"""Runs the server's programs: as whom, with what in reach, and for how long.

PostgreSQL refuses to run as root. For root, its programs run as an unprivileged account, and no
folder's permissions are loosened for it.
"""

import ctypes
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from server.embedded.errors import EmbeddedPostgresError
from server.embedded.home import Home

# include/uapi/linux/prctl.h
PR_SET_PDEATHSIG: Final = 1


class Account(NamedTuple):
    """Whom the server runs as. No uid and gid: as whoever this process is."""

    uid: int | None
    gid: int | None


def server_account(home: Home) -> Account:
    """Return the account that the server of this folder runs as.

    Raises:
        EmbeddedPostgresError: this is root, and there is no account to change to.
    """
    if os.geteuid() != 0:
        return Account(None, None)
    if home.data.exists() and (owner := home.data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid)
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, and there is neither an account `postgres` nor `nobody`."
    )


def give(path: Path, account: Account) -> None:
    """Make the account the owner."""
    if account.uid is not None and account.gid is not None:
        os.chown(path, account.uid, account.gid)


@contextmanager
def within_reach(folder: Path, account: Account) -> Generator[tuple[str, tuple[int, ...]]]:
    """Yield a name by which the account can open the folder, and descriptors to pass on with it.

    A parent may be closed to the account, as root's own home is. Instead of opening it, hand over
    a descriptor of the folder: on Linux its name in /proc leads straight there (proc(5)).
    """
    if account.uid is None or sys.platform != "linux":
        yield str(folder), ()
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)


def spawn(
    command: Sequence[str | Path],
    account: Account,
    *,
    output: int,
    on_orphaned: signal.Signals,
    descriptors: tuple[int, ...] = (),
) -> subprocess.Popen[bytes]:
    """Start a program as the account; on Linux the signal reaches it if this process dies.

    It gets its own small environment: neither an odd locale nor the secrets of whoever started us.

    Raises:
        OSError: the account cannot execute the program.
    """
    return subprocess.Popen(
        command,
        cwd="/",
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=descriptors,
        user=account.uid,
        group=account.gid,
        extra_groups=None if account.uid is None else [],
        # Safe: the supervisor has one thread. It must run after the change of account, which would
        # undo it; and the kernel's signal comes when the thread ends that spawned the program.
        preexec_fn=_bind_to_this_process(on_orphaned),  # noqa: PLW1509
    )


def _bind_to_this_process(on_orphaned: signal.Signals) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    parent, libc = os.getpid(), ctypes.CDLL(None)

    def bind() -> None:
        libc.prctl(PR_SET_PDEATHSIG, int(on_orphaned))
        if os.getppid() != parent:
            os._exit(1)

    return bind
