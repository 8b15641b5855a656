"""Is the dependence between columns kept: correlation and conditional-entropy matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.study import Study

WORST = 12


@dataclass(frozen=True)
class Correlation:
    """Mean absolute difference of the correlation matrices (Pearson's r of ordinal pairs, Cramér's V of others)."""

    key: str = "correlation"
    title: str = "Correlation matrix"
    better: Better = "lower"
    paragraph: str = (
        "How strongly does each pair of columns depend, and is it so in the synthetic table? Two ordered columns are "
        "held together by Pearson's correlation of their codes, all other pairs by Cramér's V (0 none, 1 complete). "
        "The score is the mean absolute difference over pairs: 0 is a copy, the resample shows what chance alone "
        "makes of it, and the independent table how much dependence there was to keep; a column of one value depends "
        "on nothing and counts as 0."
    )

    def measure(self, study: Study) -> list[Score]:
        """One mean a table, with the pairs that differ most."""
        found = study.summaries(2)
        known = ~np.isnan(found.association[0])
        if not known.any():
            raise NotComputableError("every pair of columns has too many cells")
        real = found.association[0]
        scores = []
        for other in found.association[1:]:
            gap = np.where(known, np.abs(other - real), -1.0)
            order = np.argsort(-gap, kind="stable")[:WORST]
            worst = [
                {"columns": list(found.cliques[place]), "real": float(real[place]), "synthetic": float(other[place])}
                for place in order
                if known[place]
            ]
            scores.append(Score(float(gap[known].mean()), {"pairs": int(known.sum()), "worst": worst}))
        return scores


@dataclass(frozen=True)
class ConditionalEntropy:
    """Mean absolute difference of H(b | a) = H(a, b) - H(a) over ordered pairs, in bits."""

    key: str = "conditional-entropy"
    title: str = "Conditional-entropy matrix"
    better: Better = "lower"
    paragraph: str = (
        "How uncertain is one column once another is known (conditional entropy, in bits), and is it so in the "
        "synthetic table? It catches any kind of dependence, ordered or not. The score is the mean absolute "
        "difference over ordered pairs: 0 is a copy. Tables of fewer rows look less uncertain by chance alone, so "
        "compare with the resample, which has as many rows as the real table."
    )

    def measure(self, study: Study) -> list[Score]:
        """One mean a table, with the ordered pairs that differ most."""
        single, pairs = study.summaries(1), study.summaries(2)
        of = {clique[0]: place for place, clique in enumerate(single.cliques)}
        first = np.array([of[one] for one, _ in pairs.cliques])
        second = np.array([of[other] for _, other in pairs.cliques])
        # Given the first column, then given the second.
        given = np.concatenate([pairs.entropy - single.entropy[:, first], pairs.entropy - single.entropy[:, second]], 1)
        names = [(other, one) for one, other in pairs.cliques] + [(one, other) for one, other in pairs.cliques]
        scores = []
        for other in given[1:]:
            gap = np.abs(other - given[0])
            worst = [
                {
                    "column": names[place][0],
                    "given": names[place][1],
                    "real": float(given[0, place]),
                    "synthetic": float(other[place]),
                }
                for place in np.argsort(-gap, kind="stable")[:WORST]
            ]
            scores.append(Score(float(gap.mean()), {"pairs": int(gap.size), "worst": worst}))
        return scores
