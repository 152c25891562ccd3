"""What a docstring says of a tool, its parameters and its result.

Sections are found here, so that a text without any costs next to nothing. What stands in those of
NumPy's and Sphinx's style is read by `docstring_parser`.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Final

from tallystick.signatures.google_style import TITLES, read_google

# Beside the titles, what NumPy's style alone has: https://numpydoc.readthedocs.io/en/latest/format.html
_NUMPY_TITLES: Final = f"{TITLES}|Other Parameters|Receives|Warns"
_FIELDS: Final = (
    "param|parameter|arg|argument|key|keyword|type|returns?|rtype|yields?|raises?|except|exception"
    "|[ic]?var|meta"
)

# By the style, which for others than Google's is the parser's module: a section, from its heading
# to the last line that belongs to it.
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
            rf"^(?:{TITLES}):[ \t]*$(?=\n+[ \t]+\S)(?:\n(?:[ \t].*)?)*", re.MULTILINE
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
        told = _told(style, found) if found else None
        if told is not None:
            parameters, result = told
            return Docstring(
                description=_BLANK_LINES.sub("\n\n", section.sub("", cleaned)).strip(),
                parameters={
                    name.strip(" *"): _unwrapped(text)
                    for names, text in parameters
                    if text
                    for name in names.split(",")
                },
                returns=_unwrapped(result) if result else None,
            )
    return Docstring(cleaned, {}, None)


def _told(style: str, sections: list[str]) -> tuple[list[tuple[str, str]], str | None] | None:
    """Return what sections say of parameters, by their names, and of the result."""
    if style == "google":
        return read_google(sections)
    from docstring_parser import Docstring as Parsed
    from docstring_parser import ParseError

    try:
        # The parsers take the first line for a summary, and judge indentation without it.
        text = "\n" + "\n".join(sections)
        parsed: Parsed = import_module(f"docstring_parser.{style}").parse(text)
    except ParseError:
        return None
    results = (each.description for each in parsed.many_returns if not each.is_generator)
    parameters = [(each.arg_name, each.description or "") for each in parsed.params]
    return parameters, next(filter(None, results), None)


def _unwrapped(text: str) -> str:
    return _WRAP.sub(" ", text.strip())
