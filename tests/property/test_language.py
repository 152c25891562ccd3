"""Laws of languages: a pattern has the strings that the validator accepts, and no others.

The patterns are drawn from a grammar of all that is modelled, the strings from their own characters
and from those that dialects disagree about.
"""

from itertools import islice, product

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tallystick.compatibility.budget import Budget, BudgetSpent
from tallystick.compatibility.languages.language import (
    Language,
    UnsupportedPattern,
    members,
    shortest,
)
from tallystick.subschema import compile_pattern

STEPS = 5_000
ITEMS = st.sampled_from(
    [
        *("a", "b", "c", "0", "-", "_", " ", "k", "S", "\u00e9", "\n", "\0", "]", "}", "/"),
        *(".", "^", "$", r"\b", r"\B", r"\A", r"\z", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"),
        *(r"\n", r"\t", r"\x61", r"\u0062", r"\u{1F600}", r"\cJ", r"\.", r"\-", r"\\", r"\]"),
        *(r"\p{L}", r"\P{Lu}"),
    ]
)
LISTED = st.sampled_from(
    [
        *("a", "b", "0", "-", "^", "[", "&", "&&", "~~", "|", ".", "$", "k", "\u00e9", "a-c"),
        *("0-9", " -~", "A-Z", r"\d", r"\w", r"\S", r"\]", r"\-", r"\\", r"\n", r"\x41-\x5a"),
        r"\p{Lu}",
    ]
)
SETS = st.builds(
    lambda start, items: f"{start}{''.join(items)}]",
    st.sampled_from(["[", "[^"]),
    st.lists(LISTED, min_size=1, max_size=4),
)
COUNTS = st.sampled_from(
    ["*", "+", "?", "{2}", "{0}", "{0,2}", "{1,3}", "{2,}", "*?", "+?", "??", "{1,2}?"]
)
GROUPS = st.sampled_from(["(", "(?:", "(?<n>", "(?i:", "(?-i:", "(?s:"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join),
        st.builds(lambda group, part: f"{group}{part})", GROUPS, inner),
        st.builds(lambda part, count: f"({part}){count}", inner, COUNTS),
        st.builds(lambda part, count: f"{part}{count}", inner, COUNTS),
        inner.map(lambda part: f"(?i){part}"),
    )


ANY = st.recursive(ITEMS | SETS, larger, max_leaves=8)
PATTERNS = ANY | ANY.map(lambda part: f"^{part}$") | ANY.map(lambda part: f"^({part})$")
# A few characters only, so that all short strings can be tried.
SMALL = st.recursive(
    st.sampled_from(["a", "b", "^", "$", r"\b", "[^a]", "."]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.builds(lambda part, count: f"({part}){count}", inner, COUNTS),
    ),
    max_leaves=6,
)
SHORT = ["".join(letters) for size in range(5) for letters in product("ab-", repeat=size)]
CHARACTERS = "abc01-_ .\u00e9\u212a\u017fkKsS\n\r\0\tAZ\u2028\u00a0\U0001f600[]&~^|\\{}"
CAREFUL = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)


def language_of(pattern: str) -> Language:
    try:
        return Language.of_pattern(pattern)
    except UnsupportedPattern:
        assume(False)
        raise


def accepts(pattern: str, text: str) -> bool:
    return compile_pattern(pattern).is_valid(text)


def texts_for(pattern: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.text(st.sampled_from(CHARACTERS + pattern), max_size=8), max_size=20)


@CAREFUL
@given(PATTERNS, st.data())
def test_a_pattern_has_the_strings_that_the_validator_accepts(
    pattern: str, data: st.DataObject
) -> None:
    language = language_of(pattern)
    for text in [*data.draw(texts_for(pattern)), *pattern]:
        assert language.matches(text) == accepts(pattern, text), (pattern, text)


@CAREFUL
@given(SMALL)
def test_a_small_pattern_agrees_on_all_short_strings(pattern: str) -> None:
    language = language_of(pattern)
    expected = [text for text in SHORT if accepts(pattern, text)]
    assert [text for text in SHORT if language.matches(text)] == expected
    inside = language & Language.of_words(SHORT)
    budget = Budget(100_000)
    assert sorted(members(inside, budget)) == sorted(expected)
    first = shortest(inside, budget)
    assert (first is None) == (not expected)
    assert first is None or len(first) == min(map(len, expected))


@CAREFUL
@given(PATTERNS)
def test_members_are_members(pattern: str) -> None:
    language = language_of(pattern)
    for asked, is_member in ((language, True), (~language, False)):
        budget = Budget(STEPS)
        try:
            found = list(islice(members(asked, budget), 8))
            first = shortest(asked, budget)
        except BudgetSpent:
            continue
        assert all(accepts(pattern, text) is is_member for text in found)
        assert len(set(found)) == len(found)
        assert [len(text) for text in found] == sorted(len(text) for text in found)
        assert (first is None) == (not found)
        assert first is None or len(first) == len(found[0])


@CAREFUL
@given(PATTERNS, PATTERNS, st.data())
def test_combinations_hold_what_the_logic_says(one: str, other: str, data: st.DataObject) -> None:
    left, right = language_of(one), language_of(other)
    texts = data.draw(texts_for(one + other))
    for text in texts:
        is_left, is_right = accepts(one, text), accepts(other, text)
        assert (left & right).matches(text) == (is_left and is_right)
        assert (left | right).matches(text) == (is_left or is_right)
        assert (left & ~right).matches(text) == (is_left and not is_right)
        assert (~left | right).matches(text) == (is_right or not is_left)
        assert (~(left | ~right)).matches(text) == (is_right and not is_left)
    try:
        difference = shortest(left & ~right, Budget(STEPS))
    except BudgetSpent:
        return
    if difference is None:
        assert not [text for text in texts if accepts(one, text) and not accepts(other, text)]
    else:
        assert accepts(one, difference)
        assert not accepts(other, difference)


@CAREFUL
@given(PATTERNS, st.integers(0, 4), st.none() | st.integers(0, 6), st.data())
def test_lengths_count_characters(
    pattern: str, low: int, high: int | None, data: st.DataObject
) -> None:
    language = language_of(pattern) & Language.of_length(low, high)
    for text in data.draw(texts_for(pattern)):
        is_long_enough = low <= len(text) and (high is None or len(text) <= high)
        assert language.matches(text) == (accepts(pattern, text) and is_long_enough)
    try:
        found = shortest(language, Budget(STEPS))
    except BudgetSpent:
        return
    if found is not None:
        assert low <= len(found) <= (len(found) if high is None else high)
        assert accepts(pattern, found)
