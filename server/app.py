"""The HTTP application: the routes of every folder behind one gatehouse."""

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.routing import BaseRoute

import access.http
import audit.http
import ledger.http
import ledger.http_approvals
import ledger.http_evidence
import ledger.http_quarantine
import ledger.http_runs
import registry.http
import registry.http_keys
import registry.http_pins
import registry.http_policies
import registry.http_shares
import rollout.http
from access.authentication import Authenticator
from access.oidc import LOOPBACK
from kernel.http import ScopeDep, allow
from kernel.roles import Permission
from kernel.scope import Connection
from ledger.store import standings
from reconciler.store import reach
from server import problems
from server.bootstrap import DEFAULT_TENANT
from server.gatehouse import Gatehouse, Metrics
from server.issuer import trusted
from server.listener import bounded_protocol
from server.openapi import REFUSALS, describe
from server.service import Service, opened, reconciling, secrets_of
from server.settings import Settings
from tallystick.errors import Forbidden, TallystickError

_log = logging.getLogger("tallystick.server")

# The gatehouse checks the token; this tells the API's page that there is one to send.
_BEARER = Depends(HTTPBearer(auto_error=False))

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
            app.state.signing = secrets_of(settings).signing
            issuer = await stack.enter_async_context(trusted(settings))
            app.state.authenticator = Authenticator(running.database.transact, issuer)
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
        routes=_routes(),
    )
    app.state.lease_seconds_max = settings.lease_seconds_max
    app.state.approval_seconds = settings.approval_seconds
    app.state.metrics = Metrics()
    app.add_middleware(Gatehouse, limits=settings.limits)
    problems.install(app)
    _add_docs(app)
    describe(app)
    return app


@cache
def _routes() -> list[BaseRoute]:
    """Return the routes of every folder: they hold nothing of an application, and serve all."""
    every = APIRouter()
    for router in (
        access.http.router,
        registry.http.router,
        registry.http_keys.router,
        registry.http_pins.router,
        registry.http_policies.router,
        registry.http_shares.router,
        ledger.http.router,
        ledger.http_approvals.router,
        ledger.http_evidence.router,
        ledger.http_quarantine.router,
        ledger.http_runs.router,
        rollout.http.router,
        audit.http.router,
    ):
        every.include_router(router, responses=REFUSALS, dependencies=[_BEARER])
    every.include_router(ledger.http_evidence.messages, responses=REFUSALS)
    own = APIRouter(tags=["service"])
    _add_own_routes(own)
    every.include_router(own, responses=REFUSALS)
    return every.routes


def _add_own_routes(router: APIRouter) -> None:
    @router.get("/healthz")
    async def healthz() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
        """Tell that the process runs."""
        return {"status": "ok"}

    @router.get("/readyz", responses={503: {"description": "It does not answer."}})
    async def readyz(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        """Tell whether the database answers."""

        async def ask(connection: Connection) -> None:
            await connection.execute("SELECT 1")

        try:
            await request.app.state.database.transact(None, ask)
        except TallystickError:
            return JSONResponse({"status": "unavailable"}, status_code=503)
        return JSONResponse({"status": "ok"})

    @router.get("/v1/whoami", dependencies=[_BEARER, allow(Permission.READ_CONTRACTS)])
    async def whoami(scope: ScopeDep) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Tell whom the token speaks for."""
        caller = scope.caller
        return {
            "tenant": caller.tenant,
            "principal": caller.principal,
            "roles": sorted(caller.roles),
        }

    @router.get(
        "/metrics",
        dependencies=[_BEARER, allow(Permission.READ_METRICS)],
        response_class=PlainTextResponse,
    )
    async def metrics(  # pyright: ignore[reportUnusedFunction]
        request: Request, scope: ScopeDep
    ) -> Response:
        """Tell the service's metrics in Prometheus' text format.

        They are of all tenants: only a token of the tenant `default` reads them.
        """
        if scope.caller.tenant != DEFAULT_TENANT:
            raise Forbidden(f"The metrics are for the tenant {DEFAULT_TENANT}.")
        shown: Metrics = request.app.state.metrics
        shown.show_open(await scope.transact(standings))
        shown.show_listings(await scope.transact(reach))
        return Response(generate_latest(shown.registry), media_type=CONTENT_TYPE_LATEST)


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


def warn_beyond_loopback(host: str) -> None:
    """Say in the log that whoever is on the way can read tokens, where they leave the machine."""
    if host not in LOOPBACK:
        _log.warning("listening on %s without TLS: let only what ends TLS reach it", host)


def serve(settings: Settings, *, reconcile: bool) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises RegistryUnavailable when the service cannot be opened.
    """
    asyncio.run(_serve(settings, reconcile=reconcile))


def listening(settings: Settings, app: FastAPI) -> uvicorn.Config:
    """Return how an application is served."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_level="info",
        access_log=False,
        # With room for how a body is cut into chunks: the gatehouse is the one that refuses.
        http=bounded_protocol(message_bytes_max=4 * settings.request_bytes_max),
        ws="none",
        # Else whoever asks from this machine could say for each guess that it comes from elsewhere.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=10,
    )


async def _serve(settings: Settings, *, reconcile: bool) -> None:
    warn_beyond_loopback(settings.host)
    async with opened(settings) as service:
        config = listening(settings, build(settings, reconcile=reconcile, service=service))
        # uvicorn raises a signal once more when it has stopped for it: that one ends nothing, so
        # that the service is closed in order.
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, lambda: None)
        await uvicorn.Server(config).serve()
