"""Laws of the input schema: it accepts nothing that the function refuses, refuses nothing it takes.

The function's side is Pydantic's, reading JSON. Two differences are known and kept out of the
values. Where Pydantic converts, as it makes 1 of "1" or of 1.0, the schema says what is meant: so
what the schema refuses is put to Pydantic's strict mode. And a schema says less than a `Decimal`
with bounds takes: no exponents in texts, and no bounds of texts but zero.
"""

import inspect
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from inspect import Parameter
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, validate_call
from typing_extensions import TypedDict

from tallystick.schema import Validator
from tallystick.signatures.document import document_of
from tallystick.signatures.terms import Terms
from tallystick.tool_contract import Contract


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    size: int
    label: str = "x"


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    inner: Inner | None = None
    children: "list[Closed]" = []


class Row(TypedDict):
    key: str
    note: NotRequired[int]


@dataclass
class Point:
    x: int
    y: float = 0.5


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


DAY, IDENTIFIER = "2026-01-02", "12345678-1234-4234-8234-123456789abc"
INTEGERS = st.sampled_from([0, 1, -3, 7, 1000])
NUMBERS = st.sampled_from([1.5, -2.25, 0.001, 99.5])
TEXTS = st.sampled_from(["", "a", "abcde", "1", "1.50", "0.001", "-3", "red", "cat"])
FORMATTED = st.sampled_from([DAY, IDENTIFIER])
INNERS = st.fixed_dictionaries({"size": INTEGERS}, optional={"label": TEXTS, "more": INTEGERS})
CLOSED = st.deferred(
    lambda: st.fixed_dictionaries(
        {},
        optional={"inner": INNERS | st.none(), "children": st.lists(CLOSED, max_size=1)},
    )
)
ROWS = st.fixed_dictionaries({"key": TEXTS}, optional={"note": INTEGERS})
POINTS = st.fixed_dictionaries({"x": INTEGERS}, optional={"y": NUMBERS | INTEGERS})
CATS = st.fixed_dictionaries({"kind": st.just("cat"), "lives": INTEGERS})
DOGS = st.fixed_dictionaries({"kind": st.just("dog")})
PRICES = st.sampled_from([0, 1, 7, 999.99, 1.1, "1", "1.50", "000.010"])

# An annotation, and JSON values that it takes.
TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, TEXTS | FORMATTED),
    (int, INTEGERS),
    (float, NUMBERS | INTEGERS),
    (bool, st.booleans()),
    (None, st.none()),
    (Any, INTEGERS | TEXTS | st.none()),
    (Parameter.empty, INTEGERS | TEXTS | st.none()),
    (date, st.just(DAY)),
    (UUID, st.just(IDENTIFIER)),
    (int | None, INTEGERS | st.none()),
    (int | list[str], INTEGERS | st.lists(TEXTS, max_size=2)),
    (Literal["a", 7], st.sampled_from(["a", 7])),
    (Color, st.sampled_from(["red", "blue"])),
    (list[int], st.lists(INTEGERS, max_size=3)),
    (tuple[int, str], st.tuples(INTEGERS, TEXTS).map(list)),
    (dict[str, float], st.dictionaries(TEXTS, NUMBERS, max_size=2)),
    (Annotated[int, Field(ge=0, lt=1000)], st.sampled_from([0, 1, 7])),
    (Annotated[str, Field(min_length=1, max_length=4, pattern="^[a-z]+$")], st.just("a")),
    (Annotated[list[int], Field(min_length=1, max_length=2)], INTEGERS.map(lambda one: [one])),
    (Annotated[Decimal, Field(ge=0, max_digits=5, decimal_places=2)], PRICES),
    (Inner, INNERS),
    (Closed, CLOSED),
    (list[Inner], st.lists(INNERS, max_size=2)),
    (Row, ROWS),
    (Point, POINTS),
    (Annotated[Cat | Dog, Field(discriminator="kind")], CATS | DOGS),
]
VALUES = st.one_of(
    *(INTEGERS, NUMBERS, TEXTS, FORMATTED, st.booleans(), st.none(), INNERS, CLOSED, ROWS),
    *(POINTS, CATS, DOGS, st.lists(INTEGERS | TEXTS | INNERS, max_size=3)),
)
NAMES = ["schema", "json", "_x", "model_config", "self", "value"]


@dataclass(frozen=True)
class Case:
    """A function, and values for its parameters: of their types, and any."""

    function: Any
    fitting: dict[str, Any]
    arbitrary: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    parameters: list[Parameter] = []
    fitting: dict[str, Any] = {}
    arbitrary: dict[str, Any] = {}
    for name in names:
        annotation, values = draw(st.sampled_from(TYPES))
        default = draw(st.sampled_from([Parameter.empty, Parameter.empty, None, 7, "a"]))
        parameters.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
        if default is Parameter.empty or draw(st.booleans()):
            fitting[name] = draw(values)
        if draw(st.integers(0, 9)):
            arbitrary[name] = draw(VALUES if draw(st.booleans()) else values)
    if draw(st.integers(0, 5)) == 0:
        parameters.append(Parameter("rest", Parameter.VAR_KEYWORD, annotation=int))
    if draw(st.integers(0, 3)) == 0:
        arbitrary["other"] = draw(VALUES)

    def tool(**arguments: Any) -> dict[str, Any]:
        """Do it."""
        return arguments

    tool.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    tool.__annotations__ = {
        each.name: each.annotation for each in parameters if each.annotation is not Parameter.empty
    }
    return Case(tool, fitting, arbitrary)


def contract_of(function: Any) -> Contract:
    return Contract.parse({**document_of(function, Terms(name="a")), "version": "1.0.0"})


def accepts(function: Any, arguments: dict[str, Any], *, strict: bool) -> bool:
    try:
        TypeAdapter(function).validate_json(json.dumps(arguments), strict=strict)
    except ValidationError:
        return False
    return True


@settings(deadline=None, max_examples=200)
@given(cases())
def test_values_of_the_types_are_accepted_by_the_schema_and_by_the_function(case):
    validator = Validator.of(contract_of(case.function).input_schema, assert_format=True)
    assert validator.violations(case.fitting) == ()
    assert accepts(case.function, case.fitting, strict=False)


@settings(deadline=None, max_examples=300)
@given(cases())
def test_what_the_schema_accepts_the_function_takes_and_what_it_refuses_no_strict_one(case):
    validator = Validator.of(contract_of(case.function).input_schema, assert_format=True)
    if validator.is_valid(case.arbitrary):
        assert accepts(case.function, case.arbitrary, strict=False)
    else:
        assert not accepts(case.function, case.arbitrary, strict=True)


@settings(deadline=None, max_examples=100)
@given(cases())
def test_a_document_is_the_same_each_time_and_says_the_parameters_in_their_order(case):
    first, second = (document_of(case.function, Terms(name="a")) for _ in range(2))
    assert json.dumps(first) == json.dumps(second)
    names = [
        name
        for name, each in inspect.signature(case.function).parameters.items()
        if each.kind is not Parameter.VAR_KEYWORD
    ]
    schema: Any = first["input_schema"]
    assert [*schema["properties"]] == names


@settings(deadline=None, max_examples=50)
@given(cases())
def test_a_function_that_validates_its_calls_has_the_same_document(case):
    assert document_of(validate_call(case.function), Terms(name="a")) == document_of(
        case.function, Terms(name="a")
    )
