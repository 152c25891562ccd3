"""The oracle: nothing that a comparison says is ever refuted by a value, or by another comparison.

Pairs are small edits of one schema, since unrelated schemas teach nothing: of schemas grown from
all keywords, and of the corpus' real tools where it is there. ORACLE_PAIRS changes how many,
ORACLE_SEED replays them: the nightly form is 200,000.
"""

import json
import os
import random
import secrets
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from tallystick.canonical import Json
from tallystick.compatibility.judging import judge
from tallystick.compatibility.verdict import Answer, Judgement
from tallystick.errors import Refusal
from tallystick.schema import DRAFT_07, DRAFT_2020_12, check_schema
from tests.conformance.compatibility.edits import Pick, edited
from tests.conformance.compatibility.growth import grown
from tests.conformance.compatibility.suites import CORPUS, Case, tool_schemas
from tests.conformance.compatibility.trial import fault_of

PAIRS = int(os.environ.get("ORACLE_PAIRS") or 2_000)
SEED = int(os.environ.get("ORACLE_SEED") or secrets.randbelow(2**32))
# So many pairs are one test: the generator's memory of what it has tried stays small.
CHUNK = 500
TOOL_CHARS_MAX = 3_000
TRIES = 60
UNDECIDED_MAX = 0.02

TOOLS = [
    schema
    for _, schema in (tool_schemas() if CORPUS.is_dir() else ())
    if len(json.dumps(schema)) < TOOL_CHARS_MAX
]
SETTINGS = settings(
    max_examples=min(PAIRS, CHUNK),
    deadline=None,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
    ],
)


@st.composite
def families(draw: Any, size: int) -> list[Json]:
    """Draw schemas, each a small edit of the one before."""

    def choose(choices):
        return draw(st.sampled_from(choices))

    pick: Pick = choose
    base = pick(TOOLS) if TOOLS and pick((False, False, True)) else grown(pick)
    if isinstance(base, dict):
        base = {keyword: value for keyword, value in base.items() if keyword != "$schema"}
    family = [base]
    while len(family) < size:
        family.append(edited(family[-1], pick, pick((1, 1, 2, 3))))
    for schema in family:
        assume(is_publishable(schema))
    return family[:: pick((1, -1))]


def is_publishable(schema: Json, dialect: str = DRAFT_2020_12) -> bool:
    try:
        check_schema(schema, dialect=dialect, pointer="")
    except Refusal:
        return False
    return True


def question(
    old: Json, new: Json, *, is_closed: bool, assert_format: bool = False, is_old: bool = False
) -> Case:
    """Return the question about two schemas, both of draft-07 if that is asked and they can be."""
    is_old = is_old and all(is_publishable(schema, DRAFT_07) for schema in (old, new))
    dialect = DRAFT_07 if is_old else DRAFT_2020_12
    name = json.dumps([old, new, dialect], sort_keys=True)
    return Case(
        name, (dialect, dialect), old, new, is_closed=is_closed, assert_format=assert_format
    )


def answered(case: Case) -> Judgement:
    return judge(*case.sides())


def shuffled(value: Json, chance: random.Random) -> Json:
    """Return the same schema with the keys of every object in another order."""
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    if isinstance(value, dict):
        keys = chance.sample([*value], len(value))
        return {key: shuffled(value[key], chance) for key in keys}
    return value


@pytest.mark.parametrize("chunk", range(-(-PAIRS // CHUNK)))
def test_no_answer_is_refuted(chunk: int):
    found: list[Answer] = []

    @seed(SEED + chunk)
    @SETTINGS
    @given(families(2), st.booleans(), st.booleans(), st.booleans())
    def holds(pair: list[Json], is_closed: bool, assert_format: bool, is_old: bool) -> None:
        case = question(*pair, is_closed=is_closed, assert_format=assert_format, is_old=is_old)
        said = answered(case)
        found.append(said.verdict)

        assert not fault_of(case, said, tries=TRIES)
        reordered = [shuffled(schema, random.Random(case.id)) for schema in pair]
        other = replace(case, old=reordered[0], new=reordered[1])
        assert answered(other).verdict is said.verdict
        assert answered(replace(case, new=case.old)).verdict is Answer.COMPATIBLE

    print(f"ORACLE_SEED={SEED}")
    holds()
    assert found.count(Answer.UNDECIDED) <= UNDECIDED_MAX * len(found)


@pytest.mark.parametrize("chunk", range(-(-PAIRS // CHUNK // 4)))
def test_transitivity_is_never_contradicted(chunk: int):
    @seed(SEED + chunk)
    @SETTINGS
    @given(families(3), st.booleans())
    def holds(family: list[Json], is_closed: bool) -> None:
        first, second, third = family
        steps = [
            answered(question(old, new, is_closed=is_closed)).verdict
            for old, new in ((first, second), (second, third))
        ]
        across = answered(question(first, third, is_closed=is_closed)).verdict

        if steps == [Answer.COMPATIBLE, Answer.COMPATIBLE]:
            assert across is not Answer.INCOMPATIBLE

    print(f"ORACLE_SEED={SEED}")
    holds()
