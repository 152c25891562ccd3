"""Whether a language has a member is answered exactly: with a shortest one, or with proof."""

from itertools import islice

import pytest

from tallystick.compatibility.budget import Budget, BudgetSpent
from tallystick.compatibility.languages.language import (
    Language,
    is_finite_within,
    members,
    shortest,
)

of_pattern, of_words, of_length = Language.of_pattern, Language.of_words, Language.of_length
STEPS = 20_000


def found(language: Language, steps: int = STEPS) -> str | None:
    return shortest(language, Budget(steps))


def listed(language: Language, count: int = 20) -> list[str]:
    return list(islice(members(language, Budget(STEPS)), count))


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("^[a-z0-9-]+$", "^[a-z0-9_-]+$"),
        (r"^\d{4}-\d{2}-\d{2}$", "^[0-9-]+$"),
        (r"^\d{4}-\d{2}-\d{2}$", r"^\d+(-\d+)*$"),
        ("^https://", "^https?://"),
        ("^(get|set)_[a-z]+$", "_"),
        ("^abc", "^ab"),
        ("abc", "b"),
        ("^(a|b)*$", "^(a*b*)*$"),
        ("^a{10,20}$", "^a{5,}$"),
        ("^(ab)+a?$", "^a(ba)*b?$"),
        ("[0-9a-f]{64}", "[0-9a-f]{32}"),
        ("^[a-z]{1,1000}$", "^[a-z]{0,2000}$"),
        ("a^b", "c"),
        (r"\bfoo\b", "foo"),
        (r"^foo\b.", r"^foo[^a-z]"),
    ],
)
def test_inclusion_is_proven(inner: str, outer: str) -> None:
    assert found(of_pattern(inner) & ~of_pattern(outer)) is None


@pytest.mark.parametrize(
    ("inner", "outer", "text"),
    [
        ("^[a-z0-9_-]+$", "^[a-z0-9-]+$", "_"),
        ("^[a-z]*$", "^[a-z]{0,3}$", "aaaa"),
        ("^https?://", "^https://", "http://"),
        ("a", "^a$", "aa"),
        ("", "^a", ""),
        (r"^\d{4}$", r"^[1-9]\d*$", "0000"),
        ("^a{5,}$", "^a{10,20}$", "aaaaa"),
        ("^a|b$", "^a", "b"),
        ("^.$", "^[a-y]$", "z"),
        ("^[^a-zA-Z]$", r"^\d$", "-"),
        (r"^\s*$", "^ *$", "\t"),
        ("(a|b)*a(a|b){9}", "^c", "aaaaaaaaaa"),
    ],
)
def test_a_shortest_and_readable_difference_is_found(inner: str, outer: str, text: str) -> None:
    assert found(of_pattern(inner) & ~of_pattern(outer)) == text


def test_lengths_count_characters_and_are_never_written_out() -> None:
    wide, narrow = of_length(10**9, None), of_length(10**8, 10**10)
    assert found(wide & ~of_length(10**8)) is None
    assert found(narrow & of_length(0, 10**7)) is None
    assert found(~of_length(0, 10**9) & of_length(0, 10**9)) is None
    assert of_length(2, 3) | of_length(4, 9) == of_length(2, 9)
    assert found(of_length(1, 1) & of_pattern("\U0001f600")) == "\U0001f600"
    assert not of_length(0, 1).matches("ab")
    assert of_length(1, 1).matches("\U0001f600")
    assert of_length(2, 1) == Language.NOTHING


def test_lengths_and_patterns_together() -> None:
    assert found(of_pattern(r"^\d{4}-\d{2}-\d{2}$") & ~of_length(10, 10)) is None
    assert found(of_pattern("^[a-z]{1,63}$") & of_length(64)) is None
    assert found(of_pattern("^(ab)*$") & of_length(3, 3)) is None
    assert found(of_pattern("^(ab)*$") & of_length(3, 5)) == "abab"


def test_excluded_strings_are_passed_over() -> None:
    language = of_pattern("^(a|bb|ccc)$")
    budget = Budget(STEPS)
    assert shortest(language, budget, excluding=frozenset({"a"})) == "bb"
    assert shortest(language, budget, excluding=frozenset({"a", "bb", "ccc"})) is None
    many = frozenset(map(str, range(100)))
    assert shortest(of_pattern(r"^\d{1,2}$"), budget, excluding=many) == "00"


def test_members_come_once_and_shortest_first() -> None:
    assert listed(of_pattern("^[ab]{0,2}c?$")) == (
        ["", "a", "b", "c", "aa", "ab", "ac", "ba", "bb", "bc", "aac", "abc", "bac", "bbc"]
    )
    assert listed(of_pattern("^(ab|a)(c|bc)$")) == ["ac", "abc", "abbc"]
    assert listed(of_pattern("^a*$"), 4) == ["", "a", "aa", "aaa"]
    assert listed(Language.EVERYTHING, 4) == ["", "a", "b", "c"]
    assert listed(of_pattern("^[0-9a-f]{40}$"), 2) == ["a" * 40, "a" * 39 + "b"]
    assert listed(Language.NOTHING) == []


def test_members_end_where_nothing_is_ahead() -> None:
    stuck = of_pattern("^(a|b(cc)*)$") & of_pattern("^(a|b(cc)*c)$")
    assert listed(stuck) == ["a"]


def test_a_finite_language_comes_out_whole() -> None:
    budget = Budget(STEPS)
    assert is_finite_within(of_pattern("^[a-z]{2}$"), 676, budget) is not None
    assert is_finite_within(of_pattern("^[a-z]{2}$"), 675, budget) is None
    assert is_finite_within(of_pattern("^[a-z]{50}$"), 100, budget) is None
    assert is_finite_within(of_pattern("^a+$"), 100, budget) is None
    assert is_finite_within(of_words(("b", "a", "a")) & of_pattern("a"), 5, budget) == ("a",)
    assert is_finite_within(Language.NOTHING, 0, budget) == ()


def test_what_costs_too_much_is_given_up() -> None:
    with pytest.raises(BudgetSpent):
        found(of_length(10**9))
    with pytest.raises(BudgetSpent):
        found(of_pattern("^[ab]*a[ab]{200}$") & of_pattern("^[ab]*b[ab]{150}$"), 2_000)
    with pytest.raises(BudgetSpent):
        found(~of_pattern("^" + "a?b?c?" * 200 + "$"))
    with pytest.raises(BudgetSpent):
        list(members(of_pattern("^(a{0,50}b{0,50}){0,50}$"), Budget(2_000)))


def test_the_same_question_costs_the_same_again() -> None:
    language = of_pattern("^[a-f]{3,5}x$") & ~of_pattern("^a.*[c-d]x$")
    spent: list[int] = []
    for _ in range(2):
        budget = Budget(STEPS)
        shortest(language, budget)
        spent.append(STEPS - budget.left)
    assert spent[0] == spent[1] > 0


def test_laws_that_hold_without_a_search() -> None:
    one, other = of_pattern("^a+"), of_pattern("b$")
    assert one & ~one == Language.NOTHING
    assert one | ~one == Language.EVERYTHING
    assert ~~one == one
    assert one & other == other & one
    assert ~(one & other) == ~one | ~other
    assert one | (one & other) == one
    assert one & (one | other) == one
    assert (one | other) & ~one == other & ~one
    assert len({one, of_pattern("^a+"), one & one}) == 1
