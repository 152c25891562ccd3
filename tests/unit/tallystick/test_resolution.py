"""Each tuple gets exactly one answer, and of several faults the most specific."""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.errors import (
    CapabilityNotGranted,
    ContractMigrating,
    ContractRetired,
    ContractSuspended,
    CredentialPolicyChanged,
    EffectClassMismatch,
    SignatureRequired,
    ToolContractNotFound,
    ToolSchemaDrift,
)
from tallystick.resolution import Lifecycle, Purpose, Standing, check
from tallystick.tool_contract import EffectClass, ToolReference

READ, WRITE, ADMIN = "invoice:read:t", "invoice:write:t", "invoice:admin:t"
REFERENCE = ToolReference(
    name="billing.send_invoice",
    version="2.1.0",
    schema_hash="sha256:" + "a" * 64,
    capabilities=frozenset({WRITE}),
    effect_class=EffectClass.IDEMPOTENT,
    credential_version=19,
)
STANDING = Standing(
    schema_hash=REFERENCE.schema_hash,
    capabilities=frozenset({READ, WRITE}),
    effect_class=EffectClass.IDEMPOTENT,
    lifecycle=Lifecycle.ACTIVE,
    suspended=False,
    signature_missing=False,
    credential_bound=19,
    credential_current=19,
)
GRANTED = frozenset({READ, WRITE})


def refusal(
    reference=REFERENCE, standing: Any = STANDING, granted=GRANTED, purpose=Purpose.PLAN
) -> Any:
    try:
        check(reference, standing, granted, purpose)
    except Exception as error:  # noqa: BLE001 -- any refusal is the answer
        return error
    return None


def test_tuple_that_matches_stands():
    for purpose in Purpose:
        assert refusal(purpose=purpose) is None


# In order of precedence: each row also has all the faults of the rows below it.
FAULTS = [
    (ToolContractNotFound, "none", None),
    (ToolSchemaDrift, "standing", {"schema_hash": "sha256:" + "b" * 64}),
    (ContractRetired, "standing", {"lifecycle": Lifecycle.RETIRED}),
    (ContractMigrating, "standing", {"lifecycle": Lifecycle.RETIRING}),
    (ContractSuspended, "standing", {"suspended": True}),
    (SignatureRequired, "standing", {"signature_missing": True}),
    (CapabilityNotGranted, "reference", {"capabilities": frozenset({WRITE, ADMIN})}),
    (EffectClassMismatch, "reference", {"effect_class": EffectClass.PURE}),
    (CredentialPolicyChanged, "reference", {"credential_version": 18}),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
def test_most_specific_fault_is_named(first):
    reference: Any = REFERENCE
    standing: Any = STANDING
    for _, where, fault in reversed(FAULTS[first:]):
        if where == "none":
            standing = None
        elif where == "standing":
            standing = replace(standing, **fault)
        else:
            reference = replace(reference, **fault)

    for purpose in Purpose:
        assert type(refusal(reference, standing, purpose=purpose)) is FAULTS[first][0]


@pytest.mark.parametrize(
    ("lifecycle", "plan", "plan_under_lease", "dispatch"),
    [
        (Lifecycle.ACTIVE, None, None, None),
        (Lifecycle.DEPRECATED, None, None, None),
        (Lifecycle.MIGRATING, ContractMigrating, None, None),
        (Lifecycle.RETIRING, ContractMigrating, ContractMigrating, ContractMigrating),
        (Lifecycle.RETIRED, ContractRetired, ContractRetired, ContractRetired),
    ],
)
def test_lifecycle_closes_step_by_step(lifecycle, plan, plan_under_lease, dispatch):
    standing = replace(STANDING, lifecycle=lifecycle)
    answers = [refusal(standing=standing, purpose=purpose) for purpose in Purpose]

    expected = [plan, plan_under_lease, dispatch]
    assert [type(each) if each else None for each in answers] == expected


def test_only_a_dispatch_that_a_retirement_stops_is_worth_trying_again():
    retiring = replace(STANDING, lifecycle=Lifecycle.RETIRING)
    migrating = replace(STANDING, lifecycle=Lifecycle.MIGRATING)

    assert refusal(standing=retiring, purpose=Purpose.DISPATCH).facts["retryable"] is True
    assert refusal(standing=retiring, purpose=Purpose.PLAN).facts["retryable"] is False
    assert refusal(standing=migrating, purpose=Purpose.PLAN).facts["retryable"] is False


@pytest.mark.parametrize(
    ("presented", "granted", "facts"),
    [
        ({WRITE}, {WRITE}, None),
        ({READ}, {READ, WRITE}, None),  # narrower than declared
        (set(), set(), None),
        ({WRITE, ADMIN}, {WRITE, ADMIN}, {"undeclared": [ADMIN]}),
        ({READ, WRITE}, {READ}, {"not_granted": [WRITE]}),
        ({READ, WRITE}, set(), {"not_granted": [READ, WRITE]}),
    ],
)
def test_capabilities_are_declared_and_granted(presented, granted, facts):
    reference = replace(REFERENCE, capabilities=frozenset(presented))
    answer = refusal(reference, granted=frozenset(granted))

    assert (answer and answer.facts) == facts
    assert answer is None or all(
        name in answer.detail for names in facts.values() for name in names
    )


@pytest.mark.parametrize(
    ("presented", "bound", "current", "stands"),
    [
        (19, 19, 19, True),
        (0, 0, 0, True),
        (18, 19, 19, False),
        (19, 18, 19, False),
        (19, 19, 20, False),
        (20, 19, 20, False),
        (20, 20, 19, False),
        (19, 19, None, False),
        (0, 0, None, False),
    ],
)
def test_three_credential_versions_are_one(presented, bound, current, stands):
    reference = replace(REFERENCE, credential_version=presented)
    standing = replace(STANDING, credential_bound=bound, credential_current=current)
    answer = refusal(reference, standing)

    assert (answer is None) is stands
    assert stands or answer.facts == {"presented": presented, "bound": bound, "current": current}


def test_refusals_say_where_in_the_tuple():
    drift = refusal(standing=replace(STANDING, schema_hash="sha256:" + "b" * 64))
    other_class = refusal(standing=replace(STANDING, effect_class=EffectClass.PURE))

    assert (drift.pointer, drift.facts["presented"]) == ("/schema_hash", REFERENCE.schema_hash)
    assert (other_class.pointer, other_class.facts["published"]) == ("/effect_class", "PURE")
