"""How a moment is written."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kernel.wire import time_text
from tests.api import moment


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2026, 11, 30, 12, tzinfo=UTC), "2026-11-30T12:00:00.000000Z"),
        (datetime(2026, 11, 30, 12, 0, 0, 1, tzinfo=UTC), "2026-11-30T12:00:00.000001Z"),
        (
            datetime(2026, 11, 30, 0, 30, tzinfo=timezone(timedelta(hours=1))),
            "2026-11-29T23:30:00.000000Z",
        ),
    ],
)
def test_a_moment_is_written_in_utc_to_the_microsecond(value: datetime, text: str):
    assert time_text(value) == text
    assert moment(text) == value


def test_no_moment_is_none():
    assert time_text(None) is None
