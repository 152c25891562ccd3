"""One test holds for both clients: `connect` makes the one or the other."""

import asyncio
import inspect
from contextlib import ExitStack

import pytest

from tallystick.client import AsyncClient, AsyncEffect, Client
from tests.unit.tallystick.client.far_side import options_for


class Blocking:
    """An asynchronous client, or one of its effects, driven as the blocking one is."""

    def __init__(self, runner, target):
        self.runner = runner
        self.target = target

    def __getattr__(self, name):
        member = getattr(self.target, name)
        return self.wrapped(member) if inspect.ismethod(member) else member

    def wrapped(self, method):
        def invoke(*arguments, **options):
            value = method(*arguments, **options)
            if inspect.iscoroutine(value):
                return self.runner.run(value)
            return Blocking(self.runner, value) if isinstance(value, AsyncEffect) else value

        return invoke

    def call(self, reference, arguments, body, **terms):
        async def awaited(effect):
            return body(effect)

        return self.runner.run(self.target.call(reference, arguments, awaited, **terms))

    def __enter__(self):
        self.runner.run(self.target.__aenter__())
        return self

    def __exit__(self, *error):
        self.runner.run(self.target.__aexit__(*error))

    def __repr__(self):
        return repr(self.target)


@pytest.fixture(params=["Client", "AsyncClient"])
def connect(request):
    with ExitStack() as clients:

        def connect(service, **options):
            options = options_for(service) | options
            if request.param == "Client":
                return clients.enter_context(Client(**options))
            runner = clients.enter_context(asyncio.Runner())
            return clients.enter_context(Blocking(runner, AsyncClient(**options)))

        yield connect
