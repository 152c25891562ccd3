"""What was written can be proven: sealed while others write, exported, verified from the file."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors
from psycopg.sql import SQL, Identifier
from typer.testing import CliRunner

from audit import service
from audit.export import read_lines
from audit.record import SEALED, WRITTEN_IN
from audit.seal import Seal, Statement, public_keys, sign, signing_key
from audit.service import Outcome, Sealer, seal_batch
from audit.store import Due, note_progress, tenants_to_seal
from audit.verification import Report, verify
from cli.app import app as registry
from kernel.keys import KeyRing
from kernel.scope import Connection
from tallystick.errors import RegistryUnavailable
from tests.api import Api, running
from tests.builders import a_contract, a_contract_of, a_policy, http_evidence
from tests.databases import database
from tests.fixtures import Owner, Sweep, asking, owning, sweeper_of
from tests.provider import Provider, listening
from tests.sealing import all_ended, seal_all, sealer_of


async def exported(api: Api) -> bytes:
    response = await api.http.get("/v1/audit/export")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return response.content


def checked(export: bytes, **choices: Any) -> Report:
    return verify(read_lines(io.BytesIO(export)), **choices)


def lines_of(export: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export.splitlines()]


def rows_in(export: bytes) -> set[tuple[str, str]]:
    """Return the table and the row of every record, sealed or not."""
    lines = [line.get("unsealed", line) for line in lines_of(export)]
    return {(line["table"], json.dumps(line["row"])) for line in lines if "row" in line}


async def fill(api: Api, sweep: Sweep, port: int, *, version: str = "2.1") -> None:
    """Write a row into every table that is sealed."""
    tool = await api.publish(a_contract(version=version, evidence=http_evidence(port)))
    policy = {"text": a_policy(calls_max=int(version[-1]))}
    assert (await api.ask("POST", "/v1/policies", policy)).status == 201
    run = f"run-{version}"
    done = await api.dispatched(tool, run=run, effect="done")
    assert (await api.report(done, "succeeded", result={"invoice_id": "I-1"})).status == 200
    lost = await api.dispatched(tool, run=run, effect="lost")
    assert (await api.report(lost, "unknown")).status == 200
    asks = await api.publish(a_contract(name="billing.ask", approval="always"))
    assert (await api.plan(asks, run=run, effect="asks")).status == 201
    assert (await api.plan(asks, run=run, effect="bad", arguments={})).code == "invalid_arguments"
    subject = {"subject": {"customer_id": "C-1"}}
    assert (await api.ask("PUT", f"/v1/runs/{run}", subject)).status == 201
    await sweep.once()
    transfer = await api.publish(a_contract_of("NON_RETRYABLE"))
    effect = await api.dispatched(transfer, run=run, effect="transfer")
    assert (await api.report(effect, "unknown")).status == 200
    await sweep.until(api, effect, "QUARANTINED")
    assert (await api.resolve(effect, "FAILED")).body["proposal"]["by"] == "admin"


async def counted(owner: Owner, *tables: str) -> int:
    return sum([await owner.one(f"SELECT count(*) FROM {table}") for table in tables or SEALED])


# --- sealing and exporting ------------------------------------------------------------------------


async def test_nothing_is_nothing(api: Api, owner: Owner):
    await owner.rows("DELETE FROM registry_event")  # that of this tenant's first token
    assert await seal_all(api) == 0
    export = await exported(api)
    assert [list(line) for line in lines_of(export)] == [["header"], ["end"]]
    report = checked(export)
    assert report.is_verified
    assert (report.seals, report.sealed, report.unsealed, report.head) == (0, 0, 0, None)
    assert (await api.ask("GET", "/v1/audit/seals")).body == {"seals": [], "next": None}


async def test_every_row_is_sealed_once(api: Api, sweep: Sweep, provider: Provider, owner: Owner):
    for number, version in enumerate(("2.1", "2.2", "2.3"), start=1):
        await fill(api, sweep, provider.port, version=version)
        assert await seal_all(api) == 1
        assert await seal_all(api) == 0, "nothing new makes no seal"
        report = checked(await exported(api))
        assert report.is_verified, report.faults
        assert report.seals == number
        assert (report.sealed, report.unsealed) == (await counted(owner), 0)
    await api.publish(a_contract(name="tools.other"))
    report = checked(await exported(api))
    assert report.is_verified
    assert report.unsealed == 3, "a contract, its content, its event; its slot was there"


async def test_every_sealed_table_is_in_the_export(
    api: Api, sweep: Sweep, provider: Provider, owner: Owner
):
    found = await owner.rows(
        "SELECT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
        " WHERE attname = %s AND relkind IN ('r', 'p') AND NOT relispartition",
        WRITTEN_IN,
    )
    assert {table for (table,) in found} == SEALED.keys()
    keys = await owner.rows(
        "SELECT indrelid::regclass::text, array_agg(attname::text ORDER BY attnum)"
        "  FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)"
        " WHERE indisprimary GROUP BY indrelid"
    )
    assert {name: set(key) for name, key in keys if name in SEALED} == {
        name: set(key) for name, key in SEALED.items()
    }
    await fill(api, sweep, provider.port)
    await seal_all(api)
    assert {table for table, _ in rows_in(await exported(api))} == SEALED.keys()


async def test_seals_and_keys_are_told(api: Api, sweep: Sweep, provider: Provider):
    for version in ("2.1", "2.2", "2.3"):
        await fill(api, sweep, provider.port, version=version)
        await seal_all(api)
    first = (await api.ask("GET", "/v1/audit/seals?limit=2")).body
    rest = (await api.ask("GET", f"/v1/audit/seals?limit=2&before={first['next']}")).body
    seals = first["seals"] + rest["seals"]
    assert [seal["number"] for seal in seals] == [3, 2, 1]
    assert rest["next"] is None
    assert [seal["previous"] for seal in seals] == [seals[1]["digest"], seals[2]["digest"], None]
    assert seals[2]["from"] == 0
    keys = (await api.ask("GET", "/v1/audit/keys")).body["keys"]
    assert [(key["key_id"], key["is_current"]) for key in keys] == [("k1", True)]
    report = checked(await exported(api), trusted=[bytes.fromhex(keys[0]["public_key"])])
    assert report.is_verified
    assert report.head == seals[0]["digest"]


async def test_a_long_backlog_becomes_several_seals(api: Api, owner: Owner):
    for number in range(12):
        await api.publish(a_contract(name=f"tools.number_{number}"))
    state = api.app.state
    sealer = Sealer(state.database.transact, state.keys, leaves_max=10)
    made = await seal_all(api, sealer)
    assert made >= 3
    tenant_id = await owner.one("SELECT tenant_id FROM tenant")

    async def transact(work: Callable[[Connection], Awaitable[Any]]) -> Any:
        return await state.database.transact(tenant_id, work)

    pieces = service.export(transact, state.keys, tenant_id, page_bytes=1000)
    export = b"".join([piece async for piece in pieces])
    report = checked(export)
    assert report.is_verified, report.faults
    assert (report.seals, report.unsealed) == (made, 0)
    assert report.sealed == await counted(owner)
    assert rows_in(export) == rows_in(await exported(api))
    counts = [
        Statement.parse(line["seal"]["statement"]).leaves
        for line in lines_of(export)
        if "seal" in line
    ]
    assert max(counts) <= 10


async def seal(api: Api, due: Due) -> Outcome:
    """Try once to make the next seal of a tenant."""
    state = api.app.state
    return await state.database.transact(
        due.tenant_id, lambda connection: seal_batch(connection, due=due, keys=state.keys)
    )


async def test_what_is_open_while_a_seal_is_made_is_in_the_next(
    api: Api, owner: Owner, database_url: str
):
    tenant_id = await owner.one("SELECT tenant_id FROM tenant")
    await seal_all(api)
    sealed = checked(await exported(api)).sealed
    async with await psycopg.AsyncConnection.connect(database_url) as slow:
        await slow.execute(REGISTRY_EVENT, (tenant_id, uuid4()))
        await api.publish(a_contract())
        assert await sealer_of(api).seal() == 0, "what began later waits for it"
        export = await exported(api)
        assert checked(export).unsealed == await counted(owner) - sealed
        await slow.commit()
    assert await seal_all(api) == 1
    report = checked(await exported(api))
    assert report.is_verified
    assert (report.sealed, report.unsealed) == (await counted(owner), 0)


REGISTRY_EVENT: LiteralString = (
    "INSERT INTO registry_event (tenant_id, event_id, kind, subject, actor)"
    " VALUES (%s, %s, 'test', 'x', 'somebody')"
)


async def test_a_transaction_that_ends_otherwise_leaves_no_gap(
    api: Api, owner: Owner, database_url: str
):
    tenant_id = await owner.one("SELECT tenant_id FROM tenant")
    await api.publish(a_contract())
    async with await psycopg.AsyncConnection.connect(database_url) as slow:
        await slow.execute(REGISTRY_EVENT, (tenant_id, uuid4()))
        await slow.rollback()
    assert await seal_all(api) == 1
    assert checked(await exported(api)).is_verified


async def test_sealers_at_once_make_one_chain(api: Api, owner: Owner):
    stop = asyncio.Event()

    async def write() -> None:
        for number in range(30):
            await api.publish(a_contract(name=f"tools.number_{number}"))
        stop.set()

    async def keep_sealing() -> int:
        made = 0
        while not stop.is_set():
            made += await sealer_of(api).seal()
        return made

    async def keep_exporting() -> None:
        while not stop.is_set():
            report = checked(await exported(api))
            assert report.is_verified, report.faults

    _, _, *made = await asyncio.gather(
        write(), keep_exporting(), *(keep_sealing() for _ in range(3))
    )
    await seal_all(api)
    report = checked(await exported(api))
    assert report.is_verified, report.faults
    assert (report.sealed, report.unsealed) == (await counted(owner), 0)
    assert sum(filter(None, made)) <= report.seals <= sum(filter(None, made)) + 1


async def test_a_sealer_that_comes_second_changes_nothing(api: Api, owner: Owner):
    await api.publish(a_contract())
    due = Due(await owner.one("SELECT tenant_id FROM tenant"), "default", 0, 0)
    await seal_all(api)
    await api.publish(a_contract(name="tools.later"))
    outcomes = await asyncio.gather(*(seal(api, due) for _ in range(4)))
    assert outcomes.count(Outcome.SEALED) <= 1
    assert set(outcomes) <= {Outcome.SEALED, Outcome.LOST, Outcome.NOTHING}
    assert checked(await exported(api)).is_verified


async def test_tenants_have_chains_of_their_own(api: Api, other: Api, owner: Owner):
    await api.publish(a_contract())
    await other.publish(a_contract(name="tools.theirs"))
    assert await seal_all(api) == 2
    ours, theirs = await exported(api), await exported(other)
    for export in (ours, theirs):
        report = checked(export)
        assert report.is_verified
        assert (report.seals, report.unsealed) == (1, 0)
    tenants = {
        json.loads(row)["tenant_id"] for export in (ours, theirs) for table, row in rows_in(export)
    }
    assert len(tenants) == 2
    assert rows_in(ours).isdisjoint(rows_in(theirs))
    assert b"tools.theirs" not in ours
    keys = [(await each.ask("GET", "/v1/audit/keys")).body for each in (api, other)]
    assert keys[0] != keys[1]
    seals = [(await each.ask("GET", "/v1/audit/seals")).body["seals"] for each in (api, other)]
    assert seals[0][0]["digest"] != seals[1][0]["digest"]
    assert [len(each) for each in seals] == [1, 1]
    # One tenant's seals are nothing in another's export.
    stolen = theirs.splitlines(keepends=True)
    stolen[0] = ours.splitlines(keepends=True)[0]
    codes = {fault.code for fault in checked(b"".join(stolen)).faults}
    assert codes == {"tenant_differs", "signature_invalid"}


async def test_progress_is_what_the_seals_say(api: Api, other: Api, owner: Owner):
    """Whoever notes it says nothing: no record is passed over that is not sealed."""
    transact = api.app.state.database.transact
    first_of = (
        "SELECT min(written_in) FROM registry_event JOIN tenant USING (tenant_id) WHERE slug = %s"
    )
    await api.publish(a_contract())
    await other.publish(a_contract())
    await all_ended(api)
    await transact(None, note_progress)
    progress = "SELECT sealed_to FROM audit_progress"
    assert await owner.one(progress) == await owner.one(first_of, "default"), "nothing is sealed"
    (ours,) = [due for due in await transact(None, tenants_to_seal) if due.tenant == "default"]
    assert await seal(api, ours) is Outcome.SEALED
    await transact(None, note_progress)
    assert await owner.one(progress) == await owner.one(first_of, "other"), "one tenant is not"
    assert await seal_all(api) == 1
    assert await owner.one(progress) >= ours.horizon
    assert await transact(None, tenants_to_seal) == []


async def test_a_quiet_tenant_is_sealed_when_it_speaks_again(api: Api, other: Api):
    await api.publish(a_contract())
    await other.publish(a_contract())
    assert await seal_all(api) == 2
    for number in range(5):
        await api.publish(a_contract(name=f"tools.number_{number}"))
        assert await seal_all(api) == 1
    await other.publish(a_contract(name="tools.later"))
    assert await seal_all(api) == 1
    report = checked(await exported(other))
    assert report.is_verified
    assert (report.seals, report.unsealed) == (2, 0)


async def test_a_new_key_goes_on_with_the_chain(api: Api):
    await api.publish(a_contract())
    await seal_all(api)
    old = api.app.state.keys
    new = KeyRing("k2", {**old.keys, "k2": bytes(range(32))})
    await api.publish(a_contract(name="tools.later"))
    assert await seal_all(api, Sealer(api.app.state.database.transact, new)) == 1
    api.app.state.keys = new
    export = await exported(api)
    assert checked(export).is_verified
    keys = [bytes.fromhex(key) for key in lines_of(export)[0]["header"]["keys"].values()]
    assert len(keys) == 2
    assert checked(export, trusted=keys).is_verified
    (fault,) = checked(export, trusted=keys[:1]).faults
    assert (fault.code, fault.seal) == ("signature_invalid", 2)


async def test_a_restore_into_a_server_that_counts_lower(
    api: Api, owner: Owner, database_url: str, tmp_path: Path
):
    def counting_from(number: int) -> str:
        return (
            "CREATE OR REPLACE FUNCTION audit_position(transaction xid8) RETURNS bigint"
            f" LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN transaction::text::bigint + {number}"
        )

    await seal_all(api)
    await owner.rows(counting_from(5_000_000_000))
    await api.publish(a_contract())
    assert await seal_all(api) == 1
    await owner.rows(counting_from(0))
    due = Due(await owner.one("SELECT tenant_id FROM tenant"), "default", 0, 0)
    with pytest.raises(RegistryUnavailable, match="Restart the service"):
        await seal(api, due)
    async with running(database_url, tmp_path / "home") as restored:
        assert await owner.one("SELECT audit_rebase()") is False, "its start has done so"
        await restored.publish(a_contract(name="tools.later"))
        assert await seal_all(restored) == 1
        report = checked(await exported(restored))
    assert report.is_verified, report.faults
    assert (report.seals, report.unsealed) == (3, 0)


async def test_a_column_that_comes_later_leaves_older_rows_sealed(api: Api, owner: Owner):
    await api.publish(a_contract())
    await seal_all(api)
    await owner.rows("ALTER TABLE contract ADD COLUMN note text")
    await owner.rows("GRANT INSERT (note) ON contract TO tallystick_service")
    await api.publish(a_contract(name="tools.later"))
    await owner.rows("UPDATE contract SET note = 'x' WHERE name = 'tools.later'")
    await seal_all(api)
    assert checked(await exported(api)).is_verified
    await owner.rows("UPDATE contract SET note = 'x'")
    assert {fault.code for fault in checked(await exported(api)).faults} == {"row_changed"}


async def test_a_bad_tenant_keeps_nobody_else_from_being_sealed(
    api: Api, other: Api, owner: Owner, caplog: pytest.LogCaptureFixture
):
    await api.publish(a_contract())
    await other.publish(a_contract())
    await seal_all(api)
    ours = await owner.one("SELECT tenant_id FROM tenant WHERE slug = 'default'")
    await owner.rows("ALTER TABLE audit_seal DROP CONSTRAINT audit_seal_digest_is_true_check")
    await owner.rows(
        "ALTER TABLE audit_seal DROP CONSTRAINT audit_seal_statement_says_the_same_check"
    )
    await owner.rows("UPDATE audit_seal SET statement = '?' WHERE tenant_id = %s", ours)
    await api.publish(a_contract(name="tools.later"))
    await other.publish(a_contract(name="tools.later"))
    assert await seal_all(api) == 1
    assert "tenant default were not sealed" in caplog.text
    assert checked(await exported(other)).unsealed == 0


# --- what the database holds ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"number": 3, "previous_number": 2}, "audit_seal_follows_fkey"),
        ({"previous": "sha256:" + "0" * 64}, "audit_seal_follows_fkey"),
        ({"since": 1}, "audit_seal_follows_fkey"),
        ({"number": 1, "previous_number": None, "previous": None}, "audit_seal_first_is_new_check"),
        ({"previous_number": None}, "audit_seal_first_is_new_check"),
        ({"number": 3}, "audit_seal_number_rises_by_one_check"),
        ({"upto": 1}, "audit_seal_goes_forward_check"),
        ({"signature": b"x"}, "audit_seal_signature_is_ed25519_check"),
        ({"digest": "sha256:" + "0" * 64}, "audit_seal_digest_is_true_check"),
        ({"leaf_hashes": b"x" * 32}, "audit_seal_statement_says_the_same_check"),
    ],
)
async def test_the_database_keeps_the_chain(
    api: Api, owner: Owner, changes: dict[str, Any], constraint: str
):
    await api.publish(a_contract())
    await seal_all(api)
    tenant_id = await owner.one("SELECT tenant_id FROM tenant")
    first = Statement.parse(await owner.one("SELECT statement FROM audit_seal"))
    digest = await owner.one("SELECT digest FROM audit_seal")
    row = {"number": 2, "previous_number": 1, "previous": digest, "since": first.upto}
    row |= {"upto": first.upto + 10, "leaf_hashes": b""} | {
        name: value for name, value in changes.items() if name not in ("digest", "signature")
    }
    told = Statement(
        tenant=str(tenant_id),
        number=row["number"],
        previous=row["previous"],
        since=row["since"],
        upto=row["upto"],
        leaves=0,
        root=digest,
        sealed_at="",
        key_id="k1",
    )
    seal = Seal(told.to_text(), bytes(64), b"")
    row |= {"statement": seal.text, "digest": seal.digest, "signature": seal.signature}
    row |= {"tenant_id": tenant_id} | changes
    insert = SQL("INSERT INTO audit_seal ({}) VALUES ({})").format(
        SQL(", ").join(map(Identifier, row)), SQL(", ").join([SQL("%s")] * len(row))
    )
    with pytest.raises(errors.IntegrityError) as refused:
        await owner.rows(insert.as_string(), *row.values())
    assert refused.value.diag.constraint_name == constraint


@pytest.mark.parametrize("table", SEALED)
async def test_the_service_cannot_say_when_it_wrote(api: Api, table: str):
    statement = SQL("INSERT INTO {} (written_in) VALUES (1)").format(Identifier(table))

    async def work(connection: Connection) -> None:
        await connection.execute(statement)

    with pytest.raises(errors.InsufficientPrivilege):
        await api.app.state.database.transact(None, work)


# --- tampering, by whoever owns the database ------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A database with three seals over every sealed table, and rows that are not sealed yet."""

    url: str
    tenant_id: UUID
    keys: KeyRing
    head: str

    @property
    def trusted(self) -> list[bytes]:
        return list(public_keys(self.keys, self.tenant_id).values())

    @asynccontextmanager
    async def tampered(self, *statements: str) -> AsyncGenerator["Tampered"]:
        """Run statements as a superuser whom no key and no trigger holds; undo them at the end."""
        async with await psycopg.AsyncConnection.connect(self.url) as connection:
            await connection.execute("SET LOCAL session_replication_role = replica")
            for check in ("digest_is_true", "statement_says_the_same"):
                await connection.execute(
                    SQL("ALTER TABLE audit_seal DROP CONSTRAINT {}").format(
                        Identifier(f"audit_seal_{check}_check")
                    )
                )
            for statement in statements:
                cursor = await connection.execute(statement.encode())
                assert cursor.rowcount != 0, statement
            yield Tampered(self, connection)
            await connection.rollback()


@dataclass(frozen=True)
class Tampered:
    place: Place
    connection: Connection

    async def export(self) -> bytes:
        """Export as the service would, in the transaction that has tampered."""
        await self.connection.execute(
            "SELECT set_config('tallystick.tenant', %s, true),"
            " set_config('role', 'tallystick_service', true)",
            (str(self.place.tenant_id),),
        )

        async def transact(work: Callable[[Connection], Awaitable[Any]]) -> Any:
            async with self.connection.transaction():
                return await work(self.connection)

        pieces = service.export(transact, self.place.keys, self.place.tenant_id)
        return b"".join([piece async for piece in pieces])

    async def report(self, **choices: Any) -> Report:
        return checked(await self.export(), trusted=self.place.trusted, **choices)


@pytest.fixture(scope="module")
def place(
    postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    with database(postgres_url, template=template_database) as url:
        yield asyncio.run(prepared(url, tmp_path_factory.mktemp("home")))


async def prepared(url: str, home: Path) -> Place:
    async with (
        running(url, home) as api,
        listening() as provider,
        asking([f"127.0.0.1:{provider.port}"]) as source,
        owning(url) as owner,
    ):
        sweep = sweeper_of(api, source)
        for version in ("2.1", "2.2", "2.3"):
            await fill(api, sweep, provider.port, version=version)
            assert await seal_all(api) == 1
        await fill(api, sweep, provider.port, version="2.4")
        tenant_id = await owner.one("SELECT tenant_id FROM tenant")
        head = checked(await exported(api)).head
        assert head is not None
        return Place(url, tenant_id, api.app.state.keys, head)


# a column of each table, and another value for it
VALUES = {
    "approval_event": ("actor", "'mallory'"),
    "contract": ("published_by", "'mallory'"),
    "contract_content": ("prompt_hash", "'sha256:' || repeat('0', 64)"),
    "effect": ("principal", "'mallory'"),
    "effect_attempt": ("lease_until", "lease_until + interval '1 microsecond'"),
    "effect_evidence": ("detail", "'the provider has it'"),
    "effect_outcome": ("result", "NULL"),
    "event": ("actor", "'mallory'"),
    "gate_refusal": ("true_code", "'not_found'"),
    "policy_revision": ("source", "source || '# forged'"),
    "registry_event": ("facts", "'{\"x\": 1}'"),
    "resolution_event": ("principal", "'mallory'"),
    "run_subject": ("subject", "'{}'"),
}
UNDIGEST = "ALTER TABLE contract_content DROP CONSTRAINT contract_content_digest_is_true_check"
FIRST = "(SELECT ctid FROM {0} WHERE written_in < (SELECT max(upto) FROM audit_seal) LIMIT 1)"
# what makes a copy of a row a new one
ADDED = {
    "approval_event": {
        "step": "step + 1000",
        "previous_step": "step + 999",
        "from_status": "'pending'",
        "to_status": "'approved'",
    },
    "contract": {"contract_id": "gen_random_uuid()", "version": "'9.9.9'"},
    "contract_content": {"contract_digest": "'sha256:x'"},
    "effect": {"number": "number + 1000"},
    "effect_attempt": {"attempt": "attempt + 1000"},
    "effect_evidence": {"evidence_id": "gen_random_uuid()"},
    "effect_outcome": {"revision": "revision + 1000", "fence": "fence + 1000"},
    "event": {"fence": "fence + 1000", "previous_fence": "fence + 999", "from_state": "'UNKNOWN'"},
    "gate_refusal": {"refusal_id": "gen_random_uuid()"},
    "policy_revision": {"revision": "revision + 1000", "previous_revision": "revision + 999"},
    "registry_event": {"event_id": "gen_random_uuid()"},
    "resolution_event": {
        "step": "step + 1000",
        "previous_step": "step + 999",
        "from_status": "'proposed'",
    },
    "run_subject": {"run_id": "gen_random_uuid()"},
}
# a column that differs from row to row
DIFFERENT = {
    "approval_event": "at",
    "contract": "published_at",
    "contract_content": "document",
    "effect": "identity",
    "effect_attempt": "lease_until",
    "effect_evidence": "observed_at",
    "effect_outcome": "finished_at",
    "event": "at",
    "gate_refusal": "refused_at",
    "policy_revision": "published_at",
    "registry_event": "at",
    "resolution_event": "at",
    "run_subject": "set_at",
}


def test_every_sealed_table_is_tampered_with():
    assert VALUES.keys() == ADDED.keys() == DIFFERENT.keys() == SEALED.keys()


async def test_what_nobody_touched_is_verified(place: Place):
    async with place.tampered() as tampered:
        report = await tampered.report(head=place.head)
    assert report.is_verified, report.faults
    assert (report.seals, report.head) == (3, place.head)
    assert report.sealed > report.unsealed > 0


@pytest.mark.parametrize("table", SEALED)
async def test_a_changed_row_is_named(place: Place, table: str):
    column, value = VALUES[table]
    change = f"UPDATE {table} SET {column} = {value} WHERE ctid = {FIRST.format(table)}"
    async with place.tampered(change) as tampered:
        (fault,) = (await tampered.report()).faults
    assert fault.code == "row_changed"
    assert fault.row is not None
    assert fault.row.startswith(f"{table} ")
    assert "?" not in fault.row


@pytest.mark.parametrize("table", SEALED)
async def test_a_removed_row_is_found(place: Place, table: str):
    async with place.tampered(
        f"DELETE FROM {table} WHERE ctid = {FIRST.format(table)}"
    ) as tampered:
        (fault,) = (await tampered.report()).faults
    assert fault.code == "row_removed"
    assert fault.seal in (1, 2, 3)


@pytest.mark.parametrize("table", SEALED)
@pytest.mark.parametrize("written_in", ["written_in", "0", "-1", "2", "9223372036854775807"])
async def test_an_added_row_is_named(place: Place, table: str, written_in: str):
    changes = {"written_in": written_in} | ADDED[table]
    pairs = ", ".join(f"'{column}', {value}" for column, value in changes.items())
    added = (
        f"INSERT INTO {table} SELECT (jsonb_populate_record(row, jsonb_build_object({pairs}))).*"
        f" FROM {table} AS row WHERE row.ctid = {FIRST.format(table)} LIMIT 1"
    )
    drop = [UNDIGEST] if table == "contract_content" else []
    async with place.tampered(*drop, added) as tampered:
        faults = (await tampered.report()).faults
    assert {fault.code for fault in faults} <= {"row_added", "row_misplaced"}
    (fault,) = [fault for fault in faults if fault.code == "row_added"]
    assert fault.row is not None
    assert fault.row.startswith(f"{table} ")


@pytest.mark.parametrize("table", SEALED)
async def test_two_rows_that_changed_places_are_named(place: Place, table: str):
    column = DIFFERENT[table]
    sealed = f"FROM {table} WHERE written_in < (SELECT max(upto) FROM audit_seal)"
    swap = f"""
        UPDATE {table} AS it SET {column} = CASE it.{column} WHEN least THEN most ELSE least END
          FROM (SELECT min({column}) AS least, max({column}) AS most {sealed}) AS ends
         WHERE (it.tableoid, it.ctid) IN (
               (SELECT tableoid, ctid {sealed} AND {column} = least LIMIT 1)
                UNION
               (SELECT tableoid, ctid {sealed} AND {column} = most LIMIT 1))
    """
    drop = [UNDIGEST] if table == "contract_content" else []
    async with place.tampered(*drop, swap) as tampered:
        faults = (await tampered.report()).faults
    assert [fault.code for fault in faults] == ["row_changed"] * 2


@pytest.mark.parametrize("table", SEALED)
async def test_a_row_that_was_moved_to_another_seal_is_found(place: Place, table: str):
    move = (
        f"UPDATE {table} SET written_in = (SELECT since FROM audit_seal WHERE number = 2)"
        f" WHERE ctid = (SELECT ctid FROM {table}"
        "  WHERE written_in >= (SELECT since FROM audit_seal WHERE number = 3)"
        "    AND written_in < (SELECT upto FROM audit_seal WHERE number = 3) LIMIT 1)"
    )
    async with place.tampered(move) as tampered:
        faults = (await tampered.report()).faults
    assert {(fault.code, fault.seal) for fault in faults} == {("row_added", 2), ("row_removed", 3)}


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ("DELETE FROM audit_seal WHERE number = 1", {"seal_missing", "row_removed"}),
        ("DELETE FROM audit_seal WHERE number = 2", {"seal_missing"}),
        (
            (
                "UPDATE audit_seal SET leaf_hashes = overlay(leaf_hashes PLACING '\\x00' FROM 1)"
                " WHERE number = 2"
            ),
            {"leaf_list_changed"},
        ),
        ("UPDATE audit_seal SET leaf_hashes = '' WHERE number = 2", {"leaf_list_changed"}),
        (
            "UPDATE audit_seal SET signature = overlay(signature PLACING '\\x00' FROM 9)",
            {"signature_invalid"},
        ),
        (
            (
                "UPDATE audit_seal SET statement = replace(statement, 'sealed_at\":\"20',"
                " 'sealed_at\":\"19') WHERE number = 2"
            ),
            {"signature_invalid", "chain_broken"},
        ),
        (
            (
                "UPDATE audit_seal AS it SET (statement, signature, leaf_hashes, since, upto) ="
                " (SELECT statement, signature, leaf_hashes, since, upto FROM audit_seal AS other"
                " WHERE other.number = 5 - it.number) WHERE number IN (2, 3)"
            ),
            {"seal_missing", "range_broken", "chain_broken"},
        ),
        (
            (
                "UPDATE audit_seal AS it SET (statement, signature, leaf_hashes) ="
                " (SELECT statement, signature, leaf_hashes FROM audit_seal AS other"
                " WHERE other.number = 2) WHERE number = 3"
            ),
            {"seal_missing"},
        ),
    ],
)
async def test_a_seal_that_was_touched_is_found(place: Place, statement: str, codes: set[str]):
    async with place.tampered(statement) as tampered:
        report = await tampered.report()
    assert not report.is_verified
    assert {fault.code for fault in report.faults} & codes


async def test_a_cut_tail_is_found_by_who_kept_the_head(place: Place):
    async with place.tampered("DELETE FROM audit_seal WHERE number = 3") as tampered:
        export = await tampered.export()
    assert checked(export, trusted=place.trusted).is_verified, "nothing in the file tells it"
    (fault,) = checked(export, trusted=place.trusted, head=place.head).faults
    assert fault.code == "head_missing"


async def test_a_chain_that_was_made_anew_is_found_by_who_kept_the_head(place: Place):
    wipe = "DELETE FROM audit_seal"
    forge = "UPDATE event SET actor = 'mallory'"
    again = "UPDATE audit_progress SET sealed_to = 0"
    async with place.tampered(wipe, forge, again) as tampered:
        await tampered.connection.execute(
            "SELECT set_config('tallystick.tenant', %s, true)", (str(place.tenant_id),)
        )
        due = Due(place.tenant_id, "default", 0, 0)
        await seal_batch(tampered.connection, due=due, keys=place.keys)
        export = await tampered.export()
    assert checked(export, trusted=place.trusted).is_verified, "who holds the key can do this"
    (fault,) = checked(export, trusted=place.trusted, head=place.head).faults
    assert fault.code == "head_missing"


async def test_another_key_is_found_by_who_kept_the_key(place: Place):
    mallory = KeyRing("k1", {"k1": b"m" * 32})
    async with place.tampered(
        "DELETE FROM audit_seal", "UPDATE audit_progress SET sealed_to = 0"
    ) as tampered:
        await tampered.connection.execute(
            "SELECT set_config('tallystick.tenant', %s, true)", (str(place.tenant_id),)
        )
        due = Due(place.tenant_id, "default", 0, 0)
        await seal_batch(tampered.connection, due=due, keys=mallory)
        export = await replace(tampered, place=replace(place, keys=mallory)).export()
    assert checked(export).is_verified, "the file is consistent with itself"
    (fault,) = checked(export, trusted=place.trusted).faults
    assert fault.code == "signature_invalid"


async def test_a_statement_signed_for_another_purpose_is_no_seal(place: Place):
    async with place.tampered() as tampered:
        export = await tampered.export()
    key = signing_key(place.keys, "k1", place.tenant_id)
    lines = lines_of(export)
    line = next(line for line in lines if "seal" in line)["seal"]
    assert bytes.fromhex(line["signature"]) == sign(key, line["statement"])
    bare = key.sign(line["statement"].encode()).hex()
    report = checked(export.replace(line["signature"].encode(), bare.encode()))
    assert [fault.code for fault in report.faults] == ["signature_invalid"]


# --- the command ----------------------------------------------------------------------------------


async def test_the_command_verifies_what_it_exported(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, file = tmp_path / "home", tmp_path / "audit.ndjson"
    async with running(database_url, home) as api:
        await api.publish(a_contract())
        await seal_all(api)
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("TALLYSTICK_HOME", str(home))
    monkeypatch.delenv("TALLYSTICK_URL", raising=False)

    async def run(*args: str, **more: Any) -> tuple[int, str]:
        result = await asyncio.to_thread(CliRunner().invoke, registry, ["audit", *args], **more)
        return result.exit_code, result.output

    assert (await run("export", str(file)))[0] == 0
    assert file.stat().st_mode & 0o777 == 0o600
    code, seals = await run("seals", "--json")
    head = json.loads(seals)["seals"][0]["digest"]
    code, keys = await run("keys", "--json")
    key = json.loads(keys)["keys"][0]["public_key"]
    code, told = await run("verify", str(file), "--key", key, "--head", head)
    assert (code, "Verified." in told) == (0, True)
    code, told = await run("verify", "-", input=file.read_bytes())
    assert (code, "own word" in told) == (0, True)
    code, told = await run("verify", str(file), "--head", "sha256:" + "0" * 64, "--json")
    assert (code, json.loads(told)["faults"][0]["code"]) == (1, "head_missing")
    code, told = await run("export")
    assert told.startswith('{"header"')
    file.write_bytes(file.read_bytes()[:-5])
    code, told = await run("verify", str(file))
    assert (code, "cut off" in told) == (2, True)
    small = "01" + "00" * 31  # of small order: it verifies anything
    for bad in ("xyz", small):
        assert (await run("verify", str(file), "--key", bad))[0] == 2
    assert (await run("verify", str(tmp_path / "none")))[0] == 2
