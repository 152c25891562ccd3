import io

import pytest

from tallystick.commands.terminal import Colour, Painter, columns, count, version_step
from tallystick.plain import plain


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_cells_stand_below_each_other():
    assert columns([("a", "bcd", "e"), ("abc", "b", "")]) == ["a    bcd  e", "abc  b"]


def test_nothing_makes_no_lines():
    assert columns([]) == []


def test_a_cell_stays_on_its_line():
    assert columns([("a\nb\x1b[2J", "c")]) == [r"a\nb\x1b[2J  c"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("Größe", "Größe"), ("\x1b[31m", r"\x1b[31m"), ("\u202e", r"\u202e"), ("\x9b", r"\x9b")],
)
def test_no_terminal_obeys_a_text(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("stream", "environment", "is_on"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(stream, environment, is_on):
    assert Painter.of(stream, environment).is_on is is_on


def test_without_colour_a_text_is_left_as_it_is():
    assert Painter(is_on=False)(Colour.BAD, "text") == "text"
    assert Painter(is_on=True)(Colour.BAD, "text") == "\x1b[1;31mtext\x1b[0m"


@pytest.mark.parametrize(("number", "told"), [(0, "0 tools"), (1, "1 tool"), (2, "2 tools")])
def test_things_are_counted_in_words(number, told):
    assert count(number, "tool") == told


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("1.0.0", "2.0.0", "1.0.0 -> 2.0.0"),
        ("1.0.0", "1.0.0", "1.0.0"),
        (None, "1.0.0", "1.0.0"),
        ("1.0.0", None, "1.0.0"),
        (None, None, ""),
    ],
)
def test_a_step_from_version_to_version(before, after, told):
    assert version_step(before, after) == told
