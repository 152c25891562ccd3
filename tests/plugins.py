"""Sources of evidence as an operator might install them, good ones and bad ones."""

import time

from tallystick.evidence_source import EvidenceAnswer, EvidenceQuestion

asked: list[EvidenceQuestion] = []


def applied(question: EvidenceQuestion) -> EvidenceAnswer:
    asked.append(question)
    return EvidenceAnswer("applied", "seen in the books", "inv_1")


def garbles(question: EvidenceQuestion) -> EvidenceAnswer:
    return EvidenceAnswer("applied", "no text \0\ud800 \x1b[2J", "inv\0\udfff")


def absent(question: EvidenceQuestion) -> EvidenceAnswer:
    return EvidenceAnswer("absent")


def silent(question: EvidenceQuestion) -> EvidenceAnswer:
    time.sleep(3)
    return EvidenceAnswer("applied")


def broken(question: EvidenceQuestion) -> EvidenceAnswer:
    raise RuntimeError(f"canary {question.arguments}")


def ends(question: EvidenceQuestion) -> EvidenceAnswer:
    raise SystemExit(1)


def says_nothing(question: EvidenceQuestion) -> None:
    pass


def invents(question: EvidenceQuestion) -> EvidenceAnswer:
    return EvidenceAnswer("perhaps")  # pyright: ignore[reportArgumentType]
