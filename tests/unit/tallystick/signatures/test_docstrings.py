"""What docstrings of every style say, and where it goes."""

import subprocess
import sys
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tallystick.signatures.docstring import Docstring, read_docstring
from tallystick.signatures.document import document_of
from tallystick.signatures.terms import Terms

GOOGLE = """Search the shop.

    It looks in titles: all of them,
    and nowhere else.

    Note:
        Slow on Sundays.

    Args:
        query (str): What to look for, in
            plain words: the more
            the better.
        limit: The most results.
            One of:

            - ten
            - twenty
        *rest: More.
        where:
            A place
            on earth.

    Returns:
        list[str]: The titles,
            the best one first.

    Raises:
        ValueError: If the query is empty.

    Examples:
        >>> search("x")
    """
NUMPY = """Search the shop.

    It looks in titles: all of them,
    and nowhere else.

    Parameters
    ----------
    query : str
        What to look for, in
        plain words: the more
        the better.
    limit, most : int, optional
        The most results.

    Returns
    -------
    list of str
        The titles,
        the best one first.

    Raises
    ------
    ValueError
        If the query is empty.

    Notes
    -----
    Slow on Sundays.
    """
SPHINX = """Search the shop.

    It looks in titles: all of them,
    and nowhere else.

    :param query: What to look for, in
        plain words: the more
        the better.
    :type query: str
    :param int limit: The :class:`int` of
      results.
    :returns: The titles,
        the best one first.
    :rtype: list[str]
    :raises ValueError: If the query is empty.
    """
TEXT = "Search the shop.\n\nIt looks in titles: all of them,\nand nowhere else."
QUERY = "What to look for, in plain words: the more the better."
TITLES = "The titles, the best one first."


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            GOOGLE,
            Docstring(
                f"{TEXT}\n\nNote:\n    Slow on Sundays.",
                {
                    "query": QUERY,
                    "limit": "The most results. One of:\n\n- ten\n- twenty",
                    "rest": "More.",
                    "where": "A place on earth.",
                },
                TITLES,
            ),
        ),
        (
            NUMPY,
            Docstring(
                f"{TEXT}\n\nNotes\n-----\nSlow on Sundays.",
                {"query": QUERY, "limit": "The most results.", "most": "The most results."},
                TITLES,
            ),
        ),
        (
            SPHINX,
            Docstring(TEXT, {"query": QUERY, "limit": "The :class:`int` of results."}, TITLES),
        ),
        ("One line.", Docstring("One line.", {}, None)),
        (
            "  One.\n\n      Two\n        deep.\n   ",
            Docstring("One.\n\nTwo\n  deep.", {}, None),
        ),
        (None, Docstring("", {}, None)),
        (" \n ", Docstring("", {}, None)),
        # Only sections.
        ("\n    Args:\n        x: The x.", Docstring("", {"x": "The x."}, None)),
        # What a generator yields is no result.
        ("Go.\n\nYields:\n    int: numbers", Docstring("Go.", {}, None)),
        # Text after a section is text, wherever it stands.
        ("Go.\n\nArgs:\n  x: The x.\n\nStop.", Docstring("Go.\n\nStop.", {"x": "The x."}, None)),
        # Words that look like a heading are none, and a section that cannot be read stays text.
        ("Go. Args: none", Docstring("Go. Args: none", {}, None)),
        ("Go.\n\nArgs:\nnone", Docstring("Go.\n\nArgs:\nnone", {}, None)),
        ("Go.\n\nArgs:\n    none", Docstring("Go.\n\nArgs:\n    none", {}, None)),
        (":param a b c d: x", Docstring(":param a b c d: x", {}, None)),
        # What can be read of a section is read: a line without a colon goes on with the text.
        (
            "Go.\n\nArgs:\n    x: The x,\n    all of it\n\n    y: The y.",
            Docstring("Go.", {"x": "The x, all of it", "y": "The y."}, None),
        ),
        (
            "Go.\n\nArgs:\n    x: The x.\n\nRaises:\n    ValueError if it is none.",
            Docstring("Go.", {"x": "The x."}, None),
        ),
        (
            "Go.\n\nArgs:\n  x (:class:`X`, optional): The x.\n  y (a (b)) of: (The) y: all.",
            Docstring("Go.", {"x": "The x.", "y": "(The) y: all."}, None),
        ),
        # A parameter that is named and not explained says nothing.
        ("Go.\n\nArgs:\n    x:\n    y: The y.", Docstring("Go.", {"y": "The y."}, None)),
    ],
)
def test_each_style_says_the_same(text, read):
    assert read_docstring(text) == read


def test_a_docstring_is_read_in_time_that_grows_with_its_length():
    hostile = ("(" * 100_000, "a)" * 50_000, "a (b)" * 20_000, " a\n" * 20_000, "a:\n" * 20_000)
    for text in (
        "Args:" + "\n" * 100_000,
        ":param x: a\n" * 5_000,
        "a\n---\n" * 20_000,
        *(f"Args:\n x: {each}\n y ({each}\n {each}: b" for each in hostile),
    ):
        read_docstring(text)


def test_the_texts_go_to_the_properties_and_to_the_result():
    def search(query: str, limit: Annotated[int, Field(description="At most.")] = 3) -> list[str]:
        """Search.

        Args:
            query: The words.
            limit: Not this: the annotation says it already.
            other: No parameter.

        Returns:
            The titles.
        """
        return [query] * limit

    document: Any = document_of(search, Terms(name="a"))
    assert document["description"] == "Search."
    assert document["input_schema"]["properties"] == {
        "query": {"type": "string", "description": "The words."},
        "limit": {"type": "integer", "description": "At most.", "default": 3},
    }
    assert document["output_schema"]["description"] == "The titles."


def test_a_description_of_the_return_annotation_wins():
    def search() -> Annotated[int, Field(description="Stated.")]:
        """Search.

        Returns:
            Told.
        """
        return 1

    assert document_of(search, Terms(name="a"))["output_schema"] == {
        "type": "integer",
        "description": "Stated.",
    }


def test_the_text_of_a_parameter_stands_beside_the_reference_to_its_type():
    class Place(BaseModel):
        """Where."""

        city: str

    def search(alias: Annotated[Place, Field(alias="where")]):
        """Search.

        Args:
            alias: The place.
        """

    document: Any = document_of(search, Terms(name="a"))
    schema = document["input_schema"]
    assert schema["properties"] == {"where": {"$ref": "#/$defs/Place", "description": "The place."}}
    assert schema["$defs"]["Place"]["description"] == "Where."


def test_a_stated_description_wins_and_the_parameters_are_told_still():
    def search(query: str):
        """Search.

        Args:
            query: The words.
        """

    document: Any = document_of(search, Terms(name="a", fields={"description": "Stated."}))
    assert document["description"] == "Stated."
    assert document["input_schema"]["properties"]["query"]["description"] == "The words."


def test_the_parser_is_not_loaded_for_a_text_without_sections():
    program = (
        "import sys\n"
        "from tallystick.signatures.docstring import read_docstring\n"
        "read_docstring('Search: the shop.')\n"
        "assert 'docstring_parser' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
