"""What a plug-in of the reconciler is asked, and what it answers.

A plug-in is a callable of one :class:`EvidenceQuestion` that returns an :class:`EvidenceAnswer`,
installed beside the service under the entry-point group ``tallystick.evidence_sources``. A contract
names it: ``evidence: {source: plugin, plugin: {name: ...}}``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tallystick.canonical import Json


@dataclass(frozen=True, slots=True)
class EvidenceQuestion:
    """Which effect is asked about.

    Args:
        effect_id: The effect's id, as the worker had it.
        idempotency_key: The key under which every attempt was sent.
        arguments: The arguments as they were sent, those that are sensitive in the clear.
        tenant: The slug of the tenant whose effect it is.
        tool: The tool's name.
        version: The version of the contract that it was sent under.
    """

    effect_id: str
    idempotency_key: str
    arguments: Mapping[str, Json]
    tenant: str
    tool: str
    version: str


@dataclass(frozen=True, slots=True)
class EvidenceAnswer:
    """What the provider says of an effect.

    Args:
        answer: `applied`: it took place. `rejected`: the provider said no, for good. `in_progress`:
            it has not decided. `absent`: it does not know of it. `contradicts`: it has another one
            under this name. `unavailable`: nobody could be asked, or the answer says nothing.
        detail: A sentence for people. It is kept, so it quotes nothing sensitive.
        provider_reference: The provider's own identifier of the effect.
    """

    answer: Literal["applied", "rejected", "in_progress", "absent", "contradicts", "unavailable"]
    detail: str = ""
    provider_reference: str | None = None


EvidenceSource = Callable[[EvidenceQuestion], EvidenceAnswer]
"""A plug-in. It may block: it is called in a thread of its own. What it raises is `unavailable`."""
