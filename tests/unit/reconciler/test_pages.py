"""How the pages of a listing are asked for and read: the ways in which providers have them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.pages import ITEMS_MAX, Page, UnreadablePage, read_page, url_of_page
from tallystick.provider import ListingEvidence
from tests.builders import http_listing

SINCE = datetime(2026, 11, 30, 12, 0, 0, 999, tzinfo=UTC)


def listing(**changes: Any) -> ListingEvidence:
    """Return a listing; a change of None leaves a field out."""
    said = http_listing(80) | {"url": "https://api.acme.example/v1/invoices"} | changes
    return ListingEvidence.of({name: value for name, value in said.items() if value is not None})


def read(
    told: Any, *, status: int = 200, link: str | None = None, cursor: str | None = None, **how: Any
) -> Page:
    body = told if isinstance(told, bytes) else json.dumps(told).encode()
    return read_page(listing(**how), status, body, link=link, cursor=cursor)


@pytest.mark.parametrize(
    ("how", "cursor", "url"),
    [
        # Stripe's way, GitHub's, and Adyen's
        (
            {"url": "https://a.example/v1?created[gte]={since_unix}", "parameter": "after"},
            None,
            "https://a.example/v1?created[gte]=1796040000",
        ),
        (
            {"url": "https://a.example/v1?created[gte]={since_unix}", "parameter": "after"},
            "ch_1&x=/",
            "https://a.example/v1?created[gte]=1796040000&after=ch_1%26x%3D%2F",
        ),
        (
            {"url": "https://a.example/v1?since={since}"},
            None,
            "https://a.example/v1?since=2026-11-30T12%3A00%3A00Z",
        ),
        ({"url": "https://a.example/v1", "parameter": "p"}, "7", "https://a.example/v1?p=7"),
        (
            {"url": "https://a.example/v1", "parameter": None},
            "https://a.example:443/v1?cursor=7",
            "https://a.example:443/v1?cursor=7",
        ),
        (
            {"url": "https://a.example/v1/all", "parameter": None},
            "?cursor=7",
            "https://a.example/v1/all?cursor=7",
        ),
    ],
)
def test_where_a_page_is(how: dict[str, Any], cursor: str | None, url: str):
    assert url_of_page(listing(**how), SINCE, cursor) == url


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/v1",
        "http://api.acme.example/v1",
        "https://api.acme.example:444/v1",
        "https://api.acme.example@evil.example/",
        "https://me:pw@api.acme.example/v1",
        "//evil.example/v1",
        "file:///etc/passwd",
        "https://[::1",
        "https://api.acme.example:port/",
    ],
)
def test_no_link_leads_to_somebody_else(link: str):
    with pytest.raises(UnreadablePage):
        url_of_page(listing(parameter=None), SINCE, link)


@pytest.mark.parametrize(
    ("told", "how", "link", "cursor"),
    [
        ({"bookings": [1], "next": 7}, {}, None, "7"),
        ({"bookings": [1], "next": "c/1"}, {}, None, "c/1"),
        ({"bookings": [1], "next": None}, {}, None, None),
        ({"bookings": [1], "next": ""}, {}, None, None),
        ({"bookings": [1], "next": False}, {}, None, None),
        ({"bookings": [1], "next": {}}, {}, None, None),
        ({"bookings": [1]}, {}, None, None),
        ({"bookings": [1]}, {}, "https://ignored.example", None),
        ({"bookings": [{"id": "a"}, {"id": "b"}]}, {"next": None, "last": "/id"}, None, "b"),
        ({"bookings": []}, {"next": None, "last": "/id"}, None, None),
        ({"bookings": [1]}, {"next": None, "last": "/id"}, None, None),
        ([1], {"items": "", "next": None}, "https://a.example/2", "https://a.example/2"),
        ([1], {"items": "", "next": None}, None, None),
    ],
)
def test_what_names_the_next_page(
    told: Any, how: dict[str, Any], link: str | None, cursor: str | None
):
    assert read(told, link=link, **how).cursor == cursor


@pytest.mark.parametrize(
    ("told", "status", "why"),
    [
        ({"bookings": []}, 500, "status 500"),
        ({"bookings": []}, 302, "status 302"),
        (b"<html>", 200, "not JSON"),
        (b'{"bookings":["\\u0000"]}', 200, "not JSON"),
        ({}, 200, "no array"),
        ({"bookings": {}}, 200, "no array"),
        ({"bookings": [0] * (ITEMS_MAX + 1)}, 200, "more than 1000"),
        ({"bookings": [], "next": "x" * 2049}, 200, "too long"),
        ({"bookings": [], "next": "a\nb"}, 200, "no text"),
        ({"bookings": [], "next": "6"}, 200, "itself"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_no_page(told: Any, status: int, why: str):
    with pytest.raises(UnreadablePage, match=why):
        read(told, status=status, cursor="6")
