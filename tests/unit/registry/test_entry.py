"""A version as the registry knows it at one moment."""

from dataclasses import replace

import pytest

from tallystick.resolution import Lifecycle
from tests.builders import NOW, an_entry


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
