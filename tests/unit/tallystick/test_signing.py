"""What a signature says, which keys there can be, and what no key has signed."""

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import InvalidRequest
from tallystick.signing import PublicKey, statement
from tallystick.tool_contract import Contract
from tests.builders import a_contract
from tests.signers import SMALL_ORDER, UNIVERSAL, Signer, malleated

GRACE, ADA = Signer(1), Signer(2)
DIGEST = Contract.parse(a_contract()).contract_digest
GOOD = GRACE.signature(a_contract())
KEY = PublicKey.parse(GRACE.public_key)


def test_a_statement_is_of_the_digest_alone():
    assert statement("sha256:" + "0" * 64) == b"tallystick-contract-v1\nsha256:" + b"0" * 64


def test_an_id_is_of_the_key():
    digest = hashlib.sha256(bytes.fromhex(GRACE.public_key)).hexdigest()
    assert KEY.id == f"ed25519:{digest[:16]}"
    assert str(KEY) == GRACE.public_key


def test_the_key_of_rfc_8032_is_one():
    """RFC 8032, 7.1, the first test."""
    text = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert PublicKey.parse(text).encoded.hex() == text


def test_a_signature_is_of_one_document_by_one_key():
    assert KEY.verifies(DIGEST, GOOD)
    assert not PublicKey.parse(ADA.public_key).verifies(DIGEST, GOOD)
    for changed in ({"version": "2.2"}, {"name": "billing.send"}, {"description": "Send it."}):
        other = Contract.parse(a_contract(**changed)).contract_digest
        assert not KEY.verifies(other, GOOD)


def test_what_was_signed_for_another_purpose_is_none():
    for message in (DIGEST.encode(), b"tallystick-contract-v2\n" + DIGEST.encode(), b""):
        assert not KEY.verifies(DIGEST, GRACE.private_key.sign(message))


@pytest.mark.parametrize(
    "signature",
    [
        malleated(GOOD),
        GOOD[:-1],
        GOOD + b"\0",
        b"",
        bytes(64),
        GOOD[32:] + GOOD[:32],
        bytes([GOOD[0] ^ 1]) + GOOD[1:],
        bytes.fromhex(UNIVERSAL),
    ],
)
def test_no_other_form_of_a_signature_is_one(signature: bytes):
    assert not KEY.verifies(DIGEST, signature)


@given(st.integers(0, 511))
def test_no_bit_of_a_signature_can_be_another(place: int):
    changed = bytearray(GOOD)
    changed[place // 8] ^= 1 << place % 8
    assert not KEY.verifies(DIGEST, bytes(changed))


@pytest.mark.parametrize("key", SMALL_ORDER)
def test_no_key_has_a_point_of_small_order(key: str):
    with pytest.raises(InvalidRequest):
        PublicKey.parse(key)


# The sum of a sound key and a point of order eight; and what encodes no point at all.
TWISTED = "3bcfb78c4ad06f9b8d7e8c50e37e33dd40042a7805f5df945fbf33620745bc68"
NO_POINT = "02" + "00" * 31


@pytest.mark.parametrize("key", [TWISTED, NO_POINT, "ff" * 32])
def test_no_key_is_off_the_subgroup(key: str):
    with pytest.raises(InvalidRequest):
        PublicKey.parse(key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        GRACE.public_key[:-1],
        GRACE.public_key[:-2],
        GRACE.public_key + "00",
        GRACE.public_key.upper(),
        GRACE.public_key + "\n",
        " " + GRACE.public_key,
        "0x" + GRACE.public_key[2:],
        "ed25519:" + GRACE.public_key,
    ],
)
def test_a_key_is_written_in_one_way(text: str):
    with pytest.raises(InvalidRequest):
        PublicKey.parse(text)


@given(st.binary(min_size=32, max_size=32))
def test_every_key_pair_has_a_sound_public_key(seed: bytes):
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    assert PublicKey.parse(public.hex()).encoded == public
