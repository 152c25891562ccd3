"""What becomes of a tool's exception: one sentence, and whether another try makes sense."""

import pytest

from tallystick.errors import (
    NotFound,
    Outage,
    RegistryUnavailable,
    ServiceTimeout,
    ToolFailed,
)
from tallystick.gates.denial import Gate
from tallystick.gates.policy import asks_a_person, decided
from tallystick.gates.service import failure, unreachable
from tallystick.policy import Call, Decision, History, Policy
from tallystick.tool_contract import Contract

DECLINED = {"code": "declined", "meaning": "The bank said no", "retryable": False}
BUSY = {"code": "busy", "meaning": "Too many requests.", "retryable": True}
UNTOUCHED = {**BUSY, "code": "untouched", "not_executed": True}


def a_tool(effect_class: str = "PURE", **fields: object) -> Contract:
    return Contract.of(
        name="pay",
        version="1.0",
        description="Pay.",
        capabilities=[],
        effect_class=effect_class,
        input_schema={"type": "object"},
        errors=[DECLINED, BUSY, UNTOUCHED],
        **fields,
    )


class ReadTimeout(Exception):
    """As the clients of HTTP have it, with no base that others share."""


class PaymentError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__("card 4111 1111 1111 1111 of Mei")
        self.code = code


@pytest.mark.parametrize(
    ("error", "code", "true_code"),
    [
        (TimeoutError(), "service_timeout", "TimeoutError"),
        (ReadTimeout(), "service_timeout", "ReadTimeout"),
        (ServiceTimeout("x"), "service_timeout", "ServiceTimeout"),
        (ConnectionRefusedError(), "service_unavailable", "ConnectionRefusedError"),
        (KeyError("x"), "service_unavailable", "KeyError"),
        (PaymentError("declined"), "tool_failed", "declined"),
        (PaymentError("unheard-of"), "service_unavailable", "PaymentError"),
        (NotFound("No order."), "not_found", "not_found"),
    ],
)
def test_an_exception_becomes_a_code(error: Exception, code: str, true_code: str):
    denial = failure(error, a_tool(), failed_before=False)
    assert (denial.refusal.code, denial.true_code) == (code, true_code)
    assert "4111" not in denial.refusal.detail


@pytest.mark.parametrize(
    ("effect_class", "error", "before", "told", "retryable"),
    [
        ("PURE", TimeoutError(), False, "You may try again once.", True),
        ("PURE", TimeoutError(), True, "do not try once more.", False),
        ("REPLAYABLE", TimeoutError(), False, "You may try again once.", True),
        ("UNKNOWN", TimeoutError(), False, "Nobody knows whether it was done", False),
        ("NON_RETRYABLE", TimeoutError(), False, "Nobody knows whether it was done", False),
        ("PURE", PaymentError("busy"), False, "Too many requests. You may try", True),
        ("UNKNOWN", PaymentError("busy"), False, "Nobody knows whether it was done", False),
        ("UNKNOWN", PaymentError("untouched"), False, "You may try again once.", True),
        ("UNKNOWN", PaymentError("untouched"), True, "do not try once more.", False),
        ("PURE", PaymentError("declined"), False, "The bank said no.", False),
    ],
)
def test_another_try_is_offered_where_it_does_no_harm(
    effect_class: str, error: Exception, before: bool, told: str, retryable: bool
):
    refusal = failure(error, a_tool(effect_class), failed_before=before).refusal
    assert told in refusal.detail
    assert refusal.facts["retryable"] is retryable
    assert isinstance(refusal, Outage | ToolFailed)


class ConnectError(Exception):
    """As httpx has it, which derives it from nothing of Python's own."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError("LK-1"), "service_timeout"),
        (ReadTimeout("LK-1"), "service_timeout"),
        (ConnectionRefusedError("LK-1"), "service_unavailable"),
        (ConnectError("LK-1"), "service_unavailable"),
        (RegistryUnavailable("LK-1"), "service_unavailable"),
        # An answer, or perhaps one: it may hang on whether there is such an object.
        (KeyError("LK-1"), None),
        (FileNotFoundError("LK-1"), None),
        (NotFound("LK-1"), None),
        (PaymentError("declined"), None),
        (PaymentError("unheard-of"), None),
    ],
)
def test_only_a_service_that_gave_no_answer_is_told_of(error: Exception, code: str | None):
    denial = unreachable(error, a_tool(), failed_before=False)
    assert (denial and denial.refusal.code) == code
    if denial is not None:
        assert (denial.gate, denial.true_code) == (Gate.PERMISSION, type(error).__name__)
        assert denial.refusal.detail.endswith("You may try again once.")
        again = unreachable(error, None, failed_before=True)
        assert again is not None
        assert again.refusal.facts == {"retryable": False}


# --- the contract's own question to a person ------------------------------------------------------

POLICY = """
version: "0.1"
id: payments
title: Payments
tools: {pay: {risk: write}}
rules:
  - {name: never, type: compare, tool: pay, left: {source: arg, key: n}, op: gte,
     right: {source: const, value: 9}, effect: block}
  - {name: large, type: compare, tool: pay, left: {source: arg, key: n}, op: gte,
     right: {source: const, value: 5}, effect: needs_human}
"""


@pytest.mark.parametrize(
    ("approval", "amount", "with_policy", "without"),
    [
        ("never", 1, Decision.ALLOW, Decision.ALLOW),
        ("never", 5, Decision.NEEDS_HUMAN, Decision.ALLOW),
        ("never", 9, Decision.BLOCK, Decision.ALLOW),
        ("policy", 1, Decision.ALLOW, Decision.NEEDS_HUMAN),
        ("policy", 5, Decision.NEEDS_HUMAN, Decision.NEEDS_HUMAN),
        ("policy", 9, Decision.BLOCK, Decision.NEEDS_HUMAN),
        ("always", 1, Decision.NEEDS_HUMAN, Decision.NEEDS_HUMAN),
        ("always", 5, Decision.NEEDS_HUMAN, Decision.NEEDS_HUMAN),
        ("always", 9, Decision.BLOCK, Decision.NEEDS_HUMAN),
    ],
)
def test_the_stricter_of_contract_and_policy_wins(
    approval: str, amount: int, with_policy: Decision, without: Decision
):
    contract, call = a_tool(approval=approval), Call("pay", {"n": amount})
    policy = Policy.parse(POLICY)
    assert decided(contract, policy, call, History()).decision is with_policy
    assert decided(contract, None, call, History()).decision is without
    assert asks_a_person(contract, has_policy=False) is (approval != "never")


def test_a_contract_that_asks_has_a_refusal_of_its_own():
    verdict = decided(a_tool(approval="always"), None, Call("pay", {}), History())
    refusal = verdict.refusal()
    assert refusal is not None
    assert (refusal.code, verdict.rule) == ("needs_human", None)
    assert "pay" in refusal.detail
