"""Keys: nothing made for one tenant or purpose passes for another, and old keys stay good."""

from itertools import combinations
from uuid import UUID

import pytest
from cryptography.exceptions import InvalidTag

from kernel.keys import KeyRing

A, B = UUID(int=1), UUID(int=2)
OLD, NEW = b"o" * 32, b"n" * 32
RING = KeyRing("k1", {"k1": OLD})
ROTATED = KeyRing("k2", {"k1": OLD, "k2": NEW})


@pytest.mark.parametrize(
    ("current", "keys"),
    [("k2", {"k1": OLD}), ("k1", {}), ("k1", {"k1": OLD[:31]}), ("k1", {"k1": OLD, "k2": b""})],
)
def test_what_is_no_ring_is_refused(current: str, keys: dict[str, bytes]):
    with pytest.raises(ValueError, match="key"):
        KeyRing(current, keys)


def test_a_ring_does_not_show_its_keys():
    assert repr(RING) == "KeyRing(current='k1')"


def test_every_use_has_a_key_of_its_own():
    derived = [
        ROTATED.derive(key_id, tenant, purpose)
        for key_id in ("k1", "k2")
        for tenant in (A, B)
        for purpose in ("lease", "seal", "fingerprint", "identity")
    ]
    assert all(len(key) == 32 for key in derived)
    assert all(one != other for one, other in combinations(derived, 2))
    with pytest.raises(KeyError):
        RING.derive("k2", A, "lease")


def test_a_fingerprint_says_which_key_made_it():
    before, after = RING.fingerprint(A, b"data"), ROTATED.fingerprint(A, b"data")
    assert (before.key_id, after.key_id) == ("k1", "k2")
    assert before.digest != after.digest
    assert ROTATED.fingerprint(A, b"data", key_id="k1") == before
    others = [RING.fingerprint(B, b"data"), RING.fingerprint(A, b"date")]
    assert before not in others


def test_a_name_outlives_its_key():
    name = RING.identity(A, b"data")
    assert ROTATED.identity(A, b"data") == name
    assert len(name) == 64
    assert name not in (RING.identity(B, b"data"), RING.identity(A, b"date"))
    assert name != RING.fingerprint(A, b"data").digest.hex()


def test_what_was_sealed_opens_for_whom_it_was_sealed():
    key_id, sealed = RING.seal(A, b"secret", bound_to="effect 1")
    assert (key_id, RING.seal(A, b"secret", bound_to="effect 1")[1] == sealed) == ("k1", False)
    assert b"secret" not in sealed
    assert ROTATED.unseal(A, key_id, sealed, bound_to="effect 1") == b"secret"
    assert ROTATED.seal(A, b"secret", bound_to="effect 1")[0] == "k2"


@pytest.mark.parametrize(
    ("tenant", "key_id", "bound_to", "flipped"),
    [
        (B, "k1", "effect 1", None),
        (A, "k2", "effect 1", None),
        (A, "k1", "effect 2", None),
        *((A, "k1", "effect 1", index) for index in (0, 11, 12, 17, -1)),
    ],
)
def test_what_was_sealed_opens_for_nobody_else(
    tenant: UUID, key_id: str, bound_to: str, flipped: int | None
):
    sealed = bytearray(RING.seal(A, b"secret", bound_to="effect 1")[1])
    if flipped is not None:
        sealed[flipped] ^= 1
    with pytest.raises(InvalidTag):
        ROTATED.unseal(tenant, key_id, bytes(sealed), bound_to=bound_to)


def test_a_key_is_recognised_without_being_told():
    assert RING.check_value("k1") == ROTATED.check_value("k1")
    assert ROTATED.check_value("k1") != ROTATED.check_value("k2")
    assert OLD not in RING.check_value("k1")
