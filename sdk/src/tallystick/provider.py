"""What a contract says of the provider behind a tool: its key, its errors, and how to ask it.

Plain values, read from a contract document that has been checked against its schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tallystick.canonical import Json


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Where the provider takes the idempotency key, and what the key is good for.

    Args:
        header: The request header that carries it; or None, and then
        argument: the place of it in the arguments, a JSON Pointer.
        retention_seconds: How long the provider remembers the key, from its first use.
        conflict_statuses: What it answers to the same key with another body.
    """

    header: str | None
    argument: str | None
    retention_seconds: int
    conflict_statuses: frozenset[int]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Idempotency":
        """Read the contract's `idempotency`."""
        return cls(
            header=document.get("header"),
            argument=document.get("argument"),
            retention_seconds=document["retention_seconds"],
            conflict_statuses=frozenset(document.get("conflict", {}).get("statuses", ())),
        )


@dataclass(frozen=True, slots=True)
class ErrorMeaning:
    """What one of the provider's error codes means.

    Args:
        code: The provider's code.
        meaning: What it means, for the model.
        retryable: Whether trying again can help.
        not_executed: The provider vouches that nothing was done.
    """

    code: str
    meaning: str
    retryable: bool
    not_executed: bool

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "ErrorMeaning":
        """Read one of the contract's `errors`."""
        return cls(
            code=document["code"],
            meaning=document["meaning"],
            retryable=document["retryable"],
            not_executed=document.get("not_executed", False),
        )


@dataclass(frozen=True, slots=True)
class HttpEvidence:
    """The request that asks the provider about one effect.

    Args:
        url: A template with `{effect_id}`, `{idempotency_key}` or both.
        headers: Further headers, as they are.
        secret: The credential slot whose secret is sent as `Authorization: Bearer`.
        timeout_seconds: How long to wait for the answer.
    """

    url: str
    headers: Mapping[str, str]
    secret: str | None
    timeout_seconds: float

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "HttpEvidence":
        """Read the contract's `evidence.http`."""
        return cls(
            url=document["url"],
            headers=document.get("headers", {}),
            secret=document.get("secret"),
            timeout_seconds=document.get("timeout_seconds", 10),
        )


@dataclass(frozen=True, slots=True)
class PluginEvidence:
    """The plug-in that asks the provider about one effect.

    Args:
        name: Its name among the entry points `tallystick.evidence_sources` of the service.
        timeout_seconds: How long to wait for the answer.
    """

    name: str
    timeout_seconds: float

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "PluginEvidence":
        """Read the contract's `evidence.plugin`."""
        return cls(name=document["name"], timeout_seconds=document.get("timeout_seconds", 10))


@dataclass(frozen=True, slots=True)
class Bind:
    """Where an answer repeats what was asked for, so that it cannot be about something else.

    Args:
        pointer: The place in the answer, a JSON Pointer.
        equals: What must stand there.
    """

    pointer: str
    equals: Literal["effect_id", "idempotency_key"]


@dataclass(frozen=True, slots=True)
class EvidenceAnswer:
    """How the provider's answer is read. Pointers are JSON Pointers into its body.

    Args:
        absent_statuses: The HTTP statuses that say: there is no such effect.
        state: Where the state stands, which is one of the values of
        applied: the effect took place,
        rejected: the provider said no, or
        in_progress: it has not decided yet.
        reference: Where the provider's own identifier of the effect stands.
        bind: Where the answer repeats what was asked for.
        match: Pointers into the answer, with the pointer into the arguments of the equal value.
    """

    absent_statuses: frozenset[int]
    state: str
    applied: tuple[Json, ...]
    rejected: tuple[Json, ...]
    in_progress: tuple[Json, ...]
    reference: str | None
    bind: Bind | None
    match: Mapping[str, str]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "EvidenceAnswer":
        """Read the contract's `evidence.answer`."""
        bind = document.get("bind")
        return cls(
            absent_statuses=frozenset(document.get("absent_statuses", ())),
            state=document["state"],
            applied=tuple(document["applied"]),
            rejected=tuple(document.get("rejected", ())),
            in_progress=tuple(document.get("in_progress", ())),
            reference=document.get("reference"),
            bind=Bind(bind["pointer"], bind["equals"]) if bind else None,
            match=document.get("match", {}),
        )


@dataclass(frozen=True, slots=True)
class WebhookEvidence:
    """How a message of the provider's is read. Pointers are JSON Pointers into its body.

    Args:
        source: The name under which the provider's messages arrive.
        id: Where the effect's id stands, as the worker sent it along.
        answer: How to read the rest.
    """

    source: str
    id: str
    answer: EvidenceAnswer

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "WebhookEvidence":
        """Read the contract's `evidence.webhook`."""
        return cls(source=document["source"], id=document["id"], answer=EvidenceAnswer.of(document))


@dataclass(frozen=True, slots=True)
class ListingEvidence:
    """How the provider lists what it has. Pointers are JSON Pointers into a page, or into an item.

    The next page is named by the page (``next``), by its last item (``last``), or else by the
    response's `Link` header (RFC 8288).

    Args:
        http: The request for the first page, its URL a template with `{since}` or `{since_unix}`.
        items: Where the items stand in a page.
        next: Where a page names the next one.
        last: Where the last item of a page has what names the next one.
        parameter: The query parameter that takes that name; None where it is a link.
        where: Pointers into an item, each with what stands there if it is this tool's.
        id: Where an item repeats the effect's id, as the worker sent it along.
        answer: How to read the rest of an item.
    """

    http: HttpEvidence
    items: str
    next: str | None
    last: str | None
    parameter: str | None
    where: Mapping[str, Json]
    id: str
    answer: EvidenceAnswer

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "ListingEvidence":
        """Read the contract's `evidence.listing`."""
        return cls(
            http=HttpEvidence.of(document),
            items=document["items"],
            next=document.get("next"),
            last=document.get("last"),
            parameter=document.get("parameter"),
            where=document.get("where", {}),
            id=document["id"],
            answer=EvidenceAnswer.of(document),
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """How the provider tells whether an effect took place.

    Args:
        source: The kind of source that is asked; of `webhook` nobody is, and its messages count.
        consistency: Whether the source shows an effect at once, or after some time.
        lag_seconds: How far the source may be behind.
        http: The request, of the source `http`.
        answer: How to read the answer to it.
        plugin: The plug-in, of the source `plugin`.
        webhook: How the provider's own messages are read, beside any source.
        listing: How the provider lists what it has, beside any source.
    """

    source: Literal["http", "plugin", "webhook"]
    consistency: Literal["read_after_write", "eventual"]
    lag_seconds: float
    http: HttpEvidence | None
    answer: EvidenceAnswer | None
    plugin: PluginEvidence | None
    webhook: WebhookEvidence | None
    listing: ListingEvidence | None

    @property
    def timeout_seconds(self) -> float:
        """How long to wait for the answer of who is asked."""
        asked = self.http or self.plugin
        return asked.timeout_seconds if asked else 0

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Evidence":
        """Read the contract's `evidence`."""
        http, plugin = document.get("http"), document.get("plugin")
        answer, webhook = document.get("answer"), document.get("webhook")
        listing = document.get("listing")
        return cls(
            source=document["source"],
            consistency=document.get("consistency", "eventual"),
            lag_seconds=document.get("lag_seconds", 0),
            http=HttpEvidence.of(http) if http else None,
            answer=EvidenceAnswer.of(answer) if answer else None,
            plugin=PluginEvidence.of(plugin) if plugin else None,
            webhook=WebhookEvidence.of(webhook) if webhook else None,
            listing=ListingEvidence.of(listing) if listing else None,
        )
