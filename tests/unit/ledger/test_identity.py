"""What two calls are compared by: the same whoever spells it, wherever and whenever."""

from typing import Any
from uuid import UUID

import pytest

from kernel.keys import KeyRing
from ledger.identity import (
    NUMBER_MAX,
    EffectId,
    number_of,
    operation_fingerprint,
    provider_key,
    request_fingerprint,
)
from tallystick.canonical import parse_json
from tallystick.errors import NotFound
from tallystick.tool_contract import Contract
from tests.builders import a_contract

TENANT = UUID(int=1)
KEYS = KeyRing("k1", {"k1": b"k" * 32})
MEMO: dict[str, Any] = {"customer_id": "C-42", "amount_cents": 1250, "memo": "für März"}


def operation(arguments: Any, **changes: Any) -> str:
    contract = Contract.parse(a_contract(**changes))
    return operation_fingerprint(contract, arguments, tenant_id=TENANT, keys=KEYS).digest.hex()


def request(arguments: Any, **changes: Any) -> str:
    contract = Contract.parse(a_contract(**changes))
    return request_fingerprint(contract, arguments, tenant_id=TENANT, keys=KEYS).digest.hex()


@pytest.mark.parametrize(
    "spelled",
    [
        '{"memo": "für März", "amount_cents": 1250, "customer_id": "C-42"}',
        '{"amount_cents":1250,"customer_id":"C-42","memo":"f\\u00fcr M\\u00E4rz"}',
        '{"amount_cents": 1250.0, "customer_id": "\\u0043-42", "memo": "für März"}',
        '{"amount_cents": 125e1, "customer_id": "C-42", "memo": "für M\\u00e4rz"}',
    ],
)
def test_however_a_call_is_spelled_it_is_the_same(spelled: str):
    arguments = parse_json(spelled)
    assert operation(arguments) == operation(MEMO)
    assert request(arguments) == request(MEMO)


def test_a_fingerprint_is_the_same_in_every_process_and_release():
    """Effects that are recorded are compared with it for ever."""
    assert operation(MEMO) == "ec37a2f5651f2aa58120d5bc3574f1739eeda226c44f48bb763e7e76d47c8e72"
    assert request(MEMO) == "ba79beb55ff73fd04eb3bbe5f8900b5d0a74a0691d2b6ce63bcdb78bb2145e55"


def test_equal_calls_of_two_versions_are_one_operation_and_two_requests():
    assert operation(MEMO, version="3.0") == operation(MEMO)
    assert request(MEMO, version="3.0") != request(MEMO)


@pytest.mark.parametrize(
    "arguments",
    [MEMO | {"amount_cents": 1251}, MEMO | {"memo": None}, MEMO | {"memo": "für Marz"}, {}],
)
def test_another_call_is_another_operation(arguments: Any):
    assert operation(arguments) != operation(MEMO)
    assert request(arguments) != request(MEMO)


def test_another_tool_is_another_operation():
    assert operation(MEMO, name="billing.other") != operation(MEMO)


def test_a_provider_key_is_of_one_effect_of_one_tenant():
    effects = [EffectId(UUID(int=run), number) for run in (1, 2) for number in (1, 2)]
    keys = {provider_key(UUID(int=tenant), one) for tenant in (1, 2) for one in effects}
    assert len(keys) == 8
    assert provider_key(UUID(int=1), EffectId(UUID(int=1), 1)) in keys


def test_a_number_fits_into_the_database():
    numbers = {number_of(f"effect:{one}") for one in range(1000)}
    assert len(numbers) == 1000
    assert min(numbers) > 0
    assert max(numbers) <= NUMBER_MAX


@pytest.mark.parametrize(
    "text", ["", "7", f"{UUID(int=1)}", f"{UUID(int=1)}.0", f"{UUID(int=1)}.01"]
)
def test_what_is_no_id_names_nothing(text: str):
    with pytest.raises(NotFound):
        EffectId.parse(text)
