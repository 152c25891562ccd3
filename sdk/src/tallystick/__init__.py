"""Versioned tool contracts for LLM agents, and a client for the dispatch ledger.

    from tallystick import Client, Contract

Public names load on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from tallystick import errors
from tallystick.errors import Outage, Refusal, TallystickError

if TYPE_CHECKING:
    from tallystick.canonical import canonical_bytes, digest, parse_json
    from tallystick.catalog import Catalog
    from tallystick.client import (
        AsyncClient,
        AsyncEffect,
        Client,
        Effect,
        EffectNotOwned,
        NotSent,
        OutcomeUnknown,
    )
    from tallystick.contract import Contract, EffectClass, ToolReference, Version

__all__ = [
    "AsyncClient",
    "AsyncEffect",
    "Catalog",
    "Client",
    "Contract",
    "Effect",
    "EffectClass",
    "EffectNotOwned",
    "NotSent",
    "Outage",
    "OutcomeUnknown",
    "Refusal",
    "TallystickError",
    "ToolReference",
    "Version",
    "canonical_bytes",
    "digest",
    "errors",
    "parse_json",
]

_HOME: Final = {
    "AsyncClient": "client",
    "AsyncEffect": "client",
    "Catalog": "catalog",
    "Client": "client",
    "Contract": "contract",
    "Effect": "client",
    "EffectClass": "contract",
    "EffectNotOwned": "client",
    "NotSent": "client",
    "OutcomeUnknown": "client",
    "ToolReference": "contract",
    "Version": "contract",
    "canonical_bytes": "canonical",
    "digest": "canonical",
    "parse_json": "canonical",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value  # from now on an ordinary attribute
    return value
