"""What a token is, and what is kept of it."""

import hashlib
import re

import pytest

from access.token import is_assertion, new_token, prefix_of, token_hash


def test_a_token_holds_256_random_bits():
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch("tk_[A-Za-z0-9_-]{43}", token) for token in made)


def test_a_prefix_tells_tokens_apart_and_opens_nothing():
    token = new_token()
    assert prefix_of(token) == token[:11]


@pytest.mark.parametrize("token", ["", "tk_", "s3cret" * 8, "tk_" + "a" * 42, "tk_" + "a" * 44])
def test_nothing_of_a_token_that_others_made_is_shown(token: str):
    assert prefix_of(token) == ""


def test_a_hash_is_sha256():
    assert token_hash("tk_a") == hashlib.sha256(b"tk_a").digest()


@pytest.mark.parametrize(
    ("token", "expected"),
    [("e30.e30.c2ln", True), ("..", True), ("tk_a.b.c", False), ("a.b", False), ("a.b.c.d", False)],
)
def test_the_form_of_a_token_says_who_made_it(token: str, expected: bool):
    assert is_assertion(token) is expected
