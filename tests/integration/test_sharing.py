"""Contracts that are shared with another tenant: accepted and used by it, owned by the first."""

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection

from tests.api import Answered, Api
from tests.builders import ARGUMENTS, a_contract, http_evidence
from tests.fixtures import Owner, Sweep
from tests.provider import Provider

PATH = "/v1/contracts/billing.send_invoice/2.1"
NAME, VERSION = "billing.send_invoice", "2.1.0"
MISSING = (404, "tool_contract_not_found")


async def share(api: Api, tenant: str = "other", path: str = PATH) -> Answered:
    return await api.ask("POST", f"{path}/shares", {"tenant": tenant})


async def unshare(api: Api, tenant: str = "other") -> Answered:
    return await api.ask("POST", f"{PATH}/shares/{tenant}/revoke", {"reason": "moved"})


async def accept(other: Api, owner: str = "default", version: str = "2.1") -> Answered:
    return await other.ask("POST", "/v1/shares/accept", offer(owner, version))


async def withdraw(other: Api, owner: str = "default") -> Answered:
    return await other.ask("POST", "/v1/shares/withdraw", offer(owner) | {"reason": "not ours"})


async def offers(other: Api, query: str = "") -> list[tuple[str, str, bool]]:
    """Return what a tenant is offered: by whom, which version, and whether it has accepted it."""
    found = (await other.ask("GET", f"/v1/shares{query}")).body["offers"]
    return [(one["owner"], one["version"], one["accepted_at"] is not None) for one in found]


def offer(owner: str, version: str = "2.1") -> dict[str, str]:
    return {"owner": owner, "name": NAME, "version": version}


async def taken_up(other: Api) -> dict[str, Any]:
    """Do what a tenant does to use what is shared with it; return the tuple that it presents."""
    assert (await accept(other)).status == 200
    await other.credential("billing-api")
    await other.grant("invoice:write:{tenant}")
    attested = await other.ask("POST", f"{PATH}/attest", {"reason": "reviewed"})
    assert attested.status == 200, attested
    return (await other.ask("GET", PATH)).body["reference"]


@pytest.fixture
async def theirs(api: Api) -> dict[str, Any]:
    """The owner's tuple of the version that it shares."""
    reference = await api.publish(a_contract())
    assert (await share(api)).status == 201
    return reference


@pytest.fixture
async def accepted(other: Api, theirs: dict[str, Any]) -> dict[str, Any]:
    """The owner's tuple, where the other tenant has accepted the version and done no more."""
    assert (await accept(other)).status == 200
    return theirs


@pytest.fixture
async def ours(other: Api, theirs: dict[str, Any]) -> dict[str, Any]:
    """The other tenant's tuple of that version."""
    assert theirs
    return await taken_up(other)


# --- the owner ------------------------------------------------------------------------------------


async def test_an_owner_shares_and_takes_back(api: Api, other: Api):
    await api.publish(a_contract())
    made = await share(api)
    assert made.status == 201
    assert made.body.keys() == {"tenant", "shared_at", "shared_by", "revoked_at"}
    assert made.body | {"shared_at": ""} == {
        "tenant": "other",
        "shared_at": "",
        "shared_by": "admin",
        "revoked_at": None,
    }
    assert await share(api) == Answered(200, made.body), "the same again changes nothing"
    await accept(other)
    assert (await api.ask("GET", f"{PATH}/shares")).body == {"shares": [made.body]}, "not told"
    assert (await api.ask("GET", f"{PATH}/shares")).body == {"shares": [made.body]}
    revoked = await unshare(api)
    assert revoked.body["revoked_at"] is not None
    assert await unshare(api) == Answered(200, revoked.body)
    assert (await api.ask("GET", f"{PATH}/shares")).body == {"shares": [revoked.body]}
    assert (await other.ask("GET", PATH)).refusal == MISSING
    again = await share(api)
    assert (again.status, again.body["revoked_at"]) == (201, None)
    assert (await other.ask("GET", PATH)).status == 200, "what was accepted is the same still"


async def test_nobody_learns_which_tenants_there_are(api: Api, other: Api, owner: Owner):
    assert other
    await api.publish(a_contract())
    answers = [(await share(api, tenant)) for tenant in ("other", "nobody")]
    answers += [(await unshare(api, tenant)) for tenant in ("other", "nobody")]
    told = [
        (
            one.status,
            {
                name: "<time>" if name.endswith("_at") and value else value
                for name, value in one.body.items()
            }
            | {"tenant": ""},
        )
        for one in answers
    ]
    assert told[0] == told[1]
    assert told[2] == told[3]
    missing = await unshare(api, "third")
    assert missing.refusal == (404, "not_found")
    # A tenant that is made later under a slug is offered what is shared with it.
    await share(api, "nobody")
    late = api.speaking_for(await owner.tenant("nobody"))
    async with late.http:
        assert (await late.ask("GET", PATH)).refusal == MISSING
        assert await offers(late) == [("default", "2.1.0", False)]
        assert (await accept(late)).status == 200
        assert (await late.ask("GET", PATH)).body["owner"] == "default"


@pytest.mark.parametrize(
    ("path", "tenant", "refusal"),
    [
        (PATH, "default", (422, "invalid_request")),
        (PATH, "Not a label", (422, "invalid_request")),
        (PATH, "", (422, "invalid_request")),
        (PATH, "x" * 64, (422, "invalid_request")),
        ("/v1/contracts/billing.send_invoice/9.9", "other", MISSING),
        ("/v1/contracts/billing.send_invoice/two", "other", (422, "invalid_request")),
    ],
)
async def test_what_cannot_be_shared(api: Api, path: str, tenant: str, refusal: tuple[int, str]):
    await api.publish(a_contract())
    assert (await share(api, tenant, path)).refusal == refusal
    assert (await api.ask("GET", f"{PATH}/shares")).body == {"shares": []}


async def test_each_share_is_an_event_of_its_owner(api: Api, other: Api, owner: Owner):
    await api.publish(a_contract())
    for one in (share, share, unshare, unshare):
        await one(api)
    assert other
    found = await owner.rows(
        "SELECT kind, subject, actor, facts, slug FROM registry_event JOIN tenant USING (tenant_id)"
        " WHERE kind LIKE 'contract_%%shared' ORDER BY at"
    )
    subject = "billing.send_invoice@2.1.0"
    assert found == [
        ("contract_shared", subject, "admin", {"tenant": "other"}, "default"),
        ("contract_unshared", subject, "admin", {"tenant": "other", "reason": "moved"}, "default"),
    ]


# --- the other tenant accepts ---------------------------------------------------------------------


async def test_nothing_is_seen_before_it_is_accepted(
    api: Api, other: Api, owner: Owner, theirs: dict[str, Any]
):
    """A share is an offer: its name is told to whoever manages sharing, and nothing else."""
    await other.credential("billing-api")
    await other.grant("invoice:write:other")
    tool = theirs | {"capabilities": ["invoice:write:other"]}
    before = await owner.dump(traces=False)
    assert (await other.ask("GET", "/v1/contracts")).body == {"contracts": []}
    plan = {"run": "r", "effect": "e", "tool": tool, "arguments": ARGUMENTS}
    pin = {"name": NAME, "version": "2.1", "holder": "q", "ttl_seconds": 60}
    for method, path, body in (
        ("GET", PATH, None),
        ("POST", f"{PATH}/attest", {"reason": "reviewed"}),
        ("POST", f"{PATH}/signatures", {"key_id": "ed25519:" + "0" * 16, "signature": "0" * 128}),
        ("POST", "/v1/compare", {"old": f"{NAME}@2.1", "new": {}}),
        ("POST", "/v1/resolve", tool),
        ("POST", "/v1/pins", pin),
        ("POST", "/v1/effects", plan),
    ):
        assert (await other.ask(method, path, body)).refusal == MISSING, path
    assert await owner.dump(traces=False) == before
    policy = await other.ask("POST", "/v1/signature-policy", {"required": True})
    assert policy.status == 200, "and nothing unsigned stands in the way of the tenant's own policy"
    (offered,) = (await other.ask("GET", "/v1/shares")).body["offers"]
    assert offered == {
        "owner": "default",
        "name": NAME,
        "version": "2.1.0",
        "accepted_at": None,
        "accepted_by": None,
        "revoked_at": None,
    }
    assert await offers(api) == [], "and to nobody else"


async def test_a_tenant_accepts_and_withdraws(
    api: Api, other: Api, owner: Owner, theirs: dict[str, Any]
):
    assert theirs
    made = await accept(other)
    assert (made.status, made.body["accepted_by"]) == (200, "admin")
    assert await accept(other) == made, "the same again changes nothing"
    assert await offers(other) == [("default", "2.1.0", True)]
    assert [await offers(other, f"?owner={one}") for one in ("default", "third")] == [
        [("default", "2.1.0", True)],
        [],
    ]
    assert (await other.ask("GET", PATH)).status == 200
    withdrawn = await withdraw(other)
    assert withdrawn.body == made.body | {"accepted_at": None, "accepted_by": None}
    assert (await other.ask("GET", PATH)).refusal == MISSING
    assert await offers(other) == [("default", "2.1.0", False)]
    assert (await withdraw(other)).refusal == (404, "not_found")
    await unshare(api)
    assert await offers(other) == []
    assert (await accept(other)).refusal == (404, "not_found")
    await share(api)
    assert (await other.ask("GET", PATH)).refusal == MISSING, "it holds until it is undone"
    assert (await accept(other)).status == 200
    assert (await other.ask("GET", PATH)).status == 200
    found = await owner.rows(
        "SELECT kind, subject, actor, facts, slug FROM registry_event JOIN tenant USING (tenant_id)"
        " WHERE kind LIKE 'share_%%' ORDER BY at"
    )
    subject, facts = "billing.send_invoice@2.1.0", {"owner": "default"}
    assert found == [
        ("share_accepted", subject, "admin", facts, "other"),
        ("share_withdrawn", subject, "admin", facts | {"reason": "not ours"}, "other"),
        ("share_accepted", subject, "admin", facts, "other"),
    ]


async def test_what_is_not_offered_is_as_if_not_there(
    api: Api, other: Api, owner: Owner, theirs: dict[str, Any]
):
    """No answer tells which tenants there are, or what they have."""
    assert theirs
    await api.publish(a_contract(version="3.0"))
    await other.ask("GET", "/v1/whoami")  # its use is noted, once a minute
    before = await owner.dump()
    for path in ("/v1/shares/accept", "/v1/shares/withdraw"):
        told: set[tuple[int, str]] = set()
        for asked in (offer("default", "3.0"), offer("default", "4.0"), offer("nobody", "2.1")):
            answer = await other.http.request("POST", path, json=asked)
            text = answer.text.replace(asked["version"], "<version>")
            told.add((answer.status_code, text.replace(asked["owner"], "<owner>")))
        assert {status for status, _ in told} == {404}
        assert len(told) == 1, told
    assert await owner.dump() == before


@pytest.mark.parametrize("change", [{"owner": "Not a label"}, {"name": ""}, {"version": "two"}])
async def test_what_cannot_be_accepted(other: Api, change: dict[str, str]):
    for path in ("/v1/shares/accept", "/v1/shares/withdraw"):
        asked = offer("default") | change
        assert (await other.ask("POST", path, asked)).refusal == (422, "invalid_request")


async def test_many_offers_hide_none_that_is_accepted(
    other: Api, owner: Owner, accepted: dict[str, Any]
):
    """Anybody may make more of them: the list is bounded, and what is accepted stands first."""
    assert accepted
    await owner.rows(
        """
        WITH made AS (
            INSERT INTO contract (tenant_id, contract_id, name, version, contract_digest,
                                  published_by)
            SELECT tenant_id, gen_random_uuid(), 'a.' || number, '1.0.0', contract_digest, 'admin'
              FROM contract, generate_series(1, 600) AS number
            RETURNING tenant_id, contract_id)
        INSERT INTO contract_share (tenant_id, contract_id, shared_with, shared_by)
        SELECT tenant_id, contract_id, 'other', 'admin' FROM made RETURNING 1
        """
    )
    found = await offers(other)
    assert len(found) == 500
    assert found[0] == ("default", "2.1.0", True)


# --- the other tenant -----------------------------------------------------------------------------


async def test_what_is_shared_is_shown_with_its_owner(
    api: Api, other: Api, accepted: dict[str, Any]
):
    await api.publish(a_contract(version="3.0"))
    (listed,) = (await other.ask("GET", "/v1/contracts")).body["contracts"]
    shown = (await other.ask("GET", PATH)).body
    assert (listed["version"], listed["owner"]) == ("2.1.0", "default")
    assert listed["published_by"] is None, "who works there is its own business"
    assert {name: shown[name] for name in listed} == listed
    assert shown["reference"] == accepted | {
        "capabilities": ["invoice:write:other"],
        "credential_version": 0,
    }
    assert shown["document"] == (await api.ask("GET", PATH)).body["document"]
    for mine in (await api.ask("GET", "/v1/contracts")).body["contracts"]:
        assert (mine["owner"], mine["published_by"]) == (None, "admin")
    compared = await other.ask(
        "POST", "/v1/compare", {"old": "billing.send_invoice@2.1", "new": a_contract(version="3.0")}
    )
    assert compared.status == 200


async def test_it_runs_under_a_credential_of_ones_own(
    api: Api, other: Api, accepted: dict[str, Any]
):
    theirs = accepted
    await other.grant("invoice:write:other")
    reference = theirs | {"capabilities": ["invoice:write:other"]}
    for version in (0, 1):
        presented = reference | {"credential_version": version}
        for path, body in (
            ("/v1/resolve", presented),
            ("/v1/effects", {"run": "r", "effect": "e", "tool": presented, "arguments": ARGUMENTS}),
        ):
            answer = await other.ask("POST", path, body)
            assert answer.refusal == (409, "credential_policy_changed"), (path, version)
            assert answer.body["facts"]["current"] is None
    unmade = await other.ask("POST", f"{PATH}/attest", {"reason": "reviewed"})
    assert unmade.refusal == (422, "invalid_request")
    ours = await taken_up(other)
    assert ours["credential_version"] == 1
    resolved = await other.ask("POST", "/v1/resolve", ours)
    assert (resolved.status, resolved.body["contract"]["owner"]) == (200, "default")
    # One's own slot is one's own business: its rotation stops the one and not the other.
    await api.rotate("billing-api")
    assert (await other.ask("POST", "/v1/resolve", ours)).status == 200
    assert (await api.ask("POST", "/v1/resolve", theirs)).code == "credential_policy_changed"
    await api.ask("POST", f"{PATH}/attest", {"reason": "reviewed"})
    await other.rotate("billing-api")
    assert (await other.ask("POST", "/v1/resolve", ours)).code == "credential_policy_changed"
    theirs = (await api.ask("GET", PATH)).body["reference"]
    assert (await api.ask("POST", "/v1/resolve", theirs)).status == 200


async def test_an_effect_on_it_is_planned_dispatched_and_settled(
    api: Api, other: Api, ours: dict[str, Any]
):
    effect = await other.dispatched(ours, key="key-1")
    assert effect["capabilities"] == ["invoice:write:other"]
    answer = await other.report(effect, "succeeded", result={"invoice_id": "I-1"})
    assert answer.body["state"] == "SUCCEEDED"
    shown = await other.show(effect)
    assert [one["to_state"] for one in shown["events"]] == ["PLANNED", "DISPATCHED", "SUCCEEDED"]
    assert (await other.plan(ours, key="key-1")).body["created"] is False
    planned = (await other.plan(ours, effect="effect-2")).body
    assert (await other.cancel(planned)).body["state"] == "CANCELLED"
    assert len(await other.effects()) == 2
    assert await api.effects() == [], "what it does with it, its owner never sees"


async def test_an_effect_on_it_is_reconciled(
    api: Api, other: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    await api.publish(a_contract(evidence=http_evidence(provider.port)))
    await share(api)
    ours = await taken_up(other)
    done, lost = [await other.dispatched(ours, effect=name) for name in ("done", "lost")]
    provider.book(done["effect_id"], amount_cents=ARGUMENTS["amount_cents"])
    await unshare(api)
    for effect in (done, lost):
        await owner.run_out(effect)
    await sweep.until(other, done, "SUCCEEDED")
    await sweep.until(other, lost, "RETRYABLE")
    again = (await other.dispatch(lost)).body
    assert again["dispatch"]["owned"], "what was planned before is done"
    assert (await other.report(again, "succeeded")).body["state"] == "SUCCEEDED"
    assert await sweep.once() == 0


async def test_ones_own_of_the_same_name_wins(api: Api, other: Api, ours: dict[str, Any]):
    planned = (await other.plan(ours)).body
    own = await other.publish(a_contract(description="Ours.", effect_class="NON_RETRYABLE"))
    shown = (await other.ask("GET", PATH)).body
    assert (shown["owner"], shown["document"]["description"]) == (None, "Ours.")
    (listed,) = (await other.ask("GET", "/v1/contracts")).body["contracts"]
    assert listed["owner"] is None
    assert (await other.plan(ours, run="run-2")).refusal == (409, "effect_class_mismatch")
    assert (await other.plan(own, run="run-2")).status == 201
    assert (await other.plan(own, effect="effect-2")).refusal == (409, "mixed_versions")
    # What was planned stays on the contract that it was planned on.
    sent = (await other.dispatch(planned)).body
    assert (sent["dispatch"]["owned"], sent["effect_class"]) == (True, "IDEMPOTENT")
    assert (await api.ask("GET", PATH)).body["document"]["description"] != "Ours."


async def test_of_two_that_share_one_name_one_is_accepted_at_a_time(
    api: Api, other: Api, owner: Owner, ours: dict[str, Any]
):
    third = api.speaking_for(await owner.tenant("third"))
    async with third.http:
        await third.publish(a_contract(description="Another."))
        await share(third)
        (listed,) = (await other.ask("GET", "/v1/contracts")).body["contracts"]
        assert listed["owner"] == "default", "nobody puts another in the place of what is used"
        assert (await other.plan(ours)).status == 201
        for _ in range(2):
            assert (await accept(other, "third")).refusal == (422, "invalid_request")
            await unshare(api)
            assert (await other.ask("GET", PATH)).refusal == MISSING
        assert sorted(await offers(other)) == [
            ("default", "2.1.0", True),
            ("third", "2.1.0", False),
        ], "what stands in the way is told, though its owner has taken it back"
        await withdraw(other)
        assert (await accept(other, "third")).status == 200
        await share(api)
        assert (await other.ask("GET", PATH)).body["owner"] == "third"
        assert (await accept(other)).refusal == (422, "invalid_request")
        # Under the same name, and all the same it is not what was attested.
        assert (await other.plan(ours, run="run-2")).code == "credential_policy_changed"


async def test_a_state_of_the_owners_holds_for_all(
    api: Api, other: Api, owner: Owner, ours: dict[str, Any]
):
    planned = (await other.plan(ours)).body
    await owner.suspend(NAME, VERSION)
    assert (await other.plan(ours, effect="effect-2")).refusal == (409, "contract_suspended")
    assert (await other.dispatch(planned)).refusal == (409, "contract_suspended")
    await owner.suspend(NAME, VERSION, suspended=False)
    lease = (await other.ask("POST", "/v1/resolve", ours)).body["lease"]
    assert (await api.retire(ours)).refusal == (409, "contract_in_use")
    assert (await other.ask("GET", PATH)).body["state"] == "MIGRATING"
    assert (await other.plan(ours, effect="effect-2")).refusal == (409, "contract_migrating")
    assert (await other.plan(ours, effect="effect-2", lease=lease)).status == 201
    assert (await other.dispatch(planned)).body["dispatch"]["owned"]


# --- what the other tenant may not ----------------------------------------------------------------


async def test_what_is_shared_is_used_and_nothing_else(
    api: Api, other: Api, owner: Owner, ours: dict[str, Any]
):
    """For everything but its use, what is shared is answered as what does not exist."""
    await api.publish(a_contract(version="3.0"))
    before = await owner.dump(traces=False)
    for method, path, body in (
        ("POST", "/v1/rollouts/{}/retire", {"reason": "mine now"}),
        ("POST", "/v1/rollouts/{}/rollback", {}),
        ("POST", "/v1/contracts/{}/shares", {"tenant": "third"}),
        ("GET", "/v1/contracts/{}/shares", None),
        ("POST", "/v1/contracts/{}/shares/other/revoke", {}),
    ):
        await same_as_missing(other, method, path, "billing.send_invoice/2.1", body)
    # And what is not shared is answered so for everything.
    hidden = ("billing.send_invoice/3.0", "3.0")
    for method, path, body in (
        ("GET", "/v1/contracts/{}", None),
        ("POST", "/v1/contracts/{}/attest", {}),
        ("POST", "/v1/rollouts/{}/retire", {}),
        ("POST", "/v1/contracts/{}/shares", {"tenant": "third"}),
    ):
        await same_as_missing(other, method, path, hidden[0], body)
    for version, missing in ((hidden[1], "9.9"), ("3.0.0", "9.9.0")):
        answers: list[tuple[int, str]] = []
        for asked in (version, missing):
            named = f"billing.send_invoice@{asked}"
            compared = {"old": named, "new": {}}
            pin = {"name": "billing.send_invoice", "version": asked, "holder": "q"}
            plan = {"run": "r", "effect": "e", "tool": ours | {"version": asked}, "arguments": {}}
            for path, body in (
                ("/v1/compare", compared),
                ("/v1/pins", pin | {"ttl_seconds": 60}),
                ("/v1/effects", plan),
                ("/v1/resolve", ours | {"version": asked}),
            ):
                answer = await other.http.request("POST", path, json=body)
                answers.append((answer.status_code, answer.text.replace(asked, "<version>")))
        half = len(answers) // 2
        assert answers[:half] == answers[half:]
        assert {status for status, _ in answers} == {404}
    assert await owner.dump(traces=False) == before


async def same_as_missing(other: Api, method: str, path: str, named: str, body: Any) -> None:
    missing = "billing.nothing/7.7"
    answers: set[tuple[int, str]] = set()
    for one in (named, missing):
        answer = await other.http.request(method, path.format(one), json=body)
        text = answer.text.replace(one.replace("/", "@"), "<named>")
        answers.add((answer.status_code, text))
    assert {status for status, _ in answers} == {404}, answers
    assert len(answers) == 1, answers


async def test_publishing_beside_it_changes_nothing_of_it(
    api: Api, other: Api, theirs: dict[str, Any]
):
    before = (await api.http.get(PATH)).content
    await other.credential("billing-api")
    answer = await other.submit(a_contract(input_schema={"type": "object"}))
    assert answer.status == 201, "a version is held against one's own versions alone"
    assert answer.body["owner"] is None
    assert (await api.http.get(PATH)).content == before
    assert (await api.ask("POST", "/v1/resolve", theirs)).status == 200


# --- taking back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("by_its_owner", [True, False], ids=["by its owner", "by its user"])
async def test_what_is_taken_back_plans_nothing_new_and_drains(
    api: Api, other: Api, ours: dict[str, Any], by_its_owner: bool
):
    lease = (await other.ask("POST", "/v1/resolve", ours)).body["lease"]
    planned = (await other.plan(ours, key="key-1")).body
    sent = await other.dispatched(ours, effect="sent")
    unknown = await other.dispatched(ours, effect="unknown")
    given_up = (await other.plan(ours, effect="given-up")).body
    assert (await (unshare(api) if by_its_owner else withdraw(other))).status == 200
    for method, path, body in (
        ("GET", "/v1/contracts/{}", None),
        ("POST", "/v1/contracts/{}/attest", {}),
    ):
        await same_as_missing(other, method, path, "billing.send_invoice/2.1", body)
    assert (await other.ask("GET", "/v1/contracts")).body == {"contracts": []}
    assert (await other.ask("POST", "/v1/resolve", ours)).refusal == MISSING
    pin = {"name": "billing.send_invoice", "version": "2.1", "holder": "q", "ttl_seconds": 60}
    assert (await other.ask("POST", "/v1/pins", pin)).refusal == MISSING
    for more in ({}, {"lease": lease}, {"origin": "queue"}, {"dispatch": other.asking()}):
        assert (await other.plan(ours, effect="new", **more)).refusal == MISSING
    drifted = ours | {"schema_hash": "sha256:" + "0" * 64}
    assert (await other.plan(drifted, key="key-1")).refusal == MISSING
    # What is open goes to its end.
    assert (await other.plan(ours, key="key-1")).body["effect_id"] == planned["effect_id"]
    again = await other.plan(ours, key="key-1", dispatch=other.asking())
    assert again.body["dispatch"]["owned"]
    assert (await other.report(again.body, "failed")).body["state"] == "FAILED"
    assert (await other.report(sent, "succeeded")).body["state"] == "SUCCEEDED"
    assert (await other.report(unknown, "unknown")).body["state"] == "UNKNOWN"
    assert (await other.cancel(given_up)).body["state"] == "CANCELLED"
    assert len(await other.effects()) == 4
    await other.check_histories()


# --- retirement -----------------------------------------------------------------------------------


async def test_what_the_other_tenant_has_open_is_waited_for_and_only_counted(
    api: Api, other: Api, ours: dict[str, Any]
):
    api.app.state.lease_seconds_max = 0
    planned = (await other.plan(ours)).body
    pin = {"name": "billing.send_invoice", "version": "2.1", "holder": "theirs", "ttl_seconds": 60}
    pinned = await other.ask("POST", "/v1/pins", pin)
    assert pinned.status == 201
    assert (await api.ask("GET", "/v1/pins")).body == {"pins": []}
    await unshare(api)
    refused = await api.retire(ours)
    assert refused.refusal == (409, "contract_in_use")
    facts = refused.body["facts"]
    assert [(one["kind"], one["state"], one["count"]) for one in facts["blockers"]] == [
        ("effects", "PLANNED", 1),
        ("pins", None, 1),
    ]
    for told in ("other", "theirs", planned["effect_id"], planned["run"]):
        assert told not in str(refused.body)
    assert (await other.ask("DELETE", f"/v1/pins/{pinned.body['pin_id']}")).status == 204
    sent = (await other.dispatch(planned)).body
    assert sent["dispatch"]["owned"], "a version that closes drains"
    await other.report(sent, "succeeded")
    assert (await api.retire(ours)).body["state"] == "RETIRED"
    assert (await other.show(sent))["state"] == "SUCCEEDED"


async def test_what_is_retired_is_retired_for_all(api: Api, other: Api, ours: dict[str, Any]):
    api.app.state.lease_seconds_max = 0
    assert (await api.retire(ours)).status == 200
    assert (await other.ask("GET", PATH)).body["state"] == "RETIRED"
    for body in (ours, ours | {"credential_version": 7}):
        assert (await other.ask("POST", "/v1/resolve", body)).refusal == (409, "contract_retired")
    queued = (await other.plan(ours, origin="queue")).body
    assert queued["state"] == "QUARANTINED"
    await share(api, "third")


async def test_a_retirement_waits_for_a_dispatch_of_the_other_tenant(
    api: Api, other: Api, owner: Owner, database_url: str, ours: dict[str, Any]
):
    """A dispatch holds the state row; the retirement awaits its end, and then sees it."""
    api.app.state.lease_seconds_max = 0
    contract_id = await owner.one("SELECT contract_id FROM contract")
    planned = (await other.plan(ours)).body
    hold = "SELECT FROM contract_state WHERE contract_id = %s FOR SHARE"
    async with await AsyncConnection.connect(database_url) as session:
        await as_service(session, owner, "other")
        held = await session.execute(hold, (contract_id,))
        assert held.rowcount == 1, "a tenant that a contract is shared with may lock its state"
        retiring = asyncio.create_task(api.retire(ours))
        await owner.wait_for_locks()
        sent = asyncio.create_task(other.dispatch(planned))
        await session.rollback()
    refused, dispatched = await asyncio.gather(retiring, sent)
    assert refused.refusal == (409, "contract_in_use")
    assert dispatched.body["dispatch"]["owned"]
    await other.report(dispatched.body, "succeeded")
    assert (await api.retire(ours)).status == 200


async def test_a_dispatch_of_the_other_tenant_waits_for_a_retirement(
    api: Api, other: Api, owner: Owner, database_url: str, ours: dict[str, Any]
):
    """The retirement holds the state row; what comes after it finds the version gone."""
    contract_id = await owner.one("SELECT contract_id FROM contract")
    planned = (await other.plan(ours)).body
    async with await AsyncConnection.connect(database_url) as session:
        await as_service(session, owner, "default")
        await session.execute(
            "UPDATE contract_state SET lifecycle = 'RETIRED' WHERE contract_id = %s",
            (contract_id,),
        )
        sent = asyncio.create_task(other.dispatch(planned))
        new = asyncio.create_task(other.plan(ours, effect="effect-2", dispatch=other.asking()))
        await owner.wait_for_locks(2)
        await session.commit()
    assert (await sent).refusal == (409, "contract_retired")
    assert (await new).refusal == (409, "contract_retired")
    assert await other.state(planned) == "REFUSED"


async def test_retirements_and_dispatches_of_two_tenants_race(
    api: Api, other: Api, owner: Owner, theirs: dict[str, Any], ours: dict[str, Any]
):
    api.app.state.lease_seconds_max = 0
    for version in range(3, 8):
        await api.publish(a_contract(version=f"{version}.0"))
        path = f"/v1/contracts/billing.send_invoice/{version}.0"
        await share(api, path=path)
        await accept(other, version=f"{version}.0")
        await other.ask("POST", f"{path}/attest", {})
        mine, shared = (one | {"version": f"{version}.0.0"} for one in (theirs, ours))
        answers = await asyncio.gather(
            *(
                asked
                for number in range(4)
                for asked in (
                    one_call(api, mine, f"{version}-{number}"),
                    one_call(other, shared, f"{version}-{number}"),
                )
            ),
            api.retire(mine),
        )
        *effects, retired = answers
        assert retired is not None
        left = [one for one in effects if one is not None]
        assert (retired.status == 200) == (not left), "none slips through, and none is overlooked"
        state = await owner.one(
            "SELECT lifecycle FROM contract_state JOIN contract USING (contract_id)"
            " WHERE version = %s",
            f"{version}.0.0",
        )
        assert (state == "RETIRED") == (retired.status == 200)
    await owner.check_ledger()


async def one_call(api: Api, reference: dict[str, Any], name: str) -> Answered | None:
    """Plan and dispatch one effect; return it, or None where the version was closed."""
    answer = await api.plan(reference, run=name, effect=name, dispatch=api.asking())
    if answer.status == 201:
        assert answer.body["dispatch"]["owned"]
        return answer
    assert answer.code in ("contract_migrating", "contract_retired"), answer
    return None


async def as_service(session: AsyncConnection[Any], owner: Owner, tenant: str) -> None:
    """Work in a session's transaction as the service does for a tenant."""
    tenant_id = await owner.one("SELECT tenant_id FROM tenant WHERE slug = %s", tenant)
    await session.execute("SET LOCAL ROLE tallystick_service")
    await session.execute("SELECT set_config('tallystick.tenant', %s, true)", (str(tenant_id),))
