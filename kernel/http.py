"""What routes share: strict bodies, the scope of a request, entity tags."""

import hashlib
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, cast

from fastapi import Depends, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from kernel.scope import Scope
from tallystick.canonical import Json, MalformedJson, parse_json
from tallystick.errors import InvalidArguments, InvalidContract, InvalidRequest

# A fault inside one of these members is a fault of what it holds, and is told with its own code and
# pointer.
_PARTS = {"/document": InvalidContract, "/arguments": InvalidArguments}


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
