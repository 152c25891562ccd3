"""The answers of a comparison, each with its evidence."""

from dataclasses import dataclass
from enum import StrEnum

from tallystick.canonical import Json
from tallystick.violation import Violation


class Producer(StrEnum):
    """Who writes the values: the premise of every question.

    `ANY` writes whatever a schema as written lets through. `DECLARED` writes only what the schema
    declares, as a model does that was prompted with it, and as the argument gate lets through.
    """

    DECLARED = "declared"
    ANY = "any"


class Answer(StrEnum):
    """Whether everything that the writer writes satisfies the reader."""

    COMPATIBLE = "compatible"
    INCOMPATIBLE = "incompatible"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Witness:
    """A value that the writer may write and the reader refuses, confirmed by the validator.

    Args:
        value: The value.
        violations: How it breaks the reader's schema.
    """

    value: Json
    violations: tuple[Violation, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the witness as a JSON object."""
        return {
            "value": self.value,
            "violations": [
                {"pointer": each.pointer, "keyword": each.keyword, "message": each.message}
                for each in self.violations
            ],
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One rule applied in a proof.

    Args:
        path: Where, a JSON Pointer into the value; `*` stands for any item or any other property.
        rule: The rule's name.
        detail: What it saw.
    """

    path: str
    rule: str
    detail: str

    def to_json(self) -> dict[str, Json]:
        """Return the step as a JSON object."""
        return {"path": self.path, "rule": self.rule, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Proof:
    """Why no value can be a witness.

    Args:
        prover: Who says so.
        steps: The rules that it applied.
    """

    prover: str
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the proof as a JSON object."""
        return {"prover": self.prover, "steps": [step.to_json() for step in self.steps]}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stopped an analysis that came to no answer.

    Args:
        path: Where, a JSON Pointer into the value; `*` stands for any item or any other property.
        keyword: The keyword that could not be reasoned about; empty where it is none by itself.
        reason: What was the matter, in words; `budget` when the steps were used up.
    """

    path: str
    keyword: str
    reason: str

    def to_json(self) -> dict[str, Json]:
        """Return the obstacle as a JSON object."""
        return {"path": self.path, "keyword": self.keyword, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its evidence: a proof, a witness or an obstacle, and never two of them."""

    verdict: Answer
    proof: Proof | None = None
    witness: Witness | None = None
    obstacle: Obstacle | None = None

    @classmethod
    def compatible(cls, proof: Proof) -> "Judgement":
        """Return the verdict that a proof carries."""
        return cls(Answer.COMPATIBLE, proof=proof)

    @classmethod
    def incompatible(cls, witness: Witness) -> "Judgement":
        """Return the verdict that a witness carries."""
        return cls(Answer.INCOMPATIBLE, witness=witness)

    @classmethod
    def undecided(cls, obstacle: Obstacle) -> "Judgement":
        """Return the verdict that is none."""
        return cls(Answer.UNDECIDED, obstacle=obstacle)

    def to_json(self) -> dict[str, Json]:
        """Return the verdict and its evidence as a JSON object."""
        evidence = {"proof": self.proof, "witness": self.witness, "obstacle": self.obstacle}
        return {
            "verdict": self.verdict.value,
            **{name: each.to_json() for name, each in evidence.items() if each is not None},
        }
