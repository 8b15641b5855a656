"""Folders of files of one kind, read one after the other as one table; folders named ``key=value`` give columns.

What a folder's name says behind the equals sign is a cell: messages show ``key=*``. Names of files and of other folders
are public, as names of columns are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from margent.errors import Fault, SchemaError, TableError, on_one_line
from margent.tables.columnar import columnar_batches, declared_types, listed_columns
from margent.tables.header import check_columns
from margent.tables.opened import OpenTable
from margent.tables.options import FILE_SUFFIXES, TEXT_KINDS, ReadOptions, kind_by_suffix
from margent.tables.snapshot import CHANGED, Snapshot, identity_of
from margent.tables.text import TextFile, text_body, text_header

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema

_NO_VALUE = b"__HIVE_DEFAULT_PARTITION__"
_VERSIONED = {"_delta_log": "Delta", ".hoodie": "Hudi"}


@dataclass(frozen=True)
class Part:
    """One file of a folder: what messages call it, and the columns that the names of its folders give.

    Privacy: ``path`` and ``keys`` hold cells, ``shown`` does not.
    """

    path: Path = field(repr=False)
    shown: str
    keys: tuple[tuple[str, bytes | None], ...] = field(repr=False)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns, from the outer folder to the inner."""
        return tuple(name for name, _ in self.keys)


@dataclass(frozen=True)
class Folder:
    """The files of one kind below a folder, sorted by their paths, as they were when it was opened.

    Privacy: none of its identities is written or shown.
    """

    root: Path
    kind: str
    parts: tuple[Part, ...] = field(repr=False)
    identities: tuple[tuple[int, ...], ...] = field(repr=False)

    def check(self) -> None:
        """Raise TableError, with fixed text, unless the same files are there, none more, each as it was."""
        try:
            same = [part.path for part in self.parts] == [path for path, _ in _paths(self.root, self.kind)]
            same = same and self.identities == tuple(identity_of(part.path) for part in self.parts)
        except (OSError, TableError):
            same = False
        if not same:
            raise TableError(CHANGED)


@dataclass(frozen=True)
class _Header:
    """What one file declares: names, Arrow types where it has them, and where its text begins where it is text."""

    names: tuple[str, ...]
    declared: Any = None
    body: int = 0


def open_folder(root: Path, schema: Schema, options: ReadOptions) -> OpenTable:
    """The files below a folder as one table with the columns of the schema.

    Columns of the folders' names count where the schema names them; as text, whatever the schema makes of it.

    Privacy: none spent; names, headers and containers only are looked at.
    Raises: TableError when a file cannot be read, or there is none or several kinds; SchemaError when columns differ.
    """
    folder = _folder(root, options)
    known = {each.name for each in schema.fields}
    keys = [name for name in folder.parts[0].key_names if name in known]
    headers = [_header(part, folder.kind, options, _in_files(schema, keys)) for part in folder.parts]
    first = headers[0]
    delimiter = options.delimiter_of(folder.kind) if folder.kind in TEXT_KINDS and options.header else None
    declared = None if first.declared is None else _with_keys(first.declared, keys)
    check_columns(first.names, schema, declared=declared, delimiter=delimiter, beside=keys)
    wanted = tuple(schema.columns_read)
    inside = tuple(name for name in wanted if name not in keys)
    listed = tuple(name for name in listed_columns(schema) if name in inside)
    _check_alike(folder, headers, inside)
    readers = [
        _reader(part, folder.kind, options, header, inside, listed)
        for part, header in zip(folder.parts, headers, strict=True)
    ]

    def read() -> Iterator[pa.RecordBatch]:
        folder.check()
        for part, reader in zip(folder.parts, readers, strict=True):
            for batch in reader():
                yield _joined(batch, dict(part.keys), wanted)
        folder.check()

    return OpenTable(folder.kind, (*first.names, *keys), wanted, read, declared=declared)


def folder_columns(root: Path, options: ReadOptions, listed: Sequence[str] = ()) -> tuple[tuple[str, ...], Any | None]:
    """Names, and types where there are any, that a folder's first file and the folders above it declare.

    ``listed`` as `margent.tables.text.text_header` has it.

    Privacy: none spent; names, header and container only.
    Raises: TableError as `open_folder`.
    """
    folder = _folder(root, options)
    part = folder.parts[0]
    header = _header(part, folder.kind, options, tuple(listed))
    keys = [name for name in part.key_names if name not in header.names]
    declared = None if header.declared is None else _with_keys(header.declared, keys)
    return (*header.names, *keys), declared


def _folder(root: Path, options: ReadOptions) -> Folder:
    found = _paths(root, options.kind)
    kinds = sorted({kind for _, kind in found})
    if not found:
        raise TableError(
            f"{root}: the folder holds no file that can be read as a table"
            + ("" if options.kind is None else f" of kind {options.kind}")
            + f"; known are {', '.join(FILE_SUFFIXES.values())} (names that begin with . or _ do not count)"
        )
    if len(kinds) > 1:
        raise TableError(
            f"{root}: the folder holds files of several kinds ({', '.join(kinds)}): state which with --kind"
        )
    parts = tuple(_part(root, path) for path, _ in found)
    for part in parts:
        if part.key_names != parts[0].key_names:
            raise TableError(
                f"{root}: the files do not lie in folders of the same columns: "
                f"{part.shown} beside {parts[0].shown} (key=* stands for folders named key=value)"
            )
        if len(set(part.key_names)) < len(part.keys):
            raise TableError(f"{root}: one folder inside the other gives the same column twice: {part.shown}")
    return Folder(root, kinds[0], parts, tuple(Snapshot.of(part.path, part.shown).identity for part in parts))


def _paths(root: Path, kind: str | None, below: Path | None = None) -> list[tuple[Path, str]]:
    """All files that are read, of one kind or of any, sorted by folder and name; messages name the root alone."""
    found: list[tuple[Path, str]] = []
    for path in sorted((below or root).iterdir(), key=os.fsencode):
        name = path.name
        if name in _VERSIONED or (name == "metadata" and any(path.glob("*.metadata.json"))):
            raise TableError(
                f"{root}: this is a table of {_VERSIONED.get(name, 'Iceberg')}, whose folder holds rows of earlier "
                "versions as well: read it with its own library and pass the stream, or export it"
            )
        if name[0] in "._":
            continue
        if path.is_dir():
            if path.is_symlink():
                raise TableError(f"{root}: holds a link to another folder; such links are not followed")
            found += _paths(root, kind, path)
        elif (own := kind_by_suffix(name)) is not None and kind in (None, own):
            found.append((path, own))
    return found


def _part(root: Path, path: Path) -> Part:
    *folders, name = path.relative_to(root).parts
    pairs = [folder.partition("=") for folder in folders]
    keys = tuple((_key(key), _value(value)) for key, equals, value in pairs if equals)
    shown = [f"{_key(key)}=*" if equals else key for key, equals, _ in pairs]
    return Part(path, on_one_line("/".join([*shown, name])), keys)


def _key(text: str) -> str:
    return unquote_to_bytes(os.fsencode(text)).decode("utf-8", "replace")


def _value(text: str) -> bytes | None:
    """The cell that a folder's name spells, with the escapes that Hive and Spark write; None where it says "none"."""
    value = unquote_to_bytes(os.fsencode(text))
    return None if value == _NO_VALUE else value


def _in_files(schema: Schema, keys: Sequence[str]) -> tuple[str, ...]:
    """The schema's columns, in its order, less those of the folders' names: a text file's that names none itself."""
    return tuple(each.name for each in schema.fields if each.name not in keys)


def _header(part: Part, kind: str, options: ReadOptions, listed: tuple[str, ...]) -> _Header:
    if kind not in TEXT_KINDS:
        declared = declared_types(part.path, kind, part.shown)
        return _Header(tuple(declared.names), declared)
    if not options.header:
        return _Header(listed, body=text_body(part.path, kind, options, part.shown))
    names, body = text_header(part.path, kind, options, listed, part.shown)
    return _Header(names, body=body)


def _check_alike(folder: Folder, headers: Sequence[_Header], wanted: Sequence[str]) -> None:
    """Every file declares the columns of the first one, the wanted ones with the same types.

    What a later text file's first line says may be a row, so it is not repeated.
    """
    first, faults = headers[0], []
    for part, header in zip(folder.parts[1:], headers[1:], strict=True):
        if sorted(header.names) != sorted(first.names):
            faults.append(Fault(part.shown, f"its columns are not those of {folder.parts[0].shown}"))
        elif first.declared is not None:
            faults += [
                Fault(f"{part.shown}, column {column}", f"its type is not the one in {folder.parts[0].shown}")
                for column in wanted
                if header.declared.field(column).type != first.declared.field(column).type
            ]
    if faults:
        raise SchemaError(faults, f"the folder of {folder.kind.capitalize()} files")


def _with_keys(declared: Any, keys: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.schema([*declared, *(pa.field(name, pa.string()) for name in keys)])


def _reader(
    part: Part, kind: str, options: ReadOptions, header: _Header, inside: tuple[str, ...], listed: tuple[str, ...]
) -> Callable[[], Iterator[pa.RecordBatch]]:
    if kind not in TEXT_KINDS:
        return lambda: columnar_batches(part.path, kind, header.declared, inside, listed)
    # Where no column of the file is wanted one is read all the same, for the number of its records.
    file = TextFile(
        Snapshot.of(part.path, part.shown), kind, options, header.names, inside or header.names[:1], header.body
    )
    return file.batches


def _joined(batch: pa.RecordBatch, keys: dict[str, bytes | None], wanted: Sequence[str]) -> pa.RecordBatch:
    """The batch with the columns of the folders' names, which are text: null where they say that there is no value."""
    import pyarrow as pa

    columns = [
        _repeated(keys[name], batch.num_rows) if name in keys and name not in batch.schema.names else batch.column(name)
        for name in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(wanted))


def _repeated(value: bytes | None, rows: int) -> Any:
    import pyarrow as pa

    if value is None:
        return pa.nulls(rows, pa.large_string())
    return pa.repeat(pa.scalar(value, pa.large_binary()), rows).view(pa.large_string())
