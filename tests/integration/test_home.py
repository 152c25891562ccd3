"""The home folder: the token and the keys are made once, are their owner's alone, and stay."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import jwt
import pytest

from server.home import admin_token_file, open_home, read_keys, write_once
from tallystick.errors import RegistryUnavailable
from tests.api import Api, running
from tests.builders import ARGUMENTS, a_contract
from tests.fixtures import Owner

CANARY = "canary-4111111111111111"
STARTERS = 8


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home that is not there yet, under the most open umask there is."""
    before = os.umask(0)
    yield tmp_path / "home"
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_the_home_is_its_owners_alone(database_url: str, home: Path):
    async with running(database_url, home):
        assert mode(home) == 0o700
        assert {name: mode(home / name) for name in files(home)} == {
            "admin-token": 0o600,
            "keys.json": 0o600,
        }
        assert len(admin_token_file(home).read_text().strip()) >= 32


def test_a_home_that_is_there_is_left_as_it_is(home: Path):
    home.mkdir(mode=0o750)
    (home / "notes").write_text("mine")
    open_home(home)
    assert (mode(home), (home / "notes").read_text()) == (0o750, "mine")


async def test_token_and_keys_are_made_once(database_url: str, home: Path, owner: Owner):
    made: list[dict[str, bytes]] = []
    for _ in range(3):
        async with running(database_url, home) as api:
            assert (await api.ask("GET", "/v1/whoami")).body["roles"] == ["admin"]
        made.append(files(home))
    assert made[0] == made[1] == made[2]
    assert await owner.one("SELECT count(*) FROM api_token") == 1
    assert await owner.one("SELECT count(*) FROM service_key") == 1


async def test_a_second_home_makes_no_second_token(database_url: str, home: Path, owner: Owner):
    """Whoever made the token gives it to the clients of other machines."""
    async with running(database_url, home):
        second = home.with_name("second")
        open_home(second)
        write_once(second / "keys.json", (home / "keys.json").read_text())
        with pytest.raises(FileNotFoundError, match="admin-token"):
            async with running(database_url, second):
                pass
    assert files(second).keys() == {"keys.json"}
    assert await owner.one("SELECT count(*) FROM api_token") == 1


async def test_starters_at_once_agree(database_url: str, home: Path, owner: Owner):
    async def start() -> str:
        async with running(database_url, home) as api:
            assert (await api.ask("GET", "/v1/whoami")).status == 200
            return api.token

    assert len(set(await asyncio.gather(*(start() for _ in range(STARTERS))))) == 1
    assert files(home).keys() == {"admin-token", "keys.json"}
    assert await owner.one("SELECT count(*) FROM api_token") == 1
    assert await owner.one("SELECT count(*) FROM service_key") == 1


def test_threads_that_write_at_once_agree(home: Path):
    barrier = Barrier(STARTERS, timeout=60)
    path = open_home(home) / "file"

    def write(content: str) -> str:
        barrier.wait()
        return write_once(path, content)

    with ThreadPoolExecutor(STARTERS) as pool:
        held = set(pool.map(write, map(str, range(STARTERS))))
    assert held == {path.read_text()}
    assert (mode(path), files(home)) == (0o600, {"file": held.pop().encode()})


def test_processes_that_write_at_once_agree(home: Path):
    path = open_home(home) / "keys.json"
    program = (
        "import sys; from pathlib import Path; from server.home import read_keys;"
        "sys.stdin.readline();"
        "print(read_keys(Path(sys.argv[1])).keys['k1'].hex())"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    held = {writer.communicate(timeout=60)[0].strip() for writer in writers}
    assert held == {read_keys(path).keys["k1"].hex()}


GOOD = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        CANARY.encode(),
        f'{{"{CANARY}'.encode(),
        b"\xff" + CANARY.encode(),
        b"[" * 100_000,
        f'["{CANARY}"]'.encode(),
        f'{{"current": "k1", "keys": ["{CANARY}"]}}'.encode(),
        f'{{"current": "k1", "keys": {{"k1": "{CANARY}"}}}}'.encode(),
        f'{{"current": "k1", "keys": {{"k1": ["{CANARY}"]}}}}'.encode(),
        f'{{"current": "{CANARY}", "keys": {{"k1": "{GOOD}"}}}}'.encode(),
        f'{{"keys": {{"{CANARY}": "{GOOD}"}}}}'.encode(),
    ],
    ids=lambda content: content[:24].decode("latin-1"),
)
async def test_a_damaged_key_file_is_named_and_not_quoted(
    database_url: str, home: Path, owner: Owner, content: bytes
):
    path = open_home(home) / "keys.json"
    path.write_bytes(content)
    before = await owner.counts()
    with pytest.raises(RegistryUnavailable) as refused:
        async with running(database_url, home):
            pass
    assert refused.value.detail == f"{path} is not a key file."
    assert CANARY not in "".join(traceback.format_exception(refused.value))
    assert path.read_bytes() == content
    assert await owner.counts() == before


@pytest.mark.parametrize("content", [b"", b"\n", b"short\n", b"\xff" * 40])
async def test_an_emptied_token_file_is_no_token(
    database_url: str, home: Path, owner: Owner, content: bytes
):
    path = admin_token_file(open_home(home))
    path.write_bytes(content)
    with pytest.raises(RegistryUnavailable) as refused:
        async with running(database_url, home):
            pass
    assert refused.value.detail == f"{path} does not hold a token."
    assert await owner.one("SELECT count(*) FROM api_token") == 0


async def test_another_key_file_than_the_databases_is_refused(
    database_url: str, home: Path, owner: Owner
):
    async with running(database_url, home):
        pass
    path = home / "keys.json"
    own = path.read_text()
    ring = json.loads(own)
    before = await owner.dump()
    for wrong in (
        None,  # lost: a new one is made
        {"current": "k1", "keys": {"k1": GOOD}},
        {"current": "k2", "keys": {"k2": GOOD}},
        {"current": "k2", "keys": {"k2": ring["keys"]["k1"]}},
        {"current": "k2", "keys": {"k1": GOOD, "k2": ring["keys"]["k1"]}},
    ):
        path.unlink()
        if wrong is not None:
            path.write_text(json.dumps(wrong))
        with pytest.raises(RegistryUnavailable) as refused:
            async with running(database_url, home):
                pass
        assert "written with another key 'k1' than the key file holds" in refused.value.detail
        assert "Start the service with the key file that belongs" in refused.value.detail
        assert await owner.dump() == before
    path.write_text(own)
    async with running(database_url, home) as api:
        assert (await api.ask("GET", "/v1/whoami")).status == 200


# --- rotation -------------------------------------------------------------------------------------

CARD = {"type": "string", "x-sensitive": True}
SECRET = ARGUMENTS | {"card": CANARY}


def secretive() -> dict[str, Any]:
    schema = a_contract()["input_schema"]
    return a_contract(input_schema=schema | {"properties": schema["properties"] | {"card": CARD}})


def rotate(home: Path) -> None:
    """Add a key to the ring, and let it make what is new."""
    path = home / "keys.json"
    ring = json.loads(path.read_text())
    ring["keys"]["k2"] = base64.b64encode(os.urandom(32)).decode()
    path.write_text(json.dumps(ring | {"current": "k2"}))


async def lease_of(api: Api, tool: dict[str, Any]) -> str:
    return (await api.ask("POST", "/v1/resolve", tool)).body["lease"]


async def test_what_an_older_key_wrote_is_still_known(database_url: str, home: Path, owner: Owner):
    async with running(database_url, home) as api:
        tool = await api.publish(secretive())
        named = (await api.plan(tool, arguments=SECRET, key="key-1")).body
        unnamed = (await api.plan(tool, arguments=SECRET, effect=None)).body
        lease = await lease_of(api, tool)
    rotate(home)
    async with running(database_url, home) as api:
        for changes, same in (({"key": "key-1"}, named), ({"effect": None}, unnamed)):
            again = await api.plan(tool, arguments=SECRET, **changes)
            assert (again.status, again.body["effect_id"]) == (200, same["effect_id"])
        for changes in ({"key": "key-1"}, {"key": "key-1", "run": "run-2"}, {}):
            other = await api.plan(tool, arguments=SECRET | {"card": "another"}, **changes)
            assert other.refusal == (409, "effect_conflict")
        sent = (await api.dispatch(named)).body
        assert sent["dispatch"]["arguments"] == SECRET
        new = (await api.plan(tool, arguments=SECRET, effect="effect-2")).body
        assert (await api.dispatch(new)).body["dispatch"]["arguments"] == SECRET
        assert jwt.get_unverified_header(await lease_of(api, tool))["kid"] == "k2"
        assert (await api.retire(tool)).refusal == (409, "contract_in_use")
        assert (await api.plan(tool, effect="effect-3")).refusal == (409, "contract_migrating")
        assert (await api.plan(tool, effect="effect-3", lease=lease)).status == 201
    keys = await owner.rows("SELECT key_id, count(*) FROM effect GROUP BY key_id ORDER BY key_id")
    assert keys == [("k1", 2), ("k2", 2)]


async def test_a_key_that_was_used_is_never_taken_out(database_url: str, home: Path):
    async with running(database_url, home):
        pass
    rotate(home)
    async with running(database_url, home):
        pass
    path = home / "keys.json"
    ring = json.loads(path.read_text())
    for gone, current in (("k1", "k2"), ("k2", "k1")):
        kept = {name: key for name, key in ring["keys"].items() if name != gone}
        path.write_text(json.dumps({"current": current, "keys": kept}))
        with pytest.raises(RegistryUnavailable, match=f"another key '{gone}'"):
            async with running(database_url, home):
                pass
