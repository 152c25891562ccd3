"""One schedule's world: the service, its store and its provider, and the network between them."""

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar
from uuid import UUID

from ledger.evidence import Answer, webhook
from ledger.identity import EffectId
from tallystick.canonical import Json
from tallystick.effect_class import EffectClass
from tallystick.errors import RegistryUnavailable, TallystickError
from tests.simulation.dispatching import Dispatching
from tests.simulation.engine import Box, Engine, Script
from tests.simulation.product import Product
from tests.simulation.provider import Provider, Request
from tests.simulation.registry import Registry, Transaction
from tests.simulation.settling import Settling
from tests.simulation.store import Store, Version

T = TypeVar("T")
Asking = Generator[float | Box, None, T]

ANSWER_SECONDS_MAX: Final = 3.0
_REPEATED: Final = frozenset({EffectClass.PURE, EffectClass.IDEMPOTENT})
"""What a transport may repeat: where nothing is repeated without a key, no ledger could help."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One piece of work: it is one effect, however many workers take it, and however often."""

    tenant: str
    run: str
    effect: str
    version: Version
    amount: int
    origin: str
    arrives_at: float
    plans_first: bool
    deadline_seconds: float | None

    @property
    def arguments(self) -> dict[str, Json]:
        return {"customer_id": "C-42", "amount_cents": self.amount}


@dataclass(slots=True)
class Site:
    """What every process of a schedule works with."""

    engine: Engine
    product: Product
    store: Store
    registry: Registry
    dispatching: Dispatching
    settling: Settling
    provider: Provider
    items: list[Item] = field(default_factory=list[Item])
    sends_webhooks: bool = False
    _ids: int = 0

    def new_id(self) -> UUID:
        """Return an id that nothing else has: of a process at its start, of one question."""
        self._ids += 1
        return UUID(int=self._ids)

    # --- between a worker and the service -----------------------------------------------------

    def ask(self, work: Callable[[], Transaction[T]]) -> Asking[T]:
        """Ask the service for a transaction.

        Raises RegistryUnavailable where the question or its answer was lost: nobody knows then
        whether it was committed. A refusal comes as it is.
        """
        engine = self.engine
        yield engine.chance.between(0.01, 0.5)
        if engine.fault("lost_question"):
            raise RegistryUnavailable("The service cannot be reached.")
        if engine.fault("repeated_question"):
            engine.after(engine.chance.between(0.1, 20.0), lambda: self._repeat(work))
        answer = yield from work()
        yield engine.chance.between(0.01, 0.3)
        if engine.fault("lost_acknowledgement"):
            raise RegistryUnavailable("The database did not confirm the transaction.")
        return answer

    def _repeat(self, work: Callable[[], Transaction[T]]) -> None:
        def script() -> Script:
            with suppress(TallystickError):  # Nobody awaits the answer.
                yield from work()

        self.engine.spawn("network", script, is_mortal=False)

    # --- between a worker and the provider ----------------------------------------------------

    def send(self, request: Request, box: Box) -> None:
        """Send a request; its answer comes into the box, if it comes."""
        engine = self.engine
        self.provider.sent.append(request)
        engine.note(request.worker, f"sends with fence {request.fence}", request.effect_id)

        def answer(status: int, reference: str) -> None:
            if engine.fault("lost_answer"):
                engine.note("network", "loses the answer", request.effect_id)
            else:
                seconds = engine.chance.between(0.01, 0.5)
                engine.after(seconds, lambda: engine.deliver(box, (status, reference)))
            self._tell(request, status, reference)

        def arrive() -> None:
            self.provider.receive(request, answer)

        if engine.fault("lost_request"):
            engine.note("network", "loses the request", request.effect_id)
            return
        is_stuck = engine.fault("stuck_request")
        engine.after(engine.chance.between(*((5.0, 60.0) if is_stuck else (0.01, 0.5))), arrive)
        if request.effect_class in _REPEATED and engine.fault("repeated_request"):
            engine.after(engine.chance.between(0.1, 30.0), arrive)

    def _tell(self, request: Request, status: int, reference: str) -> None:
        """Let the provider send its message: late, twice, or before the worker's own report."""
        said = {200: Answer.APPLIED, 402: Answer.REJECTED}.get(status)
        is_read = request.effect_class is EffectClass.PURE
        if not self.sends_webhooks or said is None or is_read:
            return
        record = self.store.records.get(EffectId.parse(request.effect_id))
        if record is None:
            return

        def arrive() -> None:
            self.settling.take(
                record,
                webhook("provider"),
                said,
                reference=reference or None,
                message=message,
            )

        engine, message = self.engine, self.new_id()
        engine.after(engine.chance.between(0.01, 3.0), arrive)
        if engine.fault("repeated_webhook"):
            engine.after(engine.chance.between(0.1, 40.0), arrive)
