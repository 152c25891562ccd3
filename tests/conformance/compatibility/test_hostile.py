"""Schemas made to hurt: an answer or a refusal, within the steps, the memory and the stack.

Each pair is judged in a process of its own, whose address space is limited.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.compatibility.budget import STEPS
from tests.conformance.compatibility import hostile

KILOBYTES_MAX = 500 * 1024
SECONDS_MAX = 60
SCRIPT = Path(hostile.__file__)


def judged(name: str, steps: int) -> dict:
    """Judge a pair in a process of its own."""
    done = subprocess.run(
        [sys.executable, SCRIPT, name, str(steps)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", hostile.PAIRS)
def test_hostile_pair_is_answered_or_refused(name: str):
    answer = judged(name, STEPS)

    allowed = hostile.PAIRS[name][1]
    assert answer["any"] in allowed, answer
    assert answer["kilobytes"] < KILOBYTES_MAX


@pytest.mark.parametrize(
    "name", ["alternatives in all", "many branches", "conditions", "recursion"]
)
@pytest.mark.parametrize("steps", [0, 1, 30, 1_000])
def test_few_steps_are_never_overdrawn_into_a_guess(name: str, steps: int):
    answer = judged(name, steps)

    assert answer["any"] in hostile.PAIRS[name][1] | {hostile.OPEN}, answer
