"""A release: the synthetic table, the noisy answers it came from, and what was spent on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from margent.errors import TranscriptError, UsageError
from margent.postprocessing.persons import person_ids
from margent.privacy.budget import Budget
from margent.release.charge_json import charge_to_json
from margent.release.folder import internal_files, whole_folder
from margent.release.measurements import (
    canonical_json,
    measurement_files,
    read_json,
    read_measurements,
)
from margent.release.package import data_package
from margent.release.page import release_page
from margent.release.summary import release_summary
from margent.release.values import text
from margent.schema.codec import Codec
from margent.schema.stored import schema_of_texts, stored_schema, stored_table, type_texts
from margent.settings import NO_SETTINGS, Settings
from margent.tables.frames import FRAME_KINDS, to_kind
from margent.tables.options import ReadOptions
from margent.tables.write import FILE_SUFFIXES, TEXT_KINDS, write_table
from margent.transcript import Transcript

if TYPE_CHECKING:
    import pandas as pd

BLOCK_ROWS = 65_536
"""Rows decoded and written at a time."""


@dataclass(frozen=True, eq=False)
class Release:
    """A synthetic table with its transcript, charges and summary; everything in it may be published.

    Shapes: ``codes`` is (rows, d), one column a modelled column of the schema.
    Privacy: none: post-processing of the transcript.
    """

    transcript: Transcript
    budget: Budget
    synthesizer: str
    codes: NDArray[np.int32]
    seed: int
    kind: str
    dialect: ReadOptions = field(default_factory=ReadOptions)
    where: tuple[str, ...] = ()
    settings: Settings = field(default_factory=lambda: NO_SETTINGS)
    declared: pa.Schema | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return (
            f"<Release of {self.rows:,} synthetic rows and {len(self.transcript.schema.output_columns)} columns: "
            f"method {self.transcript.method}, epsilon {float(self.budget.epsilon):g}, {len(self.charges)} charges; "
            ".to_pandas(), .to_kind(), .save(folder)>"
        )

    @cached_property
    def table(self) -> pa.Table:
        """The synthetic table, typed by the schema, columns in the schema's order."""
        return pa.concat_tables(list(self._blocks(text=False)))

    @property
    def rows(self) -> int:
        """Number of synthetic records."""
        return int(self.codes.shape[0])

    @cached_property
    def persons(self) -> NDArray[np.int64] | None:
        """The id of each row, where it was bought how many rows persons have; else None: each row has its own."""
        sizes = self.transcript.sizes
        return None if sizes is None else person_ids(sizes.counts, self.rows, self.seed)

    @property
    def charges(self) -> list[dict[str, Any]]:
        """What was asked of the data and what each answer cost, in order."""
        return [charge_to_json(charge) for charge in self.transcript.charges]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Options, spend and noise-against-synthetic closeness, as written to ``summary.json``."""
        return release_summary(
            self.transcript, self.budget, self.synthesizer, self.settings, self.where, self.codes, self.seed
        )

    def to_pandas(self) -> pd.DataFrame:
        """The synthetic table as a pandas DataFrame with nullable dtypes and ordered categories."""
        frame: pd.DataFrame = to_kind(self.table, "pandas")
        return frame

    def to_kind(self, kind: str | None = None) -> Any:
        """The synthetic table as a kind of frame: the caller's, or Arrow where the table came from a file.

        Raises: UsageError when there is no such kind.
        """
        own = self.kind if self.kind in FRAME_KINDS else "pyarrow"
        return to_kind(self.table, kind or own)

    def save(self, out: str | Path, *, file_format: str | None = None) -> Path:
        """Write the release folder, whole or not at all, and return its path.

        The folder holds, and never more than: ``synthetic.*``, ``datapackage.json``, ``measurements/``,
        ``charges.json``, ``summary.json``, ``release.html``.

        Privacy: every file is a function of schema, options, charges, noisy answers and a random run id.
        Raises: UsageError when the folder exists or the format is unknown.
        """
        kind = checked_format(file_format or self.kind)
        name = f"synthetic{FILE_SUFFIXES[kind]}"
        # The input's dialect goes with the input's kind only: a TSV made of a semicolon file is a plain TSV.
        dialect = self.dialect if kind == self.kind else ReadOptions()
        typed = None if kind in TEXT_KINDS else stored_schema(Codec(self.transcript.schema), self.declared)
        facts = dialect_facts(kind, dialect) | ({} if typed is None else {"types": type_texts(typed)})
        files = {
            "datapackage.json": canonical_json(data_package(self.transcript.schema, name, kind, self.summary, facts)),
            "charges.json": canonical_json(self._charges_document()),
            "summary.json": canonical_json(self.summary | {"file": name, "format": kind} | facts),
            "release.html": release_page(self.transcript, self.budget, self.summary, self.codes).encode(),
        }
        files |= {f"measurements/{path}": content for path, content in measurement_files(self.transcript).items()}
        with whole_folder(Path(out)) as folder:
            (folder / "measurements").mkdir()
            for path, content in files.items():
                (folder / path).write_bytes(content)
            blocks = self._blocks(text=typed is None)
            if typed is not None:
                blocks = (stored_table(block, typed) for block in blocks)
            write_table(folder / name, kind, blocks, typed, dialect)
        return Path(out)

    def _charges_document(self) -> dict[str, Any]:
        budget = self.budget
        return {
            "epsilon": str(budget.epsilon),
            "delta": str(budget.delta),
            "deltaForAtoms": str(budget.delta_for_atoms),
            "accountant": budget.accountant,
            "relation": budget.relation,
            "personRows": budget.person_rows,
            "total": str(budget.total),
            "spent": str(sum((charge.cost for charge in self.transcript.charges), start=0 * budget.total)),
            "charges": self.charges,
        }

    def _blocks(self, *, text: bool) -> Iterator[pa.Table]:
        codec = Codec(self.transcript.schema)
        decode = codec.decode_text if text else codec.decode
        for first in range(0, max(self.rows, 1), BLOCK_ROWS):
            ids = None if self.persons is None else self.persons[first : first + BLOCK_ROWS]
            yield decode(self.codes[first : first + BLOCK_ROWS], self.seed, first_row=first, persons=ids)


def checked_format(kind: str) -> str:
    """Return the file format to write for a kind of input; frames are written as Parquet.

    Privacy: none.
    Raises: UsageError listing the formats there are.
    """
    if kind in FILE_SUFFIXES:
        return kind
    if kind in ("pandas", "polars", "pyarrow", "duckdb", "spark"):
        return "parquet"
    raise UsageError(f"there is no output format {kind!r}; the formats are: {', '.join(FILE_SUFFIXES)}")


def dialect_facts(kind: str, dialect: ReadOptions) -> dict[str, Any]:
    """How a text table is spelled, for the summary and the data package; nothing for typed files.

    Privacy: none: options.
    """
    if kind not in TEXT_KINDS:
        return {}
    facts = {"delimiter": dialect.delimiter_of(kind), "quote": dialect.quote, "header": dialect.header}
    return {"dialect": facts}


def dialect_of(summary: Mapping[str, Any]) -> ReadOptions:
    """The dialect that a release's table was written in.

    Privacy: none: options.
    Raises: TranscriptError when the summary was altered.
    """
    facts = summary.get("dialect")
    if facts is None:
        return ReadOptions()
    try:
        return ReadOptions(delimiter=facts["delimiter"], quote=facts["quote"], header=facts["header"])
    except (KeyError, TypeError, UsageError):
        raise TranscriptError("summary.json: the dialect is damaged or altered") from None


def types_of(summary: Mapping[str, Any]) -> pa.Schema | None:
    """The column types of a release's typed table, so that a resample has them too; None for text.

    Privacy: none: declared types.
    Raises: TranscriptError when the summary was altered.
    """
    texts = summary.get("types")
    if texts is None:
        return None
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise TranscriptError("summary.json: the column types are damaged or altered")
    try:
        return schema_of_texts(texts)
    except ValueError:
        raise TranscriptError("summary.json: the column types are damaged or altered") from None


def require_publishable(folder: Path) -> None:
    """Refuse a folder that holds what was computed from real rows: published whole, it would give that away.

    Privacy: none: names of files only.
    Raises: TranscriptError naming the file and the next step.
    """
    if found := internal_files(folder):
        raise TranscriptError(
            f"{found[0]}: is INTERNAL, made from real rows, and must not lie in a release, which may be published "
            "whole; move it out, and make sure that nobody was given the folder with it"
        )


def read_release(folder: str | Path) -> tuple[Transcript, Budget, dict[str, Any]]:
    """Read a release folder's transcript, budget and summary; no data is needed for anything that follows.

    Privacy: none: reads published files only.
    Raises: TranscriptError naming the file that is absent or damaged, or that was made from real rows and lies there.
    """
    root = Path(folder)
    require_publishable(root)
    summary = read_json(root / "summary.json")
    transcript = read_measurements(root / "measurements")
    try:
        budget = Budget(
            epsilon=summary["epsilon"],
            delta=summary["delta"],
            accountant=summary["accountant"],
            relation=summary["relation"],
            delta_for_atoms=summary.get("deltaForAtoms", "0"),
            person_rows=transcript.schema.person_rows,
        )
        for key, kind in (("synthesizer", str), ("seed", int), ("rows", int), ("format", str)):
            if not isinstance(summary[key], kind):
                raise TypeError
        # Releases of the first versions had none.
        summary["settings"] = {text(key): text(value) for key, value in summary.get("settings", {}).items()}
    except (KeyError, TypeError, AttributeError, UsageError):
        raise TranscriptError(f"{root / 'summary.json'}: damaged or altered") from None
    return transcript, budget, summary
