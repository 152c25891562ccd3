"""A resolution as a lease: who can make one, and what it lets begin."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import jwt
import pytest

from kernel.keys import KeyRing
from registry.lease import Lease, read, sign
from tallystick.errors import InvalidRequest

NOW = datetime(2026, 11, 30, 12, 0, 0, 123457, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CONTRACT, TENANT = UUID(int=1), UUID(int=2)
KEYS = KeyRing("k1", {"k1": b"a" * 32})
LEASE = Lease(CONTRACT, NOW, NOW + 300 * SECOND)


def test_what_was_signed_reads_back_to_the_microsecond():
    assert read(sign(LEASE, KEYS, TENANT), KEYS, TENANT) == LEASE


def test_a_lease_outlives_a_change_of_keys():
    token = sign(LEASE, KEYS, TENANT)
    newer = KeyRing("k2", {**KEYS.keys, "k2": b"b" * 32})
    assert read(token, newer, TENANT) == LEASE
    assert jwt.get_unverified_header(sign(LEASE, newer, TENANT))["kid"] == "k2"
    with pytest.raises(InvalidRequest):
        read(token, KeyRing("k2", {"k2": b"b" * 32}), TENANT)


def changed(token: str) -> list[str]:
    """Return the token with each character changed in turn."""
    return [
        f"{token[:index]}{'A' if token[index] != 'A' else 'B'}{token[index + 1 :]}"
        for index in range(len(token))
    ]


def test_every_character_of_a_token_counts():
    token = sign(LEASE, KEYS, TENANT)
    # The last one holds bits of no meaning, so another may say the same.
    for other in changed(token)[:-1]:
        with pytest.raises(InvalidRequest):
            read(other, KEYS, TENANT)


def test_a_lease_is_of_one_tenant_and_one_ring():
    token = sign(LEASE, KEYS, TENANT)
    for keys, tenant in ((KEYS, UUID(int=3)), (KeyRing("k1", {"k1": b"b" * 32}), TENANT)):
        with pytest.raises(InvalidRequest) as raised:
            read(token, keys, tenant)
        assert raised.value.pointer == "/lease"


@pytest.mark.parametrize(
    ("contract_id", "closed_at", "now", "admits"),
    [
        (CONTRACT, None, NOW, True),
        (CONTRACT, NOW, NOW, True),
        (CONTRACT, NOW + SECOND, NOW + SECOND, True),
        (CONTRACT, NOW + SECOND, NOW + 299 * SECOND, True),
        (CONTRACT, NOW + SECOND, NOW + 300 * SECOND, False),  # it has run out
        (CONTRACT, NOW - SECOND, NOW, False),  # it was issued after the version was closed
        (UUID(int=9), None, NOW, False),  # it is for another version
    ],
)
def test_what_a_lease_lets_begin(
    contract_id: UUID, closed_at: datetime | None, now: datetime, admits: bool
):
    assert LEASE.admits(contract_id, closed_at=closed_at, now=now) is admits
