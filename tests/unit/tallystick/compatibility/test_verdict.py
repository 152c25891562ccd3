"""Verdicts carry their evidence, and one kind of it."""

import json

from tallystick.compatibility.verdict import Judgement, Obstacle, Proof, Step, Witness
from tallystick.violation import Violation


def test_each_verdict_has_its_own_evidence():
    compatible = Judgement.compatible(Proof("tallystick", (Step("/a", "type", "no type is left"),)))
    incompatible = Judgement.incompatible(Witness({"a": 1}, (Violation("/a", "type", "no text"),)))
    undecided = Judgement.undecided(Obstacle("/a", "pattern", "budget"))

    assert compatible.to_json() == {
        "verdict": "compatible",
        "proof": {
            "prover": "tallystick",
            "steps": [{"path": "/a", "rule": "type", "detail": "no type is left"}],
        },
    }
    assert incompatible.to_json() == {
        "verdict": "incompatible",
        "witness": {
            "value": {"a": 1},
            "violations": [{"pointer": "/a", "keyword": "type", "message": "no text"}],
        },
    }
    assert undecided.to_json() == {
        "verdict": "undecided",
        "obstacle": {"path": "/a", "keyword": "pattern", "reason": "budget"},
    }


def test_a_witness_may_be_null():
    said = Judgement.incompatible(Witness(None, ())).to_json()

    assert json.dumps(said["witness"]) == '{"value": null, "violations": []}'
