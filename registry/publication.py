"""Decides whether a contract may be published beside those that are there. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from registry.entry import Entry
from tallystick.contract import Contract
from tallystick.errors import ContractExists, ReviewRequired
from tallystick.resolution import Lifecycle


@dataclass(frozen=True, slots=True)
class Review:
    """A named person's word that a change keeps its meaning: the semantic change record."""

    reviewer: str
    reason: str


def is_published(contract: Contract, published: Iterable[Entry]) -> bool:
    """Tell whether this very document is published already.

    Raises:
        ContractExists: Another document stands under this name and version.
    """
    for entry in published:
        if entry.contract.version == contract.version:
            if entry.contract.contract_digest == contract.contract_digest:
                return True
            raise ContractExists(
                f"{contract.name}@{contract.version} is published with another content,"
                " and a published version never changes. Publish the change under a new version.",
                facts={
                    "published_digest": entry.contract.contract_digest,
                    "presented_digest": contract.contract_digest,
                },
            )
    return False


def check_version(contract: Contract, published: Iterable[Entry], review: Review | None) -> None:
    """Hold a new version to the version rule.

    It is held against every version of its major that is not retired. A changed effect class
    always needs a new major version. A changed schema or a wider capability needs one too, or a
    review: without a proof of compatibility, "probably compatible" is not a yes.

    Raises:
        ReviewRequired: The version rule is not met. ``facts`` names the version and what differs.
    """
    for entry in published:
        other = entry.contract
        if other.version.major != contract.version.major or entry.lifecycle is Lifecycle.RETIRED:
            continue
        if other.effect_class != contract.effect_class:
            raise ReviewRequired(
                f"The effect class changes from {other.effect_class} in {other.version} to"
                f" {contract.effect_class}. That needs a new major version:"
                f" publish it as {contract.version.major + 1}.0.",
                pointer="/effect_class",
                facts={"against": str(other.version), "changed": ["effect_class"]},
            )
        changed = _reviewable_changes(other, contract)
        if changed and review is None:
            raise ReviewRequired(
                f"{' and '.join(changed)} differ from {other.version}, and nothing proves that"
                " callers of the same major version go on unharmed. Publish a new major version,"
                " or name a reviewer"
                " and the reason why the meaning is kept.",
                facts={"against": str(other.version), "changed": list(changed)},
            )


def _reviewable_changes(old: Contract, new: Contract) -> tuple[str, ...]:
    differs = {
        "schemas": old.schema_hash != new.schema_hash,
        "wider capabilities": not new.capabilities <= old.capabilities,
        "error meanings": list(old.errors) != list(new.errors),
    }
    return tuple(name for name, is_changed in differs.items() if is_changed)
