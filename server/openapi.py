"""The OpenAPI document: what FastAPI writes, with refusals under the media type that they have."""

from typing import Any, Final

from fastapi import FastAPI

from server.problems import Problem

REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    "default": {"model": Problem, "description": "A refusal, as a problem document (RFC 9457)."}
}
"""What every route answers beside what it is asked for."""


def describe(app: FastAPI) -> None:
    """Make the application tell `REFUSALS` as ``application/problem+json``.

    FastAPI declares every body of a route under the route's own media type.
    """
    written = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            for operations in written()["paths"].values():
                for operation in operations.values():
                    refusal = operation["responses"]["default"]
                    refusal["content"] = {"application/problem+json": _only(refusal["content"])}
        return app.openapi_schema or written()

    app.openapi = openapi


def _only(content: dict[str, Any]) -> Any:  # noqa: ANN401 - as OpenAPI has it
    (media,) = content.values()
    return media
