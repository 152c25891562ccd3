"""Where new identifiers come from."""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7


def new_uuid7() -> UUID:
    """Return a new UUIDv7 (RFC 9562): it sorts by the time at which it was made."""
    return uuid7()


def uuid7_time(identifier: UUID) -> datetime:
    """Return the millisecond at which a UUIDv7 was made (RFC 9562, section 5.7)."""
    return datetime.fromtimestamp((identifier.int >> 80) / 1000, tz=UTC)
