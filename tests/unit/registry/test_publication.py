"""Whether a contract may stand beside those that are published already."""

from typing import Any

import pytest

from registry.entry import Entry
from registry.publication import (
    Review,
    check_version,
    compare_with,
    equivalents,
    is_published,
    rivals,
)
from tallystick.errors import ContractExists, ReviewRequired
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract
from tests.builders import a_contract, an_entry

REVIEW = Review("grace", "callers were asked")
SCHEMA: dict[str, Any] = a_contract()["input_schema"]
PROPERTIES: dict[str, Any] = SCHEMA["properties"]
LONGER = SCHEMA | {"properties": PROPERTIES | {"note": {"type": "string"}}}
NARROWER = SCHEMA | {"properties": PROPERTIES | {"memo": {"const": 7}}}
DEFAULTED = SCHEMA | {"properties": PROPERTIES | {"memo": {"type": "string", "default": ""}}}
OUTPUT: dict[str, Any] = a_contract()["output_schema"]
MORE = OUTPUT | {"properties": OUTPUT["properties"] | {"total": {"type": "integer"}}}
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


def held(
    successor: Contract, published: list[Entry], review: Review | None = None
) -> ReviewRequired | None:
    """Hold a new version to the rule; return the refusal, if it is one."""
    others = rivals(successor, published)
    try:
        check_version(successor, others, compare_with(successor, others), review)
    except ReviewRequired as refusal:
        return refusal
    return None


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, None),
        ({"description": "Another text."}, None),
        ({"credential": "other"}, None),
        ({"capabilities": []}, None),
        ({"input_schema": LONGER}, None),
        ({"input_schema": SCHEMA | {"maxProperties": 9}}, None),
        ({"output_schema": MORE}, None),
        ({"input_schema": NARROWER}, ["old_calls"]),
        ({"output_schema": None}, ["new_results"]),
        ({"capabilities": ["invoice:write:{tenant}", "a:b:c"]}, ["wider_capabilities"]),
        ({"errors": [DECLINED]}, ["error_meanings"]),
        ({"input_schema": DEFAULTED}, ["default_changed"]),
        ({"input_schema": NARROWER, "errors": [DECLINED]}, ["old_calls", "error_meanings"]),
    ],
)
def test_what_a_review_is_for(changes: dict[str, Any], changed: list[str] | None):
    successor = contract(version="2.2", **changes)
    assert held(successor, [an_entry()], REVIEW) is None
    refusal = held(successor, [an_entry()])
    told = None if refusal is None else (refusal.facts["against"], refusal.facts["changed"])
    assert told == (None if changed is None else ("2.1.0", changed))


def test_a_refusal_brings_the_call_that_would_fail():
    refusal = held(contract(version="2.2", input_schema=NARROWER), [an_entry()])
    assert refusal is not None
    assert refusal.pointer == "/input_schema"
    assert refusal.facts["verdict"] == "incompatible"
    judgement: Any = refusal.facts["old_calls"]
    assert judgement["witness"]["value"].keys() >= {"customer_id", "amount_cents"}
    assert judgement["witness"]["violations"][0]["pointer"] == "/memo"
    assert "new_results" not in refusal.facts
    assert "2.2.0 refuses a call that 2.1.0 allows." in refusal.detail


@pytest.mark.parametrize(
    ("published", "refused"),
    [
        ([], False),
        ([an_entry(version="1.9")], False),
        ([an_entry(version="3.0")], False),
        ([an_entry(Lifecycle.RETIRED)], False),
        ([an_entry(), an_entry(version="2.0", input_schema=NARROWER)], True),
        ([an_entry(version="2.0", input_schema=NARROWER), an_entry()], True),
        *(([an_entry(life)], True) for life in Lifecycle if life is not Lifecycle.RETIRED),
    ],
)
def test_which_versions_count(published: list[Entry], refused: bool):
    assert (held(contract(version="2.2", input_schema=NARROWER), published) is not None) is refused


def test_a_lower_version_that_comes_late_is_held_against_the_higher_one():
    """Its callers go on to what is there already, and nobody comes back from there."""
    wide = an_entry(version="2.5", input_schema=LONGER)
    assert held(contract(version="2.2"), [wide]) is None
    refusal = held(contract(version="2.2", input_schema=LONGER), [an_entry(version="2.5")])
    assert refusal is not None
    assert refusal.facts["against"] == "2.5.0"
    assert "2.5.0 refuses a call that 2.2.0 allows." in refusal.detail


def test_the_effect_class_is_told_before_all_else_and_no_review_helps():
    successor = contract(
        version="2.2", effect_class="UNKNOWN", idempotency=None, input_schema=NARROWER
    )
    for review in (None, REVIEW):
        refusal = held(successor, [an_entry(), an_entry(version="2.0")], review)
        assert refusal is not None
        assert refusal.facts["changed"] == ["effect_class"]
        assert refusal.pointer == "/effect_class"
        assert "3.0" in refusal.detail


def test_what_is_equivalent_is_found_in_every_major_that_is_not_retired():
    published = [
        an_entry(version="3.0"),
        an_entry(version="1.0", description="Other words."),
        an_entry(version="2.0", input_schema=LONGER),
        an_entry(Lifecycle.RETIRED, version="1.1"),
        an_entry(),
    ]
    successor = contract(version="2.2")
    others = rivals(successor, published)
    assert equivalents(others, compare_with(successor, others)) == ["1.0.0", "2.1.0", "3.0.0"]
