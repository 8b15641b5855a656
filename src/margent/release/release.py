"""A release: the synthetic table, the noisy answers it came from, and what was spent on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.privacy.budget import Budget
from margent.progress import Progress, silent
from margent.release.charge_json import charge_to_json
from margent.release.counts import SyntheticCounts
from margent.release.folder import refuse_existing, whole_folder
from margent.release.measurements import FILTERED, FROM_QUERY, canonical_json, measurement_files
from margent.release.package import data_package
from margent.release.page import release_page
from margent.release.parts import Parts
from margent.release.room import require_room
from margent.release.summary import release_summary
from margent.release.synthetic import SyntheticTable
from margent.schema.codec import Codec
from margent.schema.stored import stored_schema, type_texts
from margent.settings import NO_SETTINGS, Settings
from margent.synthesizers.blocks import Records
from margent.tables.frames import FRAME_KINDS, to_kind
from margent.tables.options import FILE_SUFFIXES, TEXT_KINDS, ReadOptions
from margent.transcript import Transcript

if TYPE_CHECKING:
    import pandas as pd

    from margent.resume.state import RunState


@dataclass(frozen=True, eq=False)
class Release:
    """A synthetic table with its transcript, charges and summary; everything in it may be published.

    The table is not held but drawn block by block, as it is saved or gone through with `blocks`; `table`, `codes`,
    `to_pandas` and `to_kind` gather all of it in memory. Up to the size of one block it is drawn once and held.

    ``state``: what the run kept in case of an interruption, removed once the release is saved.

    Privacy: none: post-processing of the transcript.
    """

    transcript: Transcript
    budget: Budget
    synthesizer: str
    records: Records
    seed: int
    kind: str
    dialect: ReadOptions = field(default_factory=ReadOptions)
    where: tuple[str, ...] = ()
    settings: Settings = field(default_factory=lambda: NO_SETTINGS)
    declared: pa.Schema | None = field(default=None, repr=False)
    state: RunState | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return (
            f"<Release of {self.rows:,} synthetic rows and {len(self.transcript.schema.output_columns)} columns: "
            f"method {self.transcript.method}, epsilon {float(self.budget.epsilon):g}, {len(self.charges)} charges; "
            ".to_pandas(), .to_kind(), .save(folder)>"
        )

    @cached_property
    def table(self) -> pa.Table:
        """The synthetic table in memory, typed by the schema, columns in the schema's order."""
        return pa.concat_tables(list(self._made.tables(None)))

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """All records' codes in memory: shape (rows, d), one column a modelled column of the schema."""
        blocks = [self.records.block(index) for index in range(self.records.blocks.count)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    @property
    def rows(self) -> int:
        """Number of synthetic records."""
        return self.records.blocks.rows

    def blocks(self) -> Iterator[pa.Table]:
        """The synthetic table block by block, typed by the schema; two are made while one is looked at.

        Shapes: `rows` rows together; memory follows a block.
        Privacy: none: post-processing.
        """
        yield from self._made.blocks()

    def block(self, index: int, progress: Progress = silent) -> pa.Table:
        """Block ``index`` of the synthetic table: the same rows wherever and whenever it is made.

        Privacy: none: post-processing.
        """
        return self._made.block(index, progress)

    @property
    def charges(self) -> list[dict[str, Any]]:
        """What was asked of the data and what each answer cost, in order."""
        return [charge_to_json(charge) for charge in self.transcript.charges]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Options, spend and noise-against-synthetic closeness, as written to ``summary.json``."""
        return release_summary(
            self.transcript, self.budget, self.synthesizer, self.settings, self.where, self.counts, self.seed
        )

    @property
    def counts(self) -> SyntheticCounts:
        """The synthetic table's counts that summary and page speak of; draws it where it is not held."""
        return self._made.counts

    @cached_property
    def _made(self) -> SyntheticTable:
        return SyntheticTable(self.transcript, self.records, self.seed, pairs=not self.where)

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

    def to_spark(self, session: Any = None) -> Any:
        """The synthetic table as a DataFrame of Spark, one block a task; ``session``: by default the active one.

        Privacy: none: post-processing.
        Raises: UsageError without pyspark or a session; TableError where its workers cannot import margent.
        """
        from margent.release.spark import spark_frame
        from margent.tables.spark_session import require_pyspark

        require_pyspark()
        return spark_frame(self, session)

    def save(
        self,
        out: str | Path,
        *,
        file_format: str | None = None,
        rows_per_file: int | None = None,
        progress: Progress = silent,
    ) -> Path:
        """Write the release folder, whole or not at all, and return its path.

        The folder holds, and never more than: ``synthetic.*``, ``datapackage.json``, ``measurements/``,
        ``charges.json``, ``summary.json``, ``release.html``. A table of several blocks is a folder of parts, unless it
        is text; ``rows_per_file`` says how many rows a file has at most. The table is drawn, and written, in blocks.

        Privacy: every file is a function of schema, options, charges, noisy answers and a random run id.
        Raises: UsageError when the folder exists or the format is unknown; PlanError when the disk has no room for it.
        """
        kind = checked_format(file_format or self.kind)
        parts = Parts.of(self.records.blocks, kind, rows_per_file)
        refuse_existing(Path(out))
        require_room(Path(out), self.transcript.schema, self.rows, kind)
        # The input's dialect goes with the input's kind only: a TSV made of a semicolon file is a plain TSV.
        dialect = self.dialect if kind == self.kind else ReadOptions()
        typed = None if kind in TEXT_KINDS else stored_schema(Codec(self.transcript.schema), self.declared, self.rows)
        facts = dialect_facts(kind, dialect) | ({} if typed is None else {"types": type_texts(typed)})
        written = {"file": parts.name, "format": kind} | ({} if parts.files == 1 else {"parts": parts.files})
        with whole_folder(Path(out)) as folder:
            with closing(self._made.tables(typed, text=typed is None, progress=progress)) as tables:
                parts.write(folder, tables, typed, dialect)
            package = data_package(self.transcript.schema, parts.paths, kind, self.summary, facts)
            files = {
                "datapackage.json": canonical_json(package),
                "charges.json": canonical_json(self._charges_document()),
                "summary.json": canonical_json(self.summary | written | facts),
                "release.html": release_page(self.transcript, self.budget, self.summary, self.counts).encode(),
            }
            files |= {f"measurements/{path}": content for path, content in measurement_files(self.transcript).items()}
            (folder / "measurements").mkdir()
            for path, content in files.items():
                (folder / path).write_bytes(content)
        if self.state is not None:
            self.state.remove()
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
            **({FROM_QUERY: True} if self.transcript.from_query else {}),
            **({FILTERED: True} if self.transcript.filtered else {}),
            "total": str(budget.total),
            "spent": str(self.transcript.spent),
            "charges": self.charges,
        }


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
