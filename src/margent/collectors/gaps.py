"""How far the data is from a model, table by table: what adaptive methods buy to choose what to measure next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from margent.collectors.builder import Builder, Fitted
from margent.collectors.first_tables import FirstTables
from margent.postprocessing.dependence import Counts, independent_table
from margent.postprocessing.tables import summed_by
from margent.privacy.queries import score_law
from margent.privacy.requests import Curator, ScoreRequest
from margent.progress import silent
from margent.schema.domain import Clique
from margent.transcript import Answer, Scores, Transcript


def fitted(curator: Curator, first: FirstTables, answers: Sequence[Answer], method: str, builder: Builder) -> Fitted:
    """The builder's model of the answers so far. Privacy: none: post-processing."""
    so_far = Transcript(curator.schema, curator.domain, method, curator.charges, tuple(answers), first.merges)
    return builder.build(so_far, silent)


def model_counts(model: Fitted | None, first: FirstTables, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
    """The model's counts over each clique, of merged codes where codes are merged; without a model, independence.

    Shapes: cliques of two columns or more: single ones are asked over their own codes.
    Units: records. Privacy: none: post-processing.
    """
    if model is None:
        return {names: independent_table(first.known.counts, names, first.total) for names in cliques}
    tables = {}
    for names, counts in zip(cliques, model.marginals(cliques, 0), strict=True):
        table = counts
        for axis, name in enumerate(names):
            if (merge := first.merges.get(name)) is not None:
                table = summed_by(table, np.asarray(merge.groups), merge.size, axis)
        tables[names] = table
    return tables


def gaps(
    curator: Curator,
    first: FirstTables,
    model: Mapping[Clique, Counts],
    share: Fraction,
    label: str,
) -> Scores:
    """|M_r - model_r|_1 of every clique of ``model`` with noise, as one release.

    Units: records.
    Privacy: one charge of sensitivity sqrt(m) (Gaussian) or m (Laplace) for m cliques; ``share`` at most.
    """
    cliques = tuple(model)
    law = score_law("distance", len(cliques), share, curator.neighbors, curator.account)
    request = ScoreRequest("distance", cliques, law, merged=bool(first.merges), model=model)
    return curator.scores(request, label=label, merges=first.merges)
