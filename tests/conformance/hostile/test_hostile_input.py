"""Input made to hurt, over HTTP: an answer or a documented refusal, within memory and steps.

Each corpus is sent in a process of its own, whose address space is limited. The time is limited
too, far beyond what it takes: what comes to no end fails.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.problems import STATUS
from tests.conformance.hostile import sender

KILOBYTES_MAX = 900 * 1024
SECONDS_MAX = 280
SCRIPT = Path(sender.__file__)

REFUSALS = {
    "schemas": {"invalid_contract", "invalid_request", "invalid_arguments", "too_large"},
    "arguments": {"invalid_arguments", "invalid_request", "too_large"},
    "bodies": {"invalid_request", "invalid_contract", "invalid_arguments", "too_large"},
    "yaml": {"malformed", "too_large"},
}


@pytest.mark.parametrize("corpus", sender.KINDS)
def test_what_is_made_to_hurt_is_answered_or_refused(
    corpus: str, database_url: str, tmp_path: Path
):
    done = subprocess.run(
        [sys.executable, SCRIPT, corpus, database_url, tmp_path / "home"],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]

    assert [name for name, _, _ in told] == list(sender.read(corpus))
    for name, answers, kilobytes in told:
        for status, code in answers:
            if corpus != "yaml" and code:
                assert status == STATUS[code], (name, answers)
            assert status in (200, 201) or code in REFUSALS[corpus], (name, answers)
        assert kilobytes < KILOBYTES_MAX, (name, kilobytes)
    if corpus != "bodies":
        assert any(status in (200, 201) for _, answers, _ in told for status, _ in answers)
