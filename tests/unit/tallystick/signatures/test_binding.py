"""A function is given what its annotations say, by name, and nothing that a caller may not give."""

import functools
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import AfterValidator, Field

from tallystick import Injected
from tallystick.errors import InvalidArguments, SignatureUnsupported
from tallystick.signatures.binding import binding_of


@dataclass
class Place:
    city: str


def visit(
    at: date,
    place: Place,
    *,
    key: UUID | None = None,
    from_: Annotated[str, Field(alias="from")] = "here",
    session: Annotated[Any, Injected] = None,
    **more: int,
) -> None: ...


def test_values_are_read_as_pydantic_does():
    binding = binding_of(visit, (), "visit")
    given = {"at": "2026-11-30", "place": {"city": "Wien"}, "from": "there", "n": 2}
    assert binding.read(given) == {
        "at": date(2026, 11, 30),
        "place": Place("Wien"),
        "key": None,
        "from_": "there",
        "n": 2,
    }
    assert (binding.injected, binding.needed) == ({"session"}, frozenset())


def test_what_is_injected_is_no_argument():
    def notes(session: object, query: str) -> None: ...

    binding = binding_of(notes, ("session",), "notes")
    assert binding.read({"query": "tea"}) == {"query": "tea"}
    assert (binding.injected, binding.needed) == ({"session"}, {"session"})


def test_a_method_and_a_partial_have_no_self():
    class Shop:
        def get(self, order: date, kind: str) -> None: ...

    binding = binding_of(functools.partial(Shop().get, kind="x"), (), "get")
    assert binding.read({"order": "2026-11-30"})["order"] == date(2026, 11, 30)


def test_a_validator_of_the_function_is_told_without_the_value():
    def check(text: str) -> str:
        raise ValueError("must be a known word")

    def look(words: list[Annotated[str, AfterValidator(check)]]) -> None: ...

    with pytest.raises(InvalidArguments, match=r"words\.0: Value error, must be a kn") as caught:
        binding_of(look, (), "look").read({"words": ["hunter2"]})
    assert caught.value.pointer == "/words/0"
    assert "hunter2" not in str(caught.value)


def test_what_takes_no_names_is_refused():
    with pytest.raises(SignatureUnsupported):
        binding_of(len, (), "len")
