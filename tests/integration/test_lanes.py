"""A provider that does not answer, and has a backlog: what is not its own goes on."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from audit.service import Sealer
from kernel.scope import Connection
from ledger.evidence import Answer
from ledger.judgement import Judgement
from ledger.store import LedgerStore
from reconciler.lanes import CONTRACT_MAX, TENANT_MAX
from reconciler.reverse import ReverseSweeper
from reconciler.schedule import scheduled
from reconciler.sources import Asker
from reconciler.store import contracts_due, tenants_due
from tallystick.evidence_source import EvidenceQuestion
from tallystick.provider import HttpEvidence
from tallystick.tool_contract import Contract
from tests.api import Api
from tests.builders import a_contract, http_evidence
from tests.fixtures import Owner, sweeper_of

_ROUNDS_MAX = 600
BACKLOG = 2000
_RUN_OUT = "UPDATE effect_open SET due_at = clock_timestamp()"


class Source:
    """Says of everything that it took place; of some only once it is let to."""

    def __init__(self, hangs: Callable[[EvidenceQuestion], bool]) -> None:
        self.asked: list[str] = []
        self.waiting: dict[str, asyncio.Event] = {}
        self.hangs = hangs

    async def ask(self, contract: Contract, question: EvidenceQuestion, asker: Asker) -> Judgement:
        self.asked.append(question.effect_id)
        if self.hangs(question):
            may_answer = self.waiting[question.effect_id] = asyncio.Event()
            try:
                await may_answer.wait()
            finally:
                del self.waiting[question.effect_id]
        return Judgement(Answer.APPLIED, "it is there")

    async def fetch(self, url: str, http: HttpEvidence, asker: Asker) -> str:
        return f"nobody lists anything at {url}"

    def recover(self) -> None:
        self.hangs = lambda _: False
        for may_answer in self.waiting.values():
            may_answer.set()


def a_document(port: int, version: str = "1.0.0") -> dict[str, Any]:
    """Return a contract whose provider may take its time, so that no claim runs out in a test."""
    evidence = http_evidence(port)
    evidence["http"]["timeout_seconds"] = 30
    return a_contract(evidence=evidence, version=version)


async def sent(api: Api, document: dict[str, Any], many: int) -> list[str]:
    """Make effects that are under way, each in a run of its own; returns their ids."""
    reference = await api.publish(document)
    runs = [f"{document['version']}-{number}" for number in range(many)]
    return [(await api.dispatched(reference, run=run))["effect_id"] for run in runs]


async def in_doubt(api: Api, document: dict[str, Any]) -> str:
    """Make an effect whose worker does not know how it ended; returns its id."""
    effect = await api.dispatched(await api.publish(document), run=document["version"])
    assert (await api.report(effect, "unknown")).body["state"] == "UNKNOWN"
    return effect["effect_id"]


@asynccontextmanager
async def reconciling(api: Api, source: Source) -> AsyncGenerator[None]:
    """Run the reconciler on its schedule; whatever it is at, it ends with the context."""
    database, keys = api.app.state.database, api.app.state.keys
    sweeper = sweeper_of(api, source).sweeper
    sealer = Sealer(database.transact, keys)
    reverse = ReverseSweeper(database.transact, keys, source, sweeper.actor, interval_seconds=3600)
    async with scheduled(sweeper, reverse, sealer, sweep_seconds=0.1, seal_seconds=3600):
        yield
    assert source.waiting == {}


async def eventually(is_so: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(_ROUNDS_MAX):
        if await is_so():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never came to be so")


async def test_who_does_not_answer_holds_its_own_lane_only(api: Api, other: Api, owner: Owner):
    source = Source(lambda question: question.tenant == "default")
    hung = await sent(api, a_document(1), CONTRACT_MAX + 2)
    await owner.rows(_RUN_OUT)

    async def is_full() -> bool:
        return len(source.asked) == CONTRACT_MAX

    async def has_gone_on() -> bool:
        states = [await api.state(leased), await api.state(late)]
        settled = await other.effects("state=SUCCEEDED")
        return (states, len(settled)) == (["UNKNOWN", "REFUSED"], 1)

    async def has_settled() -> bool:
        return len(await api.effects("state=SUCCEEDED")) == CONTRACT_MAX + 3

    async with reconciling(api, source):
        await eventually(is_full)
        theirs = await in_doubt(other, a_document(1))
        reference = await api.publish(a_document(1))
        leased = await api.dispatched(reference, run="run-2")
        late = (await api.plan(reference, run="run-3")).body
        await owner.run_out(leased)
        await owner.pass_deadline(late)
        await eventually(has_gone_on)
        assert len(source.asked) == CONTRACT_MAX + 1
        source.recover()
        await eventually(has_settled)
    assert sorted(source.asked) == sorted([*hung, theirs, leased["effect_id"]]), "about each once"
    await api.check_histories()


async def test_whose_turn_was_the_longest_ago_gets_the_room_that_is_left(api: Api, owner: Owner):
    source = Source(lambda question: question.version != "9.0.0")
    for version in ("1.0.0", "1.1.0"):
        await sent(api, a_document(1, version), CONTRACT_MAX + 1)
    await owner.rows(_RUN_OUT)
    quick = await in_doubt(api, a_document(2, "9.0.0"))

    async def is_full() -> bool:
        return len(source.asked) >= TENANT_MAX + 1

    async def goes_on() -> bool:
        return len(source.asked) > TENANT_MAX + 1

    async with reconciling(api, source):
        await eventually(is_full)
        assert quick in source.asked, "another place has room of its own"
        assert len(source.waiting) == TENANT_MAX
        newcomer = await in_doubt(api, a_document(1, "1.2.0"))
        next(iter(source.waiting.values())).set()
        await eventually(goes_on)
        assert source.asked[TENANT_MAX + 1 :] == [newcomer]


_ALONE = """
    DO $$
    DECLARE
        relation  regclass;
    BEGIN
        FOR relation IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'effect'::regclass
                         UNION ALL SELECT 'effect_open'::regclass LOOP
            EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', relation);
        END LOOP;
    END
    $$
"""
"""Let rows stand without the records that belong to them."""
_ALIKE = """
    INSERT INTO {table}
    SELECT made.*
      FROM {table} AS one
     CROSS JOIN generate_series(1, %s) AS n
     CROSS JOIN jsonb_populate_record(one, jsonb_build_object('number', n)) AS made
"""


async def test_a_backlog_is_not_looked_through_for_other_work(api: Api, other: Api, owner: Owner):
    await in_doubt(api, a_document(1))
    await owner.rows(_ALONE)
    for table in ("effect", "effect_open"):
        await owner.rows(_ALIKE.format(table=table), BACKLOG)
    await owner.rows("ANALYZE effect_open")
    waiting = await in_doubt(api, a_document(2, "1.1.0"))
    leased = await api.dispatched(await api.publish(a_document(2, "1.1.0")), run="run-2")
    await owner.run_out(leased)
    await in_doubt(other, a_document(1))

    async def found(work: Callable[[Connection], Awaitable[Any]]) -> Any:
        """Return what a piece of work of the first tenant finds, by looking at few rows."""

        async def counted(connection: Connection) -> Any:
            result = await work(connection)
            cursor = await connection.execute(_LOOKED_AT)
            rows: list[Any] = await cursor.fetchall()
            assert 0 < rows[0][0] < BACKLOG / 20
            return result

        return await api.app.state.database.transact(tenant_id, counted)

    tenant_id = await owner.one("SELECT tenant_id FROM tenant WHERE slug = 'default'")
    backlog, contract_id = [
        await owner.one(
            "SELECT contract_id FROM contract WHERE tenant_id = %s AND version = %s",
            tenant_id,
            version,
        )
        for version in ("1.0.0", "1.1.0")
    ]
    due = await found(contracts_due)
    assert {(one.tenant, one.contract_id) for one in due} >= {
        ("default", backlog),
        ("default", contract_id),
    }
    assert len(due) == 3
    assert await found(tenants_due) == [(tenant_id, "default")]
    assert [
        str(effect.id)
        for effect, _ in await found(lambda connection: LedgerStore(connection).overdue(10))
    ] == [leased["effect_id"]]
    assert [
        str(effect.id)
        for effect, _ in await found(
            lambda connection: LedgerStore(connection).in_doubt(contract_id, 10)
        )
    ] == [waiting]
    assert len(await found(lambda connection: LedgerStore(connection).in_doubt(backlog, 10))) == 10


_LOOKED_AT = """
    SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'effect_open'
"""
