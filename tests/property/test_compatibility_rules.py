"""The engine's rules against small universes, value by value.

A search that is closed means that no value of the universe is valid; a value that it finds is one
that the validator takes; and a schema that is read into the algebra holds of a value exactly where
the validator says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tallystick.canonical import Json
from tallystick.compatibility.algebra.formats import SAMPLES
from tallystick.compatibility.algebra.membership import Membership
from tallystick.compatibility.algebra.node import Algebra, Node
from tallystick.compatibility.algebra.reading import Reading
from tallystick.compatibility.budget import Budget, BudgetSpent
from tallystick.compatibility.judging import Side, judge
from tallystick.compatibility.search.outcome import Closed, Found, Outcome, Stuck
from tallystick.compatibility.search.tableau import Search
from tallystick.compatibility.verdict import Answer
from tallystick.errors import Refusal
from tallystick.schema import Validator, check_schema
from tallystick.subschema import DRAFT_2020_12, FORMATS, Position

SETTINGS = settings(
    max_examples=40,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)
STEPS = 100_000


def searched(schema: Json) -> Outcome:
    """Search for a value that a schema accepts."""
    algebra, budget = Algebra(), Budget(STEPS)
    try:
        node = Reading(schema, algebra, budget, document=0, format_dialect=None).root()
        return Search(algebra, budget).find((node,))
    except BudgetSpent:
        return Stuck("", "budget")


def agrees(schema: Json, universe: Iterable[Json]) -> bool:
    """Tell whether what a search comes to is what the validator says of all values."""
    outcome, validator = searched(schema), Validator.of(schema)
    match outcome:
        case Found(value):
            return validator.is_valid(value)
        case Closed():
            return not any(map(validator.is_valid, universe))
        case Stuck():
            return True


class Noting(Reading):
    """A reading that notes what it does not understand."""

    def __init__(self, schema: Json, algebra: Algebra, budget: Budget, dialect: str | None) -> None:
        super().__init__(schema, algebra, budget, document=0, format_dialect=dialect)
        self.not_understood: list[str] = []

    def opaque(self, position: Position, keyword: str, reason: str) -> Node:
        self.not_understood.append(keyword)
        return super().opaque(position, keyword, reason)


def misjudged(
    schema: Json, universe: Iterable[Json], *, assert_format: bool = False
) -> list[tuple[Json, bool | None]]:
    """Return the values about which the algebra and the validator do not agree.

    That it is not known whether a value is accepted counts only if all keywords are understood.
    """
    algebra, budget = Algebra(), Budget(100 * STEPS)
    reading = Noting(schema, algebra, budget, DRAFT_2020_12 if assert_format else None)
    membership, node = Membership(algebra, budget), reading.root()
    validator = Validator.of(schema, DRAFT_2020_12, assert_format)
    told = [(value, membership.holds(node, value)) for value in universe]
    return [
        (value, known)
        for value, known in told
        if known is not validator.is_valid(value) and not (known is None and reading.not_understood)
    ]


def is_publishable(schema: Json) -> bool:
    try:
        check_schema(schema, dialect=DRAFT_2020_12, pointer="")
    except Refusal:
        return False
    return True


# --- drawing --------------------------------------------------------------------------------------
# Each function grows a schema out of choices: of Hypothesis', one small draw a choice.

Pick = Callable[[Sequence[Any]], Any]
Grow = Callable[[Pick], Any]


@st.composite
def drawn(draw: Any, grow: Grow) -> Any:
    def pick(choices: Sequence[Any]) -> Any:
        return draw(st.sampled_from(choices))

    return grow(pick)


def some(pick: Pick, grow: Grow, most: int = 3) -> list[Any]:
    return [grow(pick) for _ in range(pick(range(1, most + 1)))]


def few(pick: Pick, keywords: Mapping[str, Grow], least: int = 1, most: int = 3) -> dict[str, Any]:
    """Grow a schema of some of these keywords."""
    names = {pick([*keywords]) for _ in range(pick(range(least, most + 1)))}
    return {name: keywords[name](pick) for name in sorted(names)}


def or_not(pick: Pick, grow: Grow) -> Any:
    return {"not": grow(pick)} if pick((False, False, True)) else grow(pick)


def of(*choices: Any) -> Grow:
    return lambda pick: pick(choices)


def listing(*choices: Any, most: int = 3) -> Grow:
    return lambda pick: sorted({pick(choices) for _ in range(pick(range(1, most + 1)))}, key=str)


def mapping(names: Sequence[str], grow: Grow) -> Grow:
    return lambda pick: {pick(names): grow(pick) for _ in range(pick((1, 1, 2)))}


# --- numbers --------------------------------------------------------------------------------------

QUARTERS: list[Json] = [k // 4 if k % 4 == 0 else k / 4 for k in range(-40, 41)]
FACTORS = (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5, 7)
OF_NUMBERS = {
    "minimum": of(*QUARTERS),
    "maximum": of(*QUARTERS),
    "exclusiveMinimum": of(*QUARTERS),
    "exclusiveMaximum": of(*QUARTERS),
    "multipleOf": of(*FACTORS),
}


def number_rule(pick: Pick) -> Any:
    return or_not(pick, lambda pick: few(pick, OF_NUMBERS, most=2))


def numbers(pick: Pick) -> Any:
    excluded = {"not": {"enum": listing(*QUARTERS, most=12)(pick)}}
    rules = some(pick, number_rule, 5)
    return {"type": pick(("number", "integer")), "allOf": [*rules, excluded]}


@SETTINGS
@given(drawn(numbers))
def test_no_number_is_overlooked(schema: Json):
    assert agrees(schema, QUARTERS)


# --- arrays ---------------------------------------------------------------------------------------

ITEMS: list[Json] = [None, True, False, 0, 1, "a"]
ARRAYS: list[Json] = [list(items) for length in range(5) for items in product(ITEMS, repeat=length)]


def item(pick: Pick) -> Any:
    return or_not(pick, pick((of(*TYPED), lambda pick: {"enum": listing(*ITEMS, most=4)(pick)})))


TYPED = ({"type": "boolean"}, {"type": "integer"}, {"type": "string"}, {})
OF_ARRAYS = {
    "prefixItems": lambda pick: some(pick, item),
    "items": item,
    "contains": item,
    "minContains": of(0, 1, 2, 3),
    "maxContains": of(0, 1, 2, 3),
    "minItems": of(0, 1, 2, 3),
    "maxItems": of(0, 1, 2, 3),
    "uniqueItems": of(True),
}


def array_rule(pick: Pick) -> Any:
    rule = or_not(pick, lambda pick: few(pick, OF_ARRAYS))
    return rule if "minContains" not in rule else {"contains": item(pick), **rule}


def arrays(pick: Pick) -> Any:
    items = pick(({"enum": ITEMS}, {"enum": ITEMS[:3]}, {}))
    return {"type": "array", "items": items, "allOf": some(pick, array_rule, 4)}


@SETTINGS
@given(drawn(arrays))
def test_no_array_is_overlooked(schema: Json):
    assert agrees(schema, ARRAYS)


# --- objects --------------------------------------------------------------------------------------

NAMES = ("a", "b", "ab", "c")
OBJECTS: list[Json] = [
    {name: value for name, value in zip(NAMES, values, strict=True) if value is not ...}
    for values in product((..., 0, "x", None), repeat=4)
]
PATTERNS = ("^a", "b$", "^.$", "^[ab]+$", "c")


def member(pick: Pick) -> Any:
    kinds = ({"type": "integer"}, {"type": "string"}, {"const": None}, {}, {"enum": [0]})
    return or_not(pick, of(*kinds))


def name(pick: Pick) -> Any:
    patterned = {"pattern": pick(PATTERNS)}
    listed = {"enum": listing(*NAMES)(pick)}
    return or_not(pick, of(patterned, listed, {"maxLength": 1}, {"minLength": 2}))


OF_OBJECTS: dict[str, Grow] = {
    "properties": mapping(NAMES, member),
    "patternProperties": mapping(PATTERNS, member),
    "additionalProperties": member,
    "required": listing(*NAMES, most=2),
    "minProperties": of(0, 1, 2, 3, 5),
    "maxProperties": of(0, 1, 2, 3),
    "propertyNames": name,
    "dependentRequired": mapping(NAMES, listing(*NAMES, most=2)),
    "dependentSchemas": mapping(NAMES, lambda pick: object_rule(pick)),  # noqa: PLW0108 -- below
}


def object_rule(pick: Pick) -> Any:
    return or_not(pick, lambda pick: few(pick, OF_OBJECTS))


def objects(pick: Pick) -> Any:
    names = pick(({}, {"propertyNames": {"enum": list(NAMES)}}))
    return {"type": "object", **names, "allOf": some(pick, object_rule, 4)}


@SETTINGS
@given(drawn(objects))
def test_no_object_is_overlooked(schema: Json):
    assert agrees(schema, OBJECTS)


# --- what is unevaluated --------------------------------------------------------------------------

MIXED: list[Any] = [
    *(dict.fromkeys(names, 0) for names in ("", *NAMES[:2], ("ab",), NAMES[:2], NAMES)),
    *({"a": value, "b": other} for value, other in product((0, "x", None), repeat=2)),
    *({"a": {"a": value}, "c": [value]} for value in (0, "x", {"b": None})),
    *(list(items) for length in range(4) for items in product((0, "x", None), repeat=length)),
    *([[value], {"a": value}] for value in (0, "x", None)),
    *(None, True, False, 0, 1, -2, 0.5, 3.75, "", "a", "b", "ab", "aa", "é", "x"),
]
SIMPLE = (
    *(True, False, {}, {"type": "object"}, {"type": "array"}, {"type": ["integer", "null"]}),
    *({"const": 0}, {"required": ["a"]}, {"minItems": 2}, {"maxProperties": 1}),
    *({"properties": {"a": {}}}, {"properties": {"b": {"const": 0}}}, {"prefixItems": [True]}),
    *({"contains": {"const": 0}}, {"patternProperties": {"b": True}}, {"$ref": "#/$defs/d"}),
    *({"$ref": "#/$defs/e"}, {"$ref": "#/$defs/d"}),
)


def over(inner: Grow) -> dict[str, Grow]:
    """Return the keywords that hold schemas."""
    listed: Grow = lambda pick: some(pick, inner)  # noqa: E731
    return {
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), listed),
        **dict.fromkeys(("not", "if", "then", "else", "contains"), inner),
        **dict.fromkeys(("properties", "dependentSchemas"), mapping(NAMES, inner)),
        **dict.fromkeys(("items", "additionalProperties"), inner),
        **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), inner),
        "patternProperties": mapping(PATTERNS, inner),
        "$ref": of("#/$defs/d", "#/$defs/e"),
    }


def in_place(pick: Pick, depth: int = 2) -> Any:
    if depth == 0 or pick((True, False, False)):
        return pick(SIMPLE)
    return few(pick, over(lambda pick: in_place(pick, depth - 1)), most=4)


def document(root: Grow, part: Grow) -> Grow:
    """Return what grows a schema with two definitions, which all of its parts may refer to."""

    def grow(pick: Pick) -> Any:
        schema = root(pick)
        top = schema if isinstance(schema, dict) else {"allOf": [schema]}
        return {**top, "$defs": {"d": part(pick), "e": part(pick)}}

    return grow


def unevaluated(pick: Pick) -> Any:
    keyword = pick(("unevaluatedProperties", "unevaluatedItems"))
    part = pick((False, False, {"const": 0}, {"type": "string"}))
    return {**few(pick, over(in_place), least=2, most=4), keyword: part}


@SETTINGS
@given(drawn(document(unevaluated, in_place)))
def test_what_is_unevaluated_is_what_the_validator_has_not_evaluated(schema: Json):
    assume(is_publishable(schema))

    assert misjudged(schema, MIXED) == []


# --- all keywords together ------------------------------------------------------------------------

KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")
LEAVES: tuple[Grow, ...] = (
    *(of(*SIMPLE), number_rule, name, object_rule, array_rule),
    lambda pick: {"enum": [pick(MIXED) for _ in range(pick((1, 2, 3)))]},
    lambda pick: {"const": pick(MIXED)},
    lambda pick: {"type": listing(*KINDS)(pick)},
)


def anything(pick: Pick, depth: int = 2) -> Any:
    if depth == 0 or pick((True, False, False)):
        return pick(LEAVES)(pick)

    def inner(pick: Pick) -> Any:
        return anything(pick, depth - 1)

    return few(pick, {**over(inner), "propertyNames": inner, "uniqueItems": of(True)}, most=4)


DOCUMENTS = drawn(document(anything, anything))


@SETTINGS
@given(DOCUMENTS)
def test_a_schema_reads_as_the_validator_reads_it(schema: Json):
    assume(is_publishable(schema))

    assert misjudged(schema, MIXED) == []


@SETTINGS
@given(DOCUMENTS)
def test_no_value_of_any_type_is_overlooked(schema: Json):
    assume(is_publishable(schema))

    assert agrees(schema, MIXED)


@SETTINGS
@given(DOCUMENTS, DOCUMENTS)
def test_no_value_refutes_a_judgement(old: Json, new: Json):
    assume(is_publishable(old) and is_publishable(new))

    assert refutation(Side(old), Side(new), MIXED) is None


def refutation(writer: Side, reader: Side, universe: Iterable[Json]) -> Json:
    """Return, in a list, a value that speaks against what is said of two schemas."""
    said = judge(writer, reader, Budget(STEPS))
    wrote, reads = writer.validator.is_valid, reader.validator.is_valid
    if said.witness is not None:
        value = said.witness.value
        return None if wrote(value) and not reads(value) else [value]
    if said.verdict is Answer.COMPATIBLE:
        return next(([value] for value in universe if wrote(value) and not reads(value)), None)
    return None


# --- recursion ------------------------------------------------------------------------------------


def nested(inner: list[Json]) -> list[Json]:
    return [
        *inner,
        *([value] for value in inner),
        *({"a": value} for value in inner),
        *({"a": value, "b": other} for value, other in product(inner[:4], inner[-4:])),
        *([value, other] for value, other in product(inner[:4], inner[-4:])),
    ]


DEEP = nested(nested(nested([None, 0, {}, []])))
SHALLOW = (
    *({"$ref": "#/$defs/d"}, {"$ref": "#/$defs/e"}, {"$ref": "#/$defs/d"}, {"$ref": "#/$defs/e"}),
    *(False, {"type": "null"}, {"const": 0}, {"type": ["object", "array"]}, {"type": "object"}),
    *({"required": ["a"]}, {"minItems": 1}, {"maxProperties": 1}),
)


def recursive(pick: Pick, depth: int = 2) -> Any:
    if depth == 0 or pick((True, False, False)):
        return pick(SHALLOW)

    def inner(pick: Pick) -> Any:
        return recursive(pick, depth - 1)

    keywords: dict[str, Grow] = {
        **dict.fromkeys(("anyOf", "oneOf", "prefixItems"), lambda pick: some(pick, inner, 2)),
        **dict.fromkeys(("not", "if", "then", "else", "contains", "items"), inner),
        **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), inner),
        **dict.fromkeys(("properties", "dependentSchemas"), mapping("ab", inner)),
        "type": of("object", "array"),
        "required": of(["a"], ["a", "b"]),
        "uniqueItems": of(True),
        "minItems": of(1, 2),
    }
    return few(pick, keywords, least=2, most=4)


RECURSIVE = drawn(document(recursive, recursive))


@SETTINGS
@given(RECURSIVE, RECURSIVE)
def test_no_value_refutes_a_judgement_of_recursive_schemas(old: Json, new: Json):
    assume(is_publishable(old) and is_publishable(new))

    assert refutation(Side(old), Side(new), DEEP) is None


@SETTINGS
@given(RECURSIVE, drawn(recursive), drawn(recursive))
def test_no_value_refutes_that_a_recursive_schema_is_within_another(old: Any, d: Json, e: Json):
    # The reader's definitions are those of the writer with one alternative more.
    wider = {"d": {"anyOf": [old["$defs"]["d"], d]}, "e": {"anyOf": [old["$defs"]["e"], e]}}
    new = {**old, "$defs": wider}
    assume(is_publishable(old) and is_publishable(new))

    assert refutation(Side(old), Side(new), DEEP) is None


# --- formats --------------------------------------------------------------------------------------

TEXTS: list[Json] = [*SAMPLES, "2026-02-30", "a@b", "1.2.3", "::", "%", "x:y", 0, None]
OF_TEXTS = (
    *({"format": each} for each in sorted(FORMATS[DRAFT_2020_12])),
    *({"type": "string"}, {"minLength": 2}, {"pattern": "^[a-z]+$"}),
)


def texts(pick: Pick) -> list[Any]:
    return some(pick, lambda pick: or_not(pick, of(*OF_TEXTS)))


@SETTINGS
@given(drawn(texts), drawn(texts))
def test_no_text_refutes_a_judgement_of_formats(old: list[Json], new: list[Json]):
    writer, reader = (Side({"anyOf": rules}, assert_format=True) for rules in (old, new))

    assert misjudged(writer.schema, TEXTS, assert_format=True) == []
    assert refutation(writer, reader, TEXTS) is None


@pytest.mark.parametrize("dialect", FORMATS)
def test_a_format_that_is_not_listed_is_an_annotation(dialect: str):
    listed = FORMATS[dialect]
    names = FORMATS[DRAFT_2020_12] - listed | {"date-time-local", "color", "phone"}

    for name in names:
        validator = Validator.of({"format": name}, dialect, assert_format=True)
        assert all(map(validator.is_valid, TEXTS)), name
