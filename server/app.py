"""The HTTP application: the routes of every folder behind one gatehouse."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from typing import Any

import uvicorn
from fastapi import Depends, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

import ledger.http
import registry.http
import rollout.http
from kernel.http import ScopeDep
from kernel.scope import Connection
from server import problems
from server.gatehouse import Authenticator, Gatehouse, Metrics
from server.service import Service, opened, reconciling
from server.settings import Settings
from tallystick.errors import TallystickError

_DESCRIPTION = """
A versioned registry of tool contracts with a dispatch ledger.

Send the token in `Authorization: Bearer <token>`; on a single machine it stands in the file
`admin-token` of the home folder. Every refusal is a problem document (RFC 9457) with a stable
`code`.
"""


def build(
    settings: Settings, *, reconcile: bool = False, service: Service | None = None
) -> FastAPI:
    """Return the application.

    Its lifespan opens the service, unless it is given an open one, and with ``reconcile`` runs the
    reconciler in it.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            running = service or await stack.enter_async_context(opened(settings))
            app.state.database = running.database
            app.state.keys = running.keys
            app.state.authenticator = Authenticator(running.database)
            if reconcile:
                await stack.enter_async_context(reconciling(running))
            yield

    app = FastAPI(
        title="Tallystick",
        version="0.1.0",
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.lease_seconds_max = settings.lease_seconds_max
    app.state.metrics = Metrics()
    app.add_middleware(Gatehouse, request_bytes_max=settings.request_bytes_max)
    problems.install(app)
    refusals: dict[int | str, dict[str, Any]] = {
        "default": {"model": problems.Problem, "description": "A refusal, as a problem document."}
    }
    # The gatehouse checks the token; this tells the API's page that there is one to send.
    bearer = Depends(HTTPBearer(auto_error=False))
    for router in (registry.http.router, ledger.http.router, rollout.http.router):
        app.include_router(router, responses=refusals, dependencies=[bearer])
    _add_own_routes(app)
    _add_docs(app)
    return app


def _add_own_routes(app: FastAPI) -> None:
    @app.get("/healthz", tags=["service"])
    async def healthz() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
        """Tell that the process runs."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["service"])
    async def readyz(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        """Tell whether the database answers."""

        async def ask(connection: Connection) -> None:
            await connection.execute("SELECT 1")

        try:
            await request.app.state.database.transact(None, ask)
        except TallystickError:
            return JSONResponse({"status": "unavailable"}, status_code=503)
        return JSONResponse({"status": "ok"})

    @app.get("/v1/whoami", tags=["service"])
    async def whoami(scope: ScopeDep) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
        """Tell whom the token speaks for."""
        caller = scope.caller
        return {"tenant": caller.tenant, "principal": caller.principal, "role": caller.role}

    @app.get("/metrics", tags=["service"])
    async def metrics(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        """Tell the service's metrics in Prometheus' text format."""
        text = generate_latest(request.app.state.metrics.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)


def _add_docs(app: FastAPI) -> None:
    """Serve the page of the API with files from a package: it works without a network."""
    static = files("fastapi_offline") / "static"
    app.mount("/docs/static", StaticFiles(directory=str(static)))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:  # pyright: ignore[reportUnusedFunction]
        return get_swagger_ui_html(
            openapi_url="/openapi.json",
            title="Tallystick API",
            swagger_js_url="/docs/static/swagger-ui-bundle.js",
            swagger_css_url="/docs/static/swagger-ui.css",
            swagger_favicon_url="/docs/static/favicon.png",
        )


def serve(settings: Settings, *, reconcile: bool) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises RegistryUnavailable when the service cannot be opened.
    """
    asyncio.run(_serve(settings, reconcile=reconcile))


async def _serve(settings: Settings, *, reconcile: bool) -> None:
    async with opened(settings) as service:
        config = uvicorn.Config(
            build(settings, reconcile=reconcile, service=service),
            host=settings.host,
            port=settings.port,
            log_level="info",
            access_log=False,
            timeout_graceful_shutdown=10,
        )
        # uvicorn raises a signal once more when it has stopped for it: that one ends nothing, so
        # that the service is closed in order.
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, lambda: None)
        await uvicorn.Server(config).serve()
