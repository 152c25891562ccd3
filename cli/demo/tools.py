"""The demo's tools: their contracts, and how each is called at the provider."""

from pathlib import Path
from typing import Final

import httpx

from cli.connection import JsonObject
from tallystick import AsyncEffect, Effect
from tallystick.document import parse_document

CONTRACTS: Final = Path(__file__).parent / "contracts"
PROVIDER_IN_CONTRACTS: Final = "http://provider.invalid"
KINDS: Final = {
    "billing.send_invoice": "invoices",
    "payments.transfer": "transfers",
    "messages.post": "messages",
    "crm.add_note": "notes",
}
"""What each tool that writes makes at the provider."""


def documents(provider_url: str) -> list[JsonObject]:
    """Return the contracts, with the address at which the provider is asked for evidence."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(CONTRACTS.glob("*.yaml"))]
    return [document_of(text.replace(PROVIDER_IN_CONTRACTS, provider_url)) for text in texts]


def document_of(text: str) -> JsonObject:
    """Read a contract document in YAML."""
    document = parse_document(text, format="yaml")
    assert isinstance(document, dict), "a contract is an object"
    return document


def request_for(
    http: httpx.Client | httpx.AsyncClient, tool: str, effect: Effect | AsyncEffect
) -> httpx.Request:
    """Return the request to the provider for an effect that has been dispatched.

    What is sent is what was recorded, not what anybody would send today.
    Raises LeaseExpired when it is too late to send it.
    """
    return http.build_request(
        "POST",
        f"/{KINDS[tool]}",
        json=effect.arguments,
        headers={**effect.headers(), "Effect-Id": effect.effect_id},
        timeout=effect.timeout(),
    )


def reference_in(response: httpx.Response) -> str:
    """Return the provider's name for what it booked. Raises httpx.HTTPStatusError if it refused."""
    return str(response.raise_for_status().json()["reference"])
