"""Which of several equal calls of a run one is, so that asking again does not do it again."""

import threading
from itertools import count


class Occurrences:
    """Counts equal calls from 1, by the number that the ledger tells them apart by.

    A number is used until its call is over: one that waits for a person, or of which nobody knows
    the end, is asked for again under its own. Safe to use from many threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._over: dict[bytes, set[int]] = {}
        self._running: dict[bytes, set[int]] = {}

    def take(self, call: bytes, *, is_shared: bool) -> int:
        """Return the number of a call that begins.

        Args:
            call: What equal calls have in common.
            is_shared: Whether an equal call that is running is the same one.
        """
        with self._lock:
            running = self._running.setdefault(call, set())
            over = self._over.get(call, frozenset[int]())
            number = next(
                each for each in count(1) if each not in over and (is_shared or each not in running)
            )
            running.add(number)
            return number

    def give_back(self, call: bytes, number: int, *, is_over: bool) -> None:
        """Say that a call has come back, and whether an equal one is another from now on."""
        with self._lock:
            self._running[call].discard(number)
            if is_over:
                self._over.setdefault(call, set()).add(number)
