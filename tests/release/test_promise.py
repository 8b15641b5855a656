"""The sentences of a release."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from margent import Budget, Category, Schema
from margent.pipeline import synthesize
from margent.release.promise import what_was_spent


def test_one_answer_is_no_answers_and_a_lost_one_is_told() -> None:
    schema = Schema([Category("a", ["x", "y"])], unit="row")
    release = synthesize(pa.table({"a": ["x", "y"] * 50}), schema, budget=Budget(epsilon=1), method="laplace")
    transcript = release.transcript
    assert "(1 noisy answer, " in what_was_spent(transcript, release.budget)
    assert "lost" not in what_was_spent(transcript, release.budget)
    (charge,) = transcript.charges
    (answer,) = transcript.answers
    again = replace(transcript, charges=(charge, charge), answers=(replace(answer, charge=1),))
    told = what_was_spent(again, release.budget)
    assert "(2 noisy answers, " in told
    assert " Of these an interruption lost 1, " in told
    assert told.endswith("never used, spent all the same, and bought anew.")
