"""The schemas that types get: exact, without invented titles, and as a contract may hold them."""

import enum
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NoReturn,
    NotRequired,
    TypeVar,
)
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr
from pydantic import dataclasses as pydantic_dataclasses
from typing_extensions import TypeAliasType, TypedDict, Unpack

from tallystick.signatures.document import document_of
from tallystick.signatures.terms import Terms
from tallystick.tool_contract import Contract

T = TypeVar("T")
UserId = NewType("UserId", int)
Tags = TypeAliasType("Tags", list[str])


class Inner(BaseModel):
    """An inner thing."""

    size: int
    label: str = "x"


class Titled(BaseModel):
    model_config = ConfigDict(title="Titled", extra="forbid")
    size: int = Field(title="The size")


class Node(BaseModel):
    """A tree."""

    children: "list[Node]" = []


class Box(BaseModel, Generic[T]):
    content: T


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Row(TypedDict):
    key: str
    note: NotRequired[str]


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


def describe(function: Callable[..., object], **stated: Any) -> dict[str, Any]:
    """Return the document, after holding it to the rules of contracts."""
    document = document_of(function, Terms(name="shop.tool", fields={"description": "d"}, **stated))
    Contract.parse({**document, "version": "1.0.0"})
    return document


def schema_of_parameter(annotation: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    def tool(x): ...

    tool.__annotations__ = {"x": annotation}
    found = describe(tool)["input_schema"]
    return found["properties"]["x"], found.get("$defs", {})


INNER = {
    "type": "object",
    "description": "An inner thing.",
    "properties": {"size": {"type": "integer"}, "label": {"type": "string", "default": "x"}},
    "required": ["size"],
}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (bytes, {"type": "string", "format": "binary"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": True}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal[1, "a", True], {"enum": [1, "a", True]}),
        (date, {"type": "string", "format": "date"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (timedelta, {"type": "string", "format": "duration"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (UserId, {"type": "integer"}),
        (T, {}),
        (Annotated[int, Field(ge=1, le=5)], {"type": "integer", "minimum": 1, "maximum": 5}),
        (
            Annotated[str, Field(min_length=1, pattern="^a", description="d", title="t")],
            {"type": "string", "minLength": 1, "pattern": "^a", "description": "d", "title": "t"},
        ),
    ],
)
def test_a_plain_type_has_its_schema(annotation, schema):
    assert schema_of_parameter(annotation) == (schema, {})


@pytest.mark.parametrize(
    ("annotation", "schema", "definitions"),
    [
        (Inner, {"$ref": "#/$defs/Inner"}, {"Inner": INNER}),
        (Color, {"$ref": "#/$defs/Color"}, {"Color": {"enum": ["red", "blue"], "type": "string"}}),
        (Tags, {"$ref": "#/$defs/Tags"}, {"Tags": {"type": "array", "items": {"type": "string"}}}),
        (
            Pair,
            {"$ref": "#/$defs/Pair"},
            {
                "Pair": {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": "string"}],
                    "minItems": 2,
                    "maxItems": 2,
                }
            },
        ),
        (
            Row,
            {"$ref": "#/$defs/Row"},
            {
                "Row": {
                    "type": "object",
                    "properties": {"key": {"type": "string"}, "note": {"type": "string"}},
                    "required": ["key"],
                }
            },
        ),
        (
            Point,
            {"$ref": "#/$defs/Point"},
            {
                "Point": {
                    "type": "object",
                    "properties": {
                        "x": {"type": "integer"},
                        "y": {"type": "integer", "default": 0},
                        "tags": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["x"],
                }
            },
        ),
        (
            Box[int],
            {"$ref": "#/$defs/Box_int_"},
            {
                "Box_int_": {
                    "type": "object",
                    "properties": {"content": {"type": "integer"}},
                    "required": ["content"],
                }
            },
        ),
        (
            Titled,
            {"$ref": "#/$defs/Titled"},
            {
                "Titled": {
                    "title": "Titled",
                    "type": "object",
                    "properties": {"size": {"title": "The size", "type": "integer"}},
                    "required": ["size"],
                    "additionalProperties": False,
                }
            },
        ),
        (
            Node,
            {"$ref": "#/$defs/Node"},
            {
                "Node": {
                    "type": "object",
                    "description": "A tree.",
                    "properties": {
                        "children": {
                            "type": "array",
                            "items": {"$ref": "#/$defs/Node"},
                            "default": [],
                        }
                    },
                }
            },
        ),
    ],
)
def test_a_named_type_is_a_definition_without_invented_titles(annotation, schema, definitions):
    assert schema_of_parameter(annotation) == (schema, definitions)


def test_a_discriminated_union_says_which_alternative_is_meant():
    schema, definitions = schema_of_parameter(Annotated[Cat | Dog, Field(discriminator="kind")])
    assert schema["oneOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert schema["discriminator"]["propertyName"] == "kind"
    assert [*definitions] == ["Cat", "Dog"]


# --- the object of the arguments ------------------------------------------------------------------


def test_the_arguments_are_a_closed_object_in_the_order_of_the_parameters():
    def search(zone: str, amount: int = 3, *, exact: bool | None = None, any_thing): ...

    assert describe(search)["input_schema"] == {
        "type": "object",
        "properties": {
            "zone": {"type": "string"},
            "amount": {"type": "integer", "default": 3},
            "exact": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
            "any_thing": {},
        },
        "required": ["zone", "any_thing"],
        "additionalProperties": False,
    }
    assert [*describe(search)["input_schema"]["properties"]] == [
        *("zone", "amount", "exact", "any_thing")
    ]


def test_a_tool_without_parameters_takes_the_empty_object():
    def tool(): ...

    assert describe(tool)["input_schema"] == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_names_that_models_reserve_are_names_like_any_other():
    names = ["schema", "json", "copy", "model_config", "_x", "__y", "validate", "description", "ü"]
    scope: dict[str, Any] = {}
    exec(f"def tool({', '.join(names)}): ...", scope)
    assert [*describe(scope["tool"])["input_schema"]["properties"]] == names


@pytest.mark.parametrize(
    ("annotation", "additional"),
    [(int, {"type": "integer"}), (Any, True)],
)
def test_keyword_arguments_are_further_properties(annotation, additional):
    def tool(x: int, **rest): ...

    tool.__annotations__["rest"] = annotation
    schema = describe(tool)["input_schema"]
    assert schema.get("additionalProperties", True) == additional
    assert [*schema["properties"]] == ["x"]


def test_the_fields_of_an_unpacked_dictionary_are_arguments():
    def tool(x: int, **rest: Unpack[Row]): ...

    assert describe(tool)["input_schema"] == {
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "key": {"type": "string"},
            "note": {"type": "string"},
        },
        "required": ["x", "key"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("default", "written"),
    [
        (Color.RED, "red"),
        (Point(1), {"x": 1, "y": 0, "tags": []}),
        (Inner(size=1), {"size": 1, "label": "x"}),
        (date(2026, 1, 2), "2026-01-02"),
        (Decimal("1.50"), "1.50"),
        ((1, 2), [1, 2]),
        (frozenset({"c", "a", "b"}), ["a", "b", "c"]),
        (Field(default=7, description="d"), 7),
        (True, True),
        (1.5, 1.5),
    ],
)
def test_a_default_is_written_as_json(default, written):
    def tool(x=default): ...

    schema = describe(tool)["input_schema"]
    assert schema["properties"]["x"]["default"] == written
    assert type(schema["properties"]["x"]["default"]) is type(written)
    assert "required" not in schema


def test_a_default_factory_makes_a_parameter_optional():
    def tool(x: Annotated[list[int], Field(default_factory=list)]): ...

    schema = describe(tool)["input_schema"]
    assert "required" not in schema
    assert "default" not in schema["properties"]["x"]


# --- decimals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "accepted", "refused"),
    [
        (
            {},
            [0, 1.5, -2, "1", "-1.50", ".5", "1.", "1e3", "+7"],
            ["", ".", "one", "1,5", " 1", "--1", True],
        ),
        (
            {"max_digits": 5, "decimal_places": 2},
            [999.99, -999.99, 1.1, "999.99", "0001.10", ".5", "0.050"],
            [1000, 0.001, "1000", "0.001", "1e2", "."],
        ),
        (
            {"decimal_places": 2},
            [1234567.89, "1234567.89", "5"],
            [0.125, "0.125", "."],
        ),
        ({"decimal_places": 0}, [3, "3", "3.0", "3."], [0.5, "0.5", ".5"]),
        ({"max_digits": 3}, [999, "1.25", "999", "0.125"], [1000, "1000", "1.2345"]),
        ({"max_digits": 2, "decimal_places": 2}, [0.25, "0.25", ".25", "0"], [1, "1", "0.125"]),
        ({"ge": 0, "le": Decimal("9.5")}, [0, 9.5, "9"], [-1, 9.6, "-1"]),
        ({"gt": Decimal("0.5"), "lt": 2}, [0.6, 1.9], [0.5, 2]),
        ({"multiple_of": Decimal("0.05")}, [0.15, 1], [0.17]),
        (
            {"multiple_of": Decimal("0.25"), "decimal_places": 1, "max_digits": 30},
            [0.5, 2**53 - 2],
            [0.25, 2**54],
        ),
        ({"allow_inf_nan": True}, ["NaN", "Infinity", "-Infinity", 1], ["x"]),
    ],
)
def test_a_decimal_is_a_number_in_its_bounds_or_a_text_of_so_many_digits(limits, accepted, refused):
    from tallystick.schema import Validator

    schema, _ = schema_of_parameter(Annotated[Decimal, Field(**limits)])
    validator = Validator.of(schema)
    assert [value for value in accepted if not validator.is_valid(value)] == []
    assert [value for value in refused if validator.is_valid(value)] == []


@pytest.mark.parametrize("written", ["1.10", "0", "-3.5", "1E+3", "1.5E-7", "0E-10"])
def test_a_decimal_result_is_what_python_writes(written):
    def tool() -> Annotated[Decimal, Field(max_digits=9, decimal_places=4)]: ...

    schema = describe(tool)["output_schema"]
    assert schema["type"] == "string"
    assert str(Decimal(written)) == written
    assert re.search(schema["pattern"], written)
    assert not re.search(schema["pattern"], "one")


# --- results --------------------------------------------------------------------------------------


async def later() -> list[Inner]: ...
def awaitable() -> Awaitable[int]: ...
def coroutine() -> Coroutine[Any, Any, int]: ...
def nothing() -> None: ...
def anything() -> Any: ...
def unannotated(): ...
def generator() -> Iterator[int]:
    yield 1


async def stream() -> AsyncIterator[int]:
    yield 1


def iterator() -> Iterator[int]: ...
def never() -> NoReturn: ...
def node() -> Node: ...


@pytest.mark.parametrize(
    ("function", "schema"),
    [
        (awaitable, {"type": "integer"}),
        (coroutine, {"type": "integer"}),
        (nothing, {"type": "null"}),
        (anything, {}),
        (unannotated, None),
        (generator, None),
        (stream, None),
        (iterator, None),
        (never, None),
    ],
)
def test_the_output_schema_is_of_what_is_returned(function, schema):
    assert describe(function).get("output_schema") == schema


def test_a_coroutine_s_result_is_written_in_serialization_mode():
    assert describe(later)["output_schema"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Inner"},
        "$defs": {"Inner": INNER},
    }


def test_results_whose_types_python_takes_for_equal_are_told_apart():
    def returning(kind: Any) -> str:
        def tool(): ...

        tool.__annotations__["return"] = kind
        return json.dumps(describe(tool)["output_schema"])

    for one, other in (
        (list[int | str], list[str | int]),
        (dict[str, Literal[1, 2]], dict[str, Literal[2, 1]]),
    ):
        assert one == other
        assert returning(one) != returning(other)


def test_a_recursive_result_is_a_contract_s():
    assert describe(node)["output_schema"]["$ref"] == "#/$defs/Node"


def test_a_stated_output_schema_takes_the_place_of_an_annotation_without_json():
    def tool() -> re.Match: ...

    terms = Terms(name="a", fields={"description": "d", "output_schema": {"type": "string"}})
    assert document_of(tool, terms)["output_schema"] == {"type": "string"}


# --- classes --------------------------------------------------------------------------------------


class Order(BaseModel):
    """Orders things.

    Attributes:
        sku: What to order.
        count: How many.
    """

    sku: str
    count: int = Field(default=1, description="How many, one at least.")


@dataclass
class Move:
    """Moves a thing."""

    x: int


@pydantic_dataclasses.dataclass
class Turn:
    """Turns a thing."""

    x: int


class Ask(TypedDict):
    """Asks a thing."""

    x: int
    y: NotRequired[int]


class Choice(RootModel[Cat | Dog]):
    """Chooses."""


@pytest.mark.parametrize(
    ("cls", "description", "schema"),
    [
        (
            Order,
            "Orders things.",
            {
                "type": "object",
                "properties": {
                    "sku": {"type": "string", "description": "What to order."},
                    "count": {
                        "type": "integer",
                        "default": 1,
                        "description": "How many, one at least.",
                    },
                },
                "required": ["sku"],
            },
        ),
        *[
            (
                cls,
                description,
                {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            )
            for cls, description in ((Move, "Moves a thing."), (Turn, "Turns a thing."))
        ],
        (
            Ask,
            "Asks a thing.",
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x"],
            },
        ),
    ],
)
def test_a_class_of_fields_is_the_schema_of_its_values(cls, description, schema):
    document: Any = document_of(cls, Terms(name="shop.tool"))
    Contract.parse({**document, "version": "1.0.0"})
    assert document["description"] == description
    assert document["input_schema"] == schema
    assert "output_schema" not in document


def test_a_class_that_holds_itself_has_its_properties_at_the_root():
    document: Any = document_of(Node, Terms(name="shop.tool"))
    Contract.parse({**document, "version": "1.0.0", "identity_fields": ["children"]})


def test_a_root_model_of_objects_is_one_of_them():
    document: Any = document_of(Choice, Terms(name="shop.tool"))
    Contract.parse({**document, "version": "1.0.0"})
    assert len(document["input_schema"]["anyOf"]) == 2


# --- what the author states -----------------------------------------------------------------------


def test_the_document_holds_what_is_stated_and_no_version_of_its_own():
    def tool(x: int): ...

    terms = Terms(
        name="shop.tool",
        version="2.1",
        effect_class="PURE",
        capabilities=("b:read:x", "a:read:x"),
        fields={"description": "d", "title": "T", "examples": [{"x": 1}], "identity_fields": ["x"]},
    )
    assert document_of(tool, terms) == {
        "name": "shop.tool",
        "version": "2.1",
        "title": "T",
        "description": "d",
        "examples": [{"x": 1}],
        "input_schema": {
            "type": "object",
            "properties": {"x": {"type": "integer"}},
            "required": ["x"],
            "additionalProperties": False,
        },
        "capabilities": ["a:read:x", "b:read:x"],
        "effect_class": "PURE",
        "identity_fields": ["x"],
    }
    assert "version" not in describe(tool)


def test_a_secret_is_marked_wherever_it_stands():
    class Login(BaseModel):
        default: SecretStr
        hint: dict[str, object] = {"writeOnly": True, "format": "password"}

    def log_in(login: Login, tokens: list[SecretStr], spare: SecretStr | None = None) -> None:
        """Log in."""

    schema: Any = document_of(log_in, Terms(name="log_in"))["input_schema"]
    secret = {"type": "string", "format": "password", "writeOnly": True, "x-sensitive": True}
    model = schema["$defs"]["Login"]["properties"]
    assert model["default"] == secret
    assert "x-sensitive" not in model["hint"]["default"]
    assert schema["properties"]["tokens"]["items"] == secret
    assert secret in schema["properties"]["spare"]["anyOf"]
