"""Publishing: what is refused, what changes nothing, and what stands written afterwards."""

from typing import Any

import pytest

from tests.api import Api
from tests.builders import a_contract, a_contract_of
from tests.fixtures import Owner

NAME = "billing.send_invoice"
PATH = f"/v1/contracts/{NAME}"
REVIEW = {"review": {"reviewer": "grace", "reason": "callers were asked"}}

INPUT: dict[str, Any] = a_contract()["input_schema"]
LONGER = INPUT | {"properties": INPUT["properties"] | {"note": {"type": "string"}}}
CODED = INPUT | {"properties": INPUT["properties"] | {"memo": {"type": "integer"}}}
DEFAULTED = INPUT | {
    "properties": INPUT["properties"] | {"memo": {"type": "string", "default": ""}}
}
NUMBERED = {"type": "object", "properties": {"invoice_id": {"type": "integer"}}}
DECLINED = {"code": "declined", "meaning": "The customer's bank said no.", "retryable": False}
TWO = ["invoice:write:{tenant}", "customer:read:{tenant}"]


async def events(owner: Owner) -> list[tuple[Any, ...]]:
    return await owner.rows(
        "SELECT kind, subject, actor, facts FROM registry_event"
        " WHERE kind <> 'token_created' ORDER BY event_id"
    )


@pytest.fixture
async def ready(api: Api) -> Api:
    """The service with the credential that the contracts name."""
    await api.credential("billing-api")
    return api


async def test_a_contract_is_published_once(ready: Api, owner: Owner):
    first = await ready.submit(a_contract())
    assert (first.status, first.body["published"]) == (201, True)
    before = await owner.counts()
    reordered = dict(reversed(a_contract().items()))
    for again in (a_contract(), reordered, a_contract(version="2.1.0")):
        answer = await ready.submit(again)
        assert (answer.status, answer.body["published"]) == (200, False)
        assert answer.body | {"published": True} == first.body
    assert await owner.counts() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Send another invoice to a customer."},
        {"lease_seconds": 31},
        {"title": "Send"},
        {"input_schema": LONGER},
        {"effect_class": "NON_RETRYABLE", "idempotency": None},
        {"credential": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_published_version_never_changes(ready: Api, owner: Owner, changes: dict[str, Any]):
    published = (await ready.submit(a_contract())).body
    before = await owner.counts()
    for more in ({}, REVIEW):
        answer = await ready.submit(a_contract(**changes), **more)
        assert answer.refusal == (409, "contract_exists")
        assert answer.body["facts"]["published_digest"] == published["contract_digest"]
        assert answer.body["facts"]["presented_digest"] != published["contract_digest"]
    assert await owner.counts() == before


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"input_schema": CODED}, ["old_calls"]),
        ({"input_schema": DEFAULTED}, ["default_changed"]),
        ({"output_schema": NUMBERED}, ["new_results"]),
        ({"output_schema": None}, ["new_results"]),
        ({"capabilities": [*TWO, "ledger:write:{tenant}"]}, ["wider_capabilities"]),
        ({"errors": [DECLINED | {"retryable": True}]}, ["error_meanings"]),
        ({"errors": None}, ["error_meanings"]),
        (
            {"capabilities": ["ledger:write:{tenant}"], "errors": None, "input_schema": CODED},
            ["old_calls", "wider_capabilities", "error_meanings"],
        ),
    ],
)
async def test_a_change_that_may_harm_callers_needs_a_review(
    ready: Api, owner: Owner, changes: dict[str, Any], changed: list[str]
):
    base = {"capabilities": TWO, "errors": [DECLINED]}
    await ready.submit(a_contract(**base))
    successor = a_contract(version="2.2", **(base | changes))
    before = await owner.counts()
    refused = await ready.submit(successor)
    assert refused.refusal == (409, "review_required")
    facts = refused.body["facts"]
    assert (facts["against"], facts["changed"]) == ("2.1.0", changed)
    unproven = {"old_calls", "new_results"} & set(changed)
    assert facts["verdict"] == ("incompatible" if unproven else "compatible")
    assert {"old_calls", "new_results"} & facts.keys() == unproven
    assert all("value" in facts[flow]["witness"] for flow in unproven)
    assert await owner.counts() == before
    assert (await ready.submit(successor, **REVIEW)).status == 201
    recorded = (await events(owner))[-1][3]
    assert (recorded["reviewer"], recorded["review_reason"]) == ("grace", "callers were asked")


async def test_a_published_contract_tells_what_it_is_equivalent_to(ready: Api):
    first = (await ready.submit(a_contract())).body
    assert (first["equivalent_to"], first["warnings"]) == ([], [])
    await ready.submit(a_contract(version="2.2", input_schema=LONGER))
    same = INPUT | {"maxProperties": 3, "description": "All that is needed."}
    for published in (True, False):
        again = (await ready.submit(a_contract(version="3.0", input_schema=same))).body
        assert (again["published"], again["equivalent_to"]) == (published, ["2.1.0"])


async def test_a_schema_that_nothing_satisfies_is_published_with_a_warning(ready: Api):
    impossible = INPUT | {"minProperties": 9}
    answer = await ready.submit(a_contract(input_schema=impossible))
    assert answer.status == 201
    assert [one["code"] for one in answer.body["warnings"]] == ["accepts_nothing"]


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Send an invoice."},
        {"capabilities": TWO[:1]},
        {"capabilities": list(reversed(TWO))},
        {"lease_seconds": 5, "settle_seconds": 5, "attempts_max": 9},
        {"input_schema": INPUT | {"title": "Arguments", "description": "All that is needed."}},
        {"input_schema": INPUT | {"required": list(reversed(INPUT["required"]))}},
        {"input_schema": LONGER},
        {"input_schema": INPUT | {"properties": INPUT["properties"] | {"memo": True}}},
        # A new major version breaks with the old one, and says so.
        {"version": "3.0", "input_schema": CODED, "effect_class": "NON_RETRYABLE"},
    ],
)
async def test_a_change_that_harms_nobody_needs_none(ready: Api, changes: dict[str, Any]):
    await ready.submit(a_contract(capabilities=TWO))
    if "effect_class" in changes:
        changes = changes | {"idempotency": None}
    document = a_contract(**({"version": "2.2", "capabilities": TWO} | changes))
    assert (await ready.submit(document)).status == 201


async def test_a_version_is_held_against_all_of_its_major_that_are_not_retired(ready: Api):
    first = (await ready.submit(a_contract())).body["reference"]
    assert (await ready.submit(a_contract(version="3.0", input_schema=CODED))).status == 201
    reviewed = a_contract(version="2.2", input_schema=CODED)
    assert (await ready.submit(reviewed, **REVIEW)).status == 201
    for schema, against in ((INPUT, "2.2.0"), (CODED, "2.1.0")):
        answer = await ready.submit(a_contract(version="2.3", input_schema=schema))
        assert answer.refusal == (409, "review_required")
        assert answer.body["facts"]["against"] == against
    ready.app.state.lease_seconds_max = 0
    assert (await ready.retire(first)).status == 200
    assert (await ready.submit(a_contract(version="2.3", input_schema=CODED))).status == 201


@pytest.mark.parametrize("to_class", ["PURE", "REPLAYABLE", "UNKNOWN", "NON_RETRYABLE"])
async def test_no_review_can_keep_a_changed_effect_class_in_its_major(ready: Api, to_class: str):
    await ready.submit(a_contract())
    successor = a_contract(version="2.2", effect_class=to_class, idempotency=None)
    for more in ({}, REVIEW):
        answer = await ready.submit(successor, **more)
        assert answer.refusal == (409, "review_required")
        assert answer.body["facts"] == {"against": "2.1.0", "changed": ["effect_class"]}
        assert "3.0" in answer.body["detail"]
    assert (await ready.submit(successor | {"version": "3.0"})).status == 201


async def test_a_contract_is_bound_to_a_credential_that_exists(api: Api, owner: Owner):
    before = await owner.counts()
    answer = await api.submit(a_contract())
    assert answer.refusal == (422, "invalid_contract")
    assert answer.body["pointer"] == "/credential"
    assert "billing-api" in answer.body["detail"]
    assert await owner.counts() == before
    await api.credential("billing-api")
    await api.rotate("billing-api")
    await api.rotate("billing-api")
    published = (await api.submit(a_contract())).body
    assert published["credential_version"] == published["credential_current"] == 3
    assert published["reference"]["credential_version"] == 3
    free = (await api.submit(a_contract_of("PURE", credential=None))).body
    assert (free["credential"], free["reference"]["credential_version"]) == (None, 0)


async def test_a_rotation_binds_nothing_until_it_is_attested(api: Api):
    old = await api.publish(a_contract())
    sibling = await api.publish(a_contract(version="3.0"))
    await api.rotate("billing-api")
    new = old | {"credential_version": 2}
    for stale in (old, new):
        answer = await api.ask("POST", "/v1/resolve", stale)
        assert answer.refusal == (409, "credential_policy_changed")
    shown = (await api.ask("GET", f"{PATH}/2.1")).body
    assert (shown["credential_version"], shown["credential_current"]) == (1, 2)
    attested = await api.ask("POST", f"{PATH}/2.1/attest", {"reason": "same account"})
    assert attested.body == {
        "name": NAME,
        "version": "2.1.0",
        "credential": "billing-api",
        "credential_version": 2,
    }
    assert (await api.ask("POST", "/v1/resolve", new)).status == 200
    assert (await api.ask("GET", f"{PATH}/2.1")).body["reference"] == new
    for refused in (old, sibling, sibling | {"credential_version": 2}):
        answer = await api.ask("POST", "/v1/resolve", refused)
        assert answer.refusal == (409, "credential_policy_changed")


async def test_what_cannot_be_attested(api: Api):
    await api.publish(a_contract_of("PURE", credential=None))
    for path, refusal in (
        ("/v1/contracts/tools.pure/2.1/attest", (422, "invalid_request")),
        ("/v1/contracts/tools.pure/2.2/attest", (404, "tool_contract_not_found")),
        ("/v1/contracts/tools.none/2.1/attest", (404, "tool_contract_not_found")),
        ("/v1/contracts/tools.pure/two/attest", (422, "invalid_request")),
    ):
        assert (await api.ask("POST", path, {})).refusal == refusal


async def test_contracts_are_listed_by_name_and_state(api: Api):
    assert (await api.ask("GET", "/v1/contracts")).body == {"contracts": []}
    old = await api.publish(a_contract())
    await api.publish(a_contract(version="3.0"))
    await api.publish(a_contract_of("PURE"))
    assert (await api.retire(old)).refusal == (409, "contract_in_use")
    for query, expected in (
        ("", [(NAME, "2.1.0"), (NAME, "3.0.0"), ("tools.pure", "2.1.0")]),
        (f"?name={NAME}", [(NAME, "2.1.0"), (NAME, "3.0.0")]),
        ("?name=billing.send", []),
        ("?state=MIGRATING", [(NAME, "2.1.0")]),
        ("?state=ACTIVE", [(NAME, "3.0.0"), ("tools.pure", "2.1.0")]),
        (f"?name={NAME}&state=ACTIVE", [(NAME, "3.0.0")]),
        ("?state=RETIRED", []),
    ):
        listed = (await api.ask("GET", f"/v1/contracts{query}")).body["contracts"]
        assert [(one["name"], one["version"]) for one in listed] == expected, query
    pure = (await api.ask("GET", "/v1/contracts?name=tools.pure")).body["contracts"][0]
    assert (pure["kind"], pure["effect_class"], pure["suspended"]) == ("read", "PURE", False)
    assert pure["published_by"] == "admin"


async def test_one_version_has_two_spellings(api: Api):
    reference = await api.publish(a_contract(version="1.0"))
    short = (await api.ask("GET", f"{PATH}/1.0")).body
    assert (await api.ask("GET", f"{PATH}/1.0.0")).body == short
    assert (short["version"], short["document"]["version"]) == ("1.0.0", "1.0.0")
    assert reference["version"] == "1.0.0"
    assert (await api.ask("POST", "/v1/resolve", reference | {"version": "1.0"})).status == 200
    for unknown, refusal in (
        ("1.0.1", (404, "tool_contract_not_found")),
        ("1", (422, "invalid_request")),
        ("01.0", (422, "invalid_request")),
        ("latest", (422, "invalid_request")),
    ):
        assert (await api.ask("GET", f"{PATH}/{unknown}")).refusal == refusal


async def test_a_contract_is_shown_as_it_was_published(api: Api):
    reference = await api.publish(a_contract(examples=[{"customer_id": "C-1"}]))
    shown = (await api.ask("GET", f"{PATH}/2.1")).body
    assert shown["document"] == a_contract(version="2.1.0", examples=[{"customer_id": "C-1"}])
    assert shown["capabilities"] == ["invoice:write:default"]
    assert (shown["state"], shown["closed_at"]) == ("ACTIVE", None)
    assert shown["reference"] == reference
    assert reference == {
        "name": NAME,
        "version": "2.1.0",
        "schema_hash": shown["schema_hash"],
        "capabilities": ["invoice:write:default"],
        "effect_class": "IDEMPOTENT",
        "credential_version": 1,
    }


@pytest.mark.parametrize("path", ["/v1/contracts", f"{PATH}/2.1"])
async def test_an_answer_that_is_known_is_not_sent_again(api: Api, path: str):
    reference = await api.publish(a_contract())
    first = await api.http.get(path)
    tag = first.headers["ETag"]
    assert (await api.http.get(path)).headers["ETag"] == tag
    known = await api.http.get(path, headers={"If-None-Match": tag})
    assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", tag)
    unknown = await api.http.get(path, headers={"If-None-Match": '"0"'})
    assert (unknown.status_code, unknown.content) == (200, first.content)
    await api.retire(reference)
    changed = await api.http.get(path, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag
    assert "MIGRATING" in changed.text


async def test_every_change_is_recorded_with_its_author(api: Api, owner: Owner):
    reference = await api.publish(a_contract(), **REVIEW)
    await api.rotate("billing-api")
    await api.ask("POST", f"{PATH}/2.1/attest", {"reason": "same account"})
    await api.retire(reference)
    await api.rollback(reference)
    api.app.state.lease_seconds_max = 0
    await api.retire(reference)
    await api.ask("DELETE", "/v1/grants?principal=admin&capability=invoice:write:default")
    tool = f"{NAME}@2.1.0"
    digest = (await api.ask("GET", f"{PATH}/2.1")).body["contract_digest"]
    published = {
        "contract_digest": digest,
        "credential_version": 1,
        "reviewer": "grace",
        "review_reason": "callers were asked",
    }
    capability = {"capability": "invoice:write:default"}
    assert await events(owner) == [
        ("credential_created", "billing-api", "admin", {"version": 1}),
        ("capability_granted", "admin", "admin", capability),
        ("contract_published", tool, "admin", published),
        ("credential_rotated", "billing-api", "admin", {"version": 2, "reason": ""}),
        ("contract_attested", tool, "admin", {"credential_version": 2, "reason": "same account"}),
        ("contract_closed", tool, "admin", {"reason": "replaced"}),
        ("contract_reopened", tool, "admin", {"reason": "still needed"}),
        ("contract_closed", tool, "admin", {"reason": "replaced"}),
        ("contract_retired", tool, "admin", {"reason": "replaced"}),
        ("capability_revoked", "admin", "admin", capability),
    ]


async def test_what_changes_nothing_is_not_recorded(api: Api, owner: Owner):
    reference = await api.publish(a_contract())
    api.app.state.lease_seconds_max = 0
    await api.retire(reference)
    before = await events(owner)
    absent = "principal=admin&capability=a:b:c"
    for method, path, body, expected in (
        ("POST", "/v1/contracts", {"document": a_contract()}, 200),
        ("POST", "/v1/contracts", {"document": a_contract(title="Send")}, 409),
        ("POST", "/v1/grants", {"principal": "admin", "capability": "invoice:write:{tenant}"}, 200),
        ("DELETE", f"/v1/grants?{absent}", None, 404),
        ("POST", "/v1/credentials", {"name": "billing-api"}, 422),
        ("POST", "/v1/credentials/other/rotate", {}, 404),
        ("POST", f"{PATH}/2.2/attest", {}, 404),
        ("POST", f"/v1/rollouts/{NAME}/2.1/retire", {}, 200),
        ("POST", f"/v1/rollouts/{NAME}/2.1/rollback", {}, 409),
        ("POST", f"/v1/rollouts/{NAME}/2.2/retire", {}, 404),
    ):
        assert (await api.ask(method, path, body)).status == expected, path
    assert await events(owner) == before


async def test_credentials_are_slots_with_a_version(api: Api):
    for name in ("mail", "bank"):
        answer = await api.ask("POST", "/v1/credentials", {"name": name})
        assert (answer.status, answer.body["version"]) == (201, 1)
    taken = await api.ask("POST", "/v1/credentials", {"name": "mail"})
    assert taken.refusal == (422, "invalid_request")
    assert taken.body["pointer"] == "/name"
    rotated = await api.ask("POST", "/v1/credentials/mail/rotate", {"reason": "leaked"})
    assert (rotated.status, rotated.body["version"]) == (200, 2)
    listed = (await api.ask("GET", "/v1/credentials")).body["credentials"]
    assert [(one["name"], one["version"]) for one in listed] == [("bank", 1), ("mail", 2)]
    missing = await api.ask("POST", "/v1/credentials/post/rotate", {})
    assert missing.refusal == (404, "not_found")
