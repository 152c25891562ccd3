"""Compares two contracts: what passes between their sides, what changed, and what that asks for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.canonical import MISSING, Json
from tallystick.compatibility.budget import STEPS
from tallystick.compatibility.changes.listing import agreeing, changes
from tallystick.compatibility.contracts.contract_change import (
    FLOWS,
    ContractChange,
    ContractChangeKind,
    contract_changes,
    within,
)
from tallystick.compatibility.contracts.flow import (
    Boundary,
    Flow,
    Passage,
    is_vacuous,
    judge_flows,
    worst,
)
from tallystick.compatibility.contracts.review import to_judge, warnings_of
from tallystick.compatibility.contracts.version_rule import (
    CHANGED_DEFAULTS,
    CHANGED_ERRORS,
    Bump,
    Finding,
    breaches,
    bump,
)
from tallystick.compatibility.judging import Side
from tallystick.compatibility.verdict import Answer, Producer
from tallystick.tool_contract import Contract


@dataclass(frozen=True, slots=True)
class ContractComparison:
    """What a change from one contract to another does to those on either side.

    Args:
        old: The lower version.
        new: The higher version.
        flows: What passes between them, under every producer model.
        changes: What changed, those of the schemas first.
        bump: The part of the version that has to rise.
        rule: Why, in sentences.
        breaches: What keeps it from being a minor version, unless a review says otherwise.
        review: What a person has to judge.
        warnings: What is certainly not meant in the new contract, seen by itself.
        is_equivalent: It is proven that they mean the same to callers, readers and the runtime.
    """

    old: Contract
    new: Contract
    flows: Mapping[Flow, Passage]
    changes: tuple[ContractChange, ...]
    bump: Bump
    rule: tuple[str, ...]
    breaches: tuple[Finding, ...]
    review: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    is_equivalent: bool

    def verdict(self, producer: Producer = Producer.DECLARED) -> Answer:
        """Return what becomes of those who stay with the old version."""
        return worst(self.flows, producer)

    def to_json(self, producer: Producer = Producer.DECLARED) -> dict[str, Json]:
        """Return the comparison as a JSON object, with the verdict for one producer model."""
        return {
            "compared": "contracts",
            "old": _named(self.old),
            "new": _named(self.new),
            "producer": producer.value,
            "verdict": self.verdict(producer).value,
            **{flow.value: passage.to_json() for flow, passage in self.flows.items()},
            "changes": [each.to_json() for each in self.changes],
            "bump": self.bump.value,
            "rule": [*self.rule],
            "breaches": [each.to_json() for each in self.breaches],
            "review": [each.to_json() for each in self.review],
            "warnings": [each.to_json() for each in self.warnings],
            "is_equivalent": self.is_equivalent,
        }


def _named(contract: Contract) -> dict[str, Json]:
    return {
        "name": contract.name,
        "version": str(contract.version),
        "contract_digest": contract.contract_digest,
    }


def compare_contracts(
    old: Contract,
    new: Contract,
    *,
    budget: int = STEPS,
    flows: Mapping[Flow, Passage] | None = None,
) -> ContractComparison:
    """Compare two contracts.

    Inputs are compared as old calls against the new version, outputs as new results against the old
    version's readers, and both again the other way, for a rollback. A contract without an output
    schema may return anything, and its readers expect anything.

    Args:
        old: The contract that is in use.
        new: The contract that is to stand beside or after it.
        budget: The steps of each single judgement, of which there are fewer than 20.
        flows: What passes between them, if it is known, as between two that had other versions.
    """
    before, after = Boundary.of(old), Boundary.of(new)
    flows = judge_flows(before, after, budget) if flows is None else flows
    changed = tuple(_changes(old, new, flows, before, after))
    found = tuple(breaches(old, new, flows, changed, _idle(before, after, budget)))
    rises, rule = bump(old, new, found)
    return ContractComparison(
        old=old,
        new=new,
        flows=flows,
        changes=changed,
        bump=rises,
        rule=(*rule, *_undescribed(old, new)),
        breaches=found,
        review=tuple(to_judge(new, flows, changed, found)),
        warnings=tuple(warnings_of(after, budget)),
        is_equivalent=_is_equivalent(flows, changed),
    )


def _idle(before: Boundary, after: Boundary, steps: int) -> list[Flow]:
    """Return the flows of which a proof about declared values says nothing."""
    sides = (
        (Flow.OLD_CALLS, before.arguments, before.declared_arguments),
        (Flow.NEW_RESULTS, after.results, after.declared_results),
    )
    return [flow for flow, side, declared in sides if is_vacuous(side, declared, steps)]


def _changes(
    old: Contract, new: Contract, flows: Mapping[Flow, Passage], before: Boundary, after: Boundary
) -> Iterator[ContractChange]:
    yield from _schema_changes("input_schema", before.arguments, after.arguments, flows)
    if old.output_schema is not None and new.output_schema is not None:
        yield from _schema_changes("output_schema", before.results, after.results, flows)
    elif old.output_schema != new.output_schema:
        yield _output_schema_change(old, new, flows)
    yield from contract_changes(old, new)


def _schema_changes(
    field: str, old: Side, new: Side, flows: Mapping[Flow, Passage]
) -> Iterator[ContractChange]:
    is_asserted = old.assert_format or new.assert_format
    found = changes(old.modern, new.modern, assert_format=is_asserted)
    judged = {direction: flows[flow].declared.verdict for direction, flow in FLOWS[field].items()}
    return (within(field, each) for each in agreeing(found, judged))


def _output_schema_change(
    old: Contract, new: Contract, flows: Mapping[Flow, Passage]
) -> ContractChange:
    added = new.output_schema is not None
    return ContractChange(
        path="/output_schema",
        kind=ContractChangeKind.OUTPUT_SCHEMA_ADDED
        if added
        else ContractChangeKind.OUTPUT_SCHEMA_REMOVED,
        old=MISSING if old.output_schema is None else old.output_schema,
        new=MISSING if new.output_schema is None else new.output_schema,
        why="results are described now" if added else "results may be anything from now on",
        breaks=frozenset(
            flow
            for flow in (Flow.NEW_RESULTS, Flow.OLD_RESULTS)
            if flows[flow].declared.verdict is Answer.INCOMPATIBLE
        ),
    )


def _undescribed(old: Contract, new: Contract) -> Iterator[str]:
    silent = [str(each.version) for each in (old, new) if each.output_schema is None]
    if silent:
        verb = "describe" if len(silent) > 1 else "describes"
        yield f"{' and '.join(silent)} {verb} no results, so that any may come and any is expected."


# What decides for callers, readers and the runtime, beside the schemas.
_OWNED: Final = CHANGED_ERRORS | {
    ContractChangeKind.NAME_CHANGED,
    ContractChangeKind.EFFECT_CLASS_CHANGED,
    ContractChangeKind.CAPABILITY_ADDED,
    ContractChangeKind.CAPABILITY_REMOVED,
    ContractChangeKind.IDENTITY_FIELDS_CHANGED,
    ContractChangeKind.IDEMPOTENCY_CHANGED,
    ContractChangeKind.APPROVAL_CHANGED,
    ContractChangeKind.OWNERSHIP_CHANGED,
    ContractChangeKind.RETURNED_CHANGED,
    ContractChangeKind.CREDENTIAL_CHANGED,
    ContractChangeKind.ATTEMPTS_MAX_CHANGED,
    ContractChangeKind.MAX_DUPLICATES_CHANGED,
}


def _is_equivalent(flows: Mapping[Flow, Passage], changed: tuple[ContractChange, ...]) -> bool:
    return all(
        judgement.verdict is Answer.COMPATIBLE
        for passage in flows.values()
        for judgement in (passage.any, passage.declared)
    ) and not any(change.kind in _OWNED or change.kind in CHANGED_DEFAULTS for change in changed)
