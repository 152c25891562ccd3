"""The life of one effect as its worker sees it: when it may send, and what it has reported.

Pure: scripts (`tallystick._conversation`) ask and report, and the clock is given.
"""

from dataclasses import dataclass
from typing import Any, Final

from tallystick._answers import Dispatch, EffectEntry, Outcome, read_effect
from tallystick._conversation import Script, Setting, converse
from tallystick._requests import Claim, Report, Request, outcome_request
from tallystick.canonical import Json
from tallystick.errors import (
    FenceStale,
    IllegalTransition,
    LeaseExpired,
    Outage,
    Refusal,
    TallystickError,
)
from tallystick.plain import plain

MARGIN_SHARE: Final = 0.1
MARGIN_SECONDS_MIN: Final = 0.5
MARGIN_SHARE_MAX: Final = 0.5


# --- what a body and its caller may meet ----------------------------------------------------------


class _Told(TallystickError):
    """Keeps its facts as fields and out of its text, which may end up in a log."""

    def __init__(self, sentence: str, *facts: object) -> None:
        super().__init__(sentence)
        self._facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._facts, self.__dict__


class NotSent(TallystickError):
    """Raised by a body that vouches that no byte went to the provider; the effect is FAILED."""


class EffectFailed(_Told):
    """The effect is recorded as FAILED: the provider said no, or nothing was sent.

    Attributes:
        code: The provider's code, one of the contract's error model.
        message: The provider's sentence.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"The effect failed: {code}: {message}", code, message)
        self.code = code
        self.message = message


class EffectNotOwned(_Told):
    """The effect is not this worker's to run: it is closed, somebody else's, or in question.

    Attributes:
        effect_id: The effect.
        state: Its state in the ledger.
        outcome: How it ended, if it did.
        reason: Why it is in that state, where the ledger says so.
        said: What the person said who refused it, where one did.
    """

    def __init__(
        self,
        effect_id: str,
        state: str,
        outcome: Outcome | None = None,
        reason: str | None = None,
        said: str | None = None,
    ) -> None:
        because = f" ({': '.join(filter(None, (reason, plain(said))))})" if reason or said else ""
        sentence = f"The effect {effect_id} is {state}{because} and not this worker's to run."
        super().__init__(sentence, effect_id, state, outcome, reason, said)
        self.effect_id = effect_id
        self.state = state
        self.outcome = outcome
        self.reason = reason
        self.said = said

    def result(self) -> Json:
        """Return the recorded result of an effect that SUCCEEDED.

        It is None where evidence, not a worker, told the ledger of the success.

        Raises:
            EffectFailed: The effect is recorded as FAILED.
            EffectNotOwned: This error, for every other state.
        """
        if self.outcome is None or self.state not in {"SUCCEEDED", "FAILED"}:
            raise self
        if self.state == "FAILED":
            raise EffectFailed(*(self.outcome.error or ("failed", "No more is recorded.")))
        return self.outcome.result


class OutcomeUnreported(_Told):
    """The body ended and the ledger could not be told; it will find out by lease and evidence.

    Attributes:
        effect_id: The effect, which must not be run again by other means.
        result: What the body reported, if it was a success.
    """

    def __init__(self, effect_id: str, result: Json = None) -> None:
        super().__init__(f"No report of the effect {effect_id} got through.", effect_id, result)
        self.effect_id = effect_id
        self.result = result


# --- one effect -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lease:
    """Until when a worker may begin to send, by its own monotonic clock."""

    send_until: float

    @classmethod
    def measured(cls, sent_at: float, lease_seconds: float) -> "Lease":
        """Return the lease that an answer gives, less a margin.

        It is counted from before the request was sent, so that it ends no later than the
        database's. The margin is for what happens between the last look at the clock and the
        first byte: a tenth of the lease, at least half a second, at most half of the lease.
        """
        margin = max(MARGIN_SHARE * lease_seconds, MARGIN_SECONDS_MIN)
        return cls(sent_at + lease_seconds - min(margin, MARGIN_SHARE_MAX * lease_seconds))


class Attempt:
    """One attempt at one effect, by one worker; what `Effect` and `AsyncEffect` have in common."""

    def __init__(self, request: Request, claim: Claim, setting: Setting, *, is_pure: bool) -> None:
        self._request = request
        self._claim = claim
        self._setting = setting
        self._is_pure = is_pure
        self._entered = False
        self._entry: EffectEntry | None = None
        self._dispatch: Dispatch | None = None
        self._lease: Lease | None = None
        self._report: Report | None = None
        self._settled = False

    @property
    def entered(self) -> bool:
        """Whether the body may run, or did: the effect is this worker's, or needs no record."""
        return self._entered

    @property
    def reported(self) -> bool:
        """Whether the body has said how it went."""
        return self._report is not None

    @property
    def recorded(self) -> bool:
        """Whether the ledger knows of this call; False for a PURE call made without it."""
        return self._entry is not None

    @property
    def effect_id(self) -> str:
        """The effect's id, ``<run uuid>.<number>``; empty when it is not recorded."""
        return self._entry.effect_id if self._entry else ""

    @property
    def idempotency_key(self) -> str | None:
        """The provider's key, the same in every attempt; None where the contract has none."""
        return self._dispatch.idempotency_key if self._dispatch else None

    @property
    def arguments(self) -> dict[str, Json]:
        """The arguments to send: as they are recorded, so that every attempt sends the same.

        They are in the canonical order and form (RFC 8785): serialized as they are, they are the
        same bytes, which many providers ask of one key. Where the contract carries the provider's
        key in an argument, it is in them.
        """
        if self._dispatch is not None:
            return dict(self._dispatch.arguments)
        asked = (self._request.body or {}).get("arguments")
        return dict(asked) if isinstance(asked, dict) else {}

    def headers(self) -> dict[str, str]:
        """Return the headers to send to the provider: its idempotency header, if it has one.

        Raises:
            LeaseExpired: It is too late to send.
            IllegalTransition: The effect is not entered, so that nothing may be sent at all.
        """
        self.timeout()
        dispatch = self._dispatch
        if dispatch is None or not (dispatch.idempotency_header and dispatch.idempotency_key):
            return {}
        return {dispatch.idempotency_header: dispatch.idempotency_key}

    def timeout(self) -> float:
        """Return for how many seconds the provider may still be waited for.

        An effect that is not recorded has no lease and gets the client's own timeout.

        Raises:
            LeaseExpired: It is too late to send.
            IllegalTransition: The effect is not entered, so that nothing may be sent at all.
        """
        if not self._entered:
            raise IllegalTransition("An effect is entered before anything is sent for it.")
        if self._lease is None:
            return self._setting.timeout_seconds
        left = self._lease.send_until - self._setting.clock()
        if left <= 0:
            raise LeaseExpired(
                f"The lease of the effect {self.effect_id} is over, or too close to its end.",
                facts={"effect_id": self.effect_id},
            )
        return left

    def result(self) -> Json:
        """Return the result as the ledger now has it, once a report is made.

        Raises:
            EffectFailed: The effect is recorded as FAILED.
            EffectNotOwned: It is in another state, such as UNKNOWN.
        """
        report = self._report or Report("unknown")
        state = self._entry.state if self._entry else report.outcome.upper()
        if state == "SUCCEEDED" and report.outcome == "succeeded":
            return report.result
        outcome = self._entry.outcome if self._entry else Outcome(state, None, report.error, None)
        return EffectNotOwned(self.effect_id, state, outcome).result()

    # The scripts of an effect's life, for the shells to run.

    def _entering(self) -> Script[None]:
        """Dispatch, and return only if the body may run."""
        if self._entered:
            raise IllegalTransition("An effect is entered once.")
        try:
            reply = yield from converse(self._request, self._setting)
            entry = read_effect(reply.document)
        except Outage:
            if not self._is_pure:
                raise
            self._entered = True
            return
        if entry.dispatch is None:
            given = entry.approval
            said = given.reason if given is not None and given.status == "rejected" else None
            raise EffectNotOwned(entry.effect_id, entry.state, entry.outcome, entry.reason, said)
        self._entry, self._dispatch = entry, entry.dispatch
        self._lease = Lease.measured(reply.sent_at, entry.dispatch.lease_seconds)
        self._entered = True

    def _reporting(self, report: Report) -> Script[None]:
        """Tell the ledger how it went. Until it answers, the report is pending."""
        if not self._entered or self._report not in (None, report):
            raise IllegalTransition("An effect is reported once, and after it was entered.")
        self._report = report
        if self._entry is None or self._dispatch is None:
            self._settled = True
            return
        effect_id = self._entry.effect_id
        try:
            request = outcome_request(
                effect_id, self._claim.worker_id, self._dispatch.fence, report
            )
            reply = yield from converse(request, self._setting)
            self._entry = read_effect(reply.document)
        except FenceStale as stale:
            stale.facts.setdefault("effect_id", effect_id)
            self._settled = True  # the ledger keeps the report as evidence
            raise
        except Refusal:
            self._report = None  # it was not taken: another one may be made
            raise
        except Outage as outage:
            if not self._is_pure:
                raise OutcomeUnreported(effect_id, report.result) from outage
            self._entry = None
        self._settled = True

    def _leaving(self, error: BaseException | None) -> Script[None]:
        """Report what the body left unreported. An error of the body's goes on in any case."""
        unreported = isinstance(error, OutcomeUnreported) and error.effect_id == self.effect_id
        if self._settled or unreported:
            return
        try:
            yield from self._reporting(self._report or _report_of_leaving(error))
        except TallystickError as fault:
            if error is None:
                raise
            error.add_note(
                f"The effect {self.effect_id} could not be reported as well ({fault}); "
                "the ledger finds out by lease and evidence."
            )


def _report_of_leaving(error: BaseException | None) -> Report:
    """Return what is known of a body that ended without a report: nothing, unless it says so."""
    match error:
        case NotSent():
            return not_sent(str(error))
        case None:
            return Report("unknown", error=("no_report", "The body ended without a report."))
        case _:  # its text may hold arguments or secrets
            return Report("unknown", error=("exception", type(error).__name__))


def not_sent(why: str) -> Report:
    """Return the report of a worker that vouches that nothing was sent."""
    return Report("failed", error=("not_sent", why), not_sent=True)
