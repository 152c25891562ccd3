"""Every gold call of tau2-bench passes all five gates, in its place in its run.

The look-ups that the policies ask for are put in where a gold list leaves them out.
"""

import json

import pytest

from tests.conformance.tau import corpus
from tests.conformance.tau.mutations import BLOCKED, NOT_FOUND, UNKNOWN, USER_NOT_FOUND
from tests.conformance.tau.run import Run

pytestmark = pytest.mark.skipif(
    not corpus.is_there(), reason=f"tau-bench and tau2-bench are not in {corpus.CORPUS}"
)

COUNTS = {"retail": 550, "airline": 142, "telecom": 27}

STOPPED = {
    # tau-bench has no such tool; tau2-bench added it later.
    **dict.fromkeys(("21_5", "21_6", "21_8"), UNKNOWN),
    # An agent that tries again: nobody is found by these.
    **dict.fromkeys(("35_0", "37_0", "38_0", "39_0", "54_0", "55_0"), USER_NOT_FOUND),
    **dict.fromkeys(("67_0", "67_1", "68_0"), USER_NOT_FOUND),
    # An agent that tries again: a letter of the order is missing.
    **dict.fromkeys(("46_1", "46_2", "47_1", "47_2"), NOT_FOUND),
    # The order is pending: the next call changes it as such.
    "64_6": BLOCKED,
}


@pytest.mark.parametrize(("as_text", "asks_tools"), [(False, False), (True, True)])
@pytest.mark.parametrize("domain", corpus.DOMAINS)
def test_every_gold_call_passes_in_its_run(domain, as_text, asks_tools):
    stopped, count = {}, 0
    for task in corpus.tasks(domain):
        run = Run(task, asks_tools=asks_tools)
        for call in task.calls:
            count += 1
            run.look_first(call)
            told = run.call(call.tool, json.dumps(call.arguments) if as_text else call.arguments)
            if told.stop is not None:
                stopped[call.id] = told.stop

    assert stopped == (STOPPED if domain == "retail" else {})
    assert count == COUNTS[domain]
