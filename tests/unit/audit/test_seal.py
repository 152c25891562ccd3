"""Statements, their chain's bounds, and their signatures."""

from uuid import UUID

import pytest

from audit.seal import (
    Statement,
    digest_of,
    is_signed_by,
    next_bound,
    public_keys,
    sign,
    signing_key,
)
from kernel.keys import KeyRing
from tests.unit.audit.builders import KEYS, TENANT, TRUSTED, a_record, a_seal

STATEMENT = a_seal(None, [a_record("a", 1)]).text


def test_a_statement_reads_back():
    statement = Statement.parse(STATEMENT)
    assert statement.to_text() == STATEMENT
    assert (statement.since, statement.upto) == (0, 10)
    assert '"from":0' in STATEMENT
    assert '"to":10' in STATEMENT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        STATEMENT.replace('"from":0', '"from":"0"'),
        STATEMENT.replace('"from":0', '"from":-1'),
        STATEMENT.replace('"from":0', '"since":0'),
        STATEMENT.replace('"number":1', '"number":0'),
        STATEMENT.replace('"number":1', '"number":1.5'),
        STATEMENT.replace('"number":1', '"number":true'),
        STATEMENT.replace('"leaves":1', '"leaves":1,"leaves":2'),
        STATEMENT.replace("{", '{"more":1,'),
        STATEMENT.replace("sha256:", "sha512:"),
        STATEMENT.replace("seal-v1", "seal-v2"),
    ],
)
def test_what_is_no_statement(text: str):
    with pytest.raises(ValueError, match="not a seal's statement"):
        Statement.parse(text)


def test_a_signature_is_of_one_text_and_one_key():
    key = signing_key(KEYS, "k1", TENANT)
    signature = sign(key, "text")
    assert is_signed_by(TRUSTED[0], "text", signature)
    assert not is_signed_by(TRUSTED[0], "Text", signature)
    assert not is_signed_by(TRUSTED[0], "text", bytes(64))
    assert not is_signed_by(bytes(32), "text", signature)
    assert not is_signed_by(TRUSTED[0], "text", key.sign(b"text")), "the purpose is signed too"


def test_every_tenant_and_every_key_of_the_ring_has_a_key_of_its_own():
    ring = KeyRing("k2", {"k1": bytes(range(32)), "k2": b"2" * 32})
    ours, theirs = public_keys(ring, TENANT), public_keys(ring, UUID(int=8))
    assert ours.keys() == {"k1", "k2"}
    assert ours["k1"] == TRUSTED[0], "a new key leaves the old one as it is"
    assert len({*ours.values(), *theirs.values()}) == 4


def test_a_digest_is_of_the_bytes():
    assert digest_of("") == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


@pytest.mark.parametrize(
    ("written", "bound"),
    [
        ([], None),
        ([(5, 1)], 100),
        ([(5, 10)], 100),
        ([(5, 11)], 100),
        ([(5, 11), (6, 1)], 6),
        ([(5, 6), (8, 4)], 100),
        ([(5, 6), (8, 5)], 8),
        ([(5, 6), (8, 4), (9, 1)], 9),
    ],
)
def test_where_a_batch_ends(written: list[tuple[int, int]], bound: int | None):
    assert next_bound(written, horizon=100, leaves_max=10) == bound
