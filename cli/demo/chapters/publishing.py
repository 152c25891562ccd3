"""Contracts: published beside each other, and resolved by their tuple alone."""

from dataclasses import replace
from typing import Final

from cli.connection import JsonObject
from cli.demo.stage import INVOICE, Stage
from cli.demo.tools import documents
from tallystick import EffectClass

AGAIN: Final = {
    "PURE": "changes nothing",
    "IDEMPOTENT": "is recognised by its key",
    "REPLAYABLE": "is a nuisance",
    "UNKNOWN": "might do harm",
    "NON_RETRYABLE": "is a second effect",
}
"""What a second call does, by effect class."""

WEAKENED: Final[JsonObject] = {"version": "1.1", "effect_class": "REPLAYABLE"}


async def published_beside_each_other(stage: Stage) -> None:
    """Publish every contract of the demo, with the credentials and grants that they need."""
    stage.story.chapter(
        "Contracts are published beside each other, and never change",
        """A contract says what a tool takes, what it may touch, and what a second call would do to
        the world. Version 2.0 of billing.send_invoice asks for a currency as well, and does not
        replace 1.0.""",
    )
    contracts = documents(stage.services.provider_url)
    await _prepare(stage, contracts)
    published = [
        await stage.registry.post("contracts", body={"document": one}) for one in contracts
    ]
    stage.check(
        f"{len(contracts)} contracts are published",
        ok=all(one["published"] and one["state"] == "ACTIVE" for one in published),
        answer="published, each bound to version 1 of its credential, if it has one",
    )
    rows = [
        (f"{one['name']}@{one['version']}", one["effect_class"], AGAIN[one["effect_class"]])
        for one in published
    ]
    stage.story.table(("Contract", "Effect class", "A second call"), rows)
    again = await stage.registry.post("contracts", body={"document": contracts[0]})
    stage.check(
        "the same document again changes nothing",
        ok=not again["published"],
        answer=f"already published: {again['contract_digest']}",
    )
    first = contracts[0]
    changed = {**first, "description": "Send an invoice, and hope."}
    await stage.refused(
        "another document under the same version is refused",
        "contract_exists",
        stage.registry.post("contracts", body={"document": changed}),
    )
    await stage.refused(
        "a minor version with another effect class is refused",
        "review_required",
        stage.registry.post("contracts", body={"document": {**first, **WEAKENED}}),
    )


async def a_tuple_not_a_name(stage: Stage) -> None:
    """Resolve the right tuple, and each wrong one."""
    stage.story.chapter(
        "A tool is called by a tuple, not by its name",
        """The runtime presents name, version, schema hash, capabilities, effect class and
        credential version. All of it must match what is published, or the call is refused with the
        one code that says what is wrong. Nothing of this comes from a model.""",
    )
    right = await stage.reference(INVOICE)
    resolution = await stage.client.resolve(right)
    stage.check(
        "the right tuple resolves",
        ok=resolution.contract.schema_hash == right.schema_hash,
        answer=f"resolved; may be relied on until {resolution.lease_expires_at:%H:%M:%S} UTC",
    )
    newer = await stage.reference(INVOICE, "2.0")
    wider = right.capabilities | {"invoice:write:everyone"}
    wrong = (
        ("a version that is not there", "tool_contract_not_found", replace(right, version="3.0.0")),
        (
            "the right name with another schema hash (of 2.0)",
            "tool_schema_drift",
            replace(right, schema_hash=newer.schema_hash),
        ),
        ("a wider capability", "capability_not_granted", replace(right, capabilities=wider)),
        (
            "the claim that it only reads",
            "effect_class_mismatch",
            replace(right, effect_class=EffectClass.PURE),
        ),
    )
    for what, code, reference in wrong:
        await stage.refused(f"{what} is refused", code, stage.client.resolve(reference))
    version = await stage.rotate("billing")
    await stage.refused(
        f"after the credential was rotated to version {version}, version 1 is refused",
        "credential_policy_changed",
        stage.client.resolve(right),
    )
    await stage.attest(INVOICE, "1.0", "2.0")
    attested = await stage.reference(INVOICE)
    await stage.client.resolve(attested)
    stage.check(
        "an operator attests the contract under the new credential, and it resolves again",
        ok=attested.credential_version == version,
        answer=f"resolved with credential version {attested.credential_version}",
    )


async def _prepare(stage: Stage, contracts: list[JsonObject]) -> None:
    """Make the credentials that the contracts name, and grant us what they declare."""
    caller = (await stage.registry.get("whoami"))["principal"]
    for name in sorted({one["credential"] for one in contracts if "credential" in one}):
        await stage.registry.post("credentials", body={"name": name})
    for capability in sorted({name for one in contracts for name in one["capabilities"]}):
        body = {"principal": caller, "capability": capability}
        await stage.registry.post("grants", body=body)
