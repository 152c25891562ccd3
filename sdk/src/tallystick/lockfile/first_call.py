"""Functions that are checked at their first call, and otherwise are as they were."""

import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from typing import Any, TypeAlias, cast

Function: TypeAlias = Callable[..., Any]
Check: TypeAlias = Callable[[], None]


def checked_first(function: Function, check: Check) -> Function:
    """Return a function of the same kind, as frameworks tell it, that checks before its first call.

    The check runs for one caller at a time, and until it has passed: what it raises, each call
    raises. A generator checks when it is asked for its first item.
    """
    check = _once(check)

    @wraps(function)
    def call(*args: object, **kwargs: object) -> Any:  # noqa: ANN401 - whatever the function returns
        check()
        return function(*args, **kwargs)

    @wraps(function)
    async def wait(*args: object, **kwargs: object) -> Any:  # noqa: ANN401
        check()
        return await function(*args, **kwargs)

    @wraps(function)
    def items(*args: object, **kwargs: object) -> Generator[Any, Any, Any]:
        check()
        return (yield from cast("Generator[Any, Any, Any]", function(*args, **kwargs)))

    if inspect.iscoroutinefunction(function):
        return wait
    if inspect.isgeneratorfunction(function):
        return items
    return _stream(function, check) if inspect.isasyncgenfunction(function) else call


def _stream(function: Function, check: Check) -> Function:
    """Do for an asynchronous generator what `yield from` does for one that is not (PEP 380)."""

    @wraps(function)
    async def stream(*args: object, **kwargs: object) -> AsyncGenerator[Any, Any]:
        check()
        inner = function(*args, **kwargs)
        try:
            value = await anext(inner)
            while True:
                try:
                    sent = yield value
                except BaseException as error:  # noqa: BLE001 - whatever is thrown in, goes on in
                    value = await inner.athrow(error)
                else:
                    value = await inner.asend(sent)
        except StopAsyncIteration:
            return
        finally:
            await inner.aclose()

    return stream


def _once(check: Check) -> Check:
    lock, pending = threading.Lock(), [check]

    def check_once() -> None:
        if pending:
            with lock:
                for each in [*pending]:
                    each()
                    pending.clear()

    return check_once
