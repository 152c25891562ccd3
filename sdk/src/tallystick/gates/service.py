"""The fifth gate: the tool itself answers, and its failure becomes one short sentence.

What an exception says stays out of the answer: it is the service's text, not the contract's.
"""

from typing import Final

from tallystick.effect_class import EffectClass
from tallystick.errors import Outage, Refusal, ServiceTimeout, ServiceUnavailable, ToolFailed
from tallystick.gates.denial import Denial, Gate
from tallystick.provider import ErrorMeaning
from tallystick.tool_contract import Contract

ONCE_MORE: Final = "You may try again once."
NO_MORE: Final = "It failed again: do not try once more."
NOBODY_KNOWS: Final = "Nobody knows whether it was done: do not try again."

# A second call of these does no harm, whatever became of the first.
HARMLESS: Final = frozenset({EffectClass.PURE, EffectClass.REPLAYABLE})

# By these names the classes of Python, of this library, of clients and of drivers (PEP 249) tell of
# a service that gave no answer. Any other exception may be an answer about what was asked for.
_TIMEOUT: Final = "timeout"
_UNREACHABLE: Final = (
    _TIMEOUT,
    "connectionerror",
    "connecterror",
    "networkerror",
    "notsent",
    "operationalerror",
    "serviceunavailable",
)


def failure(error: Exception, contract: Contract, *, failed_before: bool) -> Denial:
    """Return what a tool's exception comes to.

    A refusal of this library is passed on. An exception whose `code` is one of the contract's
    errors is told by its meaning there. Any other is a timeout, if its class or one that it derives
    from is named so, or else a service that could not be reached.

    Args:
        error: What the tool raised.
        contract: Its contract.
        failed_before: Whether the same call failed just before.
    """
    if isinstance(error, Refusal):
        return Denial.of(Gate.SERVICE, error)
    is_harmless = contract.effect_class in HARMLESS
    meaning = _meaning(error, contract)
    if meaning is not None:
        return _declared(meaning, is_harmless=is_harmless, failed_before=failed_before)
    advice = NOBODY_KNOWS if not is_harmless else NO_MORE if failed_before else ONCE_MORE
    return _outage(Gate.SERVICE, error, advice)


def unreachable(error: Exception, asked: Contract | None, *, failed_before: bool) -> Denial | None:
    """Return what is told of a call where whoever knows the owner of its object gave no answer.

    None if the exception is an answer, or may be one: it is then told as if there were no such
    object, since it may hang on whether there is. What is told here hangs on no object.

    Args:
        error: What the application or the ownership tool raised.
        asked: The contract of the ownership tool; None for the application.
        failed_before: Whether it was the same when the same call was made before.
    """
    is_answer = isinstance(error, Refusal) or (asked is not None and _meaning(error, asked))
    is_silent = isinstance(error, Outage) or _is_named(error, *_UNREACHABLE)
    if is_answer or not is_silent:
        return None
    return _outage(Gate.PERMISSION, error, NO_MORE if failed_before else ONCE_MORE)


def _meaning(error: Exception, contract: Contract) -> ErrorMeaning | None:
    stated = getattr(error, "code", None)
    return next((each for each in contract.errors if each.code == stated), None)


def _outage(gate: Gate, error: Exception, advice: str) -> Denial:
    kind: type[Outage] = ServiceTimeout if _is_named(error, _TIMEOUT) else ServiceUnavailable
    refusal = kind(f"{kind.__doc__} {advice}", facts={"retryable": advice is ONCE_MORE})
    return Denial(gate, refusal, type(error).__name__)


def _declared(meaning: ErrorMeaning, *, is_harmless: bool, failed_before: bool) -> Denial:
    told = meaning.meaning if meaning.meaning.endswith((".", "?", "!")) else f"{meaning.meaning}."
    is_once_more = False
    if meaning.retryable and (is_harmless or meaning.not_executed):
        is_once_more = not failed_before
        told = f"{told} {ONCE_MORE if is_once_more else NO_MORE}"
    elif meaning.retryable:
        told = f"{told} {NOBODY_KNOWS}"
    refusal = ToolFailed(told, facts={"code": meaning.code, "retryable": is_once_more})
    return Denial(Gate.SERVICE, refusal, meaning.code)


def _is_named(error: Exception, *words: str) -> bool:
    # The clients of HTTP each have classes of their own for it, and derive them from no common one.
    names = [each.__name__.lower() for each in type(error).__mro__]
    return any(word in name for name in names for word in words)
