"""What a person sees of keys and signatures. Pure, as all views are."""

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from cli.connection import JsonObject
from cli.views import SIGNATURE_COLUMNS, fields, listing
from tallystick.plain import plain

# No more, so that a key's id stands whole on 80 columns.
_KEY_COLUMNS: Final = {"key_id": "Key", "name": "Name", "revoked_at": "Revoked"}


def keys(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `keys list`."""
    return listing(answer["keys"], _KEY_COLUMNS) or [Text("There is no key.")]


def revoked_key(answer: JsonObject) -> Sequence[RenderableType]:
    """A key that is trusted no more, and the versions that stop for it."""
    shown = {name: answer[name] for name in ("key_id", "name", "revoked_at", "reason")}
    return [*fields(shown), *_unsigned(answer)]


def policy(answer: JsonObject) -> Sequence[RenderableType]:
    """Whether signatures are required, and which versions have none that counts."""
    required = "Signatures are required." if answer["required"] else "Signatures are not required."
    since = {name: answer[name] for name in ("required_at", "required_by") if answer["required"]}
    return [Text(required), *(fields(since) if since else ()), *_unsigned(answer)]


def _unsigned(answer: JsonObject) -> list[Text]:
    if not answer["unsigned"]:
        return []
    effect = ", and so not to be resolved" if answer["required"] else ""
    named = ", ".join(map(plain, answer["unsigned"]))
    return [Text(f"Without a signature that counts{effect}: {named}.")]


def signed(answer: JsonObject) -> Sequence[RenderableType]:
    """A version, by its digest, and its signatures."""
    shown = {name: answer[name] for name in ("name", "version", "contract_digest")}
    return [*fields(shown), *listing(answer["signatures"], SIGNATURE_COLUMNS)]
