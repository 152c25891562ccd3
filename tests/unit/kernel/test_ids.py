"""Identifiers sort by the time at which they were made, and tell it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from kernel.ids import new_uuid7, uuid7_time


def test_new_identifiers_are_version_7_and_sort_by_age():
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    made = [new_uuid7() for _ in range(1000)]
    after = datetime.now(UTC)
    assert {(one.version, one.variant) for one in made} == {(7, "specified in RFC 4122")}
    assert len(set(made)) == 1000
    assert [uuid7_time(one) for one in made] == sorted(uuid7_time(one) for one in made)
    assert all(before <= uuid7_time(one) <= after for one in made)


def test_the_example_of_the_standard():
    """RFC 9562, appendix A.6."""
    told = uuid7_time(UUID("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"))
    assert told == datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
