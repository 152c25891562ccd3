"""Reads and changes lockfiles on disk: whole or not at all, by one process at a time.

Beside the lockfile stands a folder `.tallystick` that version control does not see. In it are the
file by which writers exclude one another, and for a moment the new content.
"""

import os
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from os.path import samestat
from pathlib import Path
from typing import Final

from tallystick.errors import LockfileInvalid, LockfileUnwritable
from tallystick.lockfile.entry import EMPTY, Lock
from tallystick.lockfile.text import parse_lock, write_lock

BYTES_MAX: Final = 64 * 2**20
WAIT_SECONDS_MAX: Final = 30.0

_POLL_SECONDS: Final = 0.01
_FOLDER: Final = ".tallystick"


def read(path: Path) -> Lock:
    """Return what a lockfile holds; nothing, if there is none.

    As long as the file stays as it is, it is read once in a process.

    Raises:
        LockfileInvalid: It cannot be read, or is no lockfile.
    """
    return _known(path).lock


def change(path: Path, edit: Callable[[Lock], Lock]) -> Lock:
    """Change a lockfile, while every other process that wants to waits.

    What others wrote before is there for `edit` to see, and readers see the old file or the new
    one. A symbolic link stays one: the file that it leads to changes. Nothing is written if `edit`
    returns what it was given, or what reads the same.

    Args:
        path: The lockfile, which need not be there. Its folder has to be.
        edit: Returns the new content for the present one.

    Returns:
        What the lockfile holds now.

    Raises:
        LockfileInvalid: What is there cannot be read, or is no lockfile. It stays as it is.
        LockfileUnwritable: It cannot be written, or another process holds it for too long.
    """
    read(path)  # A file that cannot be used is refused before anything is made beside it.
    target = Path(os.path.realpath(path))
    with _guarded(target) as folder:
        # Read once more, whatever it looks like: a network's file system may tell of times that are
        # past, and what another host wrote would be lost.
        status = _status(target)
        known = _NOTHING if status is None else _load(target, status)
        edited = edit(known.lock)
        if edited is known.lock:
            return edited
        content = write_lock(edited).encode()
        if content != known.content:
            signature = _replace(target, content, folder)
            _KNOWN[path] = _KNOWN[target] = _Known(signature, content, edited)
        return edited


def utc_now() -> str:
    """Return the present time as entries have it, `2026-11-30T10:00:00Z`."""
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """What this process last read or wrote of a file.

    Args:
        signature: The file's; None if there was none, or if it may be another by now.
        content: Its bytes; None if there was no file.
        lock: What they say.
    """

    signature: tuple[int, ...] | None
    content: bytes | None
    lock: Lock


_KNOWN: Final[dict[Path, _Known]] = {}
_NOTHING: Final = _Known(None, None, EMPTY)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _known(path: Path) -> _Known:
    """Return what a file holds; it is only read if it is not as this process left it."""
    status = _status(path)
    if status is None:
        return _NOTHING
    known = _KNOWN.get(path, _NOTHING)
    return known if known.signature == _signature(status) else _load(path, status)


def _signature(status: os.stat_result) -> tuple[int, ...]:
    """Return what is another for other content, however soon after it was written."""
    changed = (status.st_mtime_ns, status.st_ctime_ns)
    return status.st_dev, status.st_ino, status.st_size, *changed


def _load(path: Path, status: os.stat_result) -> _Known:
    """Read a file; it is only parsed if its content is not what it was."""
    content = _content(path, status)
    known = _KNOWN.get(path, _NOTHING)
    try:
        lock = (
            known.lock if known.content == content else parse_lock(content.decode(), name=str(path))
        )
    except UnicodeDecodeError as error:
        raise LockfileInvalid(
            f"{path} is not UTF-8 (byte {error.start}): restore the file from version control"
        ) from None
    loaded = _KNOWN[path] = _Known(_signature(status), content, lock)
    return loaded


def _content(path: Path, status: os.stat_result) -> bytes:
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise LockfileInvalid(f"{path} is {kind}: the lockfile has to be a file")
    try:
        with path.open("rb") as file:
            # One byte more than allowed is enough to know, however large the file is.
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(content) > BYTES_MAX:
        raise LockfileInvalid(
            f"{path} is larger than {BYTES_MAX} bytes: restore the file from version control"
        )
    return content


def _unreadable(path: Path, error: Exception) -> LockfileInvalid:
    reason = error.strerror if isinstance(error, OSError) else error
    return LockfileInvalid(f"{path} cannot be read: {reason}")


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def _guarded(path: Path) -> Generator[Path]:
    """Make other writers wait, and yield the folder that is this one's in the meantime."""
    from filelock import FileLock, Timeout

    folder = path.parent / _FOLDER
    guard = FileLock(folder / f"{path.name}.guard")
    try:
        folder.mkdir(exist_ok=True)
        unseen = folder / ".gitignore"
        if not unseen.exists():
            unseen.write_text("*\n")
        guard.acquire(timeout=WAIT_SECONDS_MAX, poll_interval=_POLL_SECONDS)
    except Timeout:
        reason = f"another process has held it for {WAIT_SECONDS_MAX:.0f} seconds; try again"
        raise _unwritable(path, reason) from None
    except (OSError, NotImplementedError) as error:
        raise _unwritable(path, error) from None
    try:
        yield folder
    finally:
        guard.release()


def _replace(path: Path, content: bytes, folder: Path) -> tuple[int, ...] | None:
    """Give a file new content; return its signature, unless others have been at it already."""
    # One name for all writers, so that what a killed one leaves is out of sight, and not for long.
    fresh = folder / f"{path.name}.new"
    try:
        fresh.unlink(missing_ok=True)
        with fresh.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            written = os.fstat(file.fileno())
        if path.exists():
            if not os.access(path, os.W_OK):
                raise _unwritable(path, "it is read-only")
            fresh.chmod(stat.S_IMODE(path.stat().st_mode))
        fresh.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
    status = _status(path)
    if status is None or not samestat(status, written) or status.st_mtime_ns != written.st_mtime_ns:
        return None
    return _signature(status)


def _unwritable(path: Path, reason: Exception | str) -> LockfileUnwritable:
    stated = reason.strerror if isinstance(reason, OSError) else reason
    return LockfileUnwritable(f"{path} cannot be written: {stated or reason}")
