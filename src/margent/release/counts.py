"""What a release says of its synthetic table, as counts that add up over blocks of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.transcript import NoisyMarginal, Transcript

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SyntheticCounts:
    """How many of ``rows`` synthetic records have each code of each column, and each cell of each bought pair.

    Shapes: ``columns[name]`` one count a code; ``pairs`` one table a bought two-way answer, in the transcript's order,
    merged as that is (none where they were not asked for).
    Privacy: none: post-processing.
    """

    rows: int
    columns: Mapping[str, Counts]
    pairs: tuple[Counts, ...]

    @staticmethod
    def of(transcript: Transcript, codes: NDArray[np.int32], *, pairs: bool = True) -> SyntheticCounts:
        """Count the records of one block. Shapes: ``codes`` (rows, d)."""
        domain = transcript.domain
        columns = {
            name: np.bincount(codes[:, place], minlength=size).astype(np.int64)
            for place, (name, size) in enumerate(zip(domain.names, domain.sizes, strict=True))
        }
        tables = bought_pairs(transcript) if pairs else ()
        return SyntheticCounts(
            int(codes.shape[0]), columns, tuple(_table(transcript, answer, codes) for answer in tables)
        )

    def __add__(self, other: SyntheticCounts) -> SyntheticCounts:
        """The counts of both blocks together."""
        return SyntheticCounts(
            self.rows + other.rows,
            {name: counts + other.columns[name] for name, counts in self.columns.items()},
            tuple(one + more for one, more in zip(self.pairs, other.pairs, strict=True)),
        )


def bought_pairs(transcript: Transcript) -> tuple[NoisyMarginal, ...]:
    """The noisy two-way tables and interactions, in order. Privacy: none: noisy answers."""
    return tuple(answer for answer in (*transcript.marginals, *transcript.interactions) if len(answer.clique) == 2)


def _table(transcript: Transcript, answer: NoisyMarginal, codes: NDArray[np.int32]) -> Counts:
    """The synthetic counts over the answer's clique, merged as the answer is."""
    packed = np.zeros(len(codes), dtype=np.int64)
    for name, size in zip(answer.clique, answer.counts.shape, strict=True):
        own = codes[:, transcript.domain.position[name]].astype(np.int64)
        if answer.merged and name in transcript.merges:
            own = np.asarray(transcript.merges[name].groups, dtype=np.int64)[own]
        packed *= size
        packed += own
    return np.bincount(packed, minlength=answer.counts.size).astype(np.int64).reshape(answer.counts.shape)
