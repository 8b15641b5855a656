"""`margent.query`: a table over a few columns with error bars, from a release alone; it reads no data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from margent.answers.answer import QueryAnswer, group_label
from margent.answers.modelled import model_of
from margent.answers.tables import Told, at_level, half_width, heaviness, level_sizes, told
from margent.errors import PlanError, UsageError
from margent.postprocessing.max_entropy import MOST_CELLS
from margent.postprocessing.unbiased import best_unbiased
from margent.release.reading import read_release
from margent.release.release import Release
from margent.schema.codec import Codec
from margent.schema.domain import Clique, clique
from margent.transcript import Transcript

MOST_COLUMNS = 8
"""Most columns of one query."""


def query(release: Release | str | Path, columns: str | Sequence[str]) -> QueryAnswer:
    """The table over the columns, each cell with the half-width of its 95 % error bar, from a release's noisy answers.

    Columns that were counted together are answered from their noisy counts: the best unbiased estimate from all answers
    that tell about them, so answers to several queries agree. For others the table of most entropy with the margins
    that were measured is built. Codes that were only ever counted together stay together.

    ``release`` is a `Release` or the path of its folder; ``columns`` one name or 1 to 8 names.

    Shapes: one axis a column, in the order asked, one entry a code of the schema (or a group of codes).
    Units: records.
    Privacy: none: post-processing; as many queries as one likes.
    Raises: UsageError naming the columns that there are; PlanError for a table of too many cells; TranscriptError for
        a folder that is no release.

    >>> from margent import Budget, Category, Schema, synthesize
    >>> import pyarrow as pa
    >>> schema = Schema([Category("sex", ["F", "M"], required=True)], unit="row")
    >>> table = pa.table({"sex": ["F"] * 700 + ["M"] * 300})
    >>> answer = query(synthesize(table, schema, budget=Budget(epsilon=1)), "sex")
    >>> answer.labels, answer.kind, bool(abs(answer.counts[0] - 700) < 60)
    ((('F', 'M', '(unlisted)'),), 'measured', True)
    """
    transcript = release.transcript if isinstance(release, Release) else read_release(release)[0]
    asked = (columns,) if isinstance(columns, str) else tuple(columns)
    _require_columns(transcript, asked)
    names = clique(name for name in asked if transcript.domain.size(name) > 1)
    answers = told(transcript, names)
    merges = tuple(name for name in names if name in transcript.merges)
    merged = bool(merges) and not _counted(answers, names, merged=False)
    _require_fits(level_sizes(transcript, asked, merged))
    if _counted(answers, names, merged) and all(at_level(answers, names, merges, merged).values()):
        return _measured(transcript, asked, answers, names, merges, merged)
    return _modelled(transcript, asked, names, merged)


def _measured(
    transcript: Transcript, asked: tuple[str, ...], answers: list[Told], names: Clique, merges: Clique, merged: bool
) -> QueryAnswer:
    found = best_unbiased(level_sizes(transcript, names, merged), at_level(answers, names, merges, merged))
    holding = [each for each in answers if each.table.clique == names and each.merged == merged]
    width = half_width(found.variance**0.5, heaviness(answers, names, merged), whole=len(transcript.answers) == 1)
    return _answer(
        transcript, asked, names, merged, found.values, np.full(found.values.shape, width), True,
        tuple(sorted({each.clique for each in holding})),
    )  # fmt: skip


def _modelled(transcript: Transcript, asked: tuple[str, ...], names: Clique, merged: bool) -> QueryAnswer:
    model = model_of(transcript, names, merged)
    return _answer(transcript, asked, names, merged, model.values, model.errors, False, model.margins, gap=model.gap)


def _counted(answers: list[Told], names: Clique, merged: bool) -> bool:
    """Whether an answer holds all the columns, at this level."""
    return any(each.table.clique == names and each.merged == merged for each in answers)


def _answer(
    transcript: Transcript,
    asked: tuple[str, ...],
    names: Clique,
    merged: bool,
    values: NDArray[np.float64],
    errors: NDArray[np.float64],
    measured: bool,
    sources: tuple[Clique, ...],
    gap: float = 0.0,
) -> QueryAnswer:
    """The table with its axes in the order asked, columns of one code among them, and what its entries are called."""
    shape = tuple(level_sizes(transcript, asked, merged).values())
    order = [names.index(name) for name in asked if name in names]
    labels = Codec(transcript.schema).labels
    return QueryAnswer(
        columns=asked,
        labels=tuple(_labels(transcript, name, labels[name], merged) for name in asked),
        counts=np.transpose(values, order).reshape(shape),
        errors=np.transpose(errors, order).reshape(shape),
        measured=measured,
        sources=sources,
        method=transcript.method,
        gap=gap,
        person_rows=transcript.schema.person_rows,
    )


def _labels(transcript: Transcript, name: str, labels: tuple[str, ...], merged: bool) -> tuple[str, ...]:
    merge = transcript.merges.get(name) if merged else None
    if merge is None:
        return labels
    groups: list[list[str]] = [[] for _ in range(merge.size)]
    for label, group in zip(labels, merge.groups, strict=True):
        groups[group].append(label)
    return tuple(group_label(tuple(members)) for members in groups)


def _require_columns(transcript: Transcript, asked: tuple[str, ...]) -> None:
    """One to eight different columns that are part of the release's table."""
    known = transcript.domain.names
    unknown = [name for name in asked if name not in known]
    if unknown:
        others = {field.name: field.role for field in transcript.schema.fields if field.name not in known}
        told_of = [
            f"{name!r} is not modeled (role {others[name]})" if name in others else f"there is no column {name!r}"
            for name in unknown
        ]
        raise UsageError(f"{'; '.join(told_of)}; the columns are: {', '.join(map(repr, known))}")
    twice = [one for one, other in combinations(asked, 2) if one == other]
    if twice:
        raise UsageError(f"column {twice[0]!r} is named twice")
    if not 1 <= len(asked) <= MOST_COLUMNS:
        raise UsageError(f"a query names 1 to {MOST_COLUMNS} columns, not {len(asked)}")


def _require_fits(sizes: Mapping[str, int]) -> None:
    cells = math.prod(sizes.values())
    if cells > MOST_CELLS:
        shown = ", ".join(f"{name!r} ({size:,} codes)" for name, size in sizes.items())
        raise PlanError(
            f"the table over {shown} has {cells:,} cells, and the most is {MOST_CELLS:,}: ask about fewer columns"
        )
