"""The routes of the application, as a test enumerates them: a new route is tested unasked."""

from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

PLACEHOLDERS = {
    "{approval_id}": "019ad000-0000-7000-8000-000000000000.8",
    "{effect_id}": "019ad000-0000-7000-8000-000000000000.7",
    "{key_id}": "ed25519:0123456789abcdef",
    "{name}": "tools.none",
    "{pin_id}": "019ad000-0000-7000-8000-000000000001",
    "{policy}": "none",
    "{run:path}": "run-none",
    "{source}": "nowhere",
    "{tenant}": "nobody",
    "{token_id}": "019ad000-0000-7000-8000-000000000003",
    "{version}": "1.0",
    "{worker_id}": "019ad000-0000-7000-8000-000000000002",
}
"""A well-formed name of nothing, for every parameter of a path."""


@dataclass(frozen=True)
class Place:
    """One method of one route."""

    method: str
    template: str
    has_body: bool

    @property
    def path(self) -> str:
        """Return the path with a well-formed name of nothing for each parameter."""
        path = self.template
        for parameter, value in PLACEHOLDERS.items():
            path = path.replace(parameter, value)
        assert "{" not in path, f"give {path} a placeholder"
        return path


def places(app: FastAPI) -> list[Place]:
    """Return every method of every route."""
    found: list[Place] = []
    for context in iter_route_contexts(app.routes):
        route: Any = context.original_route
        has_body = isinstance(route, APIRoute) and route.body_field is not None
        methods = sorted(context.methods or {"GET"})
        found += [Place(method, context.path or route.path, has_body) for method in methods]
    return found
