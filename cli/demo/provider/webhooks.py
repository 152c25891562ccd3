"""Tells a subscriber what became of a booking, signed as Standard Webhooks has it.

See https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
"""

import asyncio
import json
import time
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from hashlib import sha256
from hmac import digest
from typing import Final

import httpx

from cli.demo.provider.books import Books, Row
from cli.demo.provider.faults import Fault, Subscriber, Trouble

RETRY_SECONDS: Final = (0.0, 0.5, 2.0, 8.0)
ANSWER_SECONDS_MAX: Final = 5.0


def signature(secret: str, webhook_id: str, timestamp: int, content: bytes) -> str:
    """Return the `webhook-signature` of a message: HMAC-SHA256 over its id, time and content."""
    signed = f"{webhook_id}.{timestamp}.".encode() + content
    key = b64decode(secret.removeprefix("whsec_"))
    return f"v1,{b64encode(digest(key, signed, sha256)).decode()}"


class Webhooks:
    """Sends messages, each until it is taken, and notes every try in the books."""

    def __init__(self, http: httpx.AsyncClient, books: Books) -> None:
        self._http = http
        self._books = books

    async def tell(self, subscriber: Subscriber, booking: Row, trouble: Trouble) -> None:
        """Tell of a booking; all tries carry one id, by which the subscriber knows them again."""
        await asyncio.sleep(trouble.delay(Fault.TELLS_LATE))
        webhook_id = f"msg_{booking['reference']}_{booking['status']}"
        kind = booking["kind"].removesuffix("s")
        message = {
            "type": f"{kind}.{booking['status']}",
            "timestamp": datetime.fromtimestamp(time.time(), UTC).isoformat(),
            "data": booking,
        }
        if trouble.fault is Fault.TELLS_NOTHING:
            self._books.note_delivery(webhook_id, trouble.fault, None, now=time.time())
            return
        for _ in range(2 if trouble.fault is Fault.TELLS_TWICE else 1):
            for seconds in RETRY_SECONDS:
                await asyncio.sleep(seconds)
                if await self._is_taken(subscriber, webhook_id, message, trouble.fault):
                    break

    async def _is_taken(
        self, subscriber: Subscriber, webhook_id: str, message: Row, fault: Fault | None
    ) -> bool:
        content, timestamp = json.dumps(message).encode(), int(time.time())
        signed = signature(subscriber.secret, webhook_id, timestamp, content)
        if fault is Fault.IS_FORGED:
            signed = f"v1,{b64encode(sha256(content).digest()).decode()}"
        headers = {
            "Content-Type": "application/json",
            "webhook-id": webhook_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signed,
        }
        try:
            answer = await self._http.post(
                str(subscriber.url), content=content, headers=headers, timeout=ANSWER_SECONDS_MAX
            )
        except httpx.HTTPError:
            self._books.note_delivery(webhook_id, fault, None, now=time.time())
            return False
        self._books.note_delivery(webhook_id, fault, answer.status_code, now=time.time())
        # Who has gone for good (410) or refuses a forgery is not asked again.
        return answer.is_success or answer.is_client_error
