"""What one client may cost: seconds, requests, guesses, and the size of what it sends."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
import uvicorn

from access.token import new_token
from kernel.http import in_thread
from kernel.scope import Caller
from server.listener import HEAD_BYTES_MAX, bounded_protocol
from tallystick.errors import RateLimited
from tests.api import BASE, Api, running
from tests.fixtures import Owner
from tests.problems import problem_in

HARDLY = 1e-6
"""So few a second that no test waits for the next."""


def from_address(api: Api, token: str, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(api.app, client=(address, 4711))
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers)


# --- how often ------------------------------------------------------------------------------------


async def test_a_token_that_asks_too_often_is_told_when_to_come_again(
    database_url: str, tmp_path: Path
):
    rates: dict[str, Any] = {"rate_per_second": HARDLY, "rate_burst": 3}
    async with running(database_url, tmp_path / "home", **rates) as api:
        statuses = [(await api.ask("GET", "/v1/whoami")).status for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        response = await api.http.get("/v1/whoami")
        problem = problem_in(response)
        assert (problem["code"], problem["retryable"]) == ("rate_limited", True)
        assert int(response.headers["retry-after"]) == problem["facts"]["retry_after_seconds"] > 0
        for scheme in ("bearer", "BEARER", "Bearer   "):
            headers = {"Authorization": f"{scheme} {api.token}"}
            assert (await api.http.get("/v1/whoami", headers=headers)).status_code == 429
        assert (await api.http.get("/healthz")).status_code == 200


async def test_each_token_has_its_own_rate(database_url: str, tmp_path: Path):
    rates: dict[str, Any] = {"rate_per_second": HARDLY, "rate_burst": 2}
    async with running(database_url, tmp_path / "home", **rates) as api:
        made = await api.ask("POST", "/v1/tokens", {"name": "two", "roles": ["runtime"]})
        async with api.speaking_for(made.body["token"]).http as other:
            statuses = [(await other.get("/v1/whoami")).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert (await api.ask("GET", "/v1/whoami")).status == 200


async def test_what_is_refused_for_its_rate_does_nothing(database_url: str, tmp_path: Path):
    rates: dict[str, Any] = {"rate_per_second": HARDLY, "rate_burst": 1}
    async with running(database_url, tmp_path / "home", **rates) as api:
        assert (await api.ask("GET", "/v1/credentials")).body == {"credentials": []}
        refusal = (await api.ask("POST", "/v1/credentials", {"name": "a"})).refusal
        assert refusal == (429, "rate_limited")
    async with running(database_url, tmp_path / "home") as api:
        assert (await api.ask("GET", "/v1/credentials")).body == {"credentials": []}


async def test_guessing_is_slow_and_holds_up_nobody_who_is_known(database_url: str, tmp_path: Path):
    async with running(database_url, tmp_path / "home", guesses_per_minute=3) as api:
        assert (await api.ask("GET", "/v1/whoami")).status == 200
        statuses: list[int] = []
        for _ in range(5):
            async with api.speaking_for(new_token()).http as guess:
                response = await guess.get("/v1/whoami")
            statuses.append(response.status_code)
        assert statuses == [401, 401, 401, 429, 429]
        assert problem_in(response)["code"] == "rate_limited"
        # A token that is right, and that this server has never seen, is a guess like any other.
        made = await api.ask("POST", "/v1/tokens", {"name": "new", "roles": ["runtime"]})
        async with api.speaking_for(made.body["token"]).http as new:
            assert (await new.get("/v1/whoami")).status_code == 429
        assert (await api.ask("GET", "/v1/whoami")).status == 200, "a known token is no guess"
        async with from_address(api, made.body["token"], "192.0.2.7") as elsewhere:
            assert (await elsewhere.get("/v1/whoami")).status_code == 200
        async with api.speaking_for("").http as nobody:
            assert (await nobody.get("/v1/whoami")).status_code == 401, "no token is no guess"


async def test_an_address_of_ipv6_is_its_network(database_url: str, tmp_path: Path):
    async with running(database_url, tmp_path / "home", guesses_per_minute=1) as api:
        statuses: list[int] = []
        for address in ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"):
            async with from_address(api, new_token(), address) as guess:
                statuses.append((await guess.get("/v1/whoami")).status_code)
        assert statuses == [401, 429, 401]


# --- how long -------------------------------------------------------------------------------------


async def send_slowly(api: Api, *, path: str = "/v1/credentials") -> tuple[int, dict[str, str]]:
    """Send a request whose body begins and does not end; return the answer's status and headers."""
    answer: list[Any] = []
    parts = [{"type": "http.request", "body": b'{"name": ', "more_body": True}]

    async def receive() -> Any:
        if parts:
            return parts.pop()
        await asyncio.Event().wait()
        return None

    async def send(message: Any) -> None:
        answer.append(message)

    headers = {
        b"authorization": f"Bearer {api.token}".encode(),
        b"content-type": b"application/json",
    }
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": path, "query_string": b""}
    scope |= {"headers": list(headers.items()), "client": ("127.0.0.1", 1), "server": ("a", 1)}
    await api.app(scope | {"scheme": "http", "root_path": "", "http_version": "1.1"}, receive, send)
    told = {name.decode(): value.decode() for name, value in answer[0]["headers"]}
    return answer[0]["status"], told


async def test_a_body_that_does_not_come_is_not_waited_for(database_url: str, tmp_path: Path):
    async with running(database_url, tmp_path / "home", body_seconds_max=0.05) as api:
        status, headers = await send_slowly(api)
        assert (status, headers["content-type"]) == (408, "application/problem+json")
        assert headers["connection"] == "close"
        assert (await api.ask("GET", "/v1/whoami")).status == 200


async def test_an_answer_that_is_not_begun_in_time_is_an_outage(database_url: str, tmp_path: Path):
    async with running(database_url, tmp_path / "home", request_seconds_max=0.2) as api:
        with psycopg.connect(database_url) as holder:
            holder.execute("LOCK TABLE credential")
            response = await api.http.post("/v1/credentials", json={"name": "a"})
            problem = problem_in(response)
            assert (problem["status"], problem["code"]) == (503, "registry_unavailable")
            assert problem["retryable"]
    async with running(database_url, tmp_path / "home") as api:
        assert (await api.ask("GET", "/v1/credentials")).body == {"credentials": []}
        assert (await api.ask("POST", "/v1/credentials", {"name": "a"})).status == 201


def someone(tenant_id: UUID | None = None) -> Caller:
    return Caller(tenant_id or uuid4(), "some", "someone", frozenset())


async def test_computations_that_nobody_waits_for_take_no_further_threads():
    done = threading.Event()

    async def wait_a_little() -> None:
        async with asyncio.timeout(0.01):
            await in_thread(someone(), done.wait)

    try:
        before = threading.active_count()
        waits = await asyncio.gather(*(wait_a_little() for _ in range(100)), return_exceptions=True)
        assert {type(wait) for wait in waits} == {TimeoutError}
        assert threading.active_count() - before <= 4
    finally:
        done.set()
    assert await in_thread(someone(), sum, [1, 2]) == 3


async def test_what_one_tenant_computes_keeps_no_other_from_computing():
    """It has a few threads, and a short queue; what begins beyond them is refused at once."""
    done = threading.Event()
    tenant_id = uuid4()
    asked = [asyncio.create_task(in_thread(someone(tenant_id), done.wait)) for _ in range(100)]
    try:
        assert await in_thread(someone(), sum, [1, 2]) == 3
        refused = [task for task in asked if task.done()]
        with pytest.raises(RateLimited) as raised:
            await in_thread(someone(tenant_id), sum, [1, 2])
        assert raised.value.facts == {"retry_after_seconds": 1}
    finally:
        done.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(task.exception()) for task in refused} == {RateLimited}
    assert answers.count(True) == len(asked) - len(refused) > 2
    assert await in_thread(someone(tenant_id), sum, [1, 2]) == 3


async def test_whoever_stops_waiting_for_a_turn_leaves_the_queue_to_others():
    done = threading.Event()
    tenant_id = uuid4()

    async def wait_a_little() -> None:
        async with asyncio.timeout(0.01):
            await in_thread(someone(tenant_id), done.wait)

    try:
        for _ in range(5):
            waits = await asyncio.gather(
                *(wait_a_little() for _ in range(10)), return_exceptions=True
            )
            assert {type(wait) for wait in waits} == {TimeoutError}
    finally:
        done.set()
    assert await in_thread(someone(tenant_id), sum, [1, 2]) == 3


async def test_a_tenant_that_computes_too_much_is_told_when_to_come_again(api: Api, owner: Owner):
    done = threading.Event()
    tenant_id = await owner.one("SELECT tenant_id FROM tenant")
    asked = [asyncio.create_task(in_thread(someone(tenant_id), done.wait)) for _ in range(18)]
    try:
        await asyncio.sleep(0)
        schemas = {"old": {"type": "string"}, "new": {"type": "string"}}
        response = await api.http.post("/v1/compare", json=schemas)
    finally:
        done.set()
        await asyncio.gather(*asked)
    assert problem_in(response)["code"] == "rate_limited"
    assert response.headers["retry-after"] == "1"


# --- one connection -------------------------------------------------------------------------------

Serve = Callable[[Any, Any, Any], Awaitable[None]]


async def no_content(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


@asynccontextmanager
async def connection(
    *, message_bytes_max: int = 2**20, seconds_max: float = 30
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Serve an application that answers at once and reads no body; give one connection to it."""
    protocol = bounded_protocol(message_bytes_max=message_bytes_max, seconds_max=seconds_max)
    config = uvicorn.Config(
        no_content,
        port=0,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    port = server.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await server.shutdown()


async def answer_to(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: bytes) -> int:
    """Send, and return the status of one answer; 0 where the connection was closed instead."""
    try:
        writer.write(text)
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0
    return int(head.split(b" ")[1])


GET = b"GET / HTTP/1.1\r\nHost: a\r\n"


async def test_one_connection_serves_many_requests():
    async with connection() as streams:
        for body in (b"", b"x" * 100, b"x" * 100_000):
            request = GET + b"Content-Length: %d\r\n\r\n" % len(body) + body
            assert await answer_to(*streams, request) == 204
        assert await answer_to(*streams, (GET + b"\r\n") * 2) == 204
        assert await answer_to(*streams, b"") == 204


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * HEAD_BYTES_MAX,
        GET + b"X-Long: " + b"a" * HEAD_BYTES_MAX,
        GET + b"X-Many: a\r\n" * (HEAD_BYTES_MAX // 11),
        b"\r\n" * HEAD_BYTES_MAX,
    ],
    ids=["address", "long header", "many headers", "nothing"],
)
async def test_a_head_without_end_is_not_kept(head: bytes):
    async with connection() as streams:
        assert await answer_to(*streams, head + b"a" * 300_000) in (0, 400)


@pytest.mark.parametrize("text", [b"", b"GET", GET, b"\r\n", GET + b"\r\n" + GET])
async def test_a_head_that_does_not_come_is_not_waited_for(text: bytes):
    async with connection(seconds_max=0.1) as (reader, writer):
        writer.write(text)
        assert (await reader.read()).count(b"204") == text.count(GET + b"\r\n")


async def test_a_body_that_nobody_reads_is_cut_off():
    async with connection(message_bytes_max=100_000) as (reader, writer):
        assert await answer_to(reader, writer, GET + b"Content-Length: 10000000\r\n\r\n") == 204
        writer.write(b"x" * 1_000_000)
        assert await answer_to(reader, writer, b"x" * 1_000_000) == 0


async def test_what_is_left_of_a_body_is_not_waited_for():
    async with connection(seconds_max=0.1) as (reader, writer):
        assert await answer_to(reader, writer, GET + b"Content-Length: 10\r\n\r\nx") == 204
        assert await reader.read() == b""
