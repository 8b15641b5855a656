"""Transcripts made by hand: tables of counts with noise of a stated variance, no data and no curator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from margent import Category, Schema
from margent.methods import SYNTHESIZERS
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Domain, Merge
from margent.transcript import Network, Node, NoisyMarginal, Transcript

CHOOSY = {"ancestral": "needs a Bayesian network", "direct": "needs one noisy table over all columns"}
"""Synthesizers that do not take any transcript, with what they say; their own tests hold the rest of the contract."""

TAKING_ANY = [each for each in SYNTHESIZERS if each.name not in CHOOSY]


def fitting(made: Transcript, synthesizer: str, seed: int) -> Transcript:
    """The transcript with what a choosy synthesizer needs: a network along its pairs, or a full table of noise."""
    if synthesizer == "ancestral":
        measured = {answer.clique for answer in made.marginals}
        nodes: list[Node] = []
        for name in made.domain.names:
            parents = [node.child for node in nodes if tuple(sorted((node.child, name))) in measured]
            nodes.append(Node(name, tuple(parents[:1])))
        return replace(made, structure=Network(tuple(nodes)))
    if synthesizer == "direct":
        names = tuple(sorted(made.domain.names))
        counts = np.rint(np.random.default_rng(seed).normal(0, 3, made.domain.shape(names))).astype(np.int64)
        return replace(made, answers=(*made.answers, NoisyMarginal(names, counts, Fraction(9), 0, False)))
    return made


def schema_of(sizes: Mapping[str, int], never: Sequence[str] = ()) -> Schema:
    """Columns of so many codes; the last code of those in ``never`` is never written."""
    fields = []
    for name, size in sizes.items():
        values = [f"{name}{code}" for code in range(size - (name in never))]
        options = {"required": True} | ({} if name in never else {"unlisted": {"to": values[0]}})
        fields.append(Category(name, values, **options))
    return Schema(fields, unit="row")


def transcript(
    sizes: Mapping[str, int],
    tables: Sequence[tuple[Clique, NDArray[np.int64]]],
    *,
    variance: int = 1,
    merges: Mapping[str, Merge] | None = None,
    never: Sequence[str] = (),
) -> Transcript:
    """The tables as noisy answers; those whose shape is the merged one count as merged."""
    schema = schema_of(sizes, never)
    domain = Codec(schema).domain
    assert domain == Domain(tuple(sizes), tuple(sizes.values()))
    answers = tuple(
        NoisyMarginal(names, np.asarray(counts), Fraction(variance), 0, np.shape(counts) != domain.shape(names))
        for names, counts in tables
    )
    return Transcript(schema, domain, "made", (), answers, merges or {})


def counts_of(codes: NDArray[np.int64], sizes: Mapping[str, int], names: Clique) -> NDArray[np.int64]:
    """Contingency table of codes, shape (n, d), columns in the order of ``sizes``."""
    places = [list(sizes).index(name) for name in names]
    shape = tuple(sizes[name] for name in names)
    flat = np.ravel_multi_index(tuple(codes[:, place] for place in places), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def variation(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Total variation between two tables of counts."""
    return 0.5 * float(np.abs(left / left.sum() - right / right.sum()).sum())
