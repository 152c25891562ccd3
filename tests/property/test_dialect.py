"""A schema means the same in 2020-12: the validators of both dialects agree on every value."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.compatibility.forms.dialect import localised, modern
from tallystick.compatibility.forms.producer import close
from tallystick.schema import DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2020_12, Validator
from tallystick.subschema import Subschemas

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
SUITES = {
    "containment/draft7": DRAFT_07,
    "containment/draft2020-12": DRAFT_2020_12,
}
DRAFTS = {"draft-04": DRAFT_04, "draft-07": DRAFT_07}
VALUES_PER_SCHEMA = 10

NAMES = ("a", "b")
NAME = st.sampled_from(NAMES)
LEAVES = st.sampled_from(
    [
        *({}, {"type": "string"}, {"type": "number"}, {"enum": [1, "a"]}, {"maxItems": 1}),
        *({"minimum": 1}, {"$ref": "#"}, {"$ref": "#/definitions/d"}, {"$ref": "#/items/0"}),
        *({"$ref": "#/dependencies/a"}, {"$ref": "#/x/0"}, {"$ref": "#/then"}, {"$ref": "#d"}),
        *({"const": 1}, {"maxLength": 1}, {"format": "ipv4"}, {"required": ["a"]}),
    ]
)


def schemas_over(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(NAME, inner, min_size=1, max_size=2)
    some = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "items": inner | some,
            "additionalItems": inner,
            "dependencies": st.dictionaries(NAME, inner | st.just(["b"]), min_size=1),
            "properties": members,
            "additionalProperties": inner,
            "allOf": some,
            "oneOf": some,
            "not": inner,
            "contains": inner,
            "propertyNames": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "minimum": st.integers(0, 2),
            "prefixItems": some,
            "dependentSchemas": members,
            "dependentRequired": st.just({"a": ["b"]}),
            "unevaluatedProperties": inner,
            "minContains": st.integers(0, 2),
            "definitions": st.fixed_dictionaries({"d": inner}),
            "x": some,
            "$ref": st.sampled_from(["#/definitions/d", "#/x/0"]),
        },
    ).map(lambda drawn: dict(list(drawn.items())[:4]))


SCHEMAS = st.recursive(LEAVES, schemas_over, max_leaves=6)
DOCUMENTS = st.builds(
    lambda root, d: {**root, "definitions": {"d": {**d, "$id": "#d"}}}, SCHEMAS, SCHEMAS
)
VALUES = st.recursive(
    st.sampled_from([0, 1, 2, "", "a", "127.0.0.1", None]),
    lambda inner: st.dictionaries(NAME, inner, max_size=2) | st.lists(inner, max_size=3),
    max_leaves=5,
)


def compiled(schema: Any, dialect: str) -> Validator | None:
    try:
        return Validator.of(schema, dialect, True)
    except ValueError:
        return None  # a reference leads nowhere, or round in a circle


@settings(deadline=None)
@given(DOCUMENTS, st.sampled_from([DRAFT_07, DRAFT_06, DRAFT_04]), st.lists(VALUES, max_size=10))
def test_a_schema_of_an_older_dialect_means_the_same(schema, dialect, values):
    if dialect == DRAFT_04:
        schema = json.loads(json.dumps(schema).replace('"$id"', '"id"'))
    before = compiled(schema, dialect)
    if before is None:
        return
    written = modern(schema, dialect)
    assert localised(written) == written
    after = compiled(written, DRAFT_2020_12)
    if after is None:
        targets = (position.keywords.get("$ref", "#") for position in Subschemas(written))
        assert any(target != "#" and not str(target).startswith("#/") for target in targets)
        return
    for value in values:
        assert before.is_valid(value) == after.is_valid(value), (schema, written, value)


def corpus() -> list[tuple[Any, str]]:
    """Return every schema of the containment suites and of the vendors' cases, with its dialect."""
    rows = [
        (row[side], dialect)
        for folder, dialect in SUITES.items()
        for path in sorted((CORPUS / folder).rglob("*.json"))
        for row in json.loads(path.read_bytes())
        for side in ("schema1", "schema2")
    ]
    lines = (CORPUS / "merged" / "vendor_cases_apache.jsonl").read_text().splitlines()
    cases = map(json.loads, lines)
    rows += [(case[side], DRAFTS[case["draft"]]) for case in cases for side in ("old", "new")]
    return list({(json.dumps(each), dialect): (each, dialect) for each, dialect in rows}.values())


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the public test data is not in {CORPUS}")
def test_public_schemas_mean_the_same_and_close_to_less():
    judged = {True: 0, False: 0}
    refused = 0
    for schema, dialect in corpus():
        before = compiled(schema, dialect)
        if before is None:
            refused += 1
            continue
        written = localised(modern(schema, dialect))
        after = Validator.of(written, assert_format=True)
        closed = Validator.of(close(written), assert_format=True)
        for value in values_for(schema, random.Random(json.dumps(schema))):
            is_valid = before.is_valid(value)
            assert after.is_valid(value) == is_valid, (schema, written, value)
            assert is_valid or not closed.is_valid(value), (schema, value)
            judged[is_valid] += 1
    assert min(judged.values()) > 10_000
    assert refused < 20  # those whose references lead nowhere


def values_for(schema: Any, chance: random.Random) -> list[Any]:
    names, constants = {"foo"}, [None, True, 0, 1, 2, 1.5, -1, 100, "", "a", "foo"]
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            names.update(name for name in part if not name.startswith("$"))
            constants += part.get("enum", []) if isinstance(part.get("enum"), list) else []
            constants += [part[key] for key in ("const", "default") if key in part]
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    known = sorted(names)

    def value(depth: int) -> Any:
        form = chance.random()
        if form < 0.4 or depth == 0:
            return chance.choice(constants)
        if form < 0.75:
            chosen = chance.sample(known, min(len(known), chance.randint(0, 3)))
            return {name: value(depth - 1) for name in chosen}
        return [value(depth - 1) for _ in range(chance.randint(0, 3))]

    return [whole(value(3)) for _ in range(VALUES_PER_SCHEMA)]


def whole(value: Any) -> Any:
    """Return the value with 1.0 as 1, as its canonical form has it."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    return value
