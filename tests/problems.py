"""Problem documents as the service promises them (RFC 9457)."""

from typing import Any

import httpx

from tallystick.canonical import pointer_split

_ALWAYS = {"type", "title", "status", "detail", "code", "retryable"}


def problem_in(response: httpx.Response) -> dict[str, Any]:
    """Return the problem that an answer is, held to the documented form."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body = response.json()
    assert body.keys() >= _ALWAYS, body
    assert body.keys() <= _ALWAYS | {"pointer", "facts"}, body
    assert body["type"] == f"urn:tallystick:problem:{body['code']}"
    assert body["status"] == response.status_code
    assert body["title"].endswith(".")
    assert body["detail"]
    assert isinstance(body["retryable"], bool)
    pointer_split(body.get("pointer", ""))
    challenge = "Bearer" if response.status_code == 401 else None
    assert response.headers.get("www-authenticate") == challenge
    return body
