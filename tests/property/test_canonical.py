"""Laws of reading and writing: one value has one digest, and nothing that comes in can break us."""

import json
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tallystick.canonical import (
    INTEGER_MAX,
    MISSING,
    MalformedJson,
    canonical_bytes,
    canonical_object,
    check_json,
    digest,
    parse_json,
    pointer_join,
    pointer_split,
    resolve_pointer,
)
from tallystick.document import parse_document
from tallystick.errors import TooLarge

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NUMBERS = st.integers(-INTEGER_MAX, INTEGER_MAX) | st.floats(
    allow_nan=False, allow_infinity=False
).filter(lambda number: not INTEGER_MAX < abs(number) < 1e21)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXT
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)


def shuffled(value: Any, chance: random.Random) -> Any:
    """Return an equal value whose objects have their keys in another order."""
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    if isinstance(value, dict):
        items = [(key, shuffled(item, chance)) for key, item in value.items()]
        chance.shuffle(items)
        return dict(items)
    return value


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of everything inside a value, and its own."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def with_change(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    if not path:
        return change(value)
    copy = value.copy()
    copy[path[0]] = with_change(value[path[0]], path[1:], change)
    return copy


@settings(deadline=None, max_examples=300)
@given(VALUES, st.randoms(use_true_random=False))
def test_order_of_keys_is_nothing(value, chance):
    other = shuffled(value, chance)

    assert canonical_bytes(value) == canonical_bytes(other)
    assert digest(value) == digest(parse_json(json.dumps(other)))


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(TEXT, VALUES, max_size=4), st.randoms(use_true_random=False))
@example({"\U0001f600": 1e2, "\ufb33": -0.0, "b": {"z": 1e21, "a": [2.50, 1.0]}, "a": 0}, random)
def test_a_canonical_object_is_written_in_one_way(value, chance):
    read_back = json.dumps(parse_json(canonical_bytes(value)))

    assert json.dumps(canonical_object(value)) == read_back
    assert json.dumps(canonical_object(shuffled(value, chance))) == read_back


@settings(deadline=None, max_examples=300)
@given(VALUES, st.data())
def test_any_change_of_the_value_changes_the_digest(value, data):
    path = data.draw(st.sampled_from(places(value)))
    changed = with_change(value, path, lambda old: {"was": old})

    assert digest(changed) != digest(value)


@settings(deadline=None, max_examples=300)
@given(VALUES)
def test_what_is_accepted_comes_back_from_its_canonical_form(value):
    written = canonical_bytes(value)

    assert parse_json(written) == value == check_json(value)
    assert canonical_bytes(parse_json(written)) == written
    assert json.loads(written) == value


@settings(deadline=None, max_examples=300)
@given(VALUES)
def test_yaml_reads_json_as_json_does(value):
    assert parse_document(json.dumps(value), format="yaml") == value


SOUP = st.text(st.sampled_from('{}[]:,"\\u0d8e1+-.\n\t aAnNtTfF/*'), max_size=60)


@settings(deadline=None, max_examples=500)
@given(SOUP | st.text(max_size=30) | st.binary(max_size=30))
@example('{"a":1e999}')
@example("\ud800")
def test_text_is_read_or_refused(text):
    try:
        value = parse_json(text)
    except MalformedJson:
        return
    assert json.loads(text) == value
    assert check_json(value) == value


YAML_SOUP = st.text(
    st.sampled_from("{}[]:,\"'\\#&*!|>%@`?-~<=. \n\tabntx01e+_\u2028\x85é"), max_size=60
)


@settings(deadline=None, max_examples=1000)
@given(YAML_SOUP | st.text(max_size=30))
@example("%TAG ! tag:example.com:\n---\n!a b")
@example("!<tag:yaml.org,2002:str> a")
@example('"\\xff"')
def test_yaml_is_read_or_refused(text):
    try:
        value = parse_document(text, format="yaml")
    except (MalformedJson, TooLarge):
        return
    assert check_json(value) == value


@settings(deadline=None, max_examples=300)
@given(VALUES)
def test_every_place_has_a_pointer_that_leads_there(value):
    for path in places(value):
        pointer = pointer_join(*path)
        found = value
        for token in path:
            found = found[token]

        assert pointer_split(pointer) == tuple(map(str, path))
        assert resolve_pointer(value, pointer) is found
        assert resolve_pointer(value, pointer + "/~0nothing~1here") is MISSING


FAULTS = st.sampled_from([float("nan"), float("inf"), 2**53, 1e17, "\ud800", "\0", (), b"", {1: 2}])


@settings(deadline=None, max_examples=300)
@given(VALUES, FAULTS, st.data())
def test_fault_is_named_where_it_is(value, fault, data):
    path = data.draw(st.sampled_from(places(value)))

    with pytest.raises(MalformedJson) as refused:
        check_json(with_change(value, path, lambda _: fault))
    assert refused.value.pointer == pointer_join(*path)
