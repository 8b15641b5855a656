"""Arrow files whose offsets, views, indices and runs point where nothing is: refused with fixed text, and no crash.

Arrow itself trusts them, so that a file could end the process or show what lies beside it. The files are read in a
child process: one that crashes is seen, and named.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margent.tables.snapshot import UNREADABLE
from tests.sizes import rounds

ROOT = Path(__file__).resolve().parents[2]
WORDS = ["F" * 11, "M" * 13, "F" * 17, "M" * 19]
TEXT = pa.array(WORDS)
VIEWS = pa.array(["F", *WORDS[1:]], pa.string_view())
PLACES = pa.array([101, 102, 103, 104, *range(101), *[0] * 100], pa.int32())
MANY = pa.array([f"x{place}" for place in range(105)])
RUNS = pa.array([1003, 1005, 1008, 1009], pa.int32())

READER = """
import os, sys
from margent import Category, Schema
from margent.counts.identity import Identity
from margent.counts.texts import batch_texts
from margent.errors import MargentError
from margent.schema.codec import Codec
from margent.tables.source import open_table
import pyarrow as pa

schema = Schema([Category("x", ["F", "M"])], unit="row")
codec, identity = Codec(schema), Identity("x", ("",), "string")

def held(path):
    with pa.OSFile(path) as file:
        form = pa.ipc.open_stream if path.endswith("stream.arrow") else pa.ipc.open_file
        return form(file).read_all()

def read(table):
    with open_table(table, schema) as opened:
        rows = 0
        for batch in opened.batches():
            codec.encode(batch), batch_texts(batch, "x"), identity.pseudonyms(batch)
            rows += batch.num_rows
        return f"read {rows}"

def said(path):
    from pathlib import Path
    try:
        if os.environ["IN_MEMORY"] == "file":
            return read(Path(path))
        try:
            table = held(path)
        except Exception:
            return "not a file of Arrow's"
        return read(table if os.environ["IN_MEMORY"] == "table" else table.to_reader())
    except MargentError as error:
        return " ".join(str(error).encode("ascii", "replace").decode().split())

for path in sys.stdin.read().split("\\n"):
    print(os.path.basename(path), flush=True)
    print(said(path), flush=True)
"""


def words(width: Any, *numbers: int) -> bytes:
    return np.array(numbers, width).tobytes()


def view(length: int, start: bytes, buffer: int, offset: int) -> bytes:
    return words(np.int32, length) + start + words(np.int32, buffer, offset)


OFFSETS = {"far": (0, 11, 2**30, 41, 60), "before": (0, -(2**20), 24, 41, 60), "last": (0, 11, 24, 41, 2**30)}
BAD_VIEWS = {
    "no such buffer": view(100, b"MMMM", 7, 0),
    "buffer before": view(100, b"MMMM", -3, 0),
    "far": view(100, b"MMMM", 0, 2**30),
    "long": view(2**30, b"MMMM", 0, 0),
    "no length": view(-5, b"MMMM", 0, 0),
    "before": view(20, b"MMMM", 0, -(2**20)),
}
BAD_RUNS = {
    "far": (1003, 2**30, 1008, 1009),
    "before": (-1003, -5, -1008, 1009),
    "short": (3, 5, 8, 9),
    "backward": (1008, 5, 3, 1009),
    "empty": (1003, 1003, 1008, 1009),
}
BAD_PLACES = {"far": (101, 2**30, 103, 104), "before": (101, -7, 103, 104), "next": (101, 105, 103, 104)}


def in_runs(values: Any) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(values) + 1), pa.int32()), values)


def of_json(storage: Any) -> Any:
    return pa.ExtensionArray.from_storage(pa.json_(storage.type), storage)


def listed(values: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.int32()), values)


def patched() -> Iterator[tuple[str, Any, bytes, bytes]]:
    """A name, a column, and what to write in place of what in its file."""
    good = words(np.int32, 0, 11, 24, 41, 60)
    wide = TEXT.cast(pa.large_string())
    for damage, offsets in OFFSETS.items():
        for name, column in {
            "text": TEXT, "bytes": TEXT.cast(pa.binary()), "json": of_json(TEXT), "dictionary": listed(TEXT),
            "runs": in_runs(TEXT), "runs of json": in_runs(of_json(TEXT)),
        }.items():  # fmt: skip
            yield f"{name} {damage}", column, good, words(np.int32, *offsets)
        for name, column in {"wide": wide, "runs of wide": in_runs(wide), "dictionary of wide": listed(wide)}.items():
            yield f"{name} {damage}", column, words(np.int64, 0, 11, 24, 41, 60), words(np.int64, *offsets)
    views = VIEWS.buffers()[1].to_pybytes()[:64]
    for damage, bad in BAD_VIEWS.items():
        bytes_ = VIEWS.cast(pa.binary_view())
        for name, column in {
            "views": VIEWS, "views of bytes": bytes_, "json of views": of_json(VIEWS), "runs of views": in_runs(VIEWS),
            "dictionary of views": listed(VIEWS), "runs of bytes": in_runs(bytes_),
        }.items():  # fmt: skip
            yield f"{name} {damage}", column, views, views[:16] + bad + views[32:]
    for damage, ends in BAD_RUNS.items():
        for name, values in {"text": TEXT, "views": VIEWS, "numbers": pa.array([1, 2, 3, 4])}.items():
            column = pa.RunEndEncodedArray.from_arrays(RUNS, values)
            yield f"ends of {name} {damage}", column, words(np.int32, *RUNS.to_pylist()), words(np.int32, *ends)
    column = pa.DictionaryArray.from_arrays(PLACES, MANY)
    for damage, places in BAD_PLACES.items():
        before, after = words(np.int32, 101, 102, 103, 104, 0), words(np.int32, *places, 0)
        yield f"index {damage}", column, before, after
        yield f"index in runs {damage}", in_runs(column), before, after


def as_file(column: Any, path: Path, *, stream: bool) -> bytes:
    batch = pa.RecordBatch.from_arrays([column], names=["x"])
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, batch.schema) as writer:
        writer.write_batch(batch)
    return path.read_bytes()


def answers(paths: list[Path], source: str) -> dict[str, str]:
    """What a child process says of each file."""
    child = subprocess.run(
        [sys.executable, "-c", READER],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "IN_MEMORY": source, "NUMBA_NUM_THREADS": "1"},
    )
    lines = child.stdout.splitlines()
    at = lines[-1] if lines else "the start"
    assert child.returncode == 0, f"exit status {child.returncode} at {at!r}: {child.stderr[-300:]}"
    assert child.stderr == ""
    return dict(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.parametrize("source", ["file", "table", "reader"])
def test_what_points_outside_of_a_file_is_refused(source: str, scratch: Path) -> None:
    """Each kind of pointer, in each form of file, and in a table or stream that another program read from one."""
    damaged, whole = [], []
    for stream in (False, True):
        end = "stream.arrow" if stream else "file.arrow"
        for number, (name, column, before, after) in enumerate(patched()):
            path = scratch / f"{name.replace(' ', '_')}_{end}"
            content = as_file(column, path, stream=stream)
            assert len(before) == len(after)
            assert content.count(before) >= 1, name
            path.write_bytes(content.replace(before, after))
            damaged.append(path)
            whole.append(scratch / f"whole{number}_{end}")
            whole[-1].write_bytes(content)
    found = answers(damaged + whole, source)
    strange = {path.name: found[path.name] for path in damaged if found[path.name] != UNREADABLE}
    assert strange == {}
    assert all(found[path.name].startswith("read ") for path in whole)


def test_files_of_every_encoding_damaged_at_random(scratch: Path) -> None:
    """Never a crash; refused, or read with some cells another."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    rng = np.random.default_rng(seed)
    files = [
        as_file(column, scratch / "good.arrow", stream=stream)
        for stream in (False, True)
        for _, column, _, _ in {name.rpartition(" ")[0]: rest for rest in patched() for name in [rest[0]]}.values()
    ]
    left = rounds(400, 40_000)
    while left > 0:
        paths = [scratch / f"{number}.arrow" for number in range(min(left, 400))]
        for path in paths:
            content = bytearray(files[int(rng.integers(0, len(files)))])
            for _ in range(int(rng.integers(1, 4))):
                place, size = int(rng.integers(0, len(content) - 8)), int(rng.choice([1, 4, 8]))
                odd = rng.bytes(size) if rng.integers(0, 2) else rng.choice(list(b"\0\x01\x7f\x80\xff"), size).tolist()
                content[place : place + size] = bytes(odd)
            path.write_bytes(content)
        try:
            found = answers(paths, "file")
        except AssertionError as fault:
            raise AssertionError(f"seed {seed}: {fault}") from None
        assert UNREADABLE in found.values()
        left -= len(paths)
