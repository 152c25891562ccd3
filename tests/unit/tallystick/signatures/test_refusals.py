"""What no contract can be made of: each refusal says which part is at fault, and what to do."""

import re
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union

import pytest
from pydantic import BaseModel, Field, RootModel, WithJsonSchema

from tallystick.errors import SignatureUnsupported
from tallystick.signatures.document import document_of
from tallystick.signatures.terms import Terms

_SPEC = spec_from_file_location("later", Path(__file__).with_name("later.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
later: Any = module_from_spec(_SPEC)
sys.modules["later"] = later
_SPEC.loader.exec_module(later)


def connection(query: str, conn: sqlite3.Connection):
    """Search."""


def connections(query: str, conn: list[sqlite3.Connection]):
    """Search."""


def callback(call: Callable[[int], str]):
    """Search."""


def kind(error: type[ValueError]):
    """Search."""


def half(x: Union[int, Callable]):  # noqa: UP007
    """Search."""


def sentinel(x=object()):  # noqa: B008
    """Search."""


def infinite(x: float = float("inf")):
    """Search."""


def big(x: Annotated[int, Field(le=2**60)]):
    """Search."""


def nul(x: str = "a\0b"):
    """Search."""


def odd_extra(x: Annotated[int, WithJsonSchema({"type": "integer", "x-set": {1}})]):
    """Search."""


def odd_constraint(x: Annotated[str, Field(pattern="(")]):
    """Search."""


def any_number(*queries: str):
    """Search."""


def positional(query: str, /):
    """Search."""


def matched() -> re.Match[str]:
    """Search."""
    raise NotImplementedError


def silent(x: int): ...


def only_sections(x: int):
    """
    Args:
        x: The x.
    """


class Plain:
    """Plain."""


class Color(Enum):
    """Colors."""

    RED = 1


class Pair(NamedTuple):
    """Pairs."""

    left: int


class Numbers(RootModel[list[int]]):
    """Numbers."""


class Calls(BaseModel):
    """Calls."""

    back: Callable[[], int]


@dataclass
class Connected:
    """Connects."""

    conn: sqlite3.Connection


@dataclass
class Undocumented:
    x: int


class UndocumentedModel(BaseModel):
    x: int


JSON = "has no JSON form"
NO_TEXT = (
    "t has no docstring, and a model chooses a tool by its text; write one, or state description="
)


@pytest.mark.parametrize(
    ("target", "parameter", "sentence"),
    [
        (
            connection,
            "conn",
            (
                "t: parameter `conn`: sqlite3.Connection has no JSON form; mark it with Injected"
                " if no caller gives it, or give it a type that JSON can say"
            ),
        ),
        (connections, "conn", f"t: parameter `conn`: list[sqlite3.Connection] {JSON}"),
        (kind, "error", "t: parameter `error`: type[ValueError] has no JSON form"),
        (callback, "call", "t: parameter `call`: collections.abc.Callable[[int], str] has no JSON"),
        (half, "x", "(Cannot generate a JsonSchema for core_schema.CallableSchema)"),
        (
            sentinel,
            "x",
            (
                "t: parameter `x`: its default, of type object, has no JSON form; use None, or"
                " mark the parameter with Injected if no caller gives it."
            ),
        ),
        (infinite, "x", "t: parameter `x`: Out of range float values are not JSON compliant"),
        (big, "x", "t: parameter `x`: an integer beyond ±(2^53-1) is not exact everywhere"),
        (nul, "x", "t: parameter `x`: a string holds the character NUL (U+0000)."),
        (odd_extra, "x", "t: parameter `x`: Object of type set is not JSON serializable."),
        (odd_constraint, "x", "parameter `x`: typing.Annotated[str, "),
        (
            any_number,
            "queries",
            (
                "t: parameter `queries` takes any number of positional arguments, and the"
                " arguments of a tool go by name."
            ),
        ),
        (
            positional,
            "query",
            "t: parameter `query` is positional-only, and the arguments of a tool go by name.",
        ),
        (
            matched,
            "return",
            (
                "t: the return value: re.Match[str] has no JSON form; annotate the JSON that it"
                " returns, or state output_schema="
            ),
        ),
        (
            later.hidden,
            "pattern",
            (
                "t: parameter `pattern`: `Pattern` in its annotation is not defined; define it"
                " before, at run time too (not under TYPE_CHECKING alone), or state"
                " injected=('pattern',) if no caller gives it."
            ),
        ),
        (
            later.hidden_result,
            "return",
            (
                "t: the return value: `Pattern` in its annotation is not defined; define it"
                " before, at run time too (not under TYPE_CHECKING alone)."
            ),
        ),
        (later.malformed, "query", "t: parameter `query`: its annotation cannot be evaluated:"),
        (silent, None, NO_TEXT),
        (only_sections, None, NO_TEXT),
        (Undocumented, None, NO_TEXT),
        (UndocumentedModel, None, NO_TEXT),
        *[
            (
                cls,
                None,
                (
                    "t: a class is declared if it is a model of Pydantic, a dataclass or a typed"
                    " dictionary; of another one, declare its methods."
                ),
            )
            for cls in (Plain, Color, Pair, int, dict)
        ],
        (
            Numbers,
            None,
            "t: its values are of JSON type array, and the arguments of a tool are an object.",
        ),
        (Calls, "back", f"t: parameter `back`: collections.abc.Callable[[], int] {JSON}"),
        (Connected, "conn", f"t: parameter `conn`: sqlite3.Connection {JSON}"),
    ],
)
def test_a_refusal_names_what_is_at_fault(target, parameter, sentence):
    with pytest.raises(SignatureUnsupported) as caught:
        document_of(target, Terms(name="t"))
    assert sentence in caught.value.detail
    expected = {"tool": "t"} if parameter is None else {"tool": "t", "parameter": parameter}
    assert {**caught.value.facts, **expected} == caught.value.facts
    assert caught.value.code == "signature_unsupported"


class Boundless:
    """Answers everything, as some stand-ins for other objects do."""

    def __getattr__(self, name: str) -> "Boundless":
        return Boundless()


@pytest.mark.parametrize(
    "target",
    [
        Boundless(),
        1,
        None,
        "text",
        len,
        print,
        dict.get,
        property(lambda self: 1),
        object(),
        sys,
        Plain(),
    ],
)
def test_what_is_not_written_as_a_function_or_class_is_refused(target):
    with pytest.raises(SignatureUnsupported, match="declare the function that does the work"):
        document_of(target, Terms(name="t"))


@pytest.mark.parametrize(
    ("target", "terms", "sentence"),
    [
        (connection, {"injected": ("con",)}, "injected names `con`, and there is no such"),
        (Calls, {"injected": ("back",)}, "injected names `back`, and a class has no parameters"),
        (silent, {"fields": {"descripton": "d"}}, "descripton is no field that can be stated"),
        (silent, {"fields": {"input_schema": {}}}, "input_schema is no field that can be stated"),
        (silent, {"fields": {"description": ""}}, "has no docstring"),
        (
            silent,
            {"fields": {"description": "d", "examples": [Decimal(1)]}},
            "/examples/0: Object of type Decimal is not JSON serializable",
        ),
    ],
)
def test_terms_that_do_not_fit_are_refused(target, terms, sentence):
    with pytest.raises(SignatureUnsupported, match=re.escape(sentence)):
        document_of(target, Terms(name="t", **terms))


def test_a_type_that_raises_is_refused_like_one_without_json():
    class Odd:
        @classmethod
        def __get_pydantic_core_schema__(cls, source, handler):
            raise KeyError("odd")

    def tool(x: Odd):
        """Search."""

    with pytest.raises(SignatureUnsupported, match=r"parameter `x`: .*Odd has no JSON form"):
        document_of(tool, Terms(name="t"))
