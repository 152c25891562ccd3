"""How often a comparison is right, wrong or open, and how long it takes, beside its peers.

    .venv/bin/python benchmarks/compatibility.py [--peers] [--suites github probes] [--json]

It runs over the public suites of `tests/conformance/compatibility`. With `--peers`, jsoncompat,
jsonsubschema and argwitness are installed in an environment of their own below `.venv`, and asked
too; jsonschema-rs is always there. All answer the same questions, each in a process that is ended
when one takes too long. They see the schemas as written, and those of a declared producer closed.

Where no suite knows the answer, a value that shows a break settles it, whoever found it; and what
Tallystick proves and nobody can refute counts as contained. A peer's bare "no" counts as right
where that is the truth; how many come with a witness that holds is shown beside.
"""

import argparse
import json
import queue
import statistics
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tallystick.canonical import MISSING, Json, Missing
from tallystick.compatibility.judging import judge
from tests.conformance.compatibility.disputed import DISPUTED
from tests.conformance.compatibility.suites import CORPUS, DIALECTS, SUITES, Case, cases
from tests.conformance.compatibility.trial import as_read, refuting_value, text_of, witness_fault

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv" / "peers"
WORKER = Path(__file__).with_name("compatibility_peer.py")

OURS, PROVER = "tallystick", "jsonschema-rs"
# The newest of each that runs here; jsonsubschema needs the older setuptools of its time.
INSTALLED: Final = {
    "jsoncompat": "jsoncompat==0.3.1",
    "jsonsubschema": "jsonsubschema==0.0.8",
    "argwitness": "argwitness==0.3.0",
}
SCORES = ("right yes", "wrong yes", "right no", "wrong no", "undecided", "error")
# What the history of a real server changed: the input schemas, and anything else of its tools.
HISTORY: Final = ("github", "github, other")
DRAFTS = {uri: draft for draft, uri in DIALECTS.items()}


@dataclass(frozen=True, slots=True)
class Reply:
    """What one of them says of a case: `yes`, `no`, `unknown` or `error`."""

    answer: str
    seconds: float
    witness: Json | Missing = MISSING
    note: str = ""


# --- who is asked ---------------------------------------------------------------------------------


def ask_ours(questions: Iterable[Case]) -> Iterator[Reply]:
    for case in questions:
        started = time.process_time()
        try:
            said = judge(*case.sides())
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is a row of the report
            yield Reply("error", time.process_time() - started, note=str(error))
            continue
        seconds = time.process_time() - started
        answer = {"compatible": "yes", "incompatible": "no"}.get(said.verdict, "unknown")
        witness = MISSING if said.witness is None else said.witness.value
        yield Reply(answer, seconds, witness, said.obstacle.reason if said.obstacle else "")


class Peer:
    """A peer in a process of its own, which is replaced when a question takes too long."""

    def __init__(self, python: Path, name: str, seconds_max: float) -> None:
        self._command = [str(python), str(WORKER), name]
        self._seconds_max = seconds_max
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()

    @staticmethod
    def _read(process: "subprocess.Popen[str]", lines: "queue.Queue[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, question: str) -> Reply:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=self._seconds_max)
        except (queue.Empty, BrokenPipeError):
            line = ""
        if not line:
            self.stop()
            self._start()
            return Reply("error", self._seconds_max, note="no answer in time, or its process ended")
        told = json.loads(line)
        witness = told.get("witness", MISSING)
        return Reply(told["answer"], told["seconds"], witness, told.get("note", ""))


def ask_peer(python: Path, name: str, questions: Iterable[Case], limit: float) -> Iterator[Reply]:
    peer = Peer(python, name, limit)
    try:
        for case in questions:
            yield peer.ask(question_of(case))
    finally:
        peer.stop()


def question_of(case: Case) -> str:
    """Return a case as a line for a peer, with what a declared producer's schemas are read as."""
    (old, old_dialect), (new, new_dialect) = as_read(case)
    return json.dumps(
        {
            "old": old,
            "new": new,
            "old_draft": DRAFTS[old_dialect],
            "new_draft": DRAFTS[new_dialect],
            "assert_format": case.assert_format,
        }
    )


def peers_python() -> Path:
    """Make the peers' environment where it is missing, and return its interpreter."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        print(f"Making an environment for the peers in {ENVIRONMENT} ...", file=sys.stderr)
        venv.create(ENVIRONMENT, with_pip=True)
        command = [python, "-m", "pip", "install", "-qq", "setuptools<81"]
        subprocess.run([*command, *INSTALLED.values()], check=True)
    return python


# --- what an answer is worth ----------------------------------------------------------------------


def settled(case: Case, replies: Iterable[Reply], ours: Reply) -> bool | None:
    """Return the truth of a case: the suite's, or what values and proofs come to."""
    if case.id in DISPUTED:
        return DISPUTED[case.id].truth
    if case.truth is not None:
        return case.truth
    if any(holds(case, reply) for reply in replies):
        return False
    if ours.answer == "yes" and not is_refuted(case):
        return True
    return False if is_refuted(case) else None


def holds(case: Case, reply: Reply) -> bool:
    """Return whether a reply has a witness, and the validator agrees with it."""
    return not isinstance(reply.witness, Missing) and not witness_fault(case, reply.witness)


def is_refuted(case: Case) -> bool:
    return refuting_value(case) is not MISSING


@dataclass(frozen=True, slots=True)
class Row:
    """What one of them makes of one suite.

    Args:
        counts: How often each of `SCORES` was reached; answers whose truth nobody knows are none.
        shown: How many right "no" came with a witness that holds.
        milliseconds: How long each answer took.
        faults: The wrong answers, in words.
    """

    suite: str
    who: str
    counts: dict[str, int]
    shown: int
    milliseconds: list[float]
    faults: list[str]

    def to_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "who": self.who,
            **self.counts,
            "right no with witness": self.shown,
            "median_ms": statistics.median(self.milliseconds),
            "slowest_ms": max(self.milliseconds),
            "faults": self.faults,
        }


def row_of(suite: str, who: str, asked: list[tuple[Case, bool | None, Reply]]) -> Row:
    counts: dict[str, int] = dict.fromkeys(SCORES, 0)
    shown, faults = 0, list[str]()
    for case, truth, reply in asked:
        score = score_of(reply, truth=truth)
        counts[score] += 1
        has_witness = score == "right no" and holds(case, reply)
        shown += has_witness
        if score.startswith("wrong") or (score == "right no" and who == OURS and not has_witness):
            value = "" if isinstance(reply.witness, Missing) else f": {text_of(reply.witness)}"
            faults.append(f"{case.id}: {score}{value}")
    return Row(suite, who, counts, shown, [1e3 * reply.seconds for *_, reply in asked], faults)


def score_of(reply: Reply, *, truth: bool | None) -> str:
    if reply.answer not in ("yes", "no"):
        return "error" if reply.answer == "error" else "undecided"
    if truth is None:
        return "undecided"
    return f"{'right' if truth is (reply.answer == 'yes') else 'wrong'} {reply.answer}"


# --- the report -----------------------------------------------------------------------------------


def measure(suite: str, peers: dict[str, Path], limit: float) -> list[Row]:
    """Put one suite to everybody."""
    questions = cases(suite)
    replies = {OURS: list(ask_ours(questions))}
    for name, python in peers.items():
        replies[name] = list(ask_peer(python, name, questions, limit))
    truths = [
        settled(case, each, each[0])
        for case, *each in zip(questions, *replies.values(), strict=True)
    ]
    return [
        row_of(suite, name, list(zip(questions, truths, told, strict=True)))
        for name, told in replies.items()
    ]


HEAD = (
    f"{'':15}{'right':>7}{'wrong':>6}{'right no':>14}{'wrong':>6}{'un-':>7}{'':>7}{'median':>9}"
    f"{'slowest':>9}\n{'':15}{'yes':>7}{'yes':>6}{'(witness)':>14}{'no':>6}{'decided':>8}{'error':>6}"
    f"{'ms':>9}{'ms':>9}"
)


def line_of(row: Row) -> str:
    counts = row.counts
    no = f"{counts['right no']} ({row.shown})"
    return (
        f"{row.who:15}{counts['right yes']:7}{counts['wrong yes']:6}{no:>14}{counts['wrong no']:6}"
        f"{counts['undecided']:8}{counts['error']:6}{statistics.median(row.milliseconds):9.2f}"
        f"{max(row.milliseconds):9.1f}"
    )


def print_suite(rows: list[Row]) -> None:
    print(f"\n{rows[0].suite}: {len(rows[0].milliseconds)} questions\n{HEAD}")
    for row in rows:
        print(line_of(row))
    for fault in rows[0].faults:
        print(f"  {fault[:96]}")


def print_speed(rows: list[Row]) -> None:
    """Print how fast the history of a real server is judged, beside who judges it too."""
    times = {
        (row.who, suite): list(zip(cases(suite), row.milliseconds, strict=True))
        for suite in HISTORY
        for row in rows
        if row.suite == suite
    }
    if not all((OURS, suite) in times for suite in HISTORY):
        return
    slowest = max(each for suite in HISTORY for _, each in times[OURS, suite])
    print(f"\nGitHub's history: our slowest took {slowest:.1f} ms; medians, in ms")
    everybody = [row.who for row in rows if row.suite == HISTORY[0]]
    for title, suites, is_closed in (
        ("every change of a tool", HISTORY, True),
        ("other input, declared", HISTORY[:1], True),
        ("other input, as written", HISTORY[:1], False),
    ):
        medians = {
            who: statistics.median(
                milliseconds
                for suite in suites
                for case, milliseconds in times[who, suite]
                if case.is_closed is is_closed and "/backward/" not in case.id
            )
            for who in everybody
        }
        print(f"{title:24}" + "".join(f"{who:>15}" for who in medians))
        print(f"{'':24}" + "".join(f"{median:15.3f}" for median in medians.values()))
        ratios = (f"{median / medians[OURS]:.1f} x" for median in medians.values())
        print(f"{'':24}" + "".join(f"{ratio:>15}" for ratio in ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true", help="install and ask the peers too")
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--limit", type=float, default=8.0, help="seconds a peer may take")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    chosen = parser.parse_args()
    if not CORPUS.is_dir():
        parser.error(f"the suites are not in {CORPUS}")
    peers = {PROVER: Path(sys.executable)}
    if chosen.peers:
        peers |= dict.fromkeys(INSTALLED, peers_python())
    rows: list[Row] = []
    for suite in chosen.suites:
        rows += (measured := measure(suite, peers, chosen.limit))
        if not chosen.json:
            print_suite(measured)
    if chosen.json:
        print(json.dumps([row.to_json() for row in rows], indent=2))
    else:
        print_speed(rows)


if __name__ == "__main__":
    main()
