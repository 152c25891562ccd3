"""Which signatures count: of the right document, by a key of the tenant's own, not revoked."""

from dataclasses import replace

import pytest

from registry.signing import Presented, PublisherKey, check_policy, check_signatures
from tallystick.errors import SignatureInvalid, SignatureRequired
from tallystick.tool_contract import Contract
from tests.builders import NOW, a_contract
from tests.signers import Signer

DOCUMENT = a_contract()
CONTRACT = Contract.parse(DOCUMENT)
GRACE, ADA = Signer(1), Signer(2)


def trusted(signer: Signer) -> PublisherKey:
    public_key = bytes.fromhex(signer.public_key)
    return PublisherKey(signer.key_id, public_key, "grace", NOW, "admin", None, None, None)


KEYS = {GRACE.key_id: trusted(GRACE)}
GOOD = Presented(GRACE.key_id, GRACE.signature(DOCUMENT))


def test_good_signatures_pass_and_none_are_good():
    check_signatures(CONTRACT, [], {})
    check_signatures(CONTRACT, [GOOD], KEYS)
    both = [GOOD, Presented(ADA.key_id, ADA.signature(DOCUMENT))]
    check_signatures(CONTRACT, both, KEYS | {ADA.key_id: trusted(ADA)})


@pytest.mark.parametrize(
    ("presented", "told"),
    [
        (Presented(ADA.key_id, ADA.signature(DOCUMENT)), f"There is no key {ADA.key_id}."),
        (replace(GOOD, signature=ADA.signature(DOCUMENT)), "made no such signature"),
        (replace(GOOD, signature=GRACE.signature(a_contract(version="2.2"))), "no such signature"),
        (replace(GOOD, signature=b""), "made no such signature"),
    ],
)
def test_one_bad_signature_is_enough(presented: Presented, told: str):
    with pytest.raises(SignatureInvalid, match=told) as refused:
        check_signatures(CONTRACT, [GOOD, presented], KEYS)
    assert refused.value.facts == {"key_id": presented.key_id}


def test_a_revoked_key_signs_nothing():
    revoked = replace(KEYS[GRACE.key_id], revoked_at=NOW, revoked_by="admin", reason="lost")
    with pytest.raises(SignatureInvalid, match="is revoked"):
        check_signatures(CONTRACT, [GOOD], {GRACE.key_id: revoked})


@pytest.mark.parametrize(
    ("unsigned", "told"),
    [
        (["a@1.0.0"], "stands for a@1.0.0."),
        ([f"a@1.{n}.0" for n in range(5)], "a@1.3.0, a@1.4.0."),
        ([f"a@1.{n}.0" for n in range(7)], "a@1.4.0 and 2 more."),
    ],
)
def test_what_would_stop_is_told_and_takes_a_word(unsigned: list[str], told: str):
    with pytest.raises(SignatureRequired, match=told) as refused:
        check_policy(unsigned, confirmed=False)
    assert refused.value.facts == {"unsigned": unsigned}
    check_policy(unsigned, confirmed=True)
    check_policy([], confirmed=False)
