"""How far a listing has been read, and what follows a page or a failure. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from ledger.listing import Found, next_since
from reconciler.pages import Page

FAILURES_MAX: Final = 3
"""After how many failures a pass begins anew: what names its next page may be what is wrong."""
WAIT_SECONDS_MAX: Final = 3600.0
"""How long a listing that cannot be read waits at most, unless passes are further apart."""
_IGNORED: Final = frozenset(Found) - {Found.ORPHAN, Found.NEWS, Found.KNOWN}


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing that contracts of one tool name, and that is read once for all of them.

    ``contract_ids`` are those contracts, the newest first; ``is_publisher`` tells whether they are
    the tenant's own.
    """

    key: str
    tool: str
    is_publisher: bool
    contract_ids: Sequence[UUID]
    published_at: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a listing has been read by who has claimed it: its fence says who that is.

    The pass that began at ``began_at`` lists what there is since ``since``, and goes on at
    ``cursor``. ``asked_at`` is the database's time from before the next page is asked for.
    """

    fence: int
    since: datetime
    began_at: datetime
    cursor: str | None
    failures: int
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a listing has been read now, and when it is to go on.

    Between two passes ``began_at`` is None. The counts are those of the items of one page.
    """

    since: datetime
    began_at: datetime | None
    cursor: str | None
    wait_seconds: float
    failures: int = 0
    listed: int = 0
    orphans: int = 0
    ignored: int = 0


def after_page(
    progress: Progress,
    page: Page,
    found: Mapping[Found, int],
    *,
    lag_seconds: float,
    interval_seconds: float,
) -> Advance:
    """Return what follows a page: the next one at once, or after the last one the next pass."""
    is_last = page.cursor is None
    since = progress.since
    if is_last:
        since = next_since(since, progress.began_at, lag_seconds)
    return Advance(
        since,
        None if is_last else progress.began_at,
        page.cursor,
        wait_seconds=interval_seconds if is_last else 0.0,
        listed=len(page.items),
        orphans=found.get(Found.ORPHAN, 0),
        ignored=sum(found.get(one, 0) for one in _IGNORED),
    )


def after_failure(progress: Progress, interval_seconds: float) -> Advance:
    """Return what follows a page that could not be read: a wait, doubled to a bound."""
    failures = progress.failures + 1
    begins_anew = failures % FAILURES_MAX == 0
    wait_seconds = interval_seconds * 2.0 ** min(failures - 1, 30)
    return Advance(
        progress.since,
        None if begins_anew else progress.began_at,
        None if begins_anew else progress.cursor,
        wait_seconds=min(wait_seconds, max(WAIT_SECONDS_MAX, interval_seconds)),
        failures=failures,
    )
