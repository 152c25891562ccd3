"""What a docstring says of a tool, its parameters and its result.

Sections are found here, so that a text without any costs next to nothing; what stands in them is
read by `docstring_parser`, in the style that their headings have.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from docstring_parser import Docstring as ParsedDocstring

_TITLES: Final = (
    "Args|Arguments|Parameters|Params|Attributes|Returns|Yields|Raises|Exceptions|Except|Examples?"
)
# Beside the titles, what NumPy's style alone has: https://numpydoc.readthedocs.io/en/latest/format.html
_NUMPY_TITLES: Final = f"{_TITLES}|Other Parameters|Receives|Warns"
_FIELDS: Final = (
    "param|parameter|arg|argument|key|keyword|type|returns?|rtype|yields?|raises?|except|exception"
    "|[ic]?var|meta"
)

# By the parser's module: a section, from its heading to the last line that belongs to it.
_SECTIONS: Final = MappingProxyType(
    {
        "rest": re.compile(
            rf"^:(?:{_FIELDS})\b[^:\n]*:.*(?:\n(?!:).*\S.*|(?:\n[ \t]*)+\n[ \t]+\S.*)*",
            re.MULTILINE,
        ),
        "numpydoc": re.compile(
            rf"^(?:{_NUMPY_TITLES})[ \t]*\n-{{3,}}[ \t]*$(?:\n(?!\S.*\n-{{3,}}[ \t]*$).*)*",
            re.MULTILINE,
        ),
        "google": re.compile(
            rf"^(?:{_TITLES}):[ \t]*$(?=\n+[ \t]+\S)(?:\n(?:[ \t].*)?)*", re.MULTILINE
        ),
    }
)

# A line break inside a paragraph, unless the next line is an item of a list.
_WRAP: Final = re.compile(r"(?<!\n)\n[ \t]*(?![-*+•\n]|[0-9]+[.)])")
_BLANK_LINES: Final = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring, read.

    Args:
        description: Its text without the sections; empty if there is none.
        parameters: What it says of each parameter that it explains, by name.
        returns: What it says of the result.
    """

    description: str
    parameters: Mapping[str, str]
    returns: str | None


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring in Google's, NumPy's or Sphinx's style, or in none.

    A wrapped line of a parameter is made whole again. Sections that cannot be read stay text.
    """
    cleaned = inspect.cleandoc(text or "").strip()
    for style, section in _SECTIONS.items():
        found = section.findall(cleaned)
        parsed = _parsed(style, found) if found else None
        if parsed is not None:
            description = _BLANK_LINES.sub("\n\n", section.sub("", cleaned)).strip()
            return Docstring(description, _parameters(parsed), _result(parsed))
    return Docstring(cleaned, {}, None)


def _parsed(style: str, sections: list[str]) -> "ParsedDocstring | None":
    from docstring_parser import ParseError

    try:
        # The parsers take the first line for a summary, and judge indentation without it.
        return import_module(f"docstring_parser.{style}").parse("\n" + "\n".join(sections))
    except ParseError:
        return None


def _parameters(parsed: "ParsedDocstring") -> dict[str, str]:
    return {
        name.strip(" *"): _unwrapped(each.description)
        for each in parsed.params
        if each.description
        for name in each.arg_name.split(",")
    }


def _result(parsed: "ParsedDocstring") -> str | None:
    told = [each for each in parsed.many_returns if each.description and not each.is_generator]
    return _unwrapped(told[0].description or "") if told else None


def _unwrapped(text: str) -> str:
    return _WRAP.sub(" ", text.strip())
