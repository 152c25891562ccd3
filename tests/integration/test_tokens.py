"""API tokens: shown once, kept as a hash, in force for as long as they should be."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from typer.testing import CliRunner

from access.authentication import Authenticator
from access.token import token_hash
from cli.app import app as command
from kernel.scope import Transact
from server.bootstrap import create_tenant, recover_tenant, tenants
from tallystick.errors import InvalidRequest, NotFound, Unauthenticated
from tests.api import Answered, Api, moment, running
from tests.fixtures import Owner, owning

WORDS = "The token is not known here, has expired, or was revoked."


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return its seconds."""
        return self.now


async def make(api: Api, name: str = "agent", *roles: str, **more: Any) -> dict[str, Any]:
    body = {"name": name, "roles": list(roles) or ["runtime"], **more}
    answer = await api.ask("POST", "/v1/tokens", body)
    assert answer.status == 201, answer
    return answer.body


async def whoami(api: Api, token: str) -> Answered:
    async with api.speaking_for(token).http as http:
        response = await http.get("/v1/whoami")
        return Answered(response.status_code, response.json())


async def revoke(api: Api, token_id: str) -> Answered:
    return await api.ask("POST", f"/v1/tokens/{token_id}/revoke", {})


async def rotate(api: Api, token_id: str, **body: Any) -> Answered:
    return await api.ask("POST", f"/v1/tokens/{token_id}/rotate", body)


async def listed(api: Api, query: str = "") -> list[dict[str, Any]]:
    return (await api.ask("GET", f"/v1/tokens{query}")).body["tokens"]


async def own(api: Api) -> dict[str, Any]:
    """Return the first admin token as it is listed."""
    (found,) = [one for one in await listed(api) if one["prefix"] == api.token[:11]]
    return found


def another_server(api: Api, clock: Clock | None = None) -> Authenticator:
    """Return what another server of the same database believes: nothing yet."""
    return Authenticator(api.app.state.database.transact, clock=clock or Clock())


async def let_expire(owner: Owner, token_id: str) -> None:
    """Let a token have been made long ago, and have expired just now."""
    await owner.rows(
        "UPDATE api_token SET created_at = now() - interval '1 day', expires_at = now()"
        " WHERE token_id = %s",
        UUID(token_id),
    )


# --- making one -----------------------------------------------------------------------------------


async def test_a_token_is_shown_once_and_kept_as_a_hash(api: Api, owner: Owner):
    response = await api.http.post("/v1/tokens", json={"name": "ci", "roles": ["publisher"]})
    assert response.headers["cache-control"] == "no-store"
    made = response.json()
    assert re.fullmatch("tk_[A-Za-z0-9_-]{43}", made["token"])
    assert made["prefix"] == made["token"][:11]
    assert (made["created_by"], made["state"], made["expires_at"]) == ("admin", "active", None)
    answer = await whoami(api, made["token"])
    assert answer.body == {"tenant": "default", "principal": "ci", "roles": ["publisher"]}
    found = [one for one in await listed(api) if one["token_id"] == made["token_id"]]
    assert [one.keys() for one in found] == [made.keys() - {"token"}]
    dump = await owner.dump()
    assert made["token"] not in dump
    assert made["token"][11:] not in dump
    assert token_hash(made["token"]).hex() in dump


async def test_a_token_speaks_for_whom_it_is_said_to(api: Api):
    made = await make(api, "blue", "runtime", "auditor", principal="agents/billing")
    assert (await whoami(api, made["token"])).body == {
        "tenant": "default",
        "principal": "agents/billing",
        "roles": ["auditor", "runtime"],
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "a" * 101},
        {"roles": []},
        {"roles": ["root"]},
        {"roles": "admin"},
        {"roles": ["admin"] * 7},
        {"principal": ""},
        {"principal": "a\0"},
        {"principal": "reconciler:1"},
        {"expires_in_seconds": 0},
        {"expires_in_seconds": "90d"},
        {"expires_in_seconds": 1e12},
        {"token": "tk_of-my-own"},
        {"tenant": "other"},
    ],
)
async def test_a_token_that_cannot_be(api: Api, changes: dict[str, Any]):
    answer = await api.ask("POST", "/v1/tokens", {"name": "ci", "roles": ["runtime"]} | changes)
    assert answer.refusal == (422, "invalid_request")
    assert len(await listed(api)) == 1


async def test_what_was_done_to_tokens_is_recorded(api: Api, owner: Owner):
    made = await make(api, expires_in_seconds=3600)
    turned = (await rotate(api, made["token_id"])).body
    await revoke(api, turned["token_id"])
    await revoke(api, turned["token_id"])
    events = await owner.rows(
        "SELECT kind, subject, actor, facts->>'replaces' FROM registry_event ORDER BY event_id"
    )
    assert events[1:] == [
        ("token_created", made["token_id"], "admin", None),
        ("token_created", turned["token_id"], "admin", made["token_id"]),
        ("token_revoked", turned["token_id"], "admin", None),
    ]
    first = (await own(api))["token_id"]
    assert events[0] == ("token_created", first, "owner", None), "the first one, at the start"


# --- the end of one -------------------------------------------------------------------------------


async def test_a_token_expires(api: Api, owner: Owner):
    made = await make(api, expires_in_seconds=3600)
    left = moment(made["expires_at"]) - moment(made["created_at"])
    assert left == timedelta(hours=1)
    await let_expire(owner, made["token_id"])
    with pytest.raises(Unauthenticated) as refused:
        await another_server(api).caller(f"Bearer {made['token']}")
    assert refused.value.detail == WORDS
    assert made["token_id"] not in {one["token_id"] for one in await listed(api)}
    states = {one["token_id"]: one["state"] for one in await listed(api, "?all=true")}
    assert states[made["token_id"]] == "expired"


async def test_expired_revoked_and_unknown_are_told_alike(api: Api, owner: Owner):
    expired, revoked = await make(api, "a"), await make(api, "b")
    await let_expire(owner, expired["token_id"])
    await revoke(api, revoked["token_id"])
    tokens = (expired["token"], revoked["token"], "tk_" + "a" * 43, "x")
    answers = [await whoami(api, token) for token in tokens]
    assert {answer.status for answer in answers} == {401}
    assert [answer.body for answer in answers] == [answers[0].body] * 4


async def test_nothing_is_believed_beyond_its_end(api: Api, owner: Owner):
    made, clock = await make(api), Clock()
    there = another_server(api, clock)
    await owner.rows(
        "UPDATE api_token SET expires_at = clock_timestamp() + interval '3 seconds'"
        " WHERE token_id = %s",
        UUID(made["token_id"]),
    )
    await there.caller(f"Bearer {made['token']}")
    await let_expire(owner, made["token_id"])
    clock.now += 3
    with pytest.raises(Unauthenticated):
        await there.caller(f"Bearer {made['token']}")


async def test_a_revoked_token_ends_here_at_once_and_elsewhere_in_seconds(api: Api):
    made, clock = await make(api), Clock()
    there = another_server(api, clock)
    assert (await whoami(api, made["token"])).status == 200
    await there.caller(f"Bearer {made['token']}")
    answer = await revoke(api, made["token_id"])
    assert (answer.status, answer.body["state"]) == (200, "revoked")
    assert (await whoami(api, made["token"])).refusal == (401, "unauthenticated")
    clock.now += 5
    with pytest.raises(Unauthenticated):
        await there.caller(f"Bearer {made['token']}")
    again = await revoke(api, made["token_id"])
    assert again.body == answer.body, "it was revoked once"


async def test_what_was_asked_before_a_revocation_is_not_believed_after_it(api: Api):
    made, transact = await make(api), api.app.state.database.transact
    asked: list[UUID | None] = []

    class Late(Transact):
        """The way to the database, on which a revocation overtakes the answer."""

        async def __call__(self, tenant_id: UUID | None, work: Any) -> Any:
            result = await transact(tenant_id, work)
            asked.append(tenant_id)
            there.forget(UUID(made["token_id"]))
            return result

    there = Authenticator(Late())
    for _ in range(2):
        await there.caller(f"Bearer {made['token']}")
    assert asked.count(None) == 2


# --- the last administrator -----------------------------------------------------------------------


async def test_the_last_admin_token_stays(api: Api, owner: Owner):
    mine = (await own(api))["token_id"]
    gone, expired = await make(api, "gone", "admin"), await make(api, "expired", "admin")
    await make(api, "not-one", "operator")
    await revoke(api, gone["token_id"])
    await let_expire(owner, expired["token_id"])
    answer = await revoke(api, mine)
    assert answer.refusal == (409, "token_conflict")
    assert "last admin token in force" in answer.body["detail"]
    assert (await api.ask("GET", "/v1/whoami")).status == 200
    second = await make(api, "second", "admin", "runtime")
    assert (await revoke(api, mine)).status == 200
    assert (await api.ask("GET", "/v1/whoami")).status == 401
    async with api.speaking_for(second["token"]).http as http:
        last = await http.post(f"/v1/tokens/{second['token_id']}/revoke", json={})
        assert last.status_code == 409


async def test_two_administrators_do_not_end_each_other(api: Api):
    for round_ in range(5):
        mine = (await own(api))["token_id"]
        second = await make(api, f"second-{round_}", "admin")
        other = api.speaking_for(second["token"])
        async with other.http:
            assert (await other.ask("GET", "/v1/whoami")).status == 200
            answers = await asyncio.gather(revoke(api, second["token_id"]), revoke(other, mine))
            assert sorted(answer.status for answer in answers) == [200, 409]
            if answers[1].status == 200:
                return  # the first one has lost, and cannot go on


# --- rotation -------------------------------------------------------------------------------------


async def test_a_rotated_token_has_a_successor_and_an_end(api: Api):
    old = await make(api, "agent", "runtime", "auditor", principal="p", expires_in_seconds=86400)
    answer = await rotate(api, old["token_id"])
    assert answer.status == 201
    new = answer.body
    same = ("name", "principal", "roles")
    assert [new[one] for one in same] == [old[one] for one in same]
    assert new["replaces"] == old["token_id"]
    assert moment(new["expires_at"]) - moment(new["created_at"]) == timedelta(days=1)
    for token in (old["token"], new["token"]):
        assert (await whoami(api, token)).body["principal"] == "p"
    (kept,) = [one for one in await listed(api) if one["token_id"] == old["token_id"]]
    left = moment(kept["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=50) < left <= timedelta(hours=1)


async def test_without_overlap_the_old_one_ends_at_once(api: Api):
    old = await make(api)
    assert (await whoami(api, old["token"])).status == 200
    new = (await rotate(api, old["token_id"], overlap_seconds=0)).body
    assert new["expires_at"] is None
    assert (await whoami(api, old["token"])).status == 401
    assert (await whoami(api, new["token"])).status == 200


async def test_a_rotation_puts_no_end_off(api: Api):
    old = await make(api, expires_in_seconds=60)
    await rotate(api, old["token_id"], overlap_seconds=3600)
    (kept,) = [one for one in await listed(api) if one["token_id"] == old["token_id"]]
    assert kept["expires_at"] == old["expires_at"]


async def test_a_token_has_one_successor(api: Api):
    old = await make(api)
    answers = await asyncio.gather(*(rotate(api, old["token_id"]) for _ in range(4)))
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
    (new,) = [answer.body for answer in answers if answer.status == 201]
    for answer in answers:
        assert answer.status == 201 or new["token_id"] in answer.body["detail"]
    assert (await rotate(api, new["token_id"])).status == 201


async def test_what_is_not_in_force_is_not_rotated(api: Api, owner: Owner):
    revoked, expired = await make(api, "a"), await make(api, "b")
    await revoke(api, revoked["token_id"])
    await let_expire(owner, expired["token_id"])
    for token in (revoked, expired):
        answer = await rotate(api, token["token_id"])
        assert answer.refusal == (409, "token_conflict")
    assert (await rotate(api, str(uuid4()))).refusal == (404, "not_found")


async def test_the_admin_token_of_the_file_can_be_rotated(api: Api):
    new = (await rotate(api, (await own(api))["token_id"], overlap_seconds=0)).body
    assert (await api.ask("GET", "/v1/whoami")).status == 401
    assert (await whoami(api, new["token"])).body["roles"] == ["admin"]


# --- last use -------------------------------------------------------------------------------------


async def last_use(owner: Owner, token_id: str) -> datetime | None:
    return await owner.one("SELECT last_used_at FROM api_token WHERE token_id = %s", token_id)


async def test_the_last_use_is_known_to_the_minute(api: Api, owner: Owner):
    made = await make(api)
    assert await last_use(owner, made["token_id"]) is None
    for _ in range(3):
        await another_server(api).caller(f"Bearer {made['token']}")
    first = await last_use(owner, made["token_id"])
    assert first is not None
    await another_server(api).caller(f"Bearer {made['token']}")
    assert await last_use(owner, made["token_id"]) == first, "no write for each request"
    await owner.rows("UPDATE api_token SET last_used_at = now() - interval '61 seconds'")
    await another_server(api).caller(f"Bearer {made['token']}")
    later = await last_use(owner, made["token_id"])
    assert later is not None
    assert later > first


async def test_nobody_waits_to_note_a_use(api: Api, database_url: str):
    made = await make(api)
    async with await psycopg.AsyncConnection.connect(database_url) as holder:
        await holder.execute("SELECT FROM api_token FOR UPDATE")
        caller = await another_server(api).caller(f"Bearer {made['token']}")
        assert caller.principal == "agent"
        waiting = await holder.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        assert await waiting.fetchone() == (0,)


# --- tenants --------------------------------------------------------------------------------------


async def test_tokens_are_those_of_the_own_tenant(api: Api, other: Api):
    theirs = await own(api)
    await make(other, "ours", "admin")
    assert theirs["token_id"] not in {one["token_id"] for one in await listed(other, "?all=true")}
    for question in (revoke, rotate):
        found = await question(other, theirs["token_id"])
        missing = await question(other, (nobodys := str(uuid4())))
        assert found.refusal == missing.refusal == (404, "not_found")
        assert str(found.body).replace(theirs["token_id"], nobodys) == str(missing.body)
    assert (await api.ask("GET", "/v1/whoami")).status == 200


async def test_a_tenant_is_made_on_this_machine(api: Api, database_url: str):
    token = await asyncio.to_thread(create_tenant, database_url, "acme-eu")
    assert (await whoami(api, token)).body == {
        "tenant": "acme-eu",
        "principal": "admin",
        "roles": ["admin"],
    }
    with pytest.raises(InvalidRequest, match="'acme-eu' already"):
        await asyncio.to_thread(create_tenant, database_url, "acme-eu")
    more = await asyncio.to_thread(recover_tenant, database_url, "acme-eu")
    assert {(await whoami(api, one)).body["tenant"] for one in (token, more)} == {"acme-eu"}
    with pytest.raises(NotFound):
        await asyncio.to_thread(recover_tenant, database_url, "acme")
    found = await asyncio.to_thread(tenants, database_url)
    assert [one.slug for one in found] == ["acme-eu", "default"]


@pytest.mark.parametrize("slug", ["", "Acme", "-a", "a b", "a" * 64, "a\0", "a\n", "ä", "a'--"])
def test_a_tenant_has_a_label(database_url: str, slug: str):
    with pytest.raises(InvalidRequest, match="at most 63"):
        create_tenant(database_url, slug)
    assert [one.slug for one in tenants(database_url)] == ["default"]


async def test_another_tenants_token_makes_none_of_ours(database_url: str, tmp_path: Path):
    """The first start makes the default tenant's, whichever tenants are there before it."""
    async with owning(database_url) as owner:
        await owner.tenant("early")
        async with running(database_url, tmp_path / "home") as api:
            assert (await api.ask("GET", "/v1/whoami")).body["tenant"] == "default"


def test_the_command_makes_a_tenant_and_its_token_works(database_url: str, tmp_path: Path):
    env = {"DATABASE_URL": database_url, "TALLYSTICK_HOME": str(tmp_path), "TALLYSTICK_URL": None}
    run = CliRunner().invoke
    made = run(command, ["tenants", "create", "acme"], env=env, catch_exceptions=False)
    assert made.exit_code == 0, made.output
    (token,) = re.findall("tk_[A-Za-z0-9_-]{43}", made.stdout)
    assert run(command, ["tenants", "create", "acme"], env=env).exit_code == 1
    recovered = run(command, ["tenants", "recover", "acme"], env=env)
    assert token not in recovered.stdout
    shown = run(command, ["tenants", "list", "--json"], env=env)
    assert '"tenant": "acme"' in shown.stdout
    assert token not in shown.stdout


def test_a_token_that_is_set_is_who_the_command_speaks_for(database_url: str, tmp_path: Path):
    env = {"DATABASE_URL": database_url, "TALLYSTICK_HOME": str(tmp_path), "TALLYSTICK_URL": None}
    run = CliRunner().invoke
    made = run(command, ["tokens", "create", "mei", "--role", "approver"], env=env)
    (token,) = re.findall("tk_[A-Za-z0-9_-]{43}", made.stdout)
    assert '"admin"' in run(command, ["whoami", "--json"], env=env).stdout
    env |= {"TALLYSTICK_TOKEN": token}
    assert '"mei"' in run(command, ["whoami", "--json"], env=env).stdout
    assert "[forbidden]" in run(command, ["tokens", "list"], env=env).stderr
