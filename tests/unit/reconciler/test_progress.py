"""How far a listing has been read, and when it goes on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ledger.listing import OVERLAP_SECONDS, Found
from reconciler.pages import Page
from reconciler.progress import FAILURES_MAX, Advance, Progress, after_failure, after_page

BEGAN = datetime(2026, 11, 30, 12, tzinfo=UTC)
SINCE = BEGAN - timedelta(days=1)
PROGRESS = Progress(3, SINCE, BEGAN, "7", 0, BEGAN + timedelta(seconds=5))


def passed(page: Page, progress: Progress = PROGRESS, lag_seconds: float = 60) -> Advance:
    found = {Found.ORPHAN: 1, Found.NEWS: 2, Found.KNOWN: 4, Found.GONE: 8, Found.UNNAMED: 16}
    return after_page(progress, page, found, lag_seconds=lag_seconds, interval_seconds=300)


def test_a_pass_goes_on_where_a_page_says():
    step = passed(Page([None] * 31, "8"))
    assert (step.since, step.began_at, step.cursor, step.wait_seconds) == (SINCE, BEGAN, "8", 0)
    assert (step.listed, step.orphans, step.ignored) == (31, 1, 24)


def test_the_next_pass_reaches_back_before_this_one():
    """What appears late was dated by a clock that is not ours, and seen after the source's lag."""
    step = passed(Page([], None))
    assert step.since == BEGAN - timedelta(seconds=60 + OVERLAP_SECONDS)
    assert (step.began_at, step.cursor, step.wait_seconds) == (None, None, 300)
    recent = replace(PROGRESS, since=BEGAN)
    assert passed(Page([], None), recent).since == BEGAN, "it never goes back"


def test_failures_wait_longer_and_longer_and_then_begin_anew():
    waits, progress, steps = list[float](), PROGRESS, list[Advance]()
    for _ in range(8):
        steps.append(after_failure(progress, 300))
        waits.append(steps[-1].wait_seconds)
        progress = replace(progress, failures=steps[-1].failures)
    assert waits == [300, 600, 1200, 2400, 3600, 3600, 3600, 3600]
    kept = [step.cursor for step in steps[:FAILURES_MAX]]
    assert kept == ["7"] * (FAILURES_MAX - 1) + [None]
    assert steps[FAILURES_MAX - 1].began_at is None
    assert {step.since for step in steps} == {SINCE}, "nothing is passed over"
    assert after_failure(PROGRESS, 86400).wait_seconds == 86400
