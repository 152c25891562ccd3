"""The contracts of the simulated tools: every effect class, and each way to ask its provider."""

from dataclasses import dataclass, replace
from typing import Any, Final

from tallystick.effect_class import EffectClass
from tallystick.tool_contract import Contract
from tests.builders import a_contract_of

LEASE_SECONDS: Final = 10
SETTLE_SECONDS: Final = 6
RETENTION_SECONDS: Final = 70
LAG_SECONDS: Final = 2
TIMEOUT_SECONDS: Final = 2
ONCE: Final = frozenset({EffectClass.UNKNOWN, EffectClass.NON_RETRYABLE})


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with both of its versions, which mean the same."""

    versions: tuple[Contract, Contract]

    @property
    def name(self) -> str:
        return self.versions[0].name


def evidence(*, consistency: str, lag_seconds: float, by_key: bool) -> dict[str, Any]:
    """Return how the simulated provider is asked."""
    place = "keys/{idempotency_key}" if by_key else "effects/{effect_id}"
    bind = "idempotency_key" if by_key else "effect_id"
    return {
        "source": "http",
        "consistency": consistency,
        "lag_seconds": lag_seconds,
        "http": {
            "url": f"https://provider.example/{place}",
            "timeout_seconds": TIMEOUT_SECONDS,
        },
        "answer": {
            "absent_statuses": [404],
            "state": "/status",
            "applied": ["applied"],
            "rejected": ["declined"],
            "in_progress": ["pending"],
            "reference": "/id",
            "bind": {"pointer": f"/{bind}", "equals": bind},
            "match": {"/amount_cents": "/amount_cents"},
        },
    }


_PROMPT: Final = evidence(consistency="read_after_write", lag_seconds=0, by_key=False)
_LAGGING: Final = evidence(consistency="read_after_write", lag_seconds=LAG_SECONDS, by_key=False)
_BY_KEY: Final = evidence(consistency="read_after_write", lag_seconds=0, by_key=True)
_EVENTUAL: Final = evidence(consistency="eventual", lag_seconds=LAG_SECONDS, by_key=False)


def _tool(effect_class: str, **changes: Any) -> Tool:
    idempotency = None
    if effect_class == "IDEMPOTENT":
        idempotency = {
            "header": "Idempotency-Key",
            "retention_seconds": RETENTION_SECONDS,
            "conflict": {"statuses": [422]},
        }
    facts = {
        "lease_seconds": LEASE_SECONDS,
        "settle_seconds": SETTLE_SECONDS,
        "idempotency": idempotency,
        "output_schema": None,
    }
    first = Contract.parse(a_contract_of(effect_class, **(facts | changes), version="1.0"))
    second = Contract.parse(a_contract_of(effect_class, **(facts | changes), version="2.0"))
    return Tool((first, second))


TOOLS: Final = {
    "PURE": (_tool("PURE"),),
    "IDEMPOTENT": (
        _tool("IDEMPOTENT", evidence=_PROMPT),
        _tool("IDEMPOTENT", evidence=_LAGGING, attempts_max=5),
        _tool("IDEMPOTENT", evidence=_BY_KEY, attempts_max=5),
        _tool("IDEMPOTENT", evidence=_PROMPT, approval="always"),
        _tool("IDEMPOTENT", evidence=_EVENTUAL),
        _tool("IDEMPOTENT"),
    ),
    "NON_RETRYABLE": (
        _tool("NON_RETRYABLE", evidence=_PROMPT),
        _tool("NON_RETRYABLE", evidence=_LAGGING, approval="always"),
        _tool("NON_RETRYABLE", evidence=_EVENTUAL),
        _tool("NON_RETRYABLE"),
    ),
    "REPLAYABLE": (
        _tool("REPLAYABLE", evidence=_PROMPT, max_duplicates=1),
        _tool("REPLAYABLE", evidence=_LAGGING, max_duplicates=0),
        _tool("REPLAYABLE", evidence=_EVENTUAL, max_duplicates=1),
        _tool("REPLAYABLE", max_duplicates=2, attempts_max=5),
    ),
    "UNKNOWN": (_tool("UNKNOWN", evidence=_PROMPT), _tool("UNKNOWN")),
}
"""The tools of each effect class; what a schedule uses of them, it draws."""


def with_source(contract: Contract, **changes: Any) -> Contract:
    """Return a contract that declares something else of its source of evidence, if it has one."""
    if contract.evidence is None:
        return contract
    return replace(contract, evidence=replace(contract.evidence, **changes))
