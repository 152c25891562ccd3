"""Tools whose annotations are text, as `from __future__ import annotations` leaves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tallystick.signatures.document import document_of
from tallystick.signatures.terms import Injected, Terms

if TYPE_CHECKING:
    from re import Pattern


def search(place: Place, count: int = 1) -> list[Place]:
    """Search."""
    return [place] * count


def hidden(query: str, pattern: Pattern[str]) -> str:
    """Search."""
    return query + pattern.pattern


def hidden_result() -> Pattern[str]:
    """Search."""
    raise NotImplementedError


def given(query: str, session: Annotated[Any, Injected]) -> str:
    """Search."""
    return f"{query}{session}"


def malformed(query: str) -> str:
    """Search."""
    return query


malformed.__annotations__["query"] = "1 +"


@dataclass
class Place:
    city: str


def local_document(*, as_method: bool):
    """Return the document of a function whose types only its surroundings know."""

    @dataclass
    class Local:
        size: int

    if not as_method:

        def tool(x: Local):
            """Search."""

        return document_of(tool, Terms(name="a"))

    class Service:
        @dataclass
        class Deep:
            size: int

        def tool(self, x: Local, y: Deep):
            """Search."""

        document = document_of(tool, Terms(name="a"))

    return Service.document
