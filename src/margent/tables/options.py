"""How a table is to be read: its kind of container and a text file's dialect, declared and never sniffed."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from margent.errors import TableError, UsageError

FILE_SUFFIXES = {
    "csv": ".csv",
    "csv.gz": ".csv.gz",
    "csv.zst": ".csv.zst",
    "tsv": ".tsv",
    "tsv.gz": ".tsv.gz",
    "tsv.zst": ".tsv.zst",
    "parquet": ".parquet",
    "feather": ".feather",
    "arrow": ".arrow",
}
"""The kinds of file that can be read and written, with the suffix each is written under."""

TEXT_KINDS = frozenset(kind for kind in FILE_SUFFIXES if kind[:3] in {"csv", "tsv"})
"""The kinds whose cells are text."""

_OTHER_SUFFIXES = {
    ".tab": "tsv",
    ".tab.gz": "tsv.gz",
    ".tab.zst": "tsv.zst",
    ".pq": "parquet",
    ".ipc": "arrow",
}

_KINDS = {suffix: kind for kind, suffix in FILE_SUFFIXES.items()} | _OTHER_SUFFIXES

_LONGEST_FIRST = sorted(_KINDS.items(), key=lambda each: len(each[0]), reverse=True)

_ENCODINGS = (
    *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "iso8859-2", "iso8859-15"),
    *(f"cp125{last}" for last in range(9)),
)
# Only encodings whose decoders take any bytes whatever without stopping; a property test runs them all.
ENCODINGS = frozenset(codecs.lookup(name).name for name in _ENCODINGS)

_MAX_RECORD_LIMIT = 2**28


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The dialect of a text file and what to do with a stream that can be read once.

    ``delimiter``: one ASCII character; by default a comma, for TSV a tab. ``quote``: one ASCII character, or
    None where quotes mean nothing. ``encoding``: UTF-8 unless declared. ``header``: whether the first record
    names the columns; without it the columns are the schema's, in its order. ``max_record_bytes``: of a
    longer record the first line counts as one whose cells are absent. ``kind``: the kind of file, where the
    suffix does not say. ``spool``: whether a one-shot stream may be copied to a temporary file that only its
    owner can read, in ``spool_folder`` (by default the system's). ``container_types``: whether the column types
    that a Parquet or Arrow file declares are as public as its column names, so that the output may follow them.
    ``query_is_row_wise``: the operator's word that every row of a database's query (or view, or of what row-level
    security shows) comes from one record, or from the records of one person; without it no query is read, and with it
    the release says so.

    Units: ``max_record_bytes`` in bytes of UTF-8.
    Privacy: none: public facts. None of it is ever guessed from the table.
    Raises: UsageError that lists every option that is off.

    >>> ReadOptions(delimiter=";").delimiter
    ';'
    """

    delimiter: str | None = None
    quote: str | None = '"'
    encoding: str = "utf-8"
    header: bool = True
    max_record_bytes: int = 2**20
    kind: str | None = None
    spool: bool = True
    spool_folder: Path | None = None
    container_types: bool = True
    query_is_row_wise: bool = False

    def __post_init__(self) -> None:
        """Check every option; raise one UsageError for all that are off."""
        if self.delimiter in {"\\t", "tab"}:
            object.__setattr__(self, "delimiter", "\t")
        if self.quote == "":
            object.__setattr__(self, "quote", None)
        faults = [
            f"{name} must be one ASCII character that ends no line, not {value!r}"
            for name, value in (("delimiter", self.delimiter), ("quote", self.quote))
            if value is not None and (len(value) != 1 or not value.isascii() or value in "\r\n\0")
        ]
        if self.quote is not None and self.delimiter == self.quote:
            faults.append("delimiter and quote must differ")
        if codec_name(self.encoding) not in ENCODINGS:
            faults.append(f"encoding {self.encoding!r} is not one of: {', '.join(_ENCODINGS)}")
        if not 1 <= self.max_record_bytes <= _MAX_RECORD_LIMIT:
            faults.append(f"max_record_bytes must be in 1 .. {_MAX_RECORD_LIMIT}")
        if self.kind is not None and self.kind not in FILE_SUFFIXES:
            faults.append(f"kind {self.kind!r} is not one of: {', '.join(FILE_SUFFIXES)}")
        if faults:
            raise UsageError("; ".join(faults))

    def delimiter_of(self, kind: str) -> str:
        """The delimiter of a text file of this kind."""
        return self.delimiter or ("\t" if kind.startswith("tsv") else ",")


def codec_name(encoding: str) -> str:
    """The one name Python has for an encoding, or the empty text where it has none.

    >>> codec_name("latin-1") == codec_name("ISO-8859-1"), codec_name("no such")
    (True, '')
    """
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        return ""
    return "utf-8" if name == "utf-8-sig" else name


def kind_of_path(path: Path, options: ReadOptions) -> str:
    """The kind of file, from the options or the suffix.

    Privacy: none: names only.
    Raises: TableError listing the suffixes that are known.

    >>> kind_of_path(Path("Survey.CSV.gz"), ReadOptions()), kind_of_path(Path("a.tab"), ReadOptions())
    ('csv.gz', 'tsv')
    """
    if options.kind is not None:
        return options.kind
    name = path.name.lower()
    kind = kind_by_suffix(name)
    if kind is not None:
        return kind
    if name.endswith((".bz2", ".xz", ".lz4", ".zip", ".7z", ".tar", ".tgz", ".tar.gz", ".z", ".br")):
        raise TableError(
            f"{path}: files compressed in this way are not read: unpack the file, or compress it as .csv.gz or .csv.zst"
        )
    if name.endswith((".xls", ".xlsx", ".xlsm", ".ods", ".sav", ".dta", ".sas7bdat", ".rds", ".json", ".jsonl")):
        raise TableError(f"{path}: files of this kind are not read: save the table as CSV or Parquet first")
    raise TableError(
        f"{path}: the kind of file is not clear from its name; known are {', '.join(sorted(_KINDS))} "
        "and a folder of such files: rename it, or state its kind (--kind csv)"
    )


def kind_by_suffix(name: str) -> str | None:
    """The kind of file that a name tells, or None.

    >>> kind_by_suffix("part-0.snappy.parquet"), kind_by_suffix("notes.md")
    ('parquet', None)
    """
    lower = name.lower()
    return next((kind for suffix, kind in _LONGEST_FIRST if lower.endswith(suffix)), None)
