"""The tools of a schedule, and their contracts. Every schedule has tools of its own name."""

from dataclasses import dataclass
from typing import Any, Final

LEASE_SECONDS: Final = 1.5
SETTLE_SECONDS: Final = 1.0
LAG_SECONDS: Final = 0.5
"""How far a look-up at the provider may be behind its books."""
ABSENT_SECONDS_MIN: Final = 1.0
"""How far apart the ledger says that two answers "absent" are which it believes."""
RETENTION_SECONDS: Final = 86400
ATTEMPTS_MAX: Final = 6
MAX_DUPLICATES: Final = 2
WEBHOOK_SOURCE: Final = "provider"
FIRST, SECOND = "1.0", "2.0"

ONCE: Final = frozenset({"NON_RETRYABLE", "UNKNOWN"})


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its class, what it calls at the provider, and how often it is called.

    A run chooses one of its versions at the first call, whichever of its workers comes first. The
    first version is retired in the middle of the work, where there is a second one.
    """

    effect_class: str
    route: tuple[str, str]
    share: int
    versions: tuple[str, ...] = (FIRST,)
    has_webhook: bool = False

    @property
    def is_retired(self) -> bool:
        return len(self.versions) > 1


TOOLS: Final = {
    "invoice": Tool("IDEMPOTENT", ("POST", "/invoices"), 25, (FIRST, SECOND)),
    "order": Tool("IDEMPOTENT", ("POST", "/invoices"), 15, has_webhook=True),
    "transfer": Tool("NON_RETRYABLE", ("POST", "/transfers"), 15),
    "payout": Tool("NON_RETRYABLE", ("POST", "/transfers"), 10, (FIRST, SECOND), has_webhook=True),
    "message": Tool("REPLAYABLE", ("POST", "/messages"), 15),
    "note": Tool("UNKNOWN", ("POST", "/notes"), 10),
    "customer": Tool("PURE", ("GET", "/customers/C-1"), 15),
}


def name_of(schedule: int, tool: str) -> str:
    """Return the name under which a schedule publishes a tool."""
    return f"crash-{schedule}.{tool}"


def documents(schedule: int, provider_url: str) -> list[dict[str, Any]]:
    """Return the contracts of a schedule's tools."""
    return [
        _document(name_of(schedule, name), tool, version, provider_url)
        for name, tool in TOOLS.items()
        for version in tool.versions
    ]


def _document(name: str, tool: Tool, version: str, provider_url: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": name,
        "version": version,
        "description": f"Book something at the provider; an effect of class {tool.effect_class}.",
        "input_schema": {
            "type": "object",
            "properties": {"item": {"type": "integer"}, "trouble": {"type": "string"}},
            "required": ["item", "trouble"],
            "additionalProperties": False,
        },
        "capabilities": ["booking:write:{tenant}"],
        "effect_class": tool.effect_class,
        "lease_seconds": LEASE_SECONDS,
        "settle_seconds": SETTLE_SECONDS,
    }
    if tool.effect_class == "IDEMPOTENT":
        document["idempotency"] = {
            "header": "Idempotency-Key",
            "retention_seconds": RETENTION_SECONDS,
            "conflict": {"statuses": [422]},
        }
    if tool.effect_class == "REPLAYABLE":
        document["max_duplicates"] = MAX_DUPLICATES
    if tool.effect_class not in ONCE:
        document["attempts_max"] = ATTEMPTS_MAX
    if tool.effect_class != "PURE":
        document["evidence"] = _evidence(provider_url) | (_WEBHOOK if tool.has_webhook else {})
    return document


def _evidence(provider_url: str) -> dict[str, Any]:
    return {
        "source": "http",
        "consistency": "read_after_write",
        "lag_seconds": LAG_SECONDS,
        "http": {"url": f"{provider_url}/effects/{{effect_id}}", "timeout_seconds": 1},
        "answer": {
            "absent_statuses": [404],
            "state": "/status",
            "applied": ["booked"],
            "rejected": ["declined"],
            "in_progress": ["pending"],
            "reference": "/reference",
            "bind": {"pointer": "/effect_id", "equals": "effect_id"},
            "match": {"/body/item": "/item"},
        },
    }


_WEBHOOK: Final = {
    "webhook": {
        "source": WEBHOOK_SOURCE,
        "id": "/data/effect_id",
        "state": "/data/status",
        "applied": ["booked"],
        "rejected": ["declined"],
        "in_progress": ["pending"],
        "reference": "/data/reference",
        "match": {"/data/body/item": "/item"},
    }
}
