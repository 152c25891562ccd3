"""What a person has to judge of a change of contract: all that no schema can say.

Units, identity, currency, cost and the reading of a prompt are not in a schema. What hints at a
change of them is named here; nothing of this is a verdict.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from tallystick.canonical import Json, Missing, pointer_split, resolve_pointer
from tallystick.compatibility.changes.change import ChangeKind
from tallystick.compatibility.contracts.contract_change import ContractChange, ContractChangeKind
from tallystick.compatibility.contracts.flow import (
    Boundary,
    Flow,
    Passage,
    is_empty,
)
from tallystick.compatibility.contracts.version_rule import Finding, FindingCode
from tallystick.compatibility.verdict import Answer, Judgement
from tallystick.tool_contract import Contract

_TOPICS: Final[dict[Flow, str]] = {
    Flow.OLD_CALLS: "old calls against the new version",
    Flow.NEW_RESULTS: "new results against old readers",
    Flow.NEW_CALLS: "new calls against the old version",
    Flow.OLD_RESULTS: "old results against new readers",
}
_TO_JUDGE: Final[dict[ContractChangeKind, tuple[FindingCode, str]]] = {
    ContractChangeKind.APPROVAL_CHANGED: (
        FindingCode.APPROVAL_CHANGED,
        "Whether people are asked before a call changes: is that meant?",
    ),
    ContractChangeKind.OWNERSHIP_CHANGED: (
        FindingCode.CHECKS_CHANGED,
        "Whose objects a call may name is decided in another way: is that meant?",
    ),
    ContractChangeKind.RETURNED_CHANGED: (
        FindingCode.CHECKS_CHANGED,
        "Which identifiers must come from a tool of the same run changes: is that meant?",
    ),
    ContractChangeKind.CREDENTIAL_CHANGED: (
        FindingCode.CREDENTIAL_CHANGED,
        "Calls run under another credential: does it reach the same account?",
    ),
    ContractChangeKind.IDEMPOTENCY_CHANGED: (
        FindingCode.IDEMPOTENCY_CHANGED,
        "The idempotency key changes: does the provider still know an effect that was begun?",
    ),
    ContractChangeKind.IDENTITY_FIELDS_CHANGED: (
        FindingCode.IDENTITY_CHANGED,
        "Other arguments make two calls one effect: can an effect be done twice, or be dropped?",
    ),
}

# A name that says whose, or how much: what it stands for may change with its description alone.
_WORDS: Final = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFYING: Final = frozenset(
    {"id", "ids", "key", "uuid", "ref", "account", "tenant", "currency"}
)


def to_judge(
    new: Contract,
    flows: Mapping[Flow, Passage],
    changes: tuple[ContractChange, ...],
    found: tuple[Finding, ...],
) -> Iterator[Finding]:
    """Yield what a person has to judge, the gravest first.

    Args:
        new: The higher version.
        flows: What passes between them.
        changes: What changed.
        found: The breaches of the version rule; those that a proof settles are not judged.
    """
    yield from _undecided(flows)
    proven = (FindingCode.OLD_CALLS, FindingCode.NEW_RESULTS)
    yield from (each for each in found if each.code not in proven)
    yield from _undeclared(flows)
    for change in changes:
        yield from _of_change(new, change)
    texts = [change.path for change in changes if change.is_prompt_facing]
    if texts:
        yield Finding(
            FindingCode.PROMPT_TEXT_CHANGED,
            f"Text that a model reads changes in {_listed(texts)}: it may choose the tool or its"
            " arguments otherwise.",
            texts[0],
        )


def _undecided(flows: Mapping[Flow, Passage]) -> Iterator[Finding]:
    for flow, passage in flows.items():
        obstacle = passage.declared.obstacle or passage.any.obstacle
        if obstacle is not None:
            premise = "" if passage.declared.obstacle else ", for any values"
            keyword = f" ({obstacle.keyword})" if obstacle.keyword else ""
            spent = "the budget of steps is spent"
            reason = spent if obstacle.reason == "budget" else obstacle.reason
            yield Finding(
                FindingCode.UNDECIDED,
                f"Not decided: {_TOPICS[flow]}{premise}; stopped at"
                f" {obstacle.path or '/'}{keyword}: {reason}.",
                "/output_schema" if flow.is_result else "/input_schema",
            )


def _undeclared(flows: Mapping[Flow, Passage]) -> Iterator[Finding]:
    calls = flows[Flow.OLD_CALLS]
    if _is_broken(calls.any) and not _is_broken(calls.declared):
        yield Finding(
            FindingCode.UNDECLARED_VALUES,
            "Callers who send what the old schema does not declare may be refused: does anyone?",
            "/input_schema",
        )
    results = flows[Flow.NEW_RESULTS]
    if _is_broken(results.strict) and not _is_broken(results.declared):
        yield Finding(
            FindingCode.STRICT_READERS,
            "Readers that refuse properties which they do not know may fail: is any so strict?",
            "/output_schema",
        )
    elif _is_broken(results.any) and not _is_broken(results.declared):
        yield Finding(
            FindingCode.UNDECLARED_VALUES,
            "Results with what the new schema does not declare may break old readers: are there"
            " any?",
            "/output_schema",
        )


def _is_broken(judgement: Judgement | None) -> bool:
    return judgement is not None and judgement.verdict is Answer.INCOMPATIBLE


def _of_change(new: Contract, change: ContractChange) -> Iterator[Finding]:
    if isinstance(change.kind, ContractChangeKind):
        if change.kind in _TO_JUDGE:
            code, detail = _TO_JUDGE[change.kind]
            yield Finding(code, detail, change.path)
        return
    name = _last(change.path)
    if change.kind in (ChangeKind.RENAMED, ChangeKind.MOVED):
        yield Finding(
            FindingCode.PARAMETER_RENAMED,
            f"`{name}` seems to be `{_last(change.replacement or '')}` now: does it mean the same?",
            change.replacement or change.path,
        )
    elif change.kind is ChangeKind.PROPERTY_ADDED:
        added = _schema_at(new, change.path)
        if isinstance(added, dict) and "default" in added:
            yield Finding(
                FindingCode.DEFAULT_ADDED,
                f"`{name}` is new and has a default: does a call without it do what it did?",
                change.path,
            )
    elif change.kind is ChangeKind.DESCRIPTION_CHANGED:
        described = change.path.removesuffix("/description")
        if _is_measured(_schema_at(new, described), _last(described)):
            yield Finding(
                FindingCode.MEANING_CHANGED,
                f"`{_last(described)}` is described otherwise: are unit, currency and identity the"
                " same?",
                described,
            )


def _schema_at(contract: Contract, path: str) -> Json | Missing:
    return resolve_pointer(dict(contract.document), path)


def _is_measured(schema: Json | Missing, name: str) -> bool:
    """Tell whether a property holds a number, or names something, by its type and its name."""
    if not isinstance(schema, dict):
        return False
    types = schema.get("type")
    stated = types if isinstance(types, list) else [types]
    words = {word.lower() for word in _WORDS.findall(name)}
    return bool({"integer", "number"} & {str(each) for each in stated} or words & _IDENTIFYING)


def _last(path: str) -> str:
    return pointer_split(path)[-1] if path else ""


def _listed(paths: list[str]) -> str:
    return f"{paths[0]} and {len(paths) - 1} more" if len(paths) > 1 else paths[0]


# --- a contract by itself -------------------------------------------------------------------------


def warnings_of(boundary: Boundary, steps: int) -> Iterator[Finding]:
    """Yield what is certainly not meant in a contract, seen by itself.

    Args:
        boundary: What the contract takes and gives.
        steps: The budget of each judgement.
    """
    for path, side, declared, code, detail in (
        (
            "/input_schema",
            boundary.arguments,
            boundary.declared_arguments,
            FindingCode.ACCEPTS_NOTHING,
            "No arguments at all satisfy the input schema.",
        ),
        (
            "/output_schema",
            boundary.results,
            boundary.declared_results,
            FindingCode.RETURNS_NOTHING,
            "No result at all satisfies the output schema.",
        ),
    ):
        if is_empty(side, steps):
            yield Finding(code, detail, path)
        elif is_empty(declared, steps):
            yield Finding(
                FindingCode.REQUIRES_UNDECLARED,
                "The schema requires properties that it does not declare.",
                path,
            )
