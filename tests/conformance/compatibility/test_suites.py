"""The public suites: no answer is ever wrong, in either direction, and nearly all are given.

Every witness is checked with a validator of its own, and every "compatible" is attacked with
values: neither asks the engine.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from tallystick.canonical import Json
from tallystick.compatibility.judging import Side, judge
from tallystick.compatibility.verdict import Answer
from tests.conformance.compatibility.disputed import DISPUTED
from tests.conformance.compatibility.suites import CORPUS, SUITES, Case, cases
from tests.conformance.compatibility.trial import Score, Trial, attempt, validators, witness_fault

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the suites are not in {CORPUS}")

SHOWN_MAX = 20

# How much of what has a known answer, or of what somebody really changed, must be decided.
BARS = {
    "vendors": (("apicurio", "karapace", "jsonsubschema"), 1_131, 0.99),
    "probes": (("probes",), 22, 1.0),
    "containment": (("containment draft-07", "containment 2020-12"), 4_546, 0.98),
    "github": (("github",), 648, 0.995),
}


@cache
def trials(suite: str) -> tuple[Trial, ...]:
    return tuple(attempt(case, truth_of(case)) for case in cases(suite))


def truth_of(case: Case) -> bool | None:
    return DISPUTED[case.id].truth if case.id in DISPUTED else case.truth


def listed(trials: list[Trial]) -> str:
    lines = [str(trial) for trial in trials[:SHOWN_MAX]]
    return "\n".join([f"{len(trials)} cases", *lines])


@pytest.mark.parametrize("suite", SUITES)
def test_no_answer_is_wrong(suite: str):
    wrong = [trial for trial in trials(suite) if trial.is_wrong]

    assert not wrong, listed(wrong)


@pytest.mark.parametrize("name", BARS)
def test_enough_is_decided(name: str):
    suites, count, bar = BARS[name]
    found = [trial for suite in suites for trial in trials(suite)]
    if name != "github":
        found = [trial for trial in found if truth_of(trial.case) is not None]
    assert len(found) == count
    open_ = [trial for trial in found if not trial.is_decided]

    assert len(open_) <= (1 - bar) * count, listed(open_)


@pytest.mark.parametrize("suite", SUITES)
def test_only_what_is_no_schema_is_refused(suite: str):
    broken = [trial for trial in trials(suite) if trial.score is Score.ERROR]

    assert not [trial for trial in broken if not trial.note.startswith("refused: ")], listed(broken)


@pytest.mark.parametrize("suite", ["optional draft-07", "optional 2020-12"])
def test_format_is_an_annotation_unless_it_is_asserted(suite: str):
    wrong = []
    for case in cases(suite):
        if case.assert_format and isinstance(case.old, dict) and case.old.keys() == {"const"}:
            told = replace(case, assert_format=False)
            truth = bool(witness_fault(told, case.old["const"]))
            wrong += [trial] if (trial := attempt(told, truth)).is_wrong else []

    assert not wrong, listed(wrong)


def test_new_format_breaks_only_where_it_is_asserted():
    old: Json = {"type": "string"}
    new: Json = {"type": "string", "format": "date-time"}

    assert judge(Side(old), Side(new)).verdict is Answer.COMPATIBLE
    asserted = judge(Side(old, assert_format=True), Side(new, assert_format=True))
    assert asserted.verdict is Answer.INCOMPATIBLE


# --- what the suites get wrong --------------------------------------------------------------------


@cache
def cases_by_id() -> dict[str, Case]:
    return {case.id: case for suite in SUITES for case in cases(suite)}


@pytest.mark.parametrize("id_", DISPUTED)
def test_dispute_is_shown(id_: str):
    case, dispute = cases_by_id()[id_], DISPUTED[id_]
    assert case.truth is not dispute.truth

    if not dispute.truth:
        assert not witness_fault(case, dispute.witness)
    elif isinstance(case.old, dict) and case.old.keys() == {"const"}:
        assert all(accepts(case.old["const"]) for accepts in validators(case))
    else:
        pair: tuple[Any, Any] = (case.old, case.new)
        old, new = (jsonschema_rs.canonicalize(schema) for schema in pair)
        assert new.covers(old) is jsonschema_rs.canonical.Containment.YES
