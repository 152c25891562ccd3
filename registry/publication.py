"""Decides whether a contract may be published beside those that are there. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, TypeAlias

from registry.entry import Entry
from tallystick.canonical import Json
from tallystick.compatibility.budget import STEPS
from tallystick.compatibility.contracts.comparison import ContractComparison, compare_contracts
from tallystick.compatibility.contracts.flow import Flow
from tallystick.compatibility.verdict import Answer
from tallystick.errors import ContractExists, ReviewRequired
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract

# What one kind of judgement may cost in all, and what each has at the least: a pair of real tools
# takes some hundred steps, so that a refusal for want of steps means that something is strange.
_STEPS_IN_ALL: Final = STEPS
_STEPS_MIN: Final = 5000

Comparisons: TypeAlias = Mapping[str, ContractComparison]
"""How a contract compares with others, by their contract digest."""


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


def rivals(contract: Contract, published: Iterable[Entry]) -> list[Contract]:
    """Return the other published versions that a contract is compared with: all not retired."""
    return [
        entry.contract
        for entry in published
        if entry.lifecycle is not Lifecycle.RETIRED and entry.contract.version != contract.version
    ]


def compare_with(contract: Contract, others: Sequence[Contract]) -> Comparisons:
    """Compare a contract with others, in bounded time however many there are.

    Of two versions the lower one is the old one, in whichever order they are published: its callers
    are those who go on to the higher one.
    """
    steps = max(_STEPS_MIN, _STEPS_IN_ALL // max(1, len(others)))
    return {
        other.contract_digest: compare_contracts(
            *sorted((contract, other), key=attrgetter("version")), budget=steps
        )
        for other in others
    }


def check_version(
    contract: Contract,
    others: Iterable[Contract],
    comparisons: Comparisons,
    review: Review | None,
) -> None:
    """Hold a new version to the version rule, against each other version of its major.

    A changed effect class always needs a new major version. All else that the rule does not let
    pass needs one too, or a review: what is not proven compatible is not compatible.

    Args:
        contract: The new version.
        others: Its rivals.
        comparisons: How it compares with each of them.
        review: A person's word, if there is one.

    Raises:
        ReviewRequired: The version rule is not met. ``facts`` names the version and what differs,
            with the verdict on old calls and on new results that is not "compatible".
    """
    held = [each for each in others if each.version.major == contract.version.major]
    for other in held:
        if other.effect_class != contract.effect_class:
            raise ReviewRequired(
                f"The effect class changes from {other.effect_class} in {other.version} to"
                f" {contract.effect_class}. That needs a new major version:"
                f" publish it as {contract.version.major + 1}.0.",
                pointer="/effect_class",
                facts={"against": str(other.version), "changed": ["effect_class"]},
            )
    for other in held if review is None else ():
        comparison = comparisons[other.contract_digest]
        if comparison.breaches:
            raise _review_required(other, comparison)


def _review_required(other: Contract, comparison: ContractComparison) -> ReviewRequired:
    unproven: dict[str, Json] = {
        flow.value: comparison.flows[flow].declared.to_json()
        for flow in (Flow.OLD_CALLS, Flow.NEW_RESULTS)
        if comparison.flows[flow].declared.verdict is not Answer.COMPATIBLE
    }
    why = " ".join(each.detail for each in comparison.breaches)
    return ReviewRequired(
        f"Held against {other.version}: {why} Publish a new major version, or name a reviewer and"
        " the reason why the meaning is kept.",
        pointer=comparison.breaches[0].path or None,
        facts={
            "against": str(other.version),
            "changed": [*dict.fromkeys(each.code.value for each in comparison.breaches)],
            "verdict": comparison.verdict().value,
            **unproven,
        },
    )


def equivalents(others: Iterable[Contract], comparisons: Comparisons) -> list[str]:
    """Return the versions that are proven to mean the same, lowest first."""
    same = [each.version for each in others if comparisons[each.contract_digest].is_equivalent]
    return [str(version) for version in sorted(same)]
