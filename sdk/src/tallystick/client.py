"""The client of the registry and its ledger: `Client`, which blocks, and `AsyncClient`.

    from tallystick import Client

    with Client() as client:                             # TALLYSTICK_URL, TALLYSTICK_TOKEN
        invoice = client.contract("billing.send_invoice", "1.0").reference
        with client.effect(invoice, {"customer_id": "c-1"}, run="run-1") as effect:
            response = httpx.post(url, headers=effect.headers(), timeout=effect.timeout())
            effect.succeeded(response.json())

The effect is in the ledger before its body runs, and a body that ends in any other way than with a
report is recorded as UNKNOWN, never as FAILED: only then is nothing ever done twice by guesswork.

Both clients are shells; what they do is decided in `tallystick._effect`, what they say is written
in `tallystick._requests`, and what they are told is read in `tallystick._answers`.
"""

import os
import random as chance
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Generic, Self, TypeVar, Unpack

import httpx

from tallystick._answers import (
    ApprovalEntry,
    ContractEntry,
    EffectEntry,
    Outcome,
    PolicyRevision,
    Publication,
    PublishedVersion,
    Resolution,
    RunTrace,
    read_approval,
    read_contract,
    read_effect,
    read_publication,
    read_resolution,
    read_versions,
)
from tallystick._attempt import AsyncEffect, Effect
from tallystick._conversation import Setting, converse, read_run
from tallystick._effect import EffectFailed, EffectNotOwned, NotSent, OutcomeUnreported
from tallystick._requests import (
    Claim,
    Document,
    EffectTerms,
    EvidenceGiven,
    Publishable,
    Request,
    approval_request,
    begin_run_request,
    cancel_request,
    contract_request,
    contracts_request,
    dispatch_request,
    effect_request,
    endpoint,
    evidence_request,
    publish_request,
    resolve_request,
    retry_request,
    show_request,
)
from tallystick._wire import PROCESS, AsyncWire, Wire, draw_id, monotonic
from tallystick.canonical import Json
from tallystick.tool_contract import EffectClass, ToolReference

__all__ = [
    "ApprovalEntry",
    "AsyncClient",
    "AsyncEffect",
    "Client",
    "ContractEntry",
    "Effect",
    "EffectEntry",
    "EffectFailed",
    "EffectNotOwned",
    "EffectTerms",
    "NotSent",
    "Outcome",
    "OutcomeUnreported",
    "PolicyRevision",
    "Publication",
    "PublishedVersion",
    "Resolution",
    "RunTrace",
]

EffectT = TypeVar("EffectT")
WireT = TypeVar("WireT")
TransportT = TypeVar("TransportT")


class _Connected(Generic[EffectT, WireT, TransportT]):
    """What both clients are made of."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_seconds: float = 5.0,
        retry_seconds: float = 10.0,
        worker_id: str | None = None,
        transport: TransportT | None = None,
        clock: Callable[[], float] = monotonic,
        random: Callable[[], float] = chance.random,
    ) -> None:
        self._endpoint = endpoint(url, token, os.environ)
        self._setting = Setting(
            self._endpoint.url, timeout_seconds, retry_seconds, clock=clock, random=random
        )
        self._worker_id = worker_id
        self._wire = self._open(transport)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.url!r})"

    @property
    def worker_id(self) -> str:
        """Who dispatches: one id for the process, unless the client was given one."""
        return self._worker_id or PROCESS.worker_id

    def effect(
        self,
        reference: ToolReference,
        arguments: Mapping[str, Json],
        **terms: Unpack[EffectTerms],
    ) -> EffectT:
        """Return an effect to enter with ``with`` (``async with``), which plans and dispatches it.

        Entering raises, before the body runs, `EffectNotOwned` if the effect is not the caller's to
        run, and `RegistryUnavailable` if it cannot be recorded; a PURE one then runs unrecorded.

        Example:
            >>> with client.effect(invoice, arguments, run="run-1", effect="invoice-42") as effect:
            ...     response = httpx.post(url, headers=effect.headers(), timeout=effect.timeout())
            ...     effect.succeeded(response.json())
        """
        claim = Claim(self.worker_id, nonce=draw_id())
        request = effect_request(reference, arguments, claim, **terms)
        return self._attempt(request, claim, is_pure=reference.effect_class is EffectClass.PURE)

    def dispatch(self, effect_id: str, reference: ToolReference | None = None) -> EffectT:
        """Return a planned effect to enter, as `effect` does for a new one."""
        claim = Claim(self.worker_id, nonce=draw_id())
        return self._attempt(dispatch_request(effect_id, claim, reference), claim, is_pure=False)

    def _open(self, transport: TransportT | None) -> WireT:
        raise NotImplementedError

    def _attempt(self, request: Request, claim: Claim, *, is_pure: bool) -> EffectT:
        raise NotImplementedError


class Client(_Connected[Effect, Wire, httpx.BaseTransport]):
    """Resolves contracts and runs effects, blocking. Threads may share one; forks may not.

    Args:
        url: The registry; ``TALLYSTICK_URL`` if not given.
        token: The bearer token; ``TALLYSTICK_TOKEN`` if not given.
        timeout_seconds: For each of connecting, writing, reading and waiting for a connection.
        retry_seconds: How long a request is asked again while the registry does not answer.
        worker_id: A UUID; the process's own if not given.
        transport: Replaces the HTTP transport, as in `httpx.Client`.
        clock: A monotonic clock in seconds, by which leases are measured.
        random: Draws from [0, 1) for jitter.

    Raises:
        InvalidRequest: There is no usable URL.
        Unauthenticated: There is no usable token.

    Every method raises the class of `tallystick.errors` that has the code of the service's
    refusal, and `RegistryUnavailable` if the registry gave no answer.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the heartbeat, if this client keeps it, and close the connections."""
        self._wire.close()

    def resolve(self, reference: ToolReference) -> Resolution:
        """Return the contract that a tuple stands for, with a lease for cached plans."""
        return read_resolution(self._ask(resolve_request(reference)), reference)

    def contract(self, name: str, version: str) -> ContractEntry:
        """Return a published version and its tuple: for building a runtime, never from a model."""
        return read_contract(self._ask(contract_request(name, version)))

    def contracts(self, name: str | None = None) -> list[PublishedVersion]:
        """Return the published versions, of one tool or of all, in the order of publishing."""
        return read_versions(self._ask(contracts_request(name)))

    def publish(
        self, contract: Publishable, *, reviewer: str | None = None, reason: str | None = None
    ) -> Publication:
        """Publish a contract or its document; what is published already, just so, stays as it is.

        A reviewer signs off, with a reason, a change that the version rule would refuse.

        Raises:
            InvalidContract: The document breaks a rule, with a pointer to the place.
            ContractExists: Another document is published under this name and version.
            ReviewRequired: The change needs a new major version, or a review.
        """
        return read_publication(self._ask(publish_request(contract, reviewer, reason)))

    def call(
        self,
        reference: ToolReference,
        arguments: Mapping[str, Json],
        body: Callable[[Effect], Json],
        **terms: Unpack[EffectTerms],
    ) -> Json:
        """Run a body as an effect, or return the result of an effect that ran before.

        What the body returns is reported as the result, unless it has reported by itself.

        Raises:
            NeedsHuman: It waits for a person, under the ``approval_id`` of the error's facts. Once
                approved, the same call with the same run and effect runs.
            EffectFailed: The effect is recorded as FAILED, now or before.
            EffectNotOwned: It is neither done nor ours to run, or its outcome is in question.
        """
        effect = self.effect(reference, arguments, **terms)
        try:
            with effect:
                result = body(effect)
                if not effect.reported:
                    effect.succeeded(result)
        except EffectNotOwned as refusal:
            if effect.entered:  # the body met it, about another effect
                raise
            return refusal.result()
        return effect.result()

    def plan(
        self,
        reference: ToolReference,
        arguments: Mapping[str, Json],
        **terms: Unpack[EffectTerms],
    ) -> EffectEntry:
        """Record an effect for a worker to dispatch later."""
        return self._effect(effect_request(reference, arguments, None, **terms))

    def cancel(self, effect_id: str, reason: str) -> EffectEntry:
        """Cancel an effect that nobody has begun."""
        return self._effect(cancel_request(effect_id, reason))

    def retry(self, effect_id: str, reason: str, *, evidence: str | None = None) -> EffectEntry:
        """Let a worker send a quarantined effect again, as an operator, on its recorded contract.

        The attempt itself begins with `dispatch`. What is released already stays so.

        Raises:
            EffectNotRetryable: Its class, its provider's key or what is known of it forbids that.
            Forbidden: The token has not the role `operator`.
        """
        return self._effect(retry_request(effect_id, reason, evidence))

    def add_evidence(
        self,
        effect_id: str,
        answer: EvidenceGiven,
        detail: str,
        *,
        observed_at: datetime,
        provider_reference: str | None = None,
    ) -> EffectEntry:
        """Record, as an operator, what the provider was seen to say; the same again adds nothing.

        What that settles, the reconciler settles.

        Args:
            effect_id: The effect.
            answer: What the provider says of it.
            detail: What was looked at.
            observed_at: When; with its offset from UTC.
            provider_reference: The provider's own name for what it has.
        """
        given = evidence_request(effect_id, answer, detail, observed_at, provider_reference)
        return self._effect(given)

    def show(self, effect_id: str) -> EffectEntry:
        """Return an effect; its ``document`` has events, attempts, evidence and outcomes."""
        return self._effect(show_request(effect_id))

    def approval(self, approval_id: str) -> ApprovalEntry:
        """Return what a person is asked, and what the person said."""
        return read_approval(self._ask(approval_request(approval_id)))

    def begin_run(self, run: str, subject: Mapping[str, str | int]) -> None:
        """Say on whose behalf a run acts, once and for all; the same again changes nothing.

        Args:
            run: The caller's name for the run.
            subject: Facts that the application vouches for, such as ``{"customer_id": "C-1"}``;
                never a model's.

        Raises:
            EffectConflict: The run acts for somebody else.
        """
        self._ask(begin_run_request(run, subject))

    def run(self, run: str) -> RunTrace:
        """Return a run's whole trace: its effects, and what was refused and why in truth."""
        return self._wire.run(read_run(run, self._setting))

    def _open(self, transport: httpx.BaseTransport | None) -> Wire:
        return Wire(self._endpoint, self._setting, transport)

    def _attempt(self, request: Request, claim: Claim, *, is_pure: bool) -> Effect:
        return Effect(self._wire, request, claim, self._setting, is_pure=is_pure)

    def _ask(self, request: Request) -> Document:
        return self._wire.run(converse(request, self._setting)).document

    def _effect(self, request: Request) -> EffectEntry:
        return read_effect(self._ask(request))


class AsyncClient(_Connected[AsyncEffect, AsyncWire, httpx.AsyncBaseTransport]):
    """`Client` for ``async with`` and ``await``, on asyncio; its arguments are the same."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop the heartbeat, if this client keeps it, and close the connections."""
        await self._wire.close()

    async def resolve(self, reference: ToolReference) -> Resolution:
        """Return the contract that a tuple stands for; see `Client.resolve`."""
        return read_resolution(await self._ask(resolve_request(reference)), reference)

    async def contract(self, name: str, version: str) -> ContractEntry:
        """Return a published version and its tuple; see `Client.contract`."""
        return read_contract(await self._ask(contract_request(name, version)))

    async def contracts(self, name: str | None = None) -> list[PublishedVersion]:
        """Return the published versions, of one tool or of all; see `Client.contracts`."""
        return read_versions(await self._ask(contracts_request(name)))

    async def publish(
        self, contract: Publishable, *, reviewer: str | None = None, reason: str | None = None
    ) -> Publication:
        """Publish a contract or its document; see `Client.publish`."""
        return read_publication(await self._ask(publish_request(contract, reviewer, reason)))

    async def call(
        self,
        reference: ToolReference,
        arguments: Mapping[str, Json],
        body: Callable[[AsyncEffect], Awaitable[Json]],
        **terms: Unpack[EffectTerms],
    ) -> Json:
        """Run a body as an effect, or return an earlier result; see `Client.call`."""
        effect = self.effect(reference, arguments, **terms)
        try:
            async with effect:
                result = await body(effect)
                if not effect.reported:
                    await effect.succeeded(result)
        except EffectNotOwned as refusal:
            if effect.entered:  # the body met it, about another effect
                raise
            return refusal.result()
        return effect.result()

    async def plan(
        self,
        reference: ToolReference,
        arguments: Mapping[str, Json],
        **terms: Unpack[EffectTerms],
    ) -> EffectEntry:
        """Record an effect for a worker to dispatch later."""
        return await self._effect(effect_request(reference, arguments, None, **terms))

    async def cancel(self, effect_id: str, reason: str) -> EffectEntry:
        """Cancel an effect that nobody has begun."""
        return await self._effect(cancel_request(effect_id, reason))

    async def retry(
        self, effect_id: str, reason: str, *, evidence: str | None = None
    ) -> EffectEntry:
        """Let a worker send a quarantined effect again; see `Client.retry`."""
        return await self._effect(retry_request(effect_id, reason, evidence))

    async def add_evidence(
        self,
        effect_id: str,
        answer: EvidenceGiven,
        detail: str,
        *,
        observed_at: datetime,
        provider_reference: str | None = None,
    ) -> EffectEntry:
        """Record what the provider was seen to say; see `Client.add_evidence`."""
        given = evidence_request(effect_id, answer, detail, observed_at, provider_reference)
        return await self._effect(given)

    async def show(self, effect_id: str) -> EffectEntry:
        """Return an effect; see `Client.show`."""
        return await self._effect(show_request(effect_id))

    async def approval(self, approval_id: str) -> ApprovalEntry:
        """Return what a person is asked, and what the person said."""
        return read_approval(await self._ask(approval_request(approval_id)))

    async def begin_run(self, run: str, subject: Mapping[str, str | int]) -> None:
        """Say on whose behalf a run acts; see `Client.begin_run`."""
        await self._ask(begin_run_request(run, subject))

    async def run(self, run: str) -> RunTrace:
        """Return a run's whole trace; see `Client.run`."""
        return await self._wire.run(read_run(run, self._setting))

    def _open(self, transport: httpx.AsyncBaseTransport | None) -> AsyncWire:
        return AsyncWire(self._endpoint, self._setting, transport)

    def _attempt(self, request: Request, claim: Claim, *, is_pure: bool) -> AsyncEffect:
        return AsyncEffect(self._wire, request, claim, self._setting, is_pure=is_pure)

    async def _ask(self, request: Request) -> Document:
        return (await self._wire.run(converse(request, self._setting))).document

    async def _effect(self, request: Request) -> EffectEntry:
        return read_effect(await self._ask(request))
