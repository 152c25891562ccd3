"""Our own source keeps the house rules, and each rule can fail."""

from pathlib import PurePosixPath

import pytest

from tests.tidy.rules import (
    FILE_LINES_MAX,
    FUNCTION_LINES_MAX,
    OTHERS,
    PACKAGES,
    RULES,
    Rule,
    Source,
    file_is_named_after_a_noun,
    file_is_short,
    function_fits_a_screen,
    nothing_is_left_for_later,
    only_the_database_tells_the_time,
    only_the_server_commits,
    sources,
)

# rule, path, the longest text it lets pass, the shortest that it does not
SAMPLES: list[tuple[Rule, str, str, str]] = [
    (
        file_is_short,
        "ledger/effect.py",
        "a = 1\n" * FILE_LINES_MAX,
        "a = 1\n" * (FILE_LINES_MAX + 1),
    ),
    (
        function_fits_a_screen,
        "sdk/src/tallystick/canonical.py",
        "def f():\n" + "    a = 1\n" * (FUNCTION_LINES_MAX - 1),
        "def f():\n" + "    a = 1\n" * FUNCTION_LINES_MAX,
    ),
    (
        function_fits_a_screen,
        "ledger/service.py",
        "class A:\n    async def f(self):\n" + "        a = 1\n" * (FUNCTION_LINES_MAX - 1),
        "class A:\n    async def f(self):\n" + "        a = 1\n" * FUNCTION_LINES_MAX,
    ),
    (
        only_the_server_commits,
        "ledger/store.py",
        "def commitment(): ...\n",
        "async def f(c):\n    await c.commit()\n",
    ),
    (
        only_the_server_commits,
        "reconciler/sweep.py",
        "rollback = 1\n",
        "def f(c):\n    c.rollback()\n",
    ),
    (
        only_the_database_tells_the_time,
        "ledger/admission.py",
        "began = time.monotonic()\n",
        "now = datetime.now(UTC)\n",
    ),
    (
        nothing_is_left_for_later,
        "tests/unit/test_state.py",
        "# Everything is done.\n",
        "# TO" + "DO: the rest\n",
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_our_source_keeps(rule: Rule):
    faults = [fault for source in sources(*PACKAGES, *OTHERS) for fault in rule(source)]
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize(("rule", "path", "good", "bad"), SAMPLES)
def test_rule_tells_good_from_bad(rule: Rule, path: str, good: str, bad: str):
    assert list(rule(Source(PurePosixPath(path), good))) == []
    assert len(list(rule(Source(PurePosixPath(path), bad)))) == 1


def test_a_vague_file_name_is_refused():
    assert list(file_is_named_after_a_noun(Source(PurePosixPath("ledger/effect.py"), ""))) == []
    assert list(file_is_named_after_a_noun(Source(PurePosixPath("ledger/utils.py"), "")))


def test_the_server_and_the_migrations_may_commit():
    text = "def f(c):\n    c.commit()\n"
    for path in ("server/database.py", "migrations/env.py"):
        assert list(only_the_server_commits(Source(PurePosixPath(path), text))) == []


def test_every_rule_has_a_sample():
    shown = {rule for rule, *_ in SAMPLES} | {file_is_named_after_a_noun}
    assert shown == set(RULES)


@pytest.mark.parametrize("folder", PACKAGES)
def test_every_package_is_read(folder: str):
    assert sources(folder), f"nothing was read from {folder}: was it moved?"
