"""The table "Tests that catch real drift", row by row, against the real service."""

import pytest

from tests.api import Api
from tests.builders import a_contract, http_evidence
from tests.provider import Provider

OTHER_HASH = "sha256:" + "0" * 64


@pytest.fixture
async def reference(api: Api):
    return await api.publish(a_contract())


async def test_same_name_changed_required_input(api: Api):
    """Reject with tool_schema_drift."""
    old = await api.publish(a_contract())
    required = ["customer_id", "amount_cents", "memo"]
    schema = a_contract()["input_schema"] | {"required": required}
    changed = a_contract(version="3.0", input_schema=schema)
    new = await api.publish(changed)
    assert new["schema_hash"] != old["schema_hash"]
    stale = new | {"schema_hash": old["schema_hash"]}
    for path, body in (
        ("/v1/resolve", stale),
        ("/v1/effects", {"run": "r", "effect": "e", "tool": stale, "arguments": {}}),
    ):
        answer = await api.ask("POST", path, body)
        assert (answer.status, answer.code) == (409, "tool_schema_drift")


async def test_same_schema_narrower_capability(api: Api, reference):
    """Reject if the request asks for the old scope."""
    narrower = a_contract(version="3.0", capabilities=["invoice:write:eu"])
    new = await api.publish(narrower)
    assert new["schema_hash"] == reference["schema_hash"]
    old_scope = new | {"capabilities": reference["capabilities"]}
    answer = await api.ask("POST", "/v1/resolve", old_scope)
    assert (answer.status, answer.code) == (403, "capability_not_granted")
    assert (await api.ask("POST", "/v1/resolve", new)).status == 200


async def test_credential_version_changes_after_planning(api: Api, reference):
    """Recheck and reject before dispatch."""
    planned = (await api.plan(reference)).body
    await api.ask("POST", "/v1/credentials/billing-api/rotate", {})
    answer = await api.ask("POST", f"/v1/effects/{planned['effect_id']}/dispatch", api.asking())
    assert (answer.status, answer.code) == (409, "credential_policy_changed")
    shown = await api.show(planned)
    assert shown["state"] == "REFUSED"
    assert shown["attempts"] == []


async def test_worker_retries_with_an_older_contract(api: Api, reference):
    """Resolve the recorded version, never latest."""
    effect = await api.dispatched(reference)
    await api.report(effect, "failed", not_sent=True)
    again = await api.dispatched(reference, run="run-2")
    await api.publish(a_contract(version="3.0"))
    retried = await api.plan(reference, run="run-2")
    assert retried.body["effect_id"] == again["effect_id"]
    assert retried.body["version"] == "2.1.0"
    newest_reference = await api.publish(a_contract(version="3.0"))
    newest = await api.plan(newest_reference, run="run-2")
    assert newest.body["version"] == "2.1.0", "the effect is recorded for 2.1.0, whoever asks"
    worker_of_3 = await api.plan(newest_reference, run="run-2", dispatch=api.asking())
    assert (worker_of_3.status, worker_of_3.code) == (409, "tool_schema_drift")


async def test_crash_after_provider_acceptance(api: Api, provider: Provider, sweep):
    """Mark UNKNOWN and reconcile by effect ID."""
    document = a_contract(evidence=http_evidence(provider.port), lease_seconds=1)
    reference = await api.publish(document)
    effect = await api.dispatched(reference)
    provider.book(effect["effect_id"], amount_cents=1250)
    # The worker dies here: no report ever comes.
    states = await sweep.until(api, effect, "SUCCEEDED")
    assert "UNKNOWN" in states
    shown = await api.show(effect)
    assert [one["answer"] for one in shown["evidence"]] == ["applied"]
    assert provider.asked == [f"/effects/{effect['effect_id']}"]


async def test_old_queued_job_after_contract_retirement(api: Api, reference):
    """Quarantine for explicit migration."""
    api.app.state.lease_seconds_max = 0
    path = "/v1/rollouts/billing.send_invoice/2.1/retire"
    assert (await api.ask("POST", path, {})).body["state"] == "RETIRED"
    queued = await api.plan(reference, origin="queue", dispatch=api.asking())
    assert (queued.status, queued.body["state"]) == (201, "QUARANTINED")
    assert not queued.body["dispatch"]["owned"]
    direct = await api.plan(reference, run="run-2")
    assert (direct.status, direct.code) == (409, "contract_retired")


async def test_adapter_changes_effect_class(api: Api, reference):
    """Require a new major version."""
    document = a_contract(version="2.2", effect_class="NON_RETRYABLE", idempotency=None)
    reviewed = {"reviewer": "ada", "reason": "it is fine"}
    for review in ({}, {"review": reviewed}):
        answer = await api.ask("POST", "/v1/contracts", {"document": document} | review)
        assert (answer.status, answer.code) == (409, "review_required")
        assert "new major version" in answer.body["detail"]
    assert (await api.ask("GET", "/v1/contracts/billing.send_invoice/2.2")).status == 404
    await api.publish(document | {"version": "3.0"})


async def test_the_deliberate_mismatch(api: Api, reference):
    """A valid tool name with the wrong schema hash: if it executes, the registry is decorative."""
    drifted = reference | {"schema_hash": OTHER_HASH}
    answer = await api.plan(drifted, dispatch=api.asking())
    assert (answer.status, answer.code) == (409, "tool_schema_drift")
    assert (await api.ask("GET", "/v1/effects")).body["effects"] == []
    # Nor does a plan that was made with the right tuple open the door for the wrong one.
    planned = (await api.plan(reference)).body
    answer = await api.plan(drifted, dispatch=api.asking())
    assert (answer.status, answer.code) == (409, "tool_schema_drift")
    assert (await api.show(planned))["attempts"] == []
