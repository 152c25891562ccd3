"""A crash at every statement: what was asked is wholly done or not at all, and can be asked again.

Beside the statements there is the commit: its answer can be lost, or come with a warning that it
may not be durable. Neither allows a send. The same question again finds out what holds.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from psycopg import AsyncCursor
from sqlalchemy import make_url

from kernel.scope import Connection, Result, Work
from server.database import Database
from tallystick.errors import RegistryUnavailable
from tests.api import Answered, Api, running
from tests.builders import ARGUMENTS, a_contract, http_evidence
from tests.fixtures import Owner, Sweep, asking, sweeper_of
from tests.provider import Provider

STATEMENTS_MAX = 60


class Request(NamedTuple):
    """What a worker asks for; asked again, it is the very same."""

    path: str
    body: dict[str, Any]


class Severed:
    """The service's way to the database, which is cut after a number of statements.

    Statements count only within `counted`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts = False
        self.statements = 0
        self.cut_after = 0

    @contextmanager
    def counted(self) -> Generator[None]:
        self._counts = True
        yield
        self._counts = False

    async def transact(self, tenant_id: UUID | None, work: Work[Result]) -> Result:
        async def counted(connection: Connection) -> Result:
            connection.cursor_factory = self._cursor()
            try:
                return await work(connection)
            finally:
                connection.cursor_factory = AsyncCursor

        return await self._database.transact(tenant_id, counted)

    def _cursor(self) -> type[AsyncCursor[Any]]:
        after_statement = self._after_statement

        class Cursor(AsyncCursor[Any]):
            async def execute(self, *given: Any, **named: Any) -> "Cursor":
                cursor = await super().execute(*given, **named)
                after_statement(self.connection)
                return cursor

        return Cursor

    def _after_statement(self, connection: Any) -> None:
        self.statements += self._counts
        if self._counts and self.statements == self.cut_after:
            # As a killed process leaves it: the socket is closed, and nothing more is said.
            connection.pgconn.finish()


@pytest.fixture
def severed(api: Api) -> Severed:
    """The way that the application takes to its database from now on."""
    severed = Severed(api.app.state.database)
    api.app.state.database = severed
    return severed


@pytest.fixture
async def reference(api: Api, provider: Provider) -> dict[str, Any]:
    return await api.publish(a_contract(evidence=http_evidence(provider.port)))


# --- what is asked ------------------------------------------------------------------------------


async def plan_and_dispatch(api: Api, sweep: Sweep, reference: Any, run: str) -> Request:
    body = {"run": run, "effect": "e", "tool": reference, "arguments": ARGUMENTS}
    return Request("/v1/effects", body | {"dispatch": api.asking()})


async def dispatch(api: Api, sweep: Sweep, reference: Any, run: str) -> Request:
    planned = (await api.plan(reference, run=run)).body
    return Request(f"/v1/effects/{planned['effect_id']}/dispatch", api.asking())


async def dispatch_again(api: Api, sweep: Sweep, reference: Any, run: str) -> Request:
    effect = await api.dispatched(reference, run=run)
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    return Request(f"/v1/effects/{effect['effect_id']}/dispatch", api.asking())


async def report_success(api: Api, sweep: Sweep, reference: Any, run: str) -> Request:
    return await _report(api, reference, run, outcome="succeeded", result={"invoice_id": "i-1"})


async def report_failure(api: Api, sweep: Sweep, reference: Any, run: str) -> Request:
    error = {"code": "declined", "message": "No."}
    return await _report(api, reference, run, outcome="failed", error=error)


async def report_doubt(api: Api, sweep: Sweep, reference: Any, run: str) -> Request:
    return await _report(api, reference, run, outcome="unknown")


async def cancel(api: Api, sweep: Sweep, reference: Any, run: str) -> Request:
    planned = (await api.plan(reference, run=run)).body
    return Request(f"/v1/effects/{planned['effect_id']}/cancel", {"reason": "not wanted"})


async def _report(api: Api, reference: Any, run: str, **report: Any) -> Request:
    effect = await api.dispatched(reference, run=run)
    body = {"worker_id": api.worker_id, "fence": effect["dispatch"]["fence"], **report}
    return Request(f"/v1/effects/{effect['effect_id']}/outcome", body)


Prepare = Callable[[Api, Sweep, Any, str], Awaitable[Request]]
# What is asked, where it leads, and how many attempts there are then.
OPERATIONS: list[tuple[Prepare, str, int]] = [
    (plan_and_dispatch, "DISPATCHED", 1),
    (dispatch, "DISPATCHED", 1),
    (dispatch_again, "DISPATCHED", 2),
    (report_success, "SUCCEEDED", 1),
    (report_failure, "FAILED", 1),
    (report_doubt, "UNKNOWN", 1),
    (cancel, "CANCELLED", 0),
]
each_operation = pytest.mark.parametrize(
    ("prepare", "state", "attempts"), OPERATIONS, ids=lambda one: getattr(one, "__name__", None)
)


async def ask(api: Api, request: Request) -> Answered:
    return await api.ask("POST", request.path, request.body)


def check_answer(answer: Answered, state: str) -> None:
    assert answer.status in (200, 201), answer
    assert answer.body["state"] == state
    if state == "DISPATCHED":
        assert answer.body["dispatch"]["owned"], "the same worker with the same nonce owns it"


async def check_done(api: Api, answer: Answered, state: str, attempts: int) -> None:
    """Hold an answer to what was asked, and the ledger to the answer: done, and done once."""
    check_answer(answer, state)
    shown = await api.show(answer.body)
    assert [one["attempt"] for one in shown["attempts"]] == list(range(1, attempts + 1))
    assert len(shown["outcomes"]) == (state in {"SUCCEEDED", "FAILED", "CANCELLED"})


# --- the statements -----------------------------------------------------------------------------


@each_operation
async def test_a_cut_after_any_statement_leaves_nothing_behind(
    api: Api,
    severed: Severed,
    owner: Owner,
    sweep: Sweep,
    reference: Any,
    prepare: Prepare,
    state: str,
    attempts: int,
):
    request = await prepare(api, sweep, reference, "whole")
    with severed.counted():
        check_answer(await ask(api, request), state)
    statements = severed.statements
    assert 2 < statements < STATEMENTS_MAX

    for cut_after in range(1, statements + 1):
        request = await prepare(api, sweep, reference, f"run-{cut_after}")
        before = await rows(owner)
        severed.statements, severed.cut_after = 0, cut_after
        with severed.counted():
            answer = await ask(api, request)
        assert answer.refusal == (503, "registry_unavailable"), (cut_after, answer)
        assert await rows(owner) == before, cut_after
        await check_done(api, await ask(api, request), state, attempts)
    await api.check_histories()


async def test_a_cut_after_any_statement_of_a_sweep_is_made_good_by_the_next(
    api: Api, severed: Severed, owner: Owner, provider: Provider, reference: Any
):
    async with asking([f"127.0.0.1:{provider.port}"]) as source:
        sweep = sweeper_of(api, source)
        cut_after, statements = 0, STATEMENTS_MAX
        while cut_after <= statements:
            effect = await api.dispatched(reference, run=f"run-{cut_after}")
            provider.book(effect["effect_id"], **ARGUMENTS)
            severed.statements, severed.cut_after = 0, cut_after
            seen = await sweep_to_the_end(api, severed, owner, sweep, effect)
            if cut_after == 0:
                statements = severed.statements
                assert 10 < statements < STATEMENTS_MAX
            assert seen["state"] == "SUCCEEDED"
            assert [one["answer"] for one in seen["evidence"]] == ["applied"], cut_after
            assert len(seen["outcomes"]) == len(seen["attempts"]) == 1
            cut_after += 1
    await api.check_histories()


async def sweep_to_the_end(
    api: Api, severed: Severed, owner: Owner, sweep: Sweep, effect: dict[str, Any]
) -> dict[str, Any]:
    """Sweep until the effect is closed; the leases of who is gone run out at once."""
    for _ in range(8):
        await owner.run_out(effect)
        with severed.counted(), suppress(RegistryUnavailable):
            await sweep.once()
        shown = await api.show(effect)
        if shown["outcome"] is not None:
            return shown
    raise AssertionError(f"the effect is left {shown['state']}")


async def rows(owner: Owner) -> list[str]:
    return sorted((await owner.dump()).splitlines())


async def test_a_client_that_dies_in_the_middle_of_its_request_has_asked_for_nothing(
    api: Api, owner: Owner, reference: Any
):
    whole = api.http.build_request("POST", "/v1/effects", json={"run": "run", "tool": reference})
    half = {"type": "http.request", "body": whole.content[:30], "more_body": True}
    heard = [half, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return heard.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(name.lower(), value) for name, value in whole.headers.raw]
    scope = {"type": "http", "method": "POST", "path": "/v1/effects", "query_string": b""}
    before = await rows(owner)
    await api.app(scope | {"headers": headers}, receive, send)
    assert (heard, sent) == ([], []), "a defect would raise, or answer"
    assert await rows(owner) == before


# --- the commit ---------------------------------------------------------------------------------


@each_operation
async def test_a_commit_whose_answer_is_lost_is_found_by_asking_again(
    database_url: str,
    tmp_path: Path,
    provider: Provider,
    prepare: Prepare,
    state: str,
    attempts: int,
):
    async with (
        lossy(database_url) as wire,
        running(wire.url, tmp_path / "home") as api,
        asking([f"127.0.0.1:{provider.port}"]) as source,
    ):
        reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
        request = await prepare(api, sweeper_of(api, source), reference, "run")
        wire.loses_commit = True
        answer = await ask(api, request)
        assert not wire.loses_commit, "a commit was sent, and its answer lost"
        assert answer.refusal == (503, "registry_unavailable")
        assert "dispatch" not in answer.body
        await check_done(api, await ask(api, request), state, attempts)
        await api.check_histories()


@each_operation
async def test_a_commit_that_may_not_be_durable_allows_nothing(
    api: Api,
    owner: Owner,
    sweep: Sweep,
    reference: Any,
    prepare: Prepare,
    state: str,
    attempts: int,
):
    request = await prepare(api, sweep, reference, "run")
    # As PostgreSQL says it when a standby did not confirm.
    await owner.rows(
        """
        CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE WARNING 'canceling wait for synchronous replication' USING ERRCODE = '01000';
            RETURN NULL;
        END $$
        """
    )
    await owner.rows(
        """
        CREATE CONSTRAINT TRIGGER warn AFTER INSERT OR UPDATE OR DELETE ON effect_open
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warn()
        """
    )
    answer = await ask(api, request)
    await owner.rows("DROP TRIGGER warn ON effect_open")
    assert answer.refusal == (503, "registry_unavailable")
    assert "dispatch" not in answer.body
    await check_done(api, await ask(api, request), state, attempts)
    await api.check_histories()


async def test_another_worker_does_not_own_what_a_lost_answer_gave_away(
    database_url: str, tmp_path: Path
):
    async with lossy(database_url) as wire, running(wire.url, tmp_path / "home") as api:
        reference = await api.publish(a_contract())
        wire.loses_commit = True
        assert (await api.plan(reference, dispatch=api.asking())).status == 503
        second = await api.plan(reference, dispatch=api.asking())
        assert (second.body["state"], second.body["dispatch"]["owned"]) == ("DISPATCHED", False)


class LossyWire:
    """A TCP proxy before the database. Once, it loses the answer to a COMMIT, and is cut."""

    def __init__(self, database_url: str) -> None:
        self._database = make_url(database_url)
        self.loses_commit = False
        self.port = 0

    @property
    def url(self) -> str:
        # In the clear, so that a COMMIT can be told from other statements.
        there = self._database.set(host="127.0.0.1", port=self.port)
        plain = there.update_query_dict({"sslmode": "disable", "gssencmode": "disable"})
        return plain.render_as_string(hide_password=False)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either end closes it."""
        there = await asyncio.open_connection(self._database.host, self._database.port or 5432)
        is_lost = asyncio.Event()

        async def ask() -> None:
            while chunk := await reader.read(65536):
                if self.loses_commit and b"COMMIT" in chunk:
                    self.loses_commit = False
                    is_lost.set()
                there[1].write(chunk)

        async def answer() -> None:
            while chunk := await there[0].read(65536):
                if is_lost.is_set():
                    return  # the database has committed, and says so
                writer.write(chunk)

        ways = [asyncio.create_task(ask()), asyncio.create_task(answer())]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for end in (writer, there[1]):
            end.close()
            with suppress(OSError):
                await end.wait_closed()


@asynccontextmanager
async def lossy(database_url: str) -> AsyncGenerator[LossyWire]:
    """Listen for connections to a database."""
    wire = LossyWire(database_url)
    carrying: set[asyncio.Task[None]] = set()

    async def carry(*ends: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        carrying.add(task)
        await wire.carry(*ends)

    async with await asyncio.start_server(carry, "127.0.0.1", 0) as server:
        wire.port = server.sockets[0].getsockname()[1]
        try:
            yield wire
        finally:
            await asyncio.gather(*carrying)
