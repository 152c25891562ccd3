"""Paths find what they say, or null; null and nothing are one."""

from typing import Any

import pytest

from tallystick.policy.paths import FOUND_MAX, PATH_CHARS_MAX, STEPS_MAX, Path

VALUE: Any = {
    "total": 150,
    "none": None,
    "order": {"id": "LK-1", "total": 7, "a b": {"c": 1}, "x.y": 2},
    "items": [{"price": 3, "tags": ["a", "b"]}, {"price": 5, "tags": []}],
    "mixed": [{"price": 3}, {"name": "no price"}],
    "gaps": [{"price": 3}, {"price": None}],
    "numbered": {"0": "zero"},
    "a/b": {"~": "odd"},
    "empty": [],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("total", 150),
        ("order.total", 7),
        ('order."a b".c', 1),
        ('order."x.y"', 2),
        ("items[0].price", 3),
        ("items[1].tags", []),
        ("items[2].price", None),
        ("items[*].price", [3, 5]),
        ("items[*].tags[*]", ["a", "b"]),
        ("items[*]", VALUE["items"]),
        ("empty[*].price", []),
        ("mixed[*].price", None),
        ("gaps[*].price", None),
        ("order[*]", None),
        ("none", None),
        ("none.more", None),
        ("total.more", None),
        ("nowhere.at.all", None),
        ("items.price", None),
        ("numbered[0]", "zero"),
        ("", VALUE),
        ("/order/id", "LK-1"),
        ("/items/1/price", 5),
        ("/items/01/price", None),
        ("/items/-/price", None),
        ("/a~1b/~0", "odd"),
        ("/numbered/0", "zero"),
    ],
)
def test_a_path_finds(path: str, found: Any):
    assert Path.parse(path).find(VALUE) == found


def test_a_result_that_is_a_list_has_items():
    assert Path.parse("[1].id").find([{"id": "a"}, {"id": "b"}]) == "b"
    assert Path.parse("[*].id").find([{"id": "a"}, {"id": "b"}]) == ["a", "b"]


def test_a_path_finds_many_values_but_not_without_end():
    many: Any = [1] * FOUND_MAX
    assert Path.parse("[*]").find(many) == many
    assert Path.parse("[*]").find([*many, 1]) is None


@pytest.mark.parametrize(
    ("path", "character"),
    [
        (".total", 1),
        ("order.", 6),
        ("order..total", 6),
        ("order total", 6),
        ("items[", 6),
        ("items[-1]", 6),
        ("items[01]", 6),
        ("items[x]", 6),
        ("items[0]price", 9),
        ('"open', 1),
        ("a]", 2),
    ],
)
def test_what_is_no_path_is_refused_at_the_character(path: str, character: int):
    with pytest.raises(ValueError, match=f"character {character} "):
        Path.parse(path)


@pytest.mark.parametrize(
    "path", [r'"\x"', "/~2", "a" * (PATH_CHARS_MAX + 1), "a." * STEPS_MAX + "a"]
)
def test_other_faults_of_paths_are_refused(path: str):
    with pytest.raises(ValueError, match=r"at most|not a JSON Pointer|escape"):
        Path.parse(path)


def test_a_long_quoted_name_takes_no_time_to_refuse():
    with pytest.raises(ValueError, match="character 1 "):
        Path.parse('"' + "\\a" * 240)
