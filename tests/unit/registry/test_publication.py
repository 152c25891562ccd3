"""Whether a contract may stand beside those that are published already."""

from typing import Any

import pytest

from registry.entry import Entry
from registry.publication import Review, check_version, is_published
from tallystick.contract import Contract
from tallystick.errors import ContractExists, ReviewRequired
from tallystick.resolution import Lifecycle
from tests.builders import a_contract, an_entry

REVIEW = Review("grace", "callers were asked")
SCHEMA = a_contract()["input_schema"] | {"maxProperties": 9}
DECLINED = {"code": "declined", "meaning": "no", "retryable": False}


def contract(**changes: Any) -> Contract:
    return Contract.parse(a_contract(**changes))


@pytest.mark.parametrize(
    ("changes", "published"),
    [
        ({}, True),
        ({"version": "2.1.0"}, True),
        ({"version": "2.2"}, False),
        ({"version": "3.0"}, False),
    ],
)
def test_the_same_document_again_is_no_new_one(changes: dict[str, Any], published: bool):
    found = [an_entry(version="1.0"), an_entry()]
    assert is_published(contract(**changes), found) is published
    assert not is_published(contract(**changes), [])


@pytest.mark.parametrize("lifecycle", Lifecycle)
def test_a_version_is_taken_whatever_became_of_it(lifecycle: Lifecycle):
    with pytest.raises(ContractExists) as raised:
        is_published(contract(description="Another text."), [an_entry(lifecycle)])
    assert raised.value.facts.keys() == {"published_digest", "presented_digest"}


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, None),
        ({"description": "Another text."}, None),
        ({"credential": "other"}, None),
        ({"capabilities": []}, None),
        ({"input_schema": SCHEMA}, ["schemas"]),
        ({"capabilities": ["invoice:write:{tenant}", "a:b:c"]}, ["wider capabilities"]),
        ({"errors": [DECLINED]}, ["error meanings"]),
        ({"input_schema": SCHEMA, "errors": [DECLINED]}, ["schemas", "error meanings"]),
    ],
)
def test_what_a_review_is_for(changes: dict[str, Any], changed: list[str] | None):
    successor = contract(version="2.2", **changes)
    check_version(successor, [an_entry()], REVIEW)
    if changed is None:
        check_version(successor, [an_entry()], None)
        return
    with pytest.raises(ReviewRequired) as raised:
        check_version(successor, [an_entry()], None)
    assert raised.value.facts == {"against": "2.1.0", "changed": changed}


@pytest.mark.parametrize(
    ("published", "refused"),
    [
        ([], False),
        ([an_entry(version="1.9")], False),
        ([an_entry(version="3.0")], False),
        ([an_entry(Lifecycle.RETIRED)], False),
        ([an_entry(), an_entry(version="2.0", input_schema=SCHEMA)], True),
        ([an_entry(version="2.0", input_schema=SCHEMA), an_entry()], True),
        *(([an_entry(life)], True) for life in Lifecycle if life is not Lifecycle.RETIRED),
    ],
)
def test_which_versions_count(published: list[Entry], refused: bool):
    successor = contract(version="2.2", input_schema=SCHEMA)
    if not refused:
        check_version(successor, published, None)
        return
    with pytest.raises(ReviewRequired):
        check_version(successor, published, None)


def test_the_effect_class_is_told_before_all_else_and_no_review_helps():
    successor = contract(
        version="2.2", effect_class="UNKNOWN", idempotency=None, input_schema=SCHEMA
    )
    for review in (None, REVIEW):
        with pytest.raises(ReviewRequired) as raised:
            check_version(successor, [an_entry()], review)
        assert raised.value.facts["changed"] == ["effect_class"]
        assert raised.value.pointer == "/effect_class"
        assert "3.0" in raised.value.detail
