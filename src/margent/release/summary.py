"""The summary of a release: options, spend, and how close the synthetic table is to the noisy answers.

Every figure here is computed from the transcript and the synthetic codes. The real table is not in reach.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.simplex import norm_sub
from margent.postprocessing.tables import noisy_total
from margent.privacy.budget import Budget
from margent.privacy.laws import law_of
from margent.release.counts import SyntheticCounts
from margent.release.promise import promise_words
from margent.schema.codec import Codec
from margent.schema.formulas import formula_cells
from margent.schema.labels import code_labels
from margent.settings import Settings
from margent.transcript import NoisyMarginal, Scores, Transcript
from margent.version import VERSION

WORTH_A_WARNING = 0.05
"""Noisy share of unlisted cells above which a column's schema should be looked at."""
MOSTLY = 0.9
"""Noisy share of missing cells above which somebody should ask whether they were missing or could not be read."""

CROWDED = 0.8
"""Noisy share of one bin above which a column of several bins might as well have had none."""
LEAST_BINS = 5
"""Fewer bins were chosen to be coarse."""


def one_way_answers(transcript: Transcript) -> dict[str, NoisyMarginal]:
    """The noisy one-way table of each column that has one (the most precise where there are several).

    Privacy: none: noisy answers.
    """
    best: dict[str, NoisyMarginal] = {}
    for answer in transcript.marginals:
        if len(answer.clique) == 1 and not answer.merged:
            name = answer.clique[0]
            if name not in best or answer.variance < best[name].variance:
                best[name] = answer
    return best


def noisy_records(transcript: Transcript) -> float:
    """The number of records by the noisy tables: the mean of their totals, weighted by precision; at least 1.

    Units: records; the total of a table of c cells has c times the variance of one.
    Privacy: none: noisy answers.
    """
    return max(1.0, noisy_total(transcript.marginals))


def records_variance(transcript: Transcript) -> float:
    """The noise variance of `noisy_records` before it is held at 1.

    Units: records squared.
    Privacy: none: charges are public.
    """
    precision = sum(1 / (answer.counts.size * float(answer.variance)) for answer in transcript.marginals)
    return 1 / precision if precision else 0.0


def closeness(transcript: Transcript, counts: SyntheticCounts) -> list[dict[str, Any]]:
    """Total variation between synthetic and noisy one-way tables, beside what the noise alone would give.

    Shapes: one entry a column with a noisy one-way table.
    Units: shares of the records; of the noisy table the nearest one of so many records without negative cells is taken.
    Privacy: none: post-processing.
    """
    entries, records = [], noisy_records(transcript)
    for name, answer in one_way_answers(transcript).items():
        noisy = norm_sub(answer.counts.astype(np.float64), records)
        synthetic = counts.columns[name].astype(np.float64)
        noise = law_of(transcript.charges[answer.charge]).mean_absolute
        distance = 0.5 * float(np.abs(shares(noisy) - shares(synthetic)).sum())
        entries.append(
            {
                "column": name,
                "distance": round(distance, 6),
                "noiseAlone": round(min(1.0, 0.5 * noise * noisy.size / records), 6),
            }
        )
    return entries


def unlisted_shares(transcript: Transcript) -> list[dict[str, Any]]:
    """Noisy share of the cells of each column that the schema does not list, where it is above 5 % and its noise.

    Units: shares of the records.
    Privacy: none: noisy answers.
    """
    return _shares_above(transcript, Codec(transcript.schema).unlisted_codes, WORTH_A_WARNING)


def missing_shares(transcript: Transcript) -> list[dict[str, Any]]:
    """Noisy share of missing cells where it is above nine in ten and cells that cannot be read count as missing.

    A date format or a word for "yes" that the schema spells otherwise than the table ends here.

    Units: shares of the records.
    Privacy: none: noisy answers.
    """
    codes = {
        layout.field.name: layout.null
        for layout in Codec(transcript.schema).layouts
        if layout.missing and layout.fallback == layout.null
    }
    return _shares_above(transcript, codes, MOSTLY)


def crowded_bins(transcript: Transcript) -> list[dict[str, Any]]:
    """Columns cut into several bins, one of which holds above four fifths of the records, and more than one value.

    What differs inside of that bin is not in the synthetic table.

    Units: shares of the records.
    Privacy: none: noisy answers and the schema.
    """
    entries: list[dict[str, Any]] = []
    answers = one_way_answers(transcript)
    for layout in Codec(transcript.schema).layouts:
        name = layout.field.name
        if layout.cuts is None or name not in answers or layout.values < LEAST_BINS:
            continue
        fullest = int(np.argmax(answers[name].counts[: layout.values]))
        if layout.cuts.count[fullest] > 1:
            told = {"bins": layout.values, "bin": code_labels(layout)[fullest]}
            entries += [entry | told for entry in _shares_above(transcript, {name: fullest}, CROWDED)]
    return entries


def _shares_above(transcript: Transcript, codes: Mapping[str, int], least: float) -> list[dict[str, Any]]:
    """Noisy shares of one code a column, where they are above ``least`` and two deviations of their noise."""
    entries, records = [], noisy_records(transcript)
    for name, answer in one_way_answers(transcript).items():
        if name in codes:
            count, deviation = float(answer.counts[codes[name]]), math.sqrt(answer.variance)
            if count > max(least * records, 2 * deviation):
                entries.append({"column": name, "noisyShare": round(min(1.0, count / records), 6)})
    return entries


def coarsened_columns(transcript: Transcript) -> list[dict[str, Any]]:
    """Columns some of whose codes were counted together in tables of several columns; not the levels of hierarchies.

    Privacy: none: merges are read off noisy answers.
    """
    return [
        {"column": name, "codes": len(merge.groups), "groups": merge.size}
        for name, merge in sorted(transcript.merges.items())
        if name == merge.column
    ]


def pairs_left_out(transcript: Transcript) -> int | None:
    """Pairs of columns that were no candidates although both tell records apart; None where no scores were asked.

    Privacy: none: post-processing.
    """
    scored = {names for answer in transcript.answers if isinstance(answer, Scores) for names in answer.cliques}
    if not scored:
        return None
    several = [name for name, size in zip(transcript.domain.names, transcript.domain.sizes, strict=True) if size > 1]
    return math.comb(len(several), 2) - len({names for names in scored if len(names) == 2})


def shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counts divided by their sum (all zero where the sum is zero)."""
    total = counts.sum()
    scaled: NDArray[np.float64] = counts / total if total > 0 else np.zeros_like(counts)
    return scaled


def release_summary(
    transcript: Transcript,
    budget: Budget,
    synthesizer: str,
    settings: Settings,
    where: Sequence[str],
    counts: SyntheticCounts,
    seed: int,
) -> dict[str, Any]:
    """Everything a reader of the release should know, by allow-list.

    Privacy: a function of schema, options, charges, noisy answers, versions and a random run id.
    """
    # The answers tell of all records: those that meet a condition differ from them, and should.
    close = [] if where else closeness(transcript, counts)
    mean = sum(entry["distance"] for entry in close) / len(close) if close else 0.0
    return {
        "run": transcript.run,
        "margent": VERSION,
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "method": transcript.method,
        "synthesizer": synthesizer,
        "settings": dict(sorted(settings.items())),
        "epsilon": str(budget.epsilon),
        "delta": str(budget.delta),
        "deltaForAtoms": str(budget.delta_for_atoms),
        "accountant": budget.accountant,
        "relation": budget.relation,
        "personRows": budget.person_rows,
        "budget": float(budget.total),
        "spent": float(transcript.spent),
        "answers": len(transcript.answers),
        "rows": counts.rows,
        "where": list(where),
        "seed": seed,
        "promise": promise_words(transcript, budget, where),
        "unlisted": unlisted_shares(transcript),
        "mostlyMissing": missing_shares(transcript),
        "crowded": crowded_bins(transcript),
        "coarsened": coarsened_columns(transcript),
        "formulas": formula_cells(transcript.schema),
        "pairsLeftOut": pairs_left_out(transcript),
        "oneWays": {"meanDistance": round(mean, 6), "columns": close},
    }
