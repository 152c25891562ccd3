"""The provider's routes. All run on one event loop, and so the books are used by one at a time."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final, cast

import httpx
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from cli.demo.provider.books import HONOURS_KEYS, Books, Order, Reply, Row
from cli.demo.provider.faults import Fault, Place, Plan, Schedule, Trouble, read_trouble
from cli.demo.provider.webhooks import Webhooks

BODY_BYTES_MAX: Final = 1024 * 1024
PAGE_MAX: Final = 1000

Act = Callable[[Trouble], Awaitable[Reply]]


class Cut(Response):
    """An answer that breaks off: the server closes the connection of a response without its end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's
        """Begin, and do not end."""
        length = [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": length})


class Provider:
    """The books, the faults, and what is under way."""

    def __init__(self, books: Books, plan: Plan, http: httpx.AsyncClient) -> None:
        self.books = books
        self.schedule = Schedule(plan)
        self._webhooks = Webhooks(http, books)
        self._keys_under_way = set[str]()
        self._telling = set[asyncio.Task[None]]()

    @property
    def plan(self) -> Plan:
        """How the provider behaves now."""
        return self.schedule.plan

    async def serve(self, request: Request, place: Place, act: Act) -> Response:
        """Note a request, let it meet its trouble, and act on it before, after or never."""
        number = self.books.note(_noted(request), await request.body(), now=time.time())
        try:
            header = request.headers.get("Fault")
            trouble = read_trouble(header, place) if header else self.schedule.draw(place, number)
        except ValueError:
            return JSONResponse({"error": "no_such_fault"}, 400)
        response = _refusal(trouble)
        if response is None:
            status, answer = await act(trouble)
            await asyncio.sleep(trouble.delay(Fault.ANSWERS_LATE))
            response = _answer(trouble, status, answer)
        is_cut = isinstance(response, Cut)
        self.books.note_answer(number, trouble.fault, None if is_cut else response.status_code)
        return response

    async def book(self, order: Order, trouble: Trouble) -> Reply:
        """Book an order; a key whose first request is still under way has to wait (409)."""
        key = order.idempotency_key if HONOURS_KEYS[order.kind] else None
        if HONOURS_KEYS[order.kind] and not key:
            return 400, {"error": "key_missing"}
        if key in self._keys_under_way:
            return 409, {"error": "key_in_progress"}
        if key:
            self._keys_under_way.add(key)
        try:
            await asyncio.sleep(trouble.delay(Fault.ACCEPTS_LATE))
            now, retention_seconds = time.time(), self.plan.retention_seconds
            status, answer = self.books.book(order, now=now, retention_seconds=retention_seconds)
        finally:
            self._keys_under_way.discard(key or "")
        if answer.get("at") == now:  # made just now, not found again
            self._tell(answer["reference"], now + order.settle_seconds)
        return status, answer

    def cancel(self, key: str) -> Reply:
        """Cancel what is pending or may still come under a key."""
        now, retention_seconds = time.time(), self.plan.retention_seconds
        status, answer = self.books.cancel(key, now=now, retention_seconds=retention_seconds)
        if status == 200:  # noqa: PLR2004 - OK
            self._tell(answer["reference"], now)
        return status, answer

    def as_of(self, trouble: Trouble) -> float:
        """Return the time whose state a look-up shows."""
        return time.time() - max(self.plan.lag_seconds, trouble.delay(Fault.IS_STALE))

    def _tell(self, reference: str, at: float) -> None:
        if self.plan.webhook is not None:
            task = asyncio.create_task(self._told(reference, at))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _told(self, reference: str, at: float) -> None:
        await asyncio.sleep(at - time.time())
        # Who sleeps by one clock may wake a moment early by another.
        booking = self.books.by_reference(reference, as_of=max(at, time.time()))
        subscriber = self.plan.webhook
        if booking is not None and subscriber is not None:
            trouble = self.schedule.draw(Place.WEBHOOKS, booking["number"])
            await self._webhooks.tell(subscriber, booking, trouble)


def _noted(request: Request) -> Row:
    fence = request.headers.get("Fence", "")
    return {
        "method": request.method,
        "path": request.url.path,
        "effect_id": request.headers.get("Effect-Id"),
        "fence": int(fence) if fence.lstrip("-").isdecimal() else None,
        "idempotency_key": request.headers.get("Idempotency-Key"),
    }


def _refusal(trouble: Trouble) -> Response | None:
    later = {"Retry-After": "1"}
    match trouble.fault:
        case Fault.DOWN:
            return JSONResponse({"error": "down"}, 503, later)
        case Fault.RATE_LIMITED:
            return JSONResponse({"error": "too_many_requests"}, 429, later)
        case Fault.LOSES_THE_REQUEST:
            return Cut()
        case _:
            return None


def _answer(trouble: Trouble, status: int, answer: Row) -> Response:
    match trouble.fault:
        case Fault.LOSES_THE_ANSWER:
            return Cut()
        case Fault.BREAKS:
            return JSONResponse({"error": "internal"}, 500)
        case Fault.IS_MALFORMED:
            return Response(b"<html>Bad gateway", 200, media_type="text/html")
        case Fault.IS_FOREIGN:
            foreign = {"effect_id": "another", "idempotency_key": "another", "status": "booked"}
            return JSONResponse({"reference": "invoice-0000", **answer, **foreign})
        case _:
            return JSONResponse(answer, status)


# --- routes -------------------------------------------------------------------------------------

router = APIRouter()


def _provider(request: Request) -> Provider:
    return request.app.state.provider


At = Annotated[Provider, Depends(_provider)]


async def _look_up(
    provider: Provider, request: Request, find: Callable[[float], Row | None]
) -> Response:
    async def act(trouble: Trouble) -> Reply:
        found = find(provider.as_of(trouble))
        return (404, {"error": "not_found"}) if found is None else (200, found)

    return await provider.serve(request, Place.LOOK_UPS, act)


@router.get("/books")
async def books(provider: At) -> Row:
    """Show the judge everything."""
    return provider.books.whole(now=time.time())


@router.get("/plan")
async def plan(provider: At) -> Plan:
    """Show how the provider behaves."""
    return provider.plan


@router.put("/plan")
async def set_plan(provider: At, plan: Plan) -> Plan:
    """Behave in another way from now on."""
    provider.schedule = Schedule(plan)
    return plan


@router.get("/keys/{key:path}")
async def by_key(provider: At, request: Request, key: str) -> Response:
    """Look up by idempotency key."""
    retention = provider.plan.retention_seconds
    return await _look_up(
        provider,
        request,
        lambda as_of: provider.books.by_key(key, as_of=as_of, retention_seconds=retention),
    )


@router.post("/keys/{key:path}/cancel")
async def cancel(provider: At, request: Request, key: str) -> Response:
    """Cancel by idempotency key."""

    async def act(_: Trouble) -> Reply:
        return provider.cancel(key)

    return await provider.serve(request, Place.ORDERS, act)


@router.get("/effects/{effect_id:path}")
async def by_effect(provider: At, request: Request, effect_id: str) -> Response:
    """Look up by the caller's id."""
    return await _look_up(
        provider, request, lambda as_of: provider.books.by_effect(effect_id, as_of=as_of)
    )


@router.get("/bookings/{reference}")
async def by_reference(provider: At, request: Request, reference: str) -> Response:
    """Look up by the provider's own id."""
    return await _look_up(
        provider, request, lambda as_of: provider.books.by_reference(reference, as_of=as_of)
    )


@router.get("/bookings")
async def bookings(
    provider: At,
    request: Request,
    after: int = 0,
    since: float = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = 100,
) -> Response:
    """List, for whoever looks for bookings that it has no record of."""

    def page(as_of: float) -> Row:
        found = provider.books.page(after, limit, since=since, as_of=as_of)
        return {"bookings": found, "next": found[-1]["number"] if len(found) == limit else None}

    return await _look_up(provider, request, page)


@router.get("/customers/{customer_id}")
async def customer(provider: At, request: Request, customer_id: str) -> Response:
    """Read something that is always there."""
    found = {"customer_id": customer_id, "name": f"Customer {customer_id}"}
    return await _look_up(provider, request, lambda _: found)


@router.post("/{kind}")
async def order(provider: At, request: Request, kind: str) -> Response:
    """Book something, and answer once it stands in the books."""
    if kind not in HONOURS_KEYS:
        raise HTTPException(404)
    content = await request.body()

    async def act(trouble: Trouble) -> Reply:
        body = _object(content)
        if body is None:
            return 400, {"error": "malformed"}
        said = _noted(request)
        made = Order(
            kind=kind,
            effect_id=said["effect_id"],
            fence=said["fence"],
            idempotency_key=said["idempotency_key"],
            body=body,
            outcome="declined" if trouble.fault is Fault.DECLINES else "booked",
            settle_seconds=max(trouble.delay(Fault.DECLINES), trouble.delay(Fault.SETTLES_LATE)),
        )
        return await provider.book(made, trouble)

    return await provider.serve(request, Place.ORDERS, act)


def _object(content: bytes) -> Row | None:
    if len(content) > BODY_BYTES_MAX:
        return None
    try:
        body: Any = json.loads(content)
    except ValueError:
        return None
    return cast("Row", body) if isinstance(body, dict) else None


async def _no_such_route(_: Request, __: Exception) -> Response:
    # Never 404: that says "not booked" to whoever looks an effect up.
    return JSONResponse({"error": "no_such_route"}, 400)


def create_app(path: Path | str, plan: Plan) -> FastAPI:
    """Return the application over a file of books, which is made if it is not there."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with httpx.AsyncClient(trust_env=False) as http:
            books = Books(path)
            app.state.provider = Provider(books, plan, http)
            yield
            books.close()

    app = FastAPI(title="Reference provider", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.include_router(router)
    app.add_exception_handler(HTTPException, _no_such_route)
    return app
