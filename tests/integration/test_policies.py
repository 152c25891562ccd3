"""Policies in the service: published, assigned, and which one is in force while it changes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from kernel.scope import Connection
from registry import store_policies
from registry.policy import PolicyInForce
from registry.store_policies import PolicyStore
from tallystick.policy import Policy
from tests.api import Answered, Api, moment
from tests.builders import a_policy
from tests.fixtures import Owner

REFUND = a_policy()
STRICTER = a_policy(calls_max=4)
EMAIL = a_policy("safe-email")
EVERYBODY = "*"


async def publish(api: Api, text: str = REFUND) -> Answered:
    return await api.ask("POST", "/v1/policies", {"text": text})


async def show(api: Api, policy: str = "safe-refund", query: str = "") -> Answered:
    return await api.ask("GET", f"/v1/policies/{policy}{query}")


async def assign(api: Api, policy: str, principal: str) -> Answered:
    path = f"/v1/policies/{policy}/assignments"
    return await api.ask("POST", path, {"principal": principal})


async def unassign(api: Api, policy: str, principal: str) -> Answered:
    path = f"/v1/policies/{policy}/assignments"
    response = await api.http.delete(path, params={"principal": principal})
    return Answered(response.status_code, response.json() if response.content else None)


async def in_force(api: Api, principal: str) -> tuple[str, int] | None:
    response = await api.http.get("/v1/policies", params={"in_force_for": principal})
    found = [(one["policy"], one["revision"]) for one in response.json()["policies"]]
    assert len(found) <= 1
    return found[0] if found else None


# --- publishing -----------------------------------------------------------------------------------


async def test_a_policy_is_kept_as_it_was_written(api: Api):
    text = "# Ask before money moves.\n" + REFUND + "\n# The end: ä, 漢, \U0001f4b6"
    made = await publish(api, text)
    assert made.status == 201
    assert made.body["published"]
    assert (made.body["policy"], made.body["revision"]) == ("safe-refund", 1)
    assert (made.body["published_by"], made.body["warnings"]) == ("admin", [])
    assert made.body["digest"] == Policy.parse(text).digest
    shown = (await show(api)).body
    assert shown["text"] == text
    (listed,) = (await api.ask("GET", "/v1/policies")).body["policies"]
    assert shown == listed | {"text": text}
    assert made.body == listed | {"published": True, "warnings": []}


async def test_what_says_the_same_changes_nothing(api: Api, owner: Owner):
    made = await publish(api)
    before = await owner.dump()
    otherwise = "# Said otherwise.\n" + REFUND.replace("{risk: read}", '{"risk": "read"}')
    for text in (REFUND, otherwise):
        again = await publish(api, text)
        assert again.status == 200
        assert again.body == made.body | {"published": False}
    assert await owner.dump() == before


async def test_each_change_is_a_revision_and_none_is_lost(api: Api):
    texts = [REFUND, STRICTER, REFUND]
    for number, text in enumerate(texts, start=1):
        made = await publish(api, text)
        assert (made.status, made.body["revision"]) == (201, number), "also what was there before"
    for number, text in enumerate(texts, start=1):
        shown = (await show(api, query=f"?revision={number}")).body
        assert shown["text"] == text
        assert (shown["revision"], shown["current_revision"]) == (number, 3)
    assert (await show(api)).body["revision"] == 3
    for query in ("?revision=4", "?revision=2147483647"):
        assert (await show(api, query=query)).refusal == (404, "not_found")
    for query in ("?revision=0", "?revision=-1", "?revision=2147483648", "?revision=last"):
        assert (await show(api, query=query)).refusal == (422, "invalid_request")
    assert (await show(api, "safe-refunds")).refusal == (404, "not_found")


async def test_the_longest_name_is_kept(api: Api):
    assert (await publish(api, a_policy("x" * 128))).status == 201
    assert (await show(api, "x" * 128)).status == 200


async def test_every_fault_of_a_policy_is_told_with_its_place(api: Api, owner: Owner):
    before = await owner.counts()
    text = REFUND.replace("effect: block", "effect: blok").replace("high_risk", "highest")
    refused = await publish(api, text)
    assert refused.refusal == (422, "invalid_policy")
    lines = text.split("\n")
    places = {lines[fault["line"] - 1].strip() for fault in refused.body["facts"]["faults"]}
    assert places == {"issue_refund: {risk: highest}", "effect: blok"}
    for fault in refused.body["facts"]["faults"]:
        assert fault.keys() == {"line", "column", "pointer", "message"}
    for text in ("", "{", "[]", "id: x", REFUND + REFUND, a_policy("no name"), a_policy("x" * 129)):
        assert (await publish(api, text)).status == 422, text
    assert await owner.counts() == before


async def test_what_can_only_be_a_mistake_is_refused(api: Api, owner: Owner):
    before = await owner.counts()
    refused = await publish(api, REFUND.replace("tool: issue_refund", "tool: isue_refund"))
    assert refused.refusal == (422, "invalid_policy")
    (fault,) = refused.body["facts"]["faults"]
    assert (fault["code"], fault["line"]) == ("undeclared_tool", 14)
    assert await owner.counts() == before


async def test_what_may_not_be_meant_is_told_and_published(api: Api):
    unread = "facts: [{name: total, from_tool: lookup_order, path: total}]\nrules:"
    made = await publish(api, REFUND.replace("rules:", unread))
    assert made.status == 201
    (warning,) = made.body["warnings"]
    assert warning.keys() >= {"code", "line", "column", "message"}
    assert "total" in warning["message"]


async def test_publishers_at_once_make_one_line_of_revisions(api: Api, owner: Owner):
    texts = [a_policy(calls_max=number) for number in range(1, 13)]
    made = await asyncio.gather(*(publish(api, text) for text in texts))
    assert [one.status for one in made] == [201] * 12
    numbered = {one.body["revision"]: text for one, text in zip(made, texts, strict=True)}
    assert sorted(numbered) == list(range(1, 13))
    for number, text in numbered.items():
        assert (await show(api, query=f"?revision={number}")).body["text"] == text
    same = await asyncio.gather(*(publish(api, a_policy(calls_max=99)) for _ in range(8)))
    assert sorted(one.status for one in same) == [200] * 7 + [201]
    assert await owner.one("SELECT count(*) FROM policy_revision") == 13


# --- assigning ------------------------------------------------------------------------------------


async def test_the_own_policy_comes_before_everybodys(api: Api):
    for text in (REFUND, EMAIL):
        await publish(api, text)
    assert await in_force(api, "agent") is None
    made = await assign(api, "safe-email", EVERYBODY)
    assert made == Answered(201, {"policy": "safe-email", "principal": EVERYBODY, "assigned": True})
    assert (await assign(api, "safe-refund", "agent")).status == 201
    assert await in_force(api, "agent") == ("safe-refund", 1)
    assert await in_force(api, "somebody") == await in_force(api, EVERYBODY) == ("safe-email", 1)
    listed = (await api.ask("GET", "/v1/policies")).body["policies"]
    assert [(one["policy"], one["assigned_to"]) for one in listed] == [
        ("safe-email", ["*"]),
        ("safe-refund", ["agent"]),
    ]
    await publish(api, STRICTER)
    assert await in_force(api, "agent") == ("safe-refund", 2)

    assert (await unassign(api, "safe-refund", "agent")).status == 204
    assert await in_force(api, "agent") == ("safe-email", 1)
    assert (await unassign(api, "safe-email", EVERYBODY)).status == 204
    assert await in_force(api, "agent") is None


async def test_another_policy_takes_the_place_of_the_one_before(api: Api, owner: Owner):
    for text in (REFUND, EMAIL):
        await publish(api, text)
    assert (await assign(api, "safe-refund", "agent")).status == 201
    before = await owner.dump()
    again = await assign(api, "safe-refund", "agent")
    assert (again.status, again.body["assigned"]) == (200, False)
    assert await owner.dump() == before
    assert (await assign(api, "safe-email", "agent")).status == 201
    assert await in_force(api, "agent") == ("safe-email", 1)
    assert (await show(api)).body["assigned_to"] == []


async def test_only_what_is_there_is_assigned_or_taken_back(api: Api, owner: Owner):
    for text in (REFUND, EMAIL):
        await publish(api, text)
    await assign(api, "safe-refund", "agent")
    before = await owner.dump()
    for answer in (
        await assign(api, "safe-refunds", "agent"),
        await unassign(api, "safe-email", "agent"),
        await unassign(api, "safe-refund", "agent2"),
        await unassign(api, "safe-refund", EVERYBODY),
        await unassign(api, "safe-refunds", "agent"),
    ):
        assert answer.refusal == (404, "not_found")
    for principal in ("", "x" * 201):
        assert (await assign(api, "safe-refund", principal)).refusal == (422, "invalid_request")
    assert await owner.dump() == before


@pytest.mark.parametrize("principal", ["billing/agent", "..", "a b", "agent?x=1", "äß%2F", "**"])
async def test_any_principal_can_be_told(api: Api, principal: str):
    await publish(api)
    assert (await assign(api, "safe-refund", principal)).status == 201
    assert await in_force(api, principal) == ("safe-refund", 1)
    assert await in_force(api, "agent") is None
    assert (await unassign(api, "safe-refund", principal)).status == 204
    assert await in_force(api, principal) is None


async def test_assigners_at_once_leave_one_policy_in_force(api: Api, owner: Owner):
    names = [f"policy-{number}" for number in range(8)]
    for name in names:
        await publish(api, a_policy(name))
    made = await asyncio.gather(*(assign(api, name, "agent") for name in names))
    assert [one.status for one in made] == [201] * 8
    told = await owner.rows(
        "SELECT facts ->> 'former', facts ->> 'policy' FROM registry_event"
        " WHERE kind = 'policy_assigned' ORDER BY event_id"
    )
    follows = dict(told)
    assert follows.keys() == {None, *names} - {(await in_force(api, "agent") or ("",))[0]}
    assert set(follows.values()) == set(names), "each came after one other"


async def test_every_change_is_recorded(api: Api, owner: Owner):
    digests = [(await publish(api, text)).body["digest"] for text in (REFUND, STRICTER)]
    await publish(api, EMAIL)
    await assign(api, "safe-refund", "agent")
    await assign(api, "safe-email", "agent")
    await unassign(api, "safe-email", "agent")
    told = await owner.rows(
        "SELECT kind, subject, actor, facts FROM registry_event"
        " WHERE kind ~ '^policy_' AND subject <> 'safe-email' ORDER BY event_id"
    )
    assert told == [
        ("policy_published", "safe-refund", "admin", {"revision": 1, "digest": digests[0]}),
        ("policy_published", "safe-refund", "admin", {"revision": 2, "digest": digests[1]}),
        ("policy_assigned", "agent", "admin", {"policy": "safe-refund", "former": None}),
        ("policy_assigned", "agent", "admin", {"policy": "safe-email", "former": "safe-refund"}),
        ("policy_unassigned", "agent", "admin", {"policy": "safe-email"}),
    ]


async def test_an_operator_manages_policies_and_everybody_reads_them(api: Api, owner: Owner):
    await publish(api)
    for role in ("runtime", "publisher", "approver", "operator", "auditor"):
        mine = api.speaking_for(await owner.token("default", role, principal=role))
        async with mine.http:
            answers = [
                await publish(mine, a_policy(calls_max=len(role) + 20)),
                await assign(mine, "safe-refund", role),
                await unassign(mine, "safe-refund", role),
            ]
            wanted = [201, 201, 204] if role == "operator" else [403] * 3
            assert [answer.status for answer in answers] == wanted, role
            for path in ("", "/safe-refund", "?in_force_for=agent"):
                assert (await mine.ask("GET", f"/v1/policies{path}")).status == 200, role


async def test_each_tenant_has_policies_of_its_own(api: Api, other: Api):
    await publish(api)
    await assign(api, "safe-refund", EVERYBODY)
    assert await in_force(other, "agent") is None
    assert (await assign(other, "safe-refund", "agent")).refusal == (404, "not_found")
    theirs = await publish(other, STRICTER)
    assert (theirs.status, theirs.body["revision"]) == (201, 1)
    await assign(other, "safe-refund", "agent")
    assert (await show(other)).body["text"] == STRICTER
    assert (await show(api)).body["text"] == REFUND


# --- what is in force while it changes ------------------------------------------------------------


class Held:
    """A transaction of a tenant that did something, and ends when it is told to."""

    def __init__(self, api: Api, tenant_id: UUID) -> None:
        self._transact = api.app.state.database.transact
        self._tenant_id = tenant_id
        self._go_on = asyncio.Event()

    async def begin(self, work: Callable[[PolicyStore], Awaitable[Any]]) -> Any:
        """Do it, and leave the transaction open; returns what it gave."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def hold(connection: Connection) -> None:
            done.set_result(await work(PolicyStore(connection)))
            await self._go_on.wait()

        self._task = asyncio.create_task(self._transact(self._tenant_id, hold))
        await asyncio.wait([done, self._task], return_when=asyncio.FIRST_COMPLETED)
        return await (done if done.done() else self._task)

    async def end(self) -> None:
        self._go_on.set()
        await self._task


async def tenant(owner: Owner) -> UUID:
    return await owner.one("SELECT tenant_id FROM tenant WHERE slug = 'default'")


async def asked(api: Api, owner: Owner, principal: str, *, lock: bool) -> PolicyInForce | None:
    """Ask what is in force in a transaction of its own, as a dispatch does."""
    return await api.app.state.database.transact(
        await tenant(owner),
        lambda connection: PolicyStore(connection).policy_in_force(principal, lock=lock),
    )


CHANGES: dict[str, Callable[[Api], Awaitable[Answered]]] = {
    "a new revision": lambda api: publish(api, STRICTER),
    "another policy": lambda api: assign(api, "safe-email", "agent"),
    "none of its own": lambda api: unassign(api, "safe-refund", "agent"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_waits_for_the_dispatches_under_way(api: Api, owner: Owner, change: str):
    for text in (REFUND, EMAIL):
        await publish(api, text)
    await assign(api, "safe-refund", "agent")
    first, second = Held(api, await tenant(owner)), Held(api, await tenant(owner))
    for dispatch in (first, second):
        found = await dispatch.begin(lambda store: store.policy_in_force("agent", lock=True))
        assert (found.name, found.revision) == ("safe-refund", 1), "they do not wait for another"
        assert found.policy.digest == Policy.parse(REFUND).digest
    changing = asyncio.create_task(CHANGES[change](api))  # pyright: ignore[reportArgumentType]
    await owner.wait_for_locks()
    assert await in_force(api, "agent") == ("safe-refund", 1)
    assert (await publish(api, a_policy("safe-email", calls_max=3))).status == 201, "another one"
    await first.end()
    await owner.wait_for_locks()
    ended = await owner.one("SELECT clock_timestamp()")
    await second.end()
    assert (await changing).status in (201, 204)
    assert await in_force(api, "agent") != ("safe-refund", 1)
    assert await owner.one("SELECT max(at) FROM registry_event") > ended, "it is dated after them"
    if change == "a new revision":
        assert moment((await show(api)).body["published_at"]) > ended


async def test_a_busy_policy_can_be_changed(api: Api, owner: Owner):
    """There is always a dispatch under way: those that come later stand in line behind it."""
    await publish(api)
    await assign(api, "safe-refund", EVERYBODY)
    dispatch = Held(api, await tenant(owner))
    await dispatch.begin(lambda store: store.policy_in_force("agent", lock=True))
    publishing = asyncio.create_task(publish(api, STRICTER))
    await owner.wait_for_locks()
    later = [asyncio.create_task(asked(api, owner, "agent", lock=True)) for _ in range(3)]
    await owner.wait_for_locks(4)
    await dispatch.end()
    assert (await publishing).body["revision"] == 2
    for found in await asyncio.gather(*later):
        assert found is not None
        assert found.revision == 2


async def test_a_dispatch_that_waited_goes_by_what_came(api: Api, owner: Owner):
    await publish(api)
    await assign(api, "safe-refund", EVERYBODY)
    publishing = Held(api, await tenant(owner))
    stricter = Policy.parse(STRICTER)

    async def publish_slowly(store: PolicyStore) -> None:
        await store.take("safe-refund")
        await store.publish(stricter, STRICTER, after=1, by="admin")

    await publishing.begin(publish_slowly)
    dispatching = asyncio.create_task(asked(api, owner, "agent", lock=True))
    await owner.wait_for_locks()
    looked = await asked(api, owner, "agent", lock=False)
    assert looked is not None
    assert looked.revision == 1, "who only looks waits for nobody"
    await publishing.end()
    found = await dispatching
    assert found is not None
    assert (found.revision, found.policy.digest) == (2, stricter.digest)


async def test_a_dispatch_that_waited_holds_what_was_assigned_meanwhile(api: Api, owner: Owner):
    for text in (REFUND, EMAIL):
        await publish(api, text)
    await assign(api, "safe-refund", EVERYBODY)
    assigning, dispatch = Held(api, await tenant(owner)), Held(api, await tenant(owner))

    async def assign_slowly(store: PolicyStore) -> None:
        await store.take_in_force("agent")
        await store.assign("agent", "safe-email", by="admin")

    await assigning.begin(assign_slowly)
    dispatching = asyncio.create_task(
        dispatch.begin(lambda store: store.policy_in_force("agent", lock=True))
    )
    await owner.wait_for_locks()
    await assigning.end()
    found = await dispatching
    assert found.name == "safe-email"
    publishing = asyncio.create_task(publish(api, a_policy("safe-email", calls_max=3)))
    await owner.wait_for_locks()
    await dispatch.end()
    assert (await publishing).status == 201


async def test_where_none_is_in_force_nobody_waits(api: Api, owner: Owner):
    await publish(api)
    dispatch = Held(api, await tenant(owner))
    assert await dispatch.begin(lambda store: store.policy_in_force("agent", lock=True)) is None
    for answer in (await publish(api, STRICTER), await assign(api, "safe-refund", EVERYBODY)):
        assert answer.status == 201
    await dispatch.end()
    assert (await asked(api, owner, "agent", lock=True)) is not None


async def test_more_policies_than_are_kept_parsed(
    api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store_policies, "_PARSED_MAX", 2)
    names = [f"policy-{number}" for number in range(4)]
    for name in names:
        await publish(api, a_policy(name))
        await assign(api, name, name)
    for name in [*names, *reversed(names), *names]:
        found = await asked(api, owner, name, lock=False)
        assert found is not None
        assert (found.policy.id, found.name) == (name, name)
