"""Reads the pages of a listing, as the contract says, and tells where the next one is. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from reconciler.addresses import PORTS
from reconciler.judgement import is_success
from tallystick.canonical import Json, MalformedJson, Missing, parse_json, resolve_pointer
from tallystick.provider import ListingEvidence

ITEMS_MAX: Final = 1000
"""How many items a page may have."""
_CURSOR_CHARS_MAX: Final = 2048


@dataclass(frozen=True, slots=True)
class Page:
    """The items of a page, and what names the next one: None on the last."""

    items: list[Json]
    cursor: str | None


class UnreadablePage(ValueError):
    """A page is not what the contract says, and the pass cannot go on from there."""


def url_of_page(listing: ListingEvidence, since: datetime, cursor: str | None) -> str:
    """Return the address of a page: of the first one without a cursor.

    Raises UnreadablePage for a link that leads to somebody else than whom the contract names.
    """
    moment = since.astimezone(UTC).replace(microsecond=0)
    text = moment.isoformat().replace("+00:00", "Z")
    first = listing.http.url.replace("{since}", quote(text, safe="")).replace(
        "{since_unix}", str(int(moment.timestamp()))
    )
    if cursor is None:
        return first
    if listing.parameter is not None:
        parts = urlsplit(first)
        added = f"{quote(listing.parameter, safe='')}={quote(cursor, safe='')}"
        return parts._replace(query=f"{parts.query}&{added}" if parts.query else added).geturl()
    try:
        link = urljoin(first, cursor)
        is_theirs = _origin(link) == _origin(first)
    except ValueError:  # it is no address
        raise UnreadablePage("the link to the next page is none") from None
    if not is_theirs:
        raise UnreadablePage("the next page is said to be elsewhere")
    return link


def read_page(
    listing: ListingEvidence, status: int, body: bytes, *, link: str | None, cursor: str | None
) -> Page:
    """Read a page that was named by ``cursor``.

    ``link`` is that of its `Link` header. Raises UnreadablePage for whatever is none.
    """
    if not is_success(status):
        raise UnreadablePage(f"status {status}")
    try:
        told = parse_json(body)
    except MalformedJson as fault:
        raise UnreadablePage(f"the page is not JSON: {fault.detail}") from None
    items = resolve_pointer(told, listing.items)
    if not isinstance(items, list):
        raise UnreadablePage(f"the page has no array at {listing.items!r}")
    if len(items) > ITEMS_MAX:
        raise UnreadablePage(f"the page has more than {ITEMS_MAX} items")
    following = _text(_following(listing, told, items, link))
    if following is not None and following == cursor:
        raise UnreadablePage("the page names itself as the next one")
    return Page(items, following)


def _following(
    listing: ListingEvidence, told: Json, items: list[Json], link: str | None
) -> Json | Missing:
    if listing.next is not None:
        return resolve_pointer(told, listing.next)
    if listing.last is not None:
        return resolve_pointer(items[-1], listing.last) if items else None
    return link


def _text(following: Json | Missing) -> str | None:
    """Return what names the next page: a text, or a number that counts."""
    if isinstance(following, bool | float) or not isinstance(following, str | int):
        return None
    text = str(following)
    if len(text) > _CURSOR_CHARS_MAX or not text.isprintable():
        raise UnreadablePage("what names the next page is too long, or no text")
    return text or None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    if parts.username is not None:
        raise ValueError("a link names a user")
    return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)
