"""What routes share: strict bodies, the scope of a request, entity tags."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, ParamSpec, TypeVar, cast
from uuid import UUID
from weakref import WeakValueDictionary

from fastapi import Depends, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from kernel.roles import Permission, holds
from kernel.scope import Caller, Scope
from tallystick.canonical import Json, MalformedJson, parse_json
from tallystick.errors import (
    Forbidden,
    InvalidArguments,
    InvalidContract,
    InvalidRequest,
    RateLimited,
)

# A fault inside one of these members is a fault of what it holds, and is told with its own code and
# pointer.
_PARTS = {"/document": InvalidContract, "/arguments": InvalidArguments}


WAS_THERE: Final[dict[int | str, dict[str, Any]]] = {200: {"description": "It was there already."}}
NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The caller has this body already."}
}


class Wire(BaseModel):
    """A body on the wire: nothing extra, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _StrictRequest(Request):
    _value: Json

    async def read(self) -> None:
        """Parse the body before the framework does: its faults are ours to tell."""
        body = await self.body()
        try:
            self._value = parse_json(body) if body else None
        except MalformedJson as fault:
            for part, refusal in _PARTS.items():
                if f"{fault.pointer}/".startswith(f"{part}/"):
                    pointer = fault.pointer.removeprefix(part)
                    raise refusal(fault.detail, pointer=pointer) from fault
            raise InvalidRequest(fault.detail, pointer=fault.pointer) from fault

    async def json(self) -> Json:
        return self._value


class StrictRoute(APIRoute):
    """A route whose JSON body is read strictly (RFC 7493).

    A duplicate key is refused, not dropped.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        summary: str | None = None,
        **options: Any,  # noqa: ANN401 - the framework's own
    ) -> None:
        """Take the first sentence of the docstring as the summary that the API's page shows."""
        first = (endpoint.__doc__ or "").partition(".")[0]
        super().__init__(path, endpoint, summary=summary or first, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the request that the handler reads its body from."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            strict_request = _StrictRequest(request.scope, request.receive)
            await strict_request.read()
            return await handle(strict_request)

        return strict


async def scope_of(request: Request) -> Scope:
    """Return the scope that authentication made for this request."""
    # A coroutine, though it waits for nothing: a plain function would be run in a thread.
    return cast("Scope", request.state.scope)


ScopeDep = Annotated[Scope, Depends(scope_of)]


@dataclass(frozen=True)
class Guard:
    """What a route asks of its caller's roles. See `allow`."""

    permission: Permission

    async def __call__(self, scope: ScopeDep) -> None:
        """Let the caller through. Raises Forbidden, before anything is looked up."""
        if not holds(scope.caller.roles, self.permission):
            raise Forbidden(f"None of your roles may do this: it takes {self.permission}.")


def allow(permission: Permission) -> Any:  # noqa: ANN401 - as FastAPI's Depends
    """Return the dependency that lets a route's caller through by its roles, or forbids it.

    Every route has exactly one: ``dependencies=[allow(Permission.PUBLISH)]``.
    """
    return Depends(Guard(permission))


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_THREADS_MAX: Final = 4
_threads: Final = ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="computation")


class _Turns:
    """How many more of one tenant's computations may be at work, and how many wait for that."""

    AT_WORK_MAX: Final = 2
    WAITING_MAX: Final = 16

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(self.AT_WORK_MAX)
        self.waiting = 0


# Those of a tenant are gone once none of its computations is at work or waits.
_turns: Final = WeakValueDictionary[UUID, _Turns]()


async def in_thread(
    caller: Caller,
    work: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Compute in one of a few threads, so that what takes long does not stop the others.

    A tenant has two of them at a time, and a short queue. Whoever stops waiting frees no thread
    that is at work, and what still waits for one is given up.

    Raises:
        RateLimited: The caller's tenant has too many that wait.
    """
    turns = _turns.setdefault(caller.tenant_id, _Turns())
    if turns.waiting >= turns.WAITING_MAX:
        raise RateLimited(
            "Too many computations of your tenant wait for others of it to end.",
            facts={"retry_after_seconds": 1},
        )
    turns.waiting += 1
    try:
        await turns.free.acquire()
    finally:
        turns.waiting -= 1
    loop = asyncio.get_running_loop()

    def give_back(_: Future[Result]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and who waits with it
            loop.call_soon_threadsafe(turns.free.release)

    computed = _threads.submit(partial(work, *args, **kwargs))
    computed.add_done_callback(give_back)
    return await asyncio.wrap_future(computed)


def tagged(request: Request, body: dict[str, object]) -> Response:
    """Answer with an entity tag of the body.

    The answer is 304 where the caller has that body already (RFC 9110).
    """
    response = JSONResponse(body)
    tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response
