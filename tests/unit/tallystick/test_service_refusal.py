"""What errors of the service, and of a function that it let run, mean for a call."""

from typing import Any

import pytest

from tallystick import errors
from tallystick._effect import EffectFailed, EffectNotOwned, NotSent
from tallystick.gates.denial import Gate
from tallystick.policy import Decision
from tallystick.runtime.service_refusal import of_function, of_service, verdict_of
from tallystick.tool_contract import Contract


def a_tool(effect_class: str = "NON_RETRYABLE", **fields: Any) -> Contract:
    return Contract.of(
        name="orders.add_note",
        version="1.0",
        description="Write a note.",
        input_schema={"type": "object"},
        capabilities=["orders:write:acme"],
        effect_class=effect_class,
        **fields,
    )


LOCKED = {"code": "locked", "meaning": "It is locked.", "retryable": True}
WRITE, READ = a_tool(), a_tool("PURE")
CAREFUL = a_tool(errors=[LOCKED | {"not_executed": True}])
CARELESS = a_tool(errors=[LOCKED])


class Locked(Exception):
    code = "locked"


@pytest.mark.parametrize(
    ("error", "gate", "decision"),
    [
        (errors.ToolSchemaDrift("x"), Gate.CONTRACT, None),
        (errors.InvalidArguments("x"), Gate.ARGUMENTS, None),
        (errors.NotFound("x"), Gate.PERMISSION, None),
        (errors.PolicyBlocked("x"), Gate.POLICY, Decision.BLOCK),
        (errors.BudgetExhausted("x"), Gate.POLICY, Decision.BLOCK),
        (errors.NeedsHuman("x"), Gate.POLICY, Decision.NEEDS_HUMAN),
        (errors.ApprovalRejected("x"), Gate.POLICY, Decision.BLOCK),
        (errors.EffectConflict("x"), Gate.SERVICE, Decision.ALLOW),
        (errors.error_for("made_tomorrow")("x"), Gate.SERVICE, Decision.ALLOW),
    ],
)
def test_a_refusal_is_told_as_it_is_and_has_its_gate(error, gate, decision):
    ended = of_service(error, WRITE)
    assert (ended.denial.gate, ended.denial.refusal) == (gate, error)
    verdict = verdict_of(ended.denial)
    assert (verdict and verdict.decision) == decision


def test_where_the_registry_is_no_model_is_told():
    ended = of_service(errors.RegistryUnavailable("no answer from http://10.0.0.7:8420"), WRITE)
    assert (ended.denial.gate, ended.denial.refusal.code) == (Gate.POLICY, "registry_unavailable")
    assert "10.0.0.7" not in ended.denial.refusal.detail


def test_the_rule_that_decided_is_kept():
    policy = {"policy": "refunds", "revision": 3}
    error = errors.PolicyBlocked("No.", facts={"rule": "look-first", "policy": policy})
    verdict = verdict_of(of_service(error, WRITE).denial)
    assert verdict is not None
    assert (verdict.rule, verdict.policy, verdict.message) == ("look-first", "refunds", "No.")
    assert verdict_of(None) is not None


@pytest.mark.parametrize(
    ("error", "is_over"),
    [
        (errors.NeedsHuman("x"), False),
        (errors.PolicyBlocked("x"), False),
        (errors.ApprovalRejected("x"), False),
        (errors.RegistryUnavailable("x"), False),
        (errors.ApprovalStale("x"), True),
        (errors.ApprovalExpired("x"), True),
        (errors.CredentialPolicyChanged("x"), True),
        (EffectNotOwned("x.1", "REFUSED", reason="approval_stale"), True),
        (EffectNotOwned("x.1", "REFUSED", reason="approval_rejected"), False),
        (EffectNotOwned("x.1", "UNKNOWN"), False),
        (EffectNotOwned("x.1", "CANCELLED", reason="not wanted"), False),
        (EffectFailed("locked", "x"), True),
        (EffectFailed("not_sent", "x"), True),
    ],
)
def test_the_same_call_is_another_once_nothing_can_come_of_it(error, is_over):
    assert of_service(error, CAREFUL).is_over is is_over


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EffectNotOwned("x.1", "REFUSED", reason="approval_rejected"), errors.ApprovalRejected),
        (EffectNotOwned("x.1", "REFUSED", reason="approval_expired"), errors.ApprovalExpired),
        (EffectNotOwned("x.1", "QUARANTINED"), errors.EffectNotRetryable),
        (EffectNotOwned("x.1", "DISPATCHED"), errors.EffectNotRetryable),
        (EffectNotOwned("x.1", "CANCELLED", reason="forbidden"), errors.EffectNotRetryable),
    ],
)
def test_an_effect_of_nobodys_tells_why(error, expected):
    assert type(of_service(error, WRITE).denial.refusal) is expected


@pytest.mark.parametrize(
    ("error", "contract", "code", "retryable", "is_over"),
    [
        (ConnectionError("10.0.0.7"), READ, "service_unavailable", True, True),
        (TimeoutError("10.0.0.7"), READ, "service_timeout", True, True),
        (ConnectionError("10.0.0.7"), WRITE, "service_unavailable", False, False),
        (
            TimeoutError("10.0.0.7"),
            a_tool("REPLAYABLE", max_duplicates=2),
            "service_timeout",
            False,
            False,
        ),
        (NotSent("10.0.0.7"), WRITE, "service_unavailable", True, True),
        (Locked(), CAREFUL, "tool_failed", True, True),
        (Locked(), CARELESS, "tool_failed", False, False),
        (errors.LeaseExpired("Too late."), WRITE, "lease_expired", False, False),
    ],
)
def test_a_function_that_fails_is_told_by_what_is_certain(
    error, contract, code, retryable, is_over
):
    ended = of_function(error, contract, failed_before=False)
    refusal = ended.denial.refusal
    assert (refusal.code, ended.is_over) == (code, is_over)
    assert refusal.facts.get("retryable", False) is retryable
    assert "10.0.0.7" not in refusal.detail
