"""Whatever a tool returns, its answer is valid JSON, within its limit, and tells what it lacks."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.answer import LIMIT_MIN, Answer, ErrorAnswer
from tallystick.cutting import MARK

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(TEXTS, inner, max_size=20),
    max_leaves=30,
)
VALUES = (
    NESTED | NESTED.map(lambda item: [item] * 50) | NESTED.map(lambda item: {"all": [item] * 9})
)
LIMITS = st.integers(LIMIT_MIN, 4000)


def lacking(whole: Any, kept: Any) -> dict[str, int]:
    """Count what a cut value lacks, and hold that it is a part of the whole one."""
    if isinstance(whole, str) and whole != kept:
        assert kept.endswith(MARK)
        assert whole.startswith(kept.removesuffix(MARK))
        return {"characters": len(whole) - len(kept.removesuffix(MARK))}
    counts: dict[str, int] = {}
    pairs = []
    if isinstance(whole, list):
        counts["items"] = len(whole) - len(kept)
        pairs = list(zip(whole, kept, strict=False))
    elif isinstance(whole, dict):
        assert kept.keys() <= whole.keys()
        counts["members"] = len(whole) - len(kept)
        pairs = [(whole[name], kept[name]) for name in kept]
    else:
        assert (type(whole), whole) == (type(kept), kept)
    for pair in pairs:
        for name, count in lacking(*pair).items():
            counts[name] = counts.get(name, 0) + count
    return {name: count for name, count in counts.items() if count}


@settings(max_examples=400, deadline=None)
@given(VALUES, LIMITS)
def test_a_result_is_valid_bounded_and_says_what_was_cut(value: Any, limit: int):
    text = Answer(value).text(limit)
    told = json.loads(text)

    assert len(text) <= limit
    assert told["ok"] is True
    assert lacking(value, told["result"]) == told.get("truncated", {})
    if "truncated" in told:
        assert len(Answer(value).text(10**7)) > limit
    assert text == Answer(value).text(limit)


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.text(max_size=128), st.none() | TEXTS, st.booleans(), LIMITS)
def test_an_error_is_valid_bounded_and_keeps_its_code(message, code, pointer, retryable, limit):
    text = Answer(None, ErrorAnswer(code, message, retryable, pointer)).text(limit)
    told = json.loads(text)

    assert len(text) <= limit
    assert told["ok"] is False
    kept = told["error"]["code"]
    assert kept == code or (kept.endswith(MARK) and code.startswith(kept.removesuffix(MARK)))
