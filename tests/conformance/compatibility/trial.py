"""One question put to the engine, and its answer checked without the engine's help."""

import json
import time
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import jsonschema_rs

from tallystick.canonical import MISSING, Json, Missing
from tallystick.compatibility.forms.dialect import localised, modern
from tallystick.compatibility.forms.producer import close
from tallystick.compatibility.judging import judge
from tallystick.compatibility.verdict import Answer, Judgement
from tests.conformance.compatibility.suites import DIALECTS, Case
from tests.conformance.compatibility.values import IsValid, refutation

_ENGINES: Final = {
    DIALECTS["draft-04"]: jsonschema_rs.Draft4Validator,
    DIALECTS["draft-06"]: jsonschema_rs.Draft6Validator,
    DIALECTS["draft-07"]: jsonschema_rs.Draft7Validator,
    DIALECTS["2020-12"]: jsonschema_rs.Draft202012Validator,
}


class Score(StrEnum):
    """What an answer is worth."""

    RIGHT_YES = "right yes"
    WRONG_YES = "wrong yes"
    RIGHT_NO = "right no"
    WRONG_NO = "wrong no"
    UNDECIDED = "undecided"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Trial:
    """An answer and what it is worth.

    Args:
        note: What is wrong with it, or what stopped the analysis.
    """

    case: Case
    score: Score
    seconds: float
    note: str = ""

    @property
    def is_wrong(self) -> bool:
        """Return whether the answer must never have been given."""
        return self.score in (Score.WRONG_YES, Score.WRONG_NO)

    @property
    def is_decided(self) -> bool:
        """Return whether the answer is right."""
        return self.score in (Score.RIGHT_YES, Score.RIGHT_NO)

    def __str__(self) -> str:
        return f"{self.case.id}: {self.score}: {self.note}"


def attempt(case: Case, truth: bool | None) -> Trial:
    """Put a question to the engine and score its answer.

    Where the truth is not known, an answer is wrong if a value speaks against it, and right if not.
    """
    started = time.perf_counter()
    try:
        judgement = judge(*case.sides())
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is a row of the report
        note = f"{type(error).__name__}: {error}".partition("\n")[0]
        kind = "" if case.is_publishable() else "refused: "
        return Trial(case, Score.ERROR, time.perf_counter() - started, kind + note)
    seconds = time.perf_counter() - started
    score, note = _scored(case, truth, judgement)
    return Trial(case, score, seconds, note)


def _scored(case: Case, truth: bool | None, judgement: Judgement) -> tuple[Score, str]:
    if judgement.verdict is Answer.UNDECIDED:
        obstacle = judgement.obstacle
        assert obstacle is not None
        return Score.UNDECIDED, f"{obstacle.reason} ({obstacle.keyword} at {obstacle.path!r})"
    says_yes = judgement.verdict is Answer.COMPATIBLE
    fault = fault_of(case, judgement)
    if not fault and truth is not None and truth is not says_yes:
        value = judgement.witness and text_of(judgement.witness.value)
        fault = f"the truth is {truth}" + (
            "" if says_yes else f", and {value} looks like a witness"
        )
    if says_yes:
        return Score.WRONG_YES if fault else Score.RIGHT_YES, fault
    return Score.WRONG_NO if fault else Score.RIGHT_NO, fault


def fault_of(case: Case, judgement: Judgement, *, tries: int = 150) -> str:
    """Return what values say against a judgement: nothing if they say nothing."""
    if judgement.verdict is Answer.INCOMPATIBLE:
        assert judgement.witness is not None
        return witness_fault(case, judgement.witness.value)
    if judgement.verdict is Answer.COMPATIBLE:
        value = refuting_value(case, tries=tries)
        return "" if value is MISSING else f"refuted by {text_of(value)}"
    return ""


def refuting_value(case: Case, *, tries: int = 150) -> Json | Missing:
    """Return a value that shows that the old schema is not contained, or MISSING."""
    try:
        accepts = validators(case)
    except ValueError:  # a reference leads nowhere: the suite alone can say
        return MISSING
    return refutation((case.old, case.new), *accepts, seed=case.id, tries=tries)


def witness_fault(case: Case, value: Json) -> str:
    """Return why a value is no witness: nothing if it is one."""
    try:
        old, new = validators(case)
    except ValueError as error:
        return f"no validator can be made: {error}".partition("\n")[0]
    if not old(value):
        return f"the writer cannot write {text_of(value)}"
    return f"the reader accepts {text_of(value)}" if new(value) else ""


def validators(case: Case) -> tuple[IsValid, IsValid]:
    """Return what the two sides accept, straight from the validation library."""
    old, new = (
        _compiled(json.dumps(schema), dialect, assert_format=case.assert_format).is_valid
        for schema, dialect in as_read(case)
    )
    return old, new


def as_read(case: Case) -> tuple[tuple[Json, str], tuple[Json, str]]:
    """Return both schemas with their dialects, closed where a declared producer reads them."""
    old, new = zip((case.old, case.new), case.dialects, strict=True)
    return (_closed(*old), _closed(*new)) if case.is_closed else (old, new)


def _closed(schema: Json, dialect: str) -> tuple[Json, str]:
    return close(localised(modern(schema, dialect))), DIALECTS["2020-12"]


@lru_cache(maxsize=4096)
def _compiled(text: str, dialect: str, *, assert_format: bool) -> jsonschema_rs.Validator:
    return _ENGINES[dialect](
        text,
        # Draft-07 leaves open whether they assert; a contract has one reading in all dialects.
        keywords={"contentEncoding": Annotation, "contentMediaType": Annotation},
        retriever=_refuse,
        validate_formats=assert_format,
    )


class Annotation:
    """A keyword that refuses no value."""

    def __init__(self, *_: object) -> None:
        pass

    def validate(self, _: object) -> None:
        """Accept every value."""


def _refuse(uri: str) -> Json:
    raise ValueError(f"nothing is fetched: {uri}")


def text_of(value: Json, limit: int = 200) -> str:
    """Return a value as JSON, cut to a length."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}..."
