"""Laws of the schema hash: it moves with every structural change, and with no other.

The generated schemas name their properties like keywords, and their values look like schemas. Where
schemas stand in a schema is said here once more, apart from the code that is tested.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.errors import InvalidContract
from tallystick.schema import DRAFT_07, DRAFT_2020_12, Validator, structure
from tallystick.tool_contract import Contract

ROOT = Path(__file__).parents[2]
SUITES = ROOT.parent / "shared" / "corpus" / "containment"

ONE = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
MAP = ("$defs", "dependentSchemas", "patternProperties", "properties")
ANNOTATIONS = {
    "title": st.text("ab", max_size=2),
    "description": st.text("ab", max_size=2),
    "examples": st.lists(st.booleans(), max_size=2),
    "$comment": st.text("ab", max_size=2),
    "deprecated": st.booleans(),
}

NAMES = st.sampled_from(
    [
        *("description", "title", "default", "enum", "examples", "required", "$comment", "const"),
        *("properties", "items", "type", "deprecated", "$ref", "a"),
    ]
)
# Values that would be annotations, references or sets if a schema stood there.
DATA = st.recursive(
    st.sampled_from(["string", "a", 1, None, True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
TYPES = st.sampled_from(["string", "integer", "object", "array", "null"])


def some_of(keywords: dict[Any, Any], most: int) -> st.SearchStrategy[Any]:
    pairs = [st.tuples(st.just(keyword), value) for keyword, value in keywords.items()]
    return st.lists(st.one_of(pairs), max_size=most).map(dict)


FLAT = some_of(
    ANNOTATIONS
    | {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "required": st.lists(NAMES, max_size=3, unique=True),
        "enum": st.lists(DATA, min_size=1, max_size=3),
        "const": DATA,
        "default": DATA,
        "minLength": st.integers(0, 3),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True)),
        "x-unit": DATA,
    },
    most=4,
)
SCHEMAS = st.recursive(
    FLAT,
    lambda inner: st.builds(
        lambda flat, deep: flat | deep,
        FLAT,
        some_of(
            dict.fromkeys(ONE, inner)
            | dict.fromkeys(LIST, st.lists(inner, min_size=1, max_size=2))
            | dict.fromkeys(MAP, st.dictionaries(NAMES, inner, min_size=1, max_size=2)),
            most=2,
        ),
    ),
    max_leaves=5,
)


def schemas_in(schema: Any) -> list[dict[str, Any]]:
    """Return a schema and every schema inside it: the dictionaries themselves, to be changed."""
    if not isinstance(schema, dict):
        return []
    inner = [schema[keyword] for keyword in ONE if keyword in schema]
    inner += [item for keyword in LIST for item in schema.get(keyword, [])]
    inner += [item for keyword in MAP for item in schema.get(keyword, {}).values()]
    return [schema, *(each for item in inner for each in schemas_in(item))]


def hash_of(schema: Any, **others: Any) -> str:
    fields = {"description": "d", "capabilities": [], "effect_class": "PURE"} | others
    return Contract.of(name="a", version="1.0", input_schema=schema, **fields).schema_hash


def copied(schema: Any) -> Any:
    return json.loads(json.dumps(schema))


def rearranged(value: Any, chance: random.Random, *, is_schema: bool = True) -> Any:
    """Return the same schema in another order: keys everywhere, and sets where they are."""
    if isinstance(value, list):
        return [rearranged(item, chance, is_schema=is_schema) for item in value]
    if not isinstance(value, dict):
        return value
    pairs: list[tuple[str, Any]] = []
    for key, item in value.items():
        if is_schema and key in ("required", "enum", "type") and isinstance(item, list):
            again = [*item, chance.choice(item)] if key == "enum" else item[:]
            chance.shuffle(again)
            pairs.append((key, again))
        elif is_schema and key in MAP:
            inner = [(name, rearranged(each, chance)) for name, each in item.items()]
            chance.shuffle(inner)
            pairs.append((key, dict(inner)))
        else:
            inside = is_schema and key in (*ONE, *LIST)
            pairs.append((key, rearranged(item, chance, is_schema=inside)))
    chance.shuffle(pairs)
    return dict(pairs)


@settings(deadline=None, max_examples=200)
@given(SCHEMAS, st.randoms(use_true_random=False))
def test_order_and_repetition_are_nothing(schema, chance):
    assert hash_of(rearranged(schema, chance)) == hash_of(schema)


@settings(deadline=None, max_examples=300)
@given(SCHEMAS, st.data())
def test_annotation_where_a_schema_stands_is_nothing(schema, data):
    changed = copied(schema)
    place = data.draw(st.sampled_from(schemas_in(changed)))
    keyword = data.draw(st.sampled_from(sorted(ANNOTATIONS)))
    if data.draw(st.booleans()):
        place[keyword] = data.draw(ANNOTATIONS[keyword])
    else:
        place.pop(keyword, None)

    assert hash_of(changed) == hash_of(schema)


def add_property(place, name):
    place.setdefault("properties", {})[name] = {"const": "new"}


def remove_property(place, name):
    del place["properties"][name]


def rename_property(place, name):
    place["properties"]["renamed"] = place["properties"].pop(name)


def change_required(place, name):
    place["required"] = sorted({name} ^ set(place.get("required", [])))
    if not place["required"]:
        place["required"] = ["new"]


def change_type(place, name):
    old = place.get("type")
    place["type"] = [old] if isinstance(old, str) else "boolean"


def change_enum(place, name):
    place["enum"] = [*place.get("enum", []), {"title": "new"}]


def change_default(place, name):
    place["default"] = {"was": place.get("default"), name: "new"}


def change_const(place, name):
    place["const"] = {"title": {"was": place.get("const")}}


def change_unknown(place, name):
    place["x-unit"] = {"title": {"was": place.get("x-unit")}}


def change_bound(place, name):
    place["minLength"] = place.get("minLength", 0) + 1


def change_format(place, name):
    place["format"] = "date" if "format" not in place else "time"


def change_dependency(place, name):
    place.setdefault("dependentRequired", {})[name] = ["new"]


def forbid_more(place, name):
    place["additionalProperties"] = {"not": place.get("additionalProperties", True)}


def wrap(place, name):
    inner = dict(place)
    place.clear()
    place["allOf"] = [inner]


CHANGES = [
    *(add_property, change_required, change_type, change_enum, change_default, change_const),
    *(change_unknown, change_bound, change_format, change_dependency, forbid_more, wrap),
]
CHANGES_OF_A_PROPERTY = [remove_property, rename_property]


@pytest.mark.parametrize("change", [*CHANGES, *CHANGES_OF_A_PROPERTY])
def test_every_structural_change_moves_the_hash(change):
    @settings(deadline=None, max_examples=100)
    @given(SCHEMAS, st.data())
    def moves(schema, data):
        changed = copied(schema)
        name = data.draw(NAMES)
        if change in CHANGES_OF_A_PROPERTY:
            schema["properties"] = {name: {"type": "string"}} | schema.get("properties", {})
            changed = copied(schema)
        places = schemas_in(changed)
        having = [
            each for each in places if change in CHANGES or name in each.get("properties", {})
        ]
        change(data.draw(st.sampled_from(having)), name)

        assert hash_of(changed) != hash_of(schema)
        assert hash_of(schema, output_schema=changed) != hash_of(changed, output_schema=schema)

    moves()


@settings(deadline=None, max_examples=200)
@given(SCHEMAS, st.sampled_from(["const", "enum", "default", "x-unit"]), DATA, st.data())
def test_annotation_inside_a_value_is_data(schema, keyword, value, data):
    one, other = copied(schema), copied(schema)
    index = data.draw(st.integers(0, len(schemas_in(schema)) - 1))
    name = data.draw(st.sampled_from(sorted(ANNOTATIONS)))
    for document, held in ((one, {"v": value}), (other, {"v": value, name: "words"})):
        schemas_in(document)[index][keyword] = [held] if keyword == "enum" else held

    assert hash_of(one) != hash_of(other)


@settings(deadline=None, max_examples=200)
@given(SCHEMAS)
def test_structure_of_structure_is_itself(schema):
    assert structure(structure(schema)) == structure(schema)


# What the suites' schemas speak of: properties foo, bar and baz, small numbers, short strings.
SAMPLES: list[Any] = [
    *(None, True, False, 0, 1, 1.5, -3, 20, 1e21, "", "a", "foo", "aaaa", "12", "2026-11-30"),
    *([], [1], ["foo"], [1, "foo"], ["foo", 1, None], [1, 1], [[], {}], [3, 4, 5, 6, 7, 8]),
    *({}, {"foo": 1}, {"foo": "x"}, {"bar": 2}, {"foo": 1, "bar": "x"}, {"foo": [], "baz": {}}),
    *({"foo": {"bar": 1}}, {"quux": None}, {"foo": "foo", "bar": "bar", "baz": "baz"}),
]


@pytest.mark.skipif(not SUITES.is_dir(), reason=f"the JSON-Schema-Test-Suite is not in {SUITES}")
@pytest.mark.parametrize(
    ("folder", "dialect"), [("draft7", DRAFT_07), ("draft2020-12", DRAFT_2020_12)]
)
def test_what_is_valid_does_not_change_with_what_is_taken_away(folder, dialect):
    rows = [
        row
        for path in sorted((SUITES / folder).rglob("*.json"))
        if "optional" not in path.parts
        for row in json.loads(path.read_bytes())
    ]
    schemas = {json.dumps(row[side]): row[side] for row in rows for side in ("schema1", "schema2")}
    judged = {True: 0, False: 0}
    for schema in schemas.values():
        validators = compiled(schema, dialect)
        for sample in SAMPLES:
            verdicts = {validator.is_valid(sample) for validator in validators}
            assert len(verdicts) < 2, (schema, sample)
            for verdict in verdicts:
                judged[verdict] += 1
    assert min(judged.values()) > 10_000


def compiled(schema: Any, dialect: str) -> list[Validator]:
    try:
        return [Validator.of(each, dialect) for each in (schema, structure(schema))]
    except (InvalidContract, ValueError):
        return []  # it refers to other documents, or is not strict JSON
