"""What a call costs of the policy's limits. Spending itself is done where the budgets are kept."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from tallystick.errors import PolicyBlocked
from tallystick.policy.call import Call
from tallystick.policy.operators import Kind, kind_of
from tallystick.policy.policy import Policy
from tallystick.policy.terms import Limit
from tallystick.policy.transformations import decimal_of

# Within these, sums of amounts are exact with the 28 digits of Python's decimals.
AMOUNT_MAX: Final = Decimal(10) ** 15
AMOUNT_PLACES_MAX: Final = 12

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Charge:
    """What a call costs of one limit.

    Args:
        limit: The limit.
        units: How many of its units.
    """

    limit: Limit
    units: Decimal


def charges(policy: Policy, call: Call) -> tuple[Charge, ...]:
    """Return what a call costs of each limit that counts it.

    Raises:
        PolicyBlocked: Its arguments do not have an amount that a limit counts.
    """
    charged: list[Charge] = []
    for limit in limits_of(policy, call.tool):
        units = units_of(limit, call)
        if units is None:
            raise PolicyBlocked(
                amount_sentence(limit, call.tool),
                facts={"rule": f"budgets.limits.{limit.name}", "policy": policy.id},
            )
        charged.append(Charge(limit, units))
    return tuple(charged)


def limits_of(policy: Policy, tool: str) -> tuple[Limit, ...]:
    """Return the limits that count a tool's calls."""
    if not policy.limits:
        return ()
    risk = policy.counted_risk_of(tool)
    return tuple(limit for limit in policy.limits if limit.covers(tool, risk))


def units_of(limit: Limit, call: Call) -> Decimal | None:
    """Return how many units of a limit a call costs; None if its arguments do not say.

    An amount is a number from 0 to `AMOUNT_MAX` with `AMOUNT_PLACES_MAX` decimal places at most: a
    negative one would fill the budget up.
    """
    if limit.amount is None:
        return Decimal(1)
    value = limit.amount.find(dict(call.arguments))
    if kind_of(value) is not Kind.NUMBER or not isinstance(value, int | float):
        return None
    units = decimal_of(value)
    places = -int(units.as_tuple().exponent)
    return units if 0 <= units <= AMOUNT_MAX and places <= AMOUNT_PLACES_MAX else None


def amount_sentence(limit: Limit, tool: str) -> str:
    """Tell a model that a call's amount cannot be counted."""
    amount = limit.amount.text if limit.amount else ""
    return (
        f'The budget "{limit.name}" refuses {tool}: '
        f'give the argument "{amount}" as a number from 0 on.'
    )


def window_start(limit: Limit, now: datetime) -> datetime | None:
    """Return when the window of a limit began that a time is in; None if it has no window."""
    if limit.window_seconds is None:
        return None
    utc = now.astimezone(UTC)
    return utc - (utc - _EPOCH) % timedelta(seconds=limit.window_seconds)
