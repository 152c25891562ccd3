"""What a call costs, exactly, and when a window begins."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from tallystick.errors import PolicyBlocked
from tallystick.policy import Call, History, Policy, charges, window_start
from tests.policies import policy_of

REFUNDED = {"name": "refunded", "tools": ["issue_refund"], "max": 500, "amount": "refund.amount"}


def with_limits(*limits: Any) -> Policy:
    return policy_of(budgets={"limits": list(limits)})


def costs(policy: Policy, tool: str, **arguments: Any) -> dict[str, Decimal]:
    found = charges(policy, Call(tool, arguments))
    return {charge.limit.name: charge.units for charge in found}


def test_each_limit_that_covers_a_call_is_charged():
    policy = with_limits(
        REFUNDED,
        {"name": "all", "max": 9},
        {"name": "writes", "risk": "write", "max": 9},
        {"name": "mails", "tools": ["send_email"], "max": 9},
    )
    one = Decimal(1)
    assert costs(policy, "lookup_order") == {"all": one}
    assert costs(policy, "send_email") == {"all": one, "writes": one, "mails": one}
    refund = costs(policy, "issue_refund", refund={"amount": 0.1})
    assert refund == {"refunded": Decimal("0.1"), "all": one, "writes": one}
    assert costs(policy, "unheard_of") == {"all": one, "writes": one}
    assert costs(policy_of(), "issue_refund") == {}


def test_an_amount_that_cannot_be_counted_is_refused():
    with pytest.raises(PolicyBlocked) as caught:
        costs(with_limits(REFUNDED), "issue_refund", refund={"amount": "12"})
    assert caught.value.facts == {"rule": "budgets.limits.refunded", "policy": "refunds"}
    with pytest.raises(PolicyBlocked):
        History().dispatched(Call("issue_refund", {}), with_limits(REFUNDED))


def test_a_thousand_tenths_are_a_hundred():
    policy = with_limits(REFUNDED)
    history = History()
    for _ in range(1000):
        history = history.dispatched(Call("issue_refund", {"refund": {"amount": 0.1}}), policy)
    assert history.spent == {"refunded": Decimal(100)}


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({"max": 10}, "1"),
        ({"max": 5000}, "50"),
        ({"max": 5000, "slice": 7}, "7"),
        ({"max": 0.5, "amount": "amount", "slice": 0.25}, "0.25"),
    ],
)
def test_a_slice_is_a_hundredth_if_nothing_is_said(fields: Any, taken: str):
    (limit,) = with_limits({"name": "a", "per": "tenant", **fields}).limits
    assert limit.slice == Decimal(taken)


@pytest.mark.parametrize(
    ("window", "now", "start"),
    [
        ("24h", "2026-11-30T00:00:00+00:00", "2026-11-30T00:00:00+00:00"),
        ("24h", "2026-11-30T23:59:59.999999+00:00", "2026-11-30T00:00:00+00:00"),
        ("1d", "2026-12-01T00:30:00+01:00", "2026-11-30T00:00:00+00:00"),
        ("7d", "2026-11-30T12:00:00+00:00", "2026-11-26T00:00:00+00:00"),
        ("15m", "2026-11-30T12:44:59+00:00", "2026-11-30T12:30:00+00:00"),
        ("30s", "2026-11-30T12:00:31+00:00", "2026-11-30T12:00:30+00:00"),
    ],
)
def test_a_window_begins_at_the_same_moment_everywhere(window: str, now: str, start: str):
    (limit,) = with_limits({"name": "a", "max": 1, "per": "tenant", "window": window}).limits
    assert window_start(limit, datetime.fromisoformat(now)) == datetime.fromisoformat(start)


def test_a_window_does_not_hang_on_the_zone_of_the_clock():
    (limit,) = with_limits({"name": "a", "max": 1, "per": "tenant", "window": "24h"}).limits
    now = datetime(2026, 11, 30, 3, tzinfo=timezone(timedelta(hours=9)))
    assert window_start(limit, now) == datetime(2026, 11, 29, tzinfo=UTC)


def test_a_limit_without_a_window_has_no_start():
    (limit,) = with_limits({"name": "a", "max": 1}).limits
    assert window_start(limit, datetime(2026, 11, 30, tzinfo=UTC)) is None
