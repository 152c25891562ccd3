"""Which of an issuer's keys are used, and for which algorithms."""

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from access.key_set import KeySet

RSA = json.loads(RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048).public_key()))
P256 = json.loads(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))
P384 = json.loads(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP384R1()).public_key()))
P521 = json.loads(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP521R1()).public_key()))
K256 = json.loads(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256K1()).public_key()))
ED = json.loads(OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate().public_key()))
SECRET = {"kty": "oct", "k": "c2VjcmV0"}
RSAS = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}


def algorithms(*keys: Any) -> set[str]:
    return {algorithm for _, algorithm in KeySet.parse({"keys": list(keys)}).keys}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (RSA, RSAS),
        (RSA | {"alg": "PS256"}, {"PS256"}),
        (RSA | {"use": "sig", "key_ops": ["verify"]}, RSAS),
        (P256, {"ES256"}),
        (P384, {"ES384"}),
        (P521, {"ES512"}),
        (ED, {"EdDSA"}),
        # None of these verifies anything.
        (RSA | {"alg": "HS256"}, set()),
        (RSA | {"alg": "none"}, set()),
        (RSA | {"alg": "ES256"}, set()),
        (RSA | {"use": "enc"}, set()),
        (RSA | {"key_ops": ["encrypt"]}, set()),
        (RSA | {"key_ops": "verify"}, set()),
        (RSA | {"n": "!"}, set()),
        (RSA | {"kty": "EC"}, set()),
        (RSA | {"kty": ["RSA"]}, set()),
        (P256 | {"crv": "P-384"}, set()),
        (P256 | {"crv": {"P-256": 1}}, set()),
        (P256 | {"x": P256["y"], "y": P256["x"]}, set()),
        (K256, set()),
        (SECRET, set()),
        ({}, set()),
        ([], set()),
        (None, set()),
    ],
)
def test_a_key_verifies_what_it_is_for(key: Any, expected: set[str]):
    named = key | {"kid": "k"} if isinstance(key, dict) else key
    assert algorithms(named) == expected


@pytest.mark.parametrize("key_id", [None, "", 7, ["k"], "k" * 257])
def test_a_key_without_a_name_cannot_be_chosen(key_id: Any):
    assert algorithms(RSA | {"kid": key_id}) == set()


def test_a_bad_key_takes_none_of_the_others_with_it():
    assert algorithms(None, SECRET | {"kid": "s"}, ED | {"kid": "e"}) == {"EdDSA"}


def test_the_first_of_two_keys_of_one_name_stays():
    other = json.loads(OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate().public_key()))
    found = KeySet.parse({"keys": [ED | {"kid": "k"}, other | {"kid": "k"}]})
    key = found.find("k", "EdDSA")
    assert key is not None
    assert json.loads(OKPAlgorithm.to_jwk(key.key))["x"] == ED["x"]
    assert found.has("k")
    assert found.find("k", "RS256") is None


def test_what_an_issuer_publishes_by_mistake_is_not_kept():
    private = ed25519.Ed25519PrivateKey.generate()
    published = json.loads(OKPAlgorithm.to_jwk(private))
    assert "d" in published
    key = KeySet.parse({"keys": [published | {"kid": "k"}]}).find("k", "EdDSA")
    assert key is not None
    assert isinstance(key.key, ed25519.Ed25519PublicKey)


@pytest.mark.parametrize(
    "document", [None, [], "keys", {}, {"keys": None}, {"keys": {}}, {"keys": [RSA] * 101}]
)
def test_what_is_no_key_set_is_refused(document: Any):
    with pytest.raises(ValueError, match="no key set"):
        KeySet.parse(document)
