"""The table "Tests that catch real drift" and the checklist, against the real service."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api import Api
from tests.builders import ARGUMENTS, a_contract, a_contract_of, http_evidence
from tests.fixtures import Owner, Sweep
from tests.gated import Shop, a_budget
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


async def test_crash_after_provider_acceptance(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    """Mark UNKNOWN and reconcile by effect ID."""
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    effect = await api.dispatched(reference)
    provider.book(effect["effect_id"], amount_cents=1250)
    # The worker dies here: no report ever comes, and its lease runs out.
    await owner.run_out(effect)
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


# --- the checklist --------------------------------------------------------------------------------


async def test_is_the_contract_version_explicit(api: Api, reference):
    """A name alone is nothing that could be called, and nor is "the newest"."""
    named = {name: value for name, value in reference.items() if name != "version"}
    unclear: list[Any] = ["billing.send_invoice", named, named | {"version": "latest"}]
    for tool in unclear:
        answer = await api.plan(tool)
        assert answer.refusal[0] == 422
        assert answer.body["pointer"].startswith("/tool")
    assert (await api.ask("GET", "/v1/effects")).body["effects"] == []


async def test_is_the_schema_hash_computed_canonically(api: Api, reference):
    """Neither the order of keys, nor the spelling of a number or of a letter is part of it."""
    turned = json.loads(
        json.dumps(a_contract()), object_pairs_hook=lambda pairs: dict(reversed(pairs))
    )
    text = json.dumps({"document": turned}).replace('"minimum": 1', '"minimum": 1.0')
    text = text.replace('"type"', '"\\u0074ype"')
    sent = await api.http.post(
        "/v1/contracts", content=text, headers={"Content-Type": "application/json"}
    )
    assert (sent.status_code, sent.json()["reference"]) == (200, reference), "it is published"
    other = a_contract(version="3.0")
    other["input_schema"]["properties"]["amount_cents"]["minimum"] = 2
    changed = await api.publish(other)
    assert changed["schema_hash"] != reference["schema_hash"]


async def test_are_capabilities_and_effect_class_runtime_owned(api: Api, reference):
    """A model has its arguments and nothing else; what is recorded is what was published."""
    owned = {
        "capabilities": (["ledger:write:default"], "capability_not_granted"),
        "effect_class": ("PURE", "effect_class_mismatch"),
        "credential_version": (7, "credential_policy_changed"),
    }
    for name, (value, code) in owned.items():
        answer = await api.plan(reference, arguments=ARGUMENTS | {name: value})
        assert (answer.code, answer.body["pointer"]) == ("invalid_arguments", f"/{name}")
        assert (await api.plan(reference | {name: value})).code == code
    planned = (await api.plan(reference)).body
    assert {name: planned[name] for name in owned} == {name: reference[name] for name in owned}


async def test_does_dispatch_recheck_credential_and_policy_versions(api: Api, reference):
    """The credential is the table's row; the policy is the other."""
    shop = Shop(api)
    await shop.govern(a_budget(max=5))
    planned = (await api.plan(reference)).body
    assert await shop.govern(a_budget(max=6)) == 2
    answer = await api.dispatch(planned)
    assert answer.refusal == (409, "credential_policy_changed")
    shown = await api.show(planned)
    assert (shown["state"], shown["attempts"]) == ("REFUSED", [])


async def test_can_queued_work_resolve_the_exact_recorded_version(api: Api, reference):
    """Also when there are newer ones, and nobody new may use it any more."""
    queued = (await api.plan(reference, origin="queue")).body
    await api.publish(a_contract(version="2.2", description="Send an invoice, soon."))
    await api.publish(a_contract(version="3.0"))
    assert (await api.retire(reference)).code == "contract_in_use"
    sent = (await api.dispatch(queued)).body
    assert sent["dispatch"]["owned"]
    assert (sent["version"], sent["contract_digest"]) == ("2.1.0", queued["contract_digest"])
    path = "/v1/contracts/billing.send_invoice/2.1.0"
    resolved = (await api.ask("GET", path)).body
    assert resolved["contract_digest"] == queued["contract_digest"]
    assert resolved["document"] == a_contract(version="2.1.0")


async def test_is_unknown_reconciled_by_provider_evidence_rather_than_a_blind_retry(
    api: Api, provider: Provider, sweep: Sweep
):
    """While nobody knows, nobody sends; then the provider's books decide."""
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    effect = await api.dispatched(reference)
    await api.report(effect, "unknown")
    assert not (await api.dispatch(effect)).body["dispatch"]["owned"]
    provider.book(effect["effect_id"], amount_cents=1250)
    await sweep.until(api, effect, "SUCCEEDED")
    again = await api.plan(reference, dispatch=api.asking())
    assert (again.body["state"], again.body["dispatch"]["owned"]) == ("SUCCEEDED", False)
    assert len((await api.show(effect))["attempts"]) == 1


async def test_are_old_contracts_retired_only_after_queue_and_ledger_migration(
    api: Api, sweep: Sweep
):
    """Queued work, a call under way, a retry and a question to the provider each hold it back."""
    api.app.state.lease_seconds_max = 0
    reference = await api.publish(a_contract_of("REPLAYABLE", max_duplicates=1))
    queued = (await api.plan(reference, run="run-1", origin="queue")).body
    sent, retried, doubted = [
        await api.dispatched(reference, run=f"run-{number}") for number in (2, 3, 4)
    ]
    await api.report(retried, "unknown")
    await sweep.until(api, retried, "RETRYABLE")
    await api.report(doubted, "unknown")

    async def holding() -> list[str]:
        refused = await api.retire(reference)
        assert refused.refusal == (409, "contract_in_use")
        return sorted(one["state"] for one in refused.body["facts"]["blockers"])

    assert await holding() == ["DISPATCHED", "PLANNED", "RETRYABLE", "UNKNOWN"]
    await api.cancel(queued)
    await api.report(sent, "succeeded")
    assert await holding() == ["RETRYABLE", "UNKNOWN"]
    await api.report((await api.dispatch(retried)).body, "succeeded")
    assert await holding() == ["UNKNOWN"]
    await sweep.until(api, doubted, "RETRYABLE")
    await api.report((await api.dispatch(doubted)).body, "succeeded")
    assert (await api.retire(reference)).body["state"] == "RETIRED"


TOOL = """
from tallystick import contract

@contract
def send_invoice(customer_id: str, amount_cents: int) -> str:
    "Send an invoice."
    return customer_id
"""


def test_do_ci_tests_prove_that_a_same_name_schema_change_is_rejected(tmp_path: Path):
    """The command for CI passes with what was accepted, and fails with what was not."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYSTICK")}
    (tmp_path / "pyproject.toml").touch()

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-B", *arguments],
            cwd=tmp_path,
            env=kept | {"CI": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    tools = tmp_path / "tools.py"
    tools.write_text(TOOL)
    assert python("-c", "import tools").returncode == 0
    assert python("-m", "tallystick", "check").returncode == 0
    tools.write_text(TOOL.replace("amount_cents: int", "amount_dollars: float"))
    changed = python("-m", "tallystick", "check")
    assert changed.returncode == 1
    assert "send_invoice" in changed.stdout


async def test_a_same_name_schema_change_is_not_published_over_it(api: Api, reference):
    """Nor does the registry take it: the name and the version stand for what was published."""
    document: dict[str, Any] = a_contract()
    document["input_schema"]["required"] = ["customer_id", "amount_cents", "memo"]
    assert (await api.submit(document)).refusal == (409, "contract_exists")
    assert (await api.ask("POST", "/v1/resolve", reference)).status == 200
