"""Versioned tool contracts for LLM agents, and a client for the dispatch ledger.

    from tallystick import Client, Contract, contract

Public names load on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from tallystick import errors
from tallystick.errors import Outage, Refusal, TallystickError

if TYPE_CHECKING:
    from tallystick.answer import Answer
    from tallystick.canonical import canonical_bytes, digest, parse_json
    from tallystick.catalog import Catalog
    from tallystick.client import (
        AsyncClient,
        AsyncEffect,
        Client,
        Effect,
        EffectFailed,
        EffectNotOwned,
        NotSent,
        OutcomeUnreported,
    )
    from tallystick.compatibility.comparison import compare
    from tallystick.compatibility.contracts.comparison import compare_contracts
    from tallystick.declaring import ContractChangedWarning, contract, contract_of
    from tallystick.runtime import Approval, ApprovalRequest, PolicyRuntime, Proposal
    from tallystick.signatures.terms import Injected
    from tallystick.tool_contract import Contract, EffectClass, ToolReference, Version

__all__ = [
    "Answer",
    "Approval",
    "ApprovalRequest",
    "AsyncClient",
    "AsyncEffect",
    "Catalog",
    "Client",
    "Contract",
    "ContractChangedWarning",
    "Effect",
    "EffectClass",
    "EffectFailed",
    "EffectNotOwned",
    "Injected",
    "NotSent",
    "Outage",
    "OutcomeUnreported",
    "PolicyRuntime",
    "Proposal",
    "Refusal",
    "TallystickError",
    "ToolReference",
    "Version",
    "canonical_bytes",
    "compare",
    "compare_contracts",
    "contract",
    "contract_of",
    "digest",
    "errors",
    "parse_json",
]

_HOMES: Final = {
    "answer": ("Answer",),
    "canonical": ("canonical_bytes", "digest", "parse_json"),
    "catalog": ("Catalog",),
    "client": (
        "AsyncClient",
        "AsyncEffect",
        "Client",
        "Effect",
        "EffectFailed",
        "EffectNotOwned",
        "NotSent",
        "OutcomeUnreported",
    ),
    "compatibility.comparison": ("compare",),
    "compatibility.contracts.comparison": ("compare_contracts",),
    "declaring": ("ContractChangedWarning", "contract", "contract_of"),
    "runtime": ("Approval", "ApprovalRequest", "PolicyRuntime", "Proposal"),
    "signatures.terms": ("Injected",),
    "tool_contract": ("Contract", "EffectClass", "ToolReference", "Version"),
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value  # from now on an ordinary attribute
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
