"""Bugs of whole collectors and runs that tell of the table beside the noisy answers, each as somebody once wrote it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margent import pipeline
from margent.collectors import privbayes
from margent.privacy import curator
from margent.privacy.laws import Gaussian
from tests.audits import gates_runs as gates
from tests.audits.planting import Bug, exact, noisy


def usefulness_from_the_exact_number(patch: pytest.MonkeyPatch) -> None:
    """How large tables may get follows from n itself instead of noisy answers: the questions then tell n."""
    genuine = privbayes.PrivBayes.collect

    def collect(self: Any, door: Any, budget: Any) -> Any:
        exact = float(door.source.count([()])[0])
        patch.setattr(privbayes, "noisy_total", lambda one_ways: exact)
        return genuine(self, door, budget)

    patch.setattr(privbayes.PrivBayes, "collect", collect)


def exact_rows(patch: pytest.MonkeyPatch) -> None:
    """As many rows as the table has: the number of records is nobody's business."""
    genuine = pipeline.synthesize

    def counted(table: Any, *arguments: Any, **options: Any) -> Any:
        options["rows"] = len(Path(table).read_text().splitlines()) - 1
        return genuine(table, *arguments, **options)

    patch.setattr(pipeline, "synthesize", counted)


def grown_tables(patch: pytest.MonkeyPatch) -> None:
    """Counting without the domain's size: the table ends at the last value that somebody has."""
    genuine = curator.DataCurator._exact_tables

    def cut(self: Any, *arguments: Any) -> Any:
        for position, table in genuine(self, *arguments):
            yield position, table[: int(np.flatnonzero(table.reshape(len(table), -1).sum(axis=1)).max(initial=0)) + 1]

    patch.setattr(curator.DataCurator, "_exact_tables", cut)


def told_of_a_cell(patch: pytest.MonkeyPatch) -> None:
    from margent.errors import SchemaError
    from margent.schema.codec import Codec

    genuine = Codec.encode

    def encode(self: Any, batch: Any) -> Any:
        if any("secretvalue" in str(cell) for column in batch.columns for cell in column.to_pylist()):
            raise SchemaError(["there is a value 'secretvalue' that the schema does not list"], "the table")
        return genuine(self, batch)

    patch.setattr(Codec, "encode", encode)


def hashed_input(patch: pytest.MonkeyPatch) -> None:
    """A checksum of the table in the release, for provenance."""
    import hashlib

    from margent.release import release as module

    genuine = pipeline.synthesize
    seen: dict[str, str] = {}

    def noted(table: Any, *arguments: Any, **options: Any) -> Any:
        seen["hash"] = hashlib.sha256(Path(table).read_bytes()).hexdigest()
        return genuine(table, *arguments, **options)

    summary = module.Release.__dict__["summary"].func
    patch.setattr(pipeline, "synthesize", noted)
    patch.setattr(module.Release, "summary", property(lambda self: summary(self) | {"input": dict(seen)}))


def picked_exactly(patch: pytest.MonkeyPatch) -> None:
    """JTree's edges in the order of the exact scores, while the noisy ones are charged and published."""
    from margent.collectors import jtree
    from margent.privacy.requests import ScoreRequest

    genuine = jtree.JTree._pick

    def pick(self: Any, door: Any, share: Any, first: Any) -> Any:
        answers, edges, distances = genuine(self, door, share, first)
        if not hasattr(door, "source"):
            return answers, edges, distances
        pairs = tuple(sorted({pair for answer in answers for pair in answer.cliques}))
        request = ScoreRequest("independence", pairs, Gaussian(Fraction(1)), bool(first.merges), first.known.counts)
        values = dict(zip(pairs, door._exact_scores(request, first.merges, "pairs").tolist(), strict=True))
        told = None if distances is None else {pair: float(values[pair]) for pair in pairs}
        return answers, sorted(pairs, key=lambda pair: (-values[pair], pair)), told

    patch.setattr(jtree.JTree, "_pick", pick)


BUGS: tuple[Bug, ...] = (
    Bug(
        "usefulness of tables from the exact number of records",
        gates.questions_follow_from_answers_alone,
        usefulness_from_the_exact_number,
    ),
    Bug("pairs picked by their exact scores", gates.pairs_are_picked_by_noisy_answers_alone, picked_exactly),
    Bug("as many rows as records", gates.nothing_but_the_answers_depends_on_the_data, exact_rows),
    Bug("the domain read from the table", gates.nothing_but_the_answers_depends_on_the_data, grown_tables),
    Bug("a cell in a message", gates.nothing_but_the_answers_depends_on_the_data, told_of_a_cell),
    Bug("a checksum of the table", gates.nothing_but_the_answers_depends_on_the_data, hashed_input),
    Bug(
        "half the noise, seen through the whole run",
        gates.the_whole_run_keeps_its_promise,
        noisy(lambda n, s2: exact(n, s2 / 4)),
    ),
    Bug(
        "half the noise, seen in one run",
        gates.one_run_shows_no_more_than_promised,
        noisy(lambda n, s2: exact(n, s2 / 4)),
    ),
)
