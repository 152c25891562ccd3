"""Checks that a message is the provider's own: signatures as Standard Webhooks has them.

The signed text is the message's id, the time of sending and the body, so that none of them can be
exchanged. What was sent more than five minutes ago, or is dated as far ahead, is refused.
Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid5

from standardwebhooks import Webhook, WebhookVerificationError

from tallystick.errors import Unauthenticated

_ID_CHARS_MAX: Final = 200
_PREFIX: Final = "whsec_"
_SECRET_BYTES_MIN: Final = 24
_NAMESPACE: Final = UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")  # RFC 9562, of OIDs


@dataclass(frozen=True, slots=True)
class Signed:
    """What is known of a message whose signature is right: its id, and when it was sent."""

    message_id: str
    sent_at: datetime

    def evidence_id(self, source: str) -> UUID:
        """Return the id of the evidence that it is: the same message is the same evidence."""
        return uuid5(_NAMESPACE, f"tallystick\0webhook\0{source}\0{self.message_id}")


def verified(secrets: Iterable[str], headers: Mapping[str, str], body: bytes) -> Signed:
    """Return a message as it was signed with one of the secrets.

    The secrets are those of one source: the one that signs now, and beside it the next or the last.

    Raises:
        Unauthenticated: It was signed with none of them, or too long ago.
    """
    message_id = headers.get("webhook-id", "")
    if not any(_is_signed(secret, headers, body) for secret in secrets):
        raise Unauthenticated("The message has no signature that is known here.")
    if len(message_id) > _ID_CHARS_MAX or not message_id.isprintable():
        raise Unauthenticated("The message has no id that can be kept.")
    return Signed(message_id, datetime.fromtimestamp(float(headers["webhook-timestamp"]), UTC))


def check_secret(secret: str) -> str:
    """Return a secret of Standard Webhooks: `whsec_` and at least 24 bytes in base64.

    Raises ValueError for anything else, and does not quote it.
    """
    if len(b64decode(secret.removeprefix(_PREFIX), validate=True)) < _SECRET_BYTES_MIN:
        raise ValueError("a secret has at least 24 bytes")
    if not secret.startswith(_PREFIX):
        raise ValueError(f"a secret begins with {_PREFIX}")
    return secret


def _is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    except (WebhookVerificationError, ValueError):  # the latter of what is no base64, or no text
        return False
    return True
