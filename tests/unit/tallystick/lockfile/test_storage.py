"""A lockfile on disk is read once, and replaced whole or left as it is."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tallystick.errors import LockfileInvalid, LockfileUnwritable
from tallystick.lockfile import storage
from tallystick.lockfile.entry import EMPTY, Lock
from tallystick.lockfile.storage import change, read, utc_now
from tallystick.lockfile.text import write_lock
from tests.unit.tallystick.lockfile.tools import a_document, a_lock, an_entry

SEARCH = an_entry()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tallystick.lock"


def add(lock: Lock) -> Lock:
    return lock.with_entry(SEARCH)


def left_behind(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


# --- reading --------------------------------------------------------------------------------------


def test_missing_file_holds_nothing(path, tmp_path):
    (tmp_path / "file").touch()
    assert read(path) is EMPTY
    assert read(tmp_path / "no/folder/tallystick.lock") is EMPTY
    assert read(tmp_path / "file/tallystick.lock") is EMPTY
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_file_is_parsed_once_until_it_changes(path):
    path.write_text(write_lock(a_lock("shop.a")))
    first = read(path)
    assert read(path) is first

    path.touch()
    assert read(path) is first  # another time, the same content

    path.write_text(write_lock(a_lock("shop.b")))
    assert [*read(path).entries] == ["shop.b"]
    path.unlink()
    assert read(path) is EMPTY


@pytest.mark.parametrize("contents", [b"", b'{"tallystick_lock": 1', b"\xff\xfe{}"])
def test_damaged_file_is_refused_with_its_path_and_stays(path, contents):
    path.write_bytes(contents)
    for attempt in (read, lambda path: change(path, add)):
        with pytest.raises(LockfileInvalid, match=r"tallystick\.lock is not .*restore") as caught:
            attempt(path)
        assert str(path) in str(caught.value)
    assert path.read_bytes() == contents
    assert left_behind(path.parent) == {"tallystick.lock"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.mkdir, "is a folder"),
        (os.mkfifo, "is no regular file"),
        (lambda path: path.symlink_to(path.name), "cannot be read"),
    ],
)
def test_what_is_no_file_is_refused(path, make, words):
    make(path)
    for attempt in (read, lambda path: change(path, add)):
        with pytest.raises(LockfileInvalid, match=words):
            attempt(path)
    assert [*path.parent.iterdir()] == [path]


def test_path_that_no_system_has_is_refused():
    with pytest.raises(LockfileInvalid, match="cannot be read"):
        change(Path("a\0b"), add)


def test_file_beyond_every_size_is_not_read_into_memory(path):
    with path.open("wb") as file:
        file.truncate(storage.BYTES_MAX + 1)
    with pytest.raises(LockfileInvalid, match="larger than 67108864 bytes"):
        read(path)


# --- changing -------------------------------------------------------------------------------------


def test_change_sees_what_is_there_and_returns_what_is_there_now(path):
    path.write_text(write_lock(a_lock("shop.a")))
    changed = change(path, add)
    assert [*changed.entries] == ["shop.a", "shop.tools.search"]
    assert path.read_text() == write_lock(changed)
    assert read(path) is changed

    assert [*change(path, lambda lock: lock.without("shop.a")).entries] == ["shop.tools.search"]
    assert [*read(path).entries] == ["shop.tools.search"]


def test_all_but_the_lockfile_is_out_of_sight_of_version_control(path):
    change(path, add)
    subprocess.run(["git", "init", "--quiet"], cwd=path.parent, check=True)
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=path.parent,
        check=True,
        capture_output=True,
        text=True,
    )
    assert status.stdout == "?? tallystick.lock\n"


@pytest.mark.parametrize("edit", [lambda lock: lock, lambda lock: Lock({**lock.entries}), add])
def test_nothing_is_written_when_nothing_changes(path, edit):
    path.write_text(write_lock(Lock().with_entry(SEARCH)))
    before = path.stat()
    change(path, edit)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_edit_that_fails_leaves_the_file(path):
    path.write_text(write_lock(a_lock("shop.a")))
    before = path.read_bytes()

    def fail(lock):
        raise OSError(errno.EIO, "of the edit itself")

    with pytest.raises(OSError, match="of the edit itself"):
        change(path, fail)
    assert path.read_bytes() == before
    assert [*change(path, add).entries] == ["shop.a", "shop.tools.search"]


def test_permissions_stay_and_a_new_file_gets_the_usual_ones(path):
    umask = os.umask(0o027)
    try:
        change(path, add)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640

    path.chmod(0o664)
    change(path, lambda lock: lock.without(SEARCH.name))
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


@pytest.mark.parametrize("is_there", [True, False])
def test_symbolic_link_stays_one(tmp_path, is_there):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real/tools.lock", tmp_path / "tallystick.lock"
    if is_there:
        target.write_text(write_lock(a_lock("shop.a")))
    link.symlink_to("real/tools.lock")

    change(link, add)
    assert link.is_symlink()
    assert SEARCH.name in read(target).entries
    assert read(link).entries.keys() == read(target).entries.keys()


def test_what_was_written_is_known_until_others_write(tmp_path):
    path, link = tmp_path / "tools.lock", tmp_path / "tallystick.lock"
    link.symlink_to("tools.lock")
    written = change(link, add)
    assert read(link) is read(path) is written

    path.write_text(write_lock(a_lock("shop.b")))
    assert [*read(link).entries] == [*read(path).entries] == ["shop.b"]
    assert change(link, add).entries.keys() == {"shop.b", SEARCH.name}


def test_what_a_killed_writer_left_is_in_nobodys_way(path):
    change(path, add)
    leftover = path.parent / ".tallystick/tallystick.lock.new"
    leftover.write_bytes(b"half of a")
    leftover.chmod(0o400)
    change(path, lambda lock: lock.without(SEARCH.name))
    assert read(path).entries == {}
    assert not leftover.exists()


def test_time_is_utc_to_the_second():
    assert len(utc_now()) == len("2026-11-30T10:00:00Z")
    assert utc_now().endswith("Z")


# --- what cannot be written -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obstacle", "reason"),
    [
        (lambda folder: (folder / "there").touch(), "Not a directory"),
        (lambda folder: None, "No such file or directory"),
    ],
)
def test_folder_that_is_none_is_refused(tmp_path, obstacle, reason):
    obstacle(tmp_path)
    before = left_behind(tmp_path)
    with pytest.raises(LockfileUnwritable) as caught:
        change(tmp_path / "there/tallystick.lock", add)
    assert str(caught.value) == (f"{tmp_path}/there/tallystick.lock cannot be written: {reason}.")
    assert left_behind(tmp_path) == before


def test_folder_of_the_guard_that_is_a_file_is_refused(path):
    (path.parent / ".tallystick").touch()
    with pytest.raises(LockfileUnwritable, match="cannot be written: "):
        change(path, add)
    assert not path.exists()


def test_content_that_cannot_be_put_in_place_leaves_nothing(path, tmp_path):
    path.write_text(write_lock(a_lock("shop.a")))
    before = path.read_bytes()
    (tmp_path / ".tallystick/tallystick.lock.new").mkdir(parents=True)
    with pytest.raises(LockfileUnwritable, match="cannot be written: "):
        change(path, add)
    assert path.read_bytes() == before


def test_file_too_large_for_the_system_leaves_the_old_one(path):
    """A limit of the process stands for a full disk: root has no way around it either."""
    change(path, lambda _: a_lock("shop.a"))
    before = path.read_bytes()
    program = f"""
import resource, signal
from pathlib import Path
from tallystick.errors import LockfileUnwritable
from tallystick.lockfile.entry import Entry
from tallystick.lockfile.storage import change
entry = Entry({a_document(version="1.0.0")!r}, "2026-11-30T10:00:00Z")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before)}, resource.RLIM_INFINITY))
try:
    change(Path({str(path)!r}), lambda lock: lock.with_entry(entry))
except LockfileUnwritable as error:
    print(error)
"""
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    assert said.stdout == f"{path} cannot be written: File too large.\n"
    assert path.read_bytes() == before
    assert not (path.parent / ".tallystick/tallystick.lock.new").exists()


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "reason"),
    [(0o555, 0o644, "Permission denied"), (0o755, 0o444, "it is read-only")],
)
def test_what_is_read_only_stays_as_it_is(folder_mode, file_mode, reason):
    with TemporaryDirectory() as name:
        path = Path(name, "tallystick.lock")
        content = write_lock(a_lock("shop.a"))
        path.write_text(content)
        path.chmod(file_mode)
        path.parent.chmod(folder_mode)
        said = _change_as_nobody(path)
        assert said == f"{path} cannot be written: {reason}.\n"
        assert path.read_text() == content
        assert not [*path.parent.rglob("*.new")]
        path.parent.chmod(0o755)


def _change_as_nobody(path: Path) -> str:
    """Return what a user is told whom permissions bind, which root's tests have to become."""
    program = f"""
import os
from pathlib import Path
import filelock
from tallystick.errors import LockfileUnwritable
from tallystick.lockfile.entry import Entry
from tallystick.lockfile.storage import change
path = Path({str(path)!r})
entry = Entry({a_document(version="1.0.0")!r}, "2026-11-30T10:00:00Z")
assert entry.hashes
if os.geteuid() == 0:
    for each in (path.parent, path):
        os.chown(each, 65534, 65534)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    change(path, lambda lock: lock.with_entry(entry))
except LockfileUnwritable as error:
    print(error)
"""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_another_process_that_holds_it_is_waited_for_and_then_named(path, monkeypatch):
    change(path, add)
    monkeypatch.setattr(storage, "WAIT_SECONDS_MAX", 0.05)
    guard = path.parent / ".tallystick/tallystick.lock.guard"
    program = f"""
from filelock import FileLock
with FileLock({str(guard)!r}):
    print("held", flush=True)
    input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockfileUnwritable, match="another process has held it"):
            change(path, lambda lock: lock.without(SEARCH.name))
        holder.communicate("\n", timeout=60)
    assert SEARCH.name in read(path).entries
