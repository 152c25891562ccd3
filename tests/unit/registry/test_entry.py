"""A version as the registry knows it at one moment."""

from dataclasses import replace
from typing import Any

import pytest

from registry.entry import Entry, offered_beside, standing_of
from tallystick.resolution import Lifecycle
from tests.builders import NOW, an_entry


def shared(owner: str, **changes: Any) -> Entry:
    """Return a version that another tenant shares."""
    return replace(an_entry(**changes), owner=owner)


@pytest.mark.parametrize(
    ("lifecycle", "closed", "state"),
    [
        (Lifecycle.ACTIVE, False, Lifecycle.ACTIVE),
        (Lifecycle.DEPRECATED, False, Lifecycle.DEPRECATED),
        (Lifecycle.ACTIVE, True, Lifecycle.MIGRATING),
        (Lifecycle.DEPRECATED, True, Lifecycle.MIGRATING),
        (Lifecycle.MIGRATING, True, Lifecycle.MIGRATING),
        (Lifecycle.RETIRING, True, Lifecycle.RETIRING),
        (Lifecycle.RETIRED, True, Lifecycle.RETIRED),
        (Lifecycle.RETIRED, False, Lifecycle.RETIRED),
    ],
)
def test_a_closing_mark_counts_for_what_is_open_to_plans(
    lifecycle: Lifecycle, closed: bool, state: Lifecycle
):
    found = replace(an_entry(lifecycle), closed_at=NOW if closed else None)
    assert found.state is state
    assert found.standing("acme").lifecycle is state


def test_the_tenant_is_put_into_what_is_declared():
    found = replace(an_entry(), credential_bound=2, credential_current=3, suspended=True)
    standing, reference = found.standing("acme"), found.reference("acme")
    assert standing.capabilities == reference.capabilities == {"invoice:write:acme"}
    assert standing.schema_hash == reference.schema_hash == found.contract.schema_hash
    assert (standing.credential_bound, standing.credential_current) == (2, 3)
    assert reference.credential_version == 2, "what was attested, not what is newest"
    assert standing.suspended


def test_what_is_shared_no_more_stands_for_no_new_work():
    assert standing_of(shared("acme"), "zeta") == shared("acme").standing("zeta")
    assert standing_of(replace(shared("acme"), withdrawn_at=NOW), "zeta") is None
    assert standing_of(None, "zeta") is None


def test_of_two_under_one_name_the_one_in_front_is_found():
    own = [an_entry(version="2.0"), an_entry(version="1.0")]
    offered = [
        shared("acme", version="1.0"),
        shared("acme", version="3.0"),
        shared("beta", version="3.0"),
        shared("beta", name="billing.refund"),
    ]
    found = offered_beside(own, offered)
    assert [(one.contract.name, str(one.contract.version), one.owner) for one in found] == [
        ("billing.refund", "2.1.0", "beta"),
        ("billing.send_invoice", "2.0.0", None),
        ("billing.send_invoice", "1.0.0", None),
        ("billing.send_invoice", "3.0.0", "acme"),
    ]
    assert offered_beside(own, []) == own
