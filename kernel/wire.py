"""How values are written on the wire."""

from datetime import UTC, datetime
from typing import overload


@overload
def time_text(moment: datetime) -> str: ...
@overload
def time_text(moment: None) -> None: ...
def time_text(moment: datetime | None) -> str | None:
    """Write a moment as RFC 3339 in UTC, with microseconds."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
