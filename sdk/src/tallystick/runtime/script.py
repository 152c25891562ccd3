"""One implementation of a call, and two shells: blocking, and asynchronous.

A script is a generator that yields the calls into the application that it wants made, and is told
what they came to. The blocking shell makes them where it stands. The asynchronous one awaits a
coroutine, and makes any other call in a thread, so that no tool holds up the loop.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar, cast

T = TypeVar("T")

Step: TypeAlias = Callable[[], object]
Script: TypeAlias = Generator[Step, Any, T]


def run(script: Script[T]) -> T:
    """Run a script to its end, blocking.

    Raises:
        TypeError: It asks for what can only be awaited.
    """
    try:
        step = next(script)
        while True:
            try:
                value = _blocking(step)
            except BaseException as error:  # noqa: BLE001 - the script decides about each of them
                step = script.throw(error)
            else:
                step = script.send(value)
    except StopIteration as stop:
        return stop.value


async def run_async(script: Script[T]) -> T:
    """Run a script to its end, awaiting what it asks for."""
    try:
        step = next(script)
        while True:
            try:
                value = await _awaited(step)
            except BaseException as error:  # noqa: BLE001 - the script decides about each of them
                step = script.throw(error)
            else:
                step = script.send(value)
    except StopIteration as stop:
        return stop.value


def is_asynchronous(function: object) -> bool:
    """Tell whether a call of a function, or of what stands for one, can only be awaited."""
    found = function
    while isinstance(found, functools.partial):
        found = cast("functools.partial[object]", found).func
    return inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(
        getattr(found, "__call__", None)  # noqa: B004 - of an object that can be called
    )


def _blocking(step: Step) -> object:
    value = step()
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("this can only be awaited: use acall, aanswer, afinish or aexecute")
    return value


async def _awaited(step: Step) -> object:
    if is_asynchronous(step):
        return await cast("Awaitable[object]", step())
    import anyio.to_thread

    value = await anyio.to_thread.run_sync(step)
    return await value if inspect.isawaitable(value) else value
