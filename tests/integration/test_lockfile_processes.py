"""Processes that change one lockfile at once, or are killed at it."""

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tallystick.lockfile.storage import read
from tallystick.lockfile.text import check_hashes, parse_lock, write_lock
from tests.unit.tallystick.lockfile.tools import a_document, a_lock, an_entry

SECONDS_MAX = 120
WRITERS = 4
EDITS = 10
STEPS_MAX = 60

# Each writer adds tools of its own, and rewrites the one that all of them share.
WRITER = """
import sys
from pathlib import Path
from tallystick.lockfile.entry import Entry
from tallystick.lockfile.storage import change

path, writer, document = Path(sys.argv[1]), sys.argv[2], eval(sys.argv[3])

def named(name, description):
    return Entry({**document, "name": name, "description": description}, "2026-11-30T10:00:00Z")

def counted(lock):
    present = lock.entries["shop.shared"]
    return lock.with_entry(named("shop.shared", present.document["description"] + "+"))

print("ready", flush=True)
input()
for index in range(int(sys.argv[4])):
    change(path, lambda lock: lock.with_entry(named(f"shop.by{writer}x{index}", "Mine.")))
    change(path, counted)
    print(index, flush=True)
"""

DOCUMENT = repr(a_document(version="1.0.0"))


def start(path: Path, writer: str, edits: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), writer, DOCUMENT, str(edits)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def say(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tallystick.lock"
    path.write_text(write_lock(a_lock().with_entry(an_entry(a_document(name="shop.shared")))))
    return path


@pytest.mark.parametrize("round_", ["first", "second"])
def test_writers_at_once_lose_nothing(path, round_):
    with ExitStack() as running:
        processes = [
            running.enter_context(start(path, str(each), EDITS)) for each in range(WRITERS)
        ]
        assert [say(each) for each in processes] == ["ready\n"] * WRITERS
        for each in processes:
            let_go(each)
        for each in processes:
            _, errors = each.communicate(timeout=SECONDS_MAX)
            assert (each.returncode, errors) == (0, "")

    lock = read(path)
    added = {f"shop.by{each}x{index}" for each in range(WRITERS) for index in range(EDITS)}
    assert lock.entries.keys() == added | {"shop.shared"}
    shared = lock.entries["shop.shared"].contract.description
    assert shared.count("+") == WRITERS * EDITS
    check_hashes(lock)
    assert sorted(each.name for each in path.parent.iterdir()) == [".tallystick", path.name]


def test_readers_see_a_whole_file_while_it_is_written(path):
    with start(path, "1", EDITS) as writer:
        assert say(writer) == "ready\n"
        let_go(writer)
        seen = 0
        while writer.poll() is None:
            # Not `read`, which would not look twice at what has not changed.
            lock = parse_lock(path.read_text(), name="tallystick.lock")
            assert len(lock.entries) >= seen
            seen = len(lock.entries)
        writer.communicate(timeout=SECONDS_MAX)
    assert len(read(path).entries) == EDITS + 1


# Kills itself at the nth thing that it asks of the operating system.
SUICIDE = """
import os, signal, sys
from pathlib import Path
import filelock
from tallystick.lockfile.entry import Entry
from tallystick.lockfile.storage import change

path, left = Path(sys.argv[1]), int(sys.argv[2])
entry = Entry(eval(sys.argv[3]), "2026-11-30T10:00:00Z")
assert entry.hashes

def count(event, arguments):
    global left
    if event == "open" or event.startswith("os."):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
change(path, lambda lock: lock.with_entry(entry))
"""


def test_writer_killed_at_any_step_leaves_the_old_file_or_the_new_one(path):
    before = path.read_text()
    seen: list[str] = []
    for step in range(1, STEPS_MAX):
        path.write_text(before)
        killed = subprocess.run(
            [sys.executable, "-c", SUICIDE, str(path), str(step), DOCUMENT],
            check=False,
            capture_output=True,
            timeout=SECONDS_MAX,
        )
        found = path.read_text()
        seen.append(found)
        check_hashes(parse_lock(found, name="tallystick.lock"))
        if killed.returncode == 0:
            break
        assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, b"")
    assert seen[-1] != before
    assert {*seen} == {before, seen[-1]}
    assert seen.count(before) > 3


def test_next_writer_is_not_kept_waiting_by_a_killed_one(path):
    with start(path, "victim", 100_000) as writer:
        assert say(writer) == "ready\n"
        let_go(writer)
        assert [say(writer) for _ in range(3)] == ["0\n", "1\n", "2\n"]
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=SECONDS_MAX)
    assert "shop.byvictimx2" in read(path).entries

    with start(path, "heir", 1) as writer:
        assert say(writer) == "ready\n"
        let_go(writer)
        _, errors = writer.communicate(timeout=SECONDS_MAX)
        assert (writer.returncode, errors) == (0, "")
    assert {"shop.byvictimx2", "shop.byheirx0"} <= read(path).entries.keys()
