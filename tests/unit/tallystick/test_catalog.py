"""A process without a service resolves tuples as the registry does."""

import json
from dataclasses import replace

import pytest

from tallystick import errors
from tallystick.catalog import Catalog
from tallystick.tool_contract import Contract, EffectClass
from tests.builders import a_contract, a_contract_of
from tests.signers import Signer, malleated

SEND = Contract.parse(a_contract())
FIND = Contract.parse(a_contract_of("PURE", credential=None))


def test_own_tuple_resolves():
    catalog = Catalog([SEND, FIND], tenant="acme", credential_versions={"billing-api": 7})

    reference = catalog.reference("billing.send_invoice", "2.1")
    assert (reference.credential_version, reference.capabilities) == (7, {"invoice:write:acme"})
    assert catalog.resolve(reference) is SEND
    assert catalog.resolve(catalog.reference(FIND.name, "2.1.0")) is FIND
    assert catalog.reference(FIND.name, "2.1").credential_version == 0
    assert [*catalog] == [SEND, FIND]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"name": "billing.send"}, errors.ToolContractNotFound),
        ({"version": "2.2.0"}, errors.ToolContractNotFound),
        ({"version": "nonsense"}, errors.ToolContractNotFound),
        ({"schema_hash": "sha256:" + "0" * 64}, errors.ToolSchemaDrift),
        ({"capabilities": frozenset({"invoice:write:other"})}, errors.CapabilityNotGranted),
        ({"effect_class": EffectClass.PURE}, errors.EffectClassMismatch),
        ({"credential_version": 2}, errors.CredentialPolicyChanged),
    ],
)
def test_any_other_tuple_is_refused_with_its_code(change, error):
    catalog = Catalog([SEND])
    reference = catalog.reference(SEND.name, "2.1")

    with pytest.raises(error):
        catalog.resolve(replace(reference, **change))


def test_process_is_held_to_what_it_was_granted():
    catalog = Catalog([SEND], granted=["invoice:read:default"])

    with pytest.raises(errors.CapabilityNotGranted):
        catalog.resolve(catalog.reference(SEND.name, "2.1"))


def test_reference_to_nothing_is_refused():
    with pytest.raises(errors.ToolContractNotFound):
        Catalog([]).reference("billing.send_invoice", "2.1")
    with pytest.raises(errors.InvalidContract):
        Catalog([]).reference("billing.send_invoice", "latest")


def test_two_meanings_of_one_version_are_refused():
    other = Contract.parse(a_contract(description="Something else."))

    assert len([*Catalog([SEND, SEND])]) == 1
    with pytest.raises(errors.ContractExists):
        Catalog([SEND, other])


def test_folder_is_read_at_any_depth(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "send.json").write_text(json.dumps(a_contract()), encoding="utf-8")
    (tmp_path / "deep" / "find.yaml").write_text(json.dumps(dict(FIND.document)), encoding="utf-8")
    (tmp_path / "README.md").write_text("not a contract", encoding="utf-8")

    assert {*Catalog.load(tmp_path)} == {SEND, FIND}
    assert [*Catalog.load([tmp_path / "send.json"], tenant="acme")] == [SEND]


def test_file_that_is_no_contract_is_named(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(a_contract(colour="red")), encoding="utf-8")

    with pytest.raises(errors.InvalidContract, match=r"broken\.json") as refused:
        Catalog.load(str(tmp_path))
    assert refused.value.pointer == "/colour"


def test_with_keys_only_what_one_of_them_signed_resolves():
    grace, ada = Signer(1), Signer(2)
    good = grace.signature(a_contract())
    digest = SEND.contract_digest
    for keys, signatures, resolves in (
        (None, None, True),
        ([grace.public_key], {digest: [good.hex()]}, True),
        ([ada.public_key, grace.public_key], {digest: ["00" * 64, good.hex()]}, True),
        ([grace.public_key], None, False),
        ([], {digest: [good.hex()]}, False),
        ([ada.public_key], {digest: [good.hex()]}, False),
        ([grace.public_key], {FIND.contract_digest: [good.hex()]}, False),
        ([grace.public_key], {digest: [malleated(good).hex()]}, False),
        ([grace.public_key], {digest: [good.hex()[:-2]]}, False),
    ):
        catalog = Catalog([SEND], keys=keys, signatures=signatures)
        reference = catalog.reference(SEND.name, "2.1")
        if resolves:
            assert catalog.resolve(reference) is SEND
        else:
            with pytest.raises(errors.SignatureRequired):
                catalog.resolve(reference)


def test_what_is_no_key_or_signature_is_refused():
    with pytest.raises(errors.InvalidRequest):
        Catalog([SEND], keys=["01" + "00" * 31])
    with pytest.raises(errors.SignatureInvalid):
        Catalog([SEND], signatures={SEND.contract_digest: ["no digits"]})
