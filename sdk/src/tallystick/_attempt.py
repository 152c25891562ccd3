"""One effect as its worker holds it: `Effect`, which blocks, and `AsyncEffect`.

Shells: what an effect goes through is decided in `tallystick._effect`.
"""

from types import TracebackType
from typing import Self

from tallystick._conversation import Setting
from tallystick._effect import Attempt, not_sent
from tallystick._requests import Claim, Report, Request
from tallystick._wire import AsyncWire, Wire
from tallystick.canonical import Json


class Effect(Attempt):
    """One effect of the caller's, made by `Client.effect` and used once, in a ``with`` statement.

    Entering dispatches it; leaving reports it as UNKNOWN unless the body has reported something
    else, or says with `NotSent` that nothing was sent.
    """

    def __init__(
        self, wire: Wire, request: Request, claim: Claim, setting: Setting, *, is_pure: bool
    ) -> None:
        super().__init__(request, claim, setting, is_pure=is_pure)
        self._wire = wire

    def __enter__(self) -> Self:
        self._wire.beat(self._claim.worker_id)
        self._wire.run(self._entering())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._wire.run(self._leaving(error))

    def succeeded(self, result: Json = None, *, provider_reference: str | None = None) -> None:
        """Report that the provider did it.

        Args:
            result: The tool's result, as JSON.
            provider_reference: The provider's own name for what it made.

        Raises:
            FenceStale: Another worker has the effect; the report was kept as evidence.
            OutcomeUnreported: The ledger could not be told.
            InvalidResult: The result is not JSON; nothing was reported yet.
            IllegalTransition: Something else was reported before.
        """
        report = Report("succeeded", result, provider_reference=provider_reference)
        self._wire.run(self._reporting(report))

    def failed(self, code: str, message: str) -> None:
        """Report that the provider said no, by a code of the contract's error model.

        Only for an answer that says that nothing was done. What is not certain is `unknown`.
        Raises as `succeeded` does.
        """
        self._wire.run(self._reporting(Report("failed", error=(code, message))))

    def not_sent(self, why: str) -> None:
        """Report that no byte went to the provider. Raises as `succeeded` does."""
        self._wire.run(self._reporting(not_sent(why)))

    def unknown(self, why: str) -> None:
        """Report that nobody knows; the reconciler finds out. Raises as `succeeded` does."""
        self._wire.run(self._reporting(Report("unknown", error=("unknown", why))))


class AsyncEffect(Attempt):
    """`Effect` for ``async with``; reports are awaited."""

    def __init__(
        self, wire: AsyncWire, request: Request, claim: Claim, setting: Setting, *, is_pure: bool
    ) -> None:
        super().__init__(request, claim, setting, is_pure=is_pure)
        self._wire = wire

    async def __aenter__(self) -> Self:
        self._wire.beat(self._claim.worker_id)
        await self._wire.run(self._entering())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        from anyio import CancelScope

        with CancelScope(shield=True):  # a cancelled body is the one that most needs a report
            await self._wire.run(self._leaving(error))

    async def succeeded(
        self, result: Json = None, *, provider_reference: str | None = None
    ) -> None:
        """Report that the provider did it; see `Effect.succeeded`."""
        report = Report("succeeded", result, provider_reference=provider_reference)
        await self._wire.run(self._reporting(report))

    async def failed(self, code: str, message: str) -> None:
        """Report that the provider said no; see `Effect.failed`."""
        await self._wire.run(self._reporting(Report("failed", error=(code, message))))

    async def not_sent(self, why: str) -> None:
        """Report that no byte went to the provider; see `Effect.not_sent`."""
        await self._wire.run(self._reporting(not_sent(why)))

    async def unknown(self, why: str) -> None:
        """Report that nobody knows; see `Effect.unknown`."""
        await self._wire.run(self._reporting(Report("unknown", error=("unknown", why))))
