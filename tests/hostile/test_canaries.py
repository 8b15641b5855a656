"""Private things with a mark (values, ids, number of rows, paths, machine, user, time) are nowhere in a release.

Every file that may be published and every message is searched for each mark in many spellings; typed and packed files
are searched unpacked as well. The same search finds leaks that are planted.
"""

from __future__ import annotations

import base64
import calendar
import csv
import gzip
import hashlib
import html
import json
import platform
import re
import socket
import struct
import time
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest

from margent.cli import run
from margent.privacy import curator
from margent.release import release as release_module
from margent.release import summary as summary_module
from tests.sizes import rounds

CANARIES = rounds(60, 200)
ROWS = 31_847
"""The exact number of rows: seldom a number of anything else."""
SCHEMA = {
    "name": "t",
    "missingValues": ["", "?"],
    "fields": [
        {"name": "sex", "type": "string", "categories": ["F", "M"]},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 3}},
        {"name": "city", "type": "string", "categories": ["a", "b"]},
        {"name": "paid", "type": "number", "constraints": {"minimum": 0, "maximum": 10}, "margent": {"bins": 2}},
        {"name": "day", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
         "margent": {"bins": "quarter"}},
        {"name": "id", "type": "string", "margent": {"role": "identifier"}},
        {"name": "note", "type": "string", "margent": {"role": "drop"}},
    ],
    "margent": {"unit": "row"},
}  # fmt: skip
PERSONS = SCHEMA | {"margent": {"unit": {"field": "id", "maxRows": 2}}}

Spelling = Callable[[str], list[bytes]]


def base64_cores(text: str) -> list[bytes]:
    """The part of the base64 text that does not depend on what stands before and after, at each of three offsets."""
    found = []
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + text.encode())
        found.append(whole[-(-8 * shift // 6) : (8 * (shift + len(text.encode()))) // 6])
    return found


def integers_of(text: str) -> list[bytes]:
    if not text.isdecimal() or not 2**24 < int(text) < 2**63:
        return []
    return [int(text).to_bytes(8, order) for order in ("little", "big")]


def floats_of(text: str) -> list[bytes]:
    return [struct.pack(form, float(text)) for form in ("<d", ">d")] if text.isdecimal() else []


SPELLINGS: dict[str, Spelling] = {
    "utf-8": lambda text: [text.encode()],
    "utf-16": lambda text: [text.encode("utf-16-le"), text.encode("utf-16-be")],
    "utf-32": lambda text: [text.encode("utf-32-le")],
    "base64": base64_cores,
    "base32": lambda text: [base64.b32encode(text.encode())[: (8 * len(text.encode())) // 5]],
    "hex": lambda text: [text.encode().hex().encode(), text.encode().hex().upper().encode()],
    "url": lambda text: ["".join(f"%{byte:02X}" for byte in text.encode()).encode(), urllib.parse.quote(text).encode()],
    "html": lambda text: [html.escape(text).encode(), "".join(f"&#{ord(char)};" for char in text).encode()],
    "json": lambda text: ["".join(f"\\u{ord(char):04x}" for char in text).encode(), json.dumps(text)[1:-1].encode()],
    "reversed": lambda text: [text[::-1].encode()],
    "case": lambda text: [text.upper().encode(), text.lower().encode(), text.swapcase().encode()],
    "hashes": lambda text: [
        getattr(hashlib, name)(text.encode()).hexdigest().encode() for name in ("md5", "sha1", "sha256")
    ],
    "integers": integers_of,
    "floats": floats_of,
    "checksum": lambda text: [f"{zlib.crc32(text.encode()):08x}".encode()],
}


def marks(rng: np.random.Generator, count: int) -> list[str]:
    """Texts and numbers that occur nowhere else: 12 letters, 12 digits, with signs between them."""
    made = []
    for place in range(count):
        letters = "".join(chr(97 + int(letter)) for letter in rng.integers(0, 26, 12))
        digits = str(rng.integers(10**11, 10**12))
        made.append([letters, digits, f"{letters[:6]}'{letters[6:]}<", f"ü{letters}", f"{letters}@x.org"][place % 5])
    return made


def unpacked(path: Path) -> Iterator[tuple[str, bytes]]:
    """A file's bytes, and what is packed in them."""
    content = path.read_bytes()
    yield path.name, content
    if path.suffix == ".gz":
        yield f"{path.name} unpacked", gzip.decompress(content)
    if path.suffix in {".parquet", ".feather"}:
        read = pyarrow.parquet.read_table if path.suffix == ".parquet" else pyarrow.feather.read_table
        table = read(path)
        yield f"{path.name} as text", repr(table.to_pydict()).encode() + repr(table.schema.metadata).encode()


def found(places: list[tuple[str, bytes]], wanted: list[str]) -> list[tuple[str, str, str]]:
    """Where which mark is found in which spelling."""
    return [
        (name, mark, spelling)
        for mark in wanted
        for spelling, spell in SPELLINGS.items()
        for needle in spell(mark)
        for name, content in places
        if needle in content
    ]


def bare_numbers(places: list[tuple[str, bytes]], number: int) -> list[str]:
    """Where the number stands by itself; tables of noisy numbers and of made-up rows may hold it by chance."""
    shown = [each for each in places if not each[0].startswith(("answers", "synth"))]
    spelled = rb"(?<![0-9.a-f])(?:%d|%s)(?![0-9a-f])" % (number, f"{number:,}".encode())
    return [name for name, content in shown if re.search(spelled, content)]


class Scene:
    """A table full of marks, at a path of marks."""

    def __init__(self, folder: Path, kind: str, schema: object, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.marks = marks(rng, CANARIES)
        home = folder / self.marks[0]
        home.mkdir()
        self.table, self.schema, self.out = home / f"{self.marks[5]}.{kind}", folder / "s.json", folder / "OUT"
        self.schema.write_text(json.dumps(schema))
        rows = []
        for row in range(ROWS):
            cells = ["FM"[row % 2], str(row % 4), "ab"[row % 2], "2.5", "2020-05-05", f"{row}", ""]
            if row % 3 == 0:
                cells[row % 7] = self.marks[row % CANARIES]
            rows.append(cells)
        names = [field["name"] for field in SCHEMA["fields"]]  # type: ignore[index]
        if kind == "csv":
            with self.table.open("w", newline="") as file:
                csv.writer(file).writerows([names, *rows])
        else:
            columns = {name: pyarrow.array([row[place] for row in rows]) for place, name in enumerate(names)}
            pyarrow.parquet.write_table(pyarrow.table(columns), self.table)

    def searched(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, file_format: str) -> list[object]:
        """Make a release with all its by-products and search everything that may be shown; gives what was found."""
        machine, user = self.marks[1], self.marks[2]
        for name in ("USER", "LOGNAME", "USERNAME"):
            patch.setenv(name, user)
        patch.setenv("HOSTNAME", machine)
        patch.setattr(socket, "gethostname", lambda: machine)
        patch.setattr(platform, "node", lambda: machine)
        capsys.readouterr()
        days = [time.gmtime()]
        made = ["--epsilon", "1", "--single-release", "--rows", "300", "--format", file_format]
        assert run(["synthesize", str(self.table), "--schema", str(self.schema), *made, "-o", str(self.out)]) == 0
        again = self.out.with_name("OUT2")
        assert run(["resample", str(self.out), "-o", str(again), "--rows", "200"]) == 0
        page = self.out.with_name("statement.html")
        assert run(["statement", str(self.out), "--no-selftest", "-o", str(page)]) == 0
        assert run(["synthesize", str(self.table), "--schema", str(self.schema), *made, "-o", str(self.out)]) == 2
        said = capsys.readouterr()
        files = [path for folder in (self.out, again) for path in folder.rglob("*") if path.is_file()]
        places = [part for path in [*files, page] for part in unpacked(path)]
        places.append(("messages", (said.out + said.err).encode()))
        days.append(time.gmtime())
        return [
            *found(places, [*self.marks, str(self.table), str(Path.cwd())]),
            *bare_numbers(places, ROWS),
            *times(places, days),
        ]


def times(places: list[tuple[str, bytes]], days: list[time.struct_time]) -> list[str]:
    """Where the day or the second of the run stands; random ids, checksums, drawn rows and noise may by chance."""
    forms = {time.strftime(form, day) for form in ("%Y-%m-%d", "%Y%m%d", "%d/%m/%Y", "%d.%m.%Y") for day in days}
    forms |= {str(calendar.timegm(day))[:7] for day in days}
    shown = [
        (name, re.sub(rb"[0-9a-f]{32,64}|seed\W+[0-9]+", b"", content))
        for name, content in places
        if not name.startswith(("answers", "synth"))
    ]
    return [name for name, content in shown for form in forms if re.search(rb"(?<![0-9.])" + form.encode(), content)]


@pytest.mark.parametrize(("kind", "file_format"), [("csv", "csv"), ("csv", "parquet"), ("parquet", "csv.gz"),
                                                   ("parquet", "feather")])  # fmt: skip
@pytest.mark.parametrize("schema", [SCHEMA, PERSONS], ids=["rows", "persons"])
def test_no_mark_is_in_anything_that_may_be_shown(
    kind: str, file_format: str, schema: object, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    scene = Scene(tmp_path, kind, schema, 1)
    assert scene.searched(capsys, monkeypatch, file_format) == []


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_search_finds_every_spelling(spelling: str) -> None:
    wanted = marks(np.random.default_rng(2), 10)
    hits = 0
    for mark in wanted:
        for needle in SPELLINGS[spelling](mark):
            places = [("file", b"before " + needle + b" after")]
            hits += any(each[2] == spelling for each in found(places, wanted))
    assert hits
    for shift in range(3):
        inside = base64.b64encode(b"xyz"[:shift] + wanted[0].encode() + b"zyxwv")
        assert found([("file", inside)], wanted)


def leaking_value(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    genuine = summary_module.release_summary
    patch.setattr(
        release_module,
        "release_summary",
        lambda *parts: genuine(*parts) | {"example": base64.b64encode(b"x" + scene.marks[3].encode()).decode()},
    )


def leaking_count(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    genuine = summary_module.release_summary
    patch.setattr(release_module, "release_summary", lambda *parts: genuine(*parts) | {"records": ROWS})


def leaking_path(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    genuine = summary_module.release_summary
    patch.setattr(release_module, "release_summary", lambda *parts: genuine(*parts) | {"source": scene.table.name})


def leaking_time(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    genuine = summary_module.release_summary
    patch.setattr(release_module, "release_summary", lambda *parts: genuine(*parts) | {"made": time.time()})


def leaking_host(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    genuine = summary_module.release_summary
    patch.setattr(release_module, "release_summary", lambda *parts: genuine(*parts) | {"on": platform.node()[::-1]})


def leaking_word(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    from margent.cli import runs

    genuine = runs.report

    def report(*parts: object, **named: object) -> None:
        runs.say(f"for example {scene.marks[4]}")
        genuine(*parts, **named)

    patch.setattr(runs, "report", report)


@pytest.mark.parametrize("leak", [leaking_value, leaking_count, leaking_path, leaking_time, leaking_host, leaking_word])
def test_planted_leaks_are_found(
    leak: Callable[[Scene, pytest.MonkeyPatch], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(tmp_path, "csv", SCHEMA, 1)
    leak(scene, monkeypatch)
    assert scene.searched(capsys, monkeypatch, "csv") != []


def test_no_noise_is_found_by_the_exact_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without noise the noisy total is the exact one: the tables' own integers are searched by their sum."""
    from margent import Budget, read_schema, synthesize

    scene = Scene(tmp_path, "csv", SCHEMA, 1)

    def totals() -> list[int]:
        made = synthesize(scene.table, read_schema(scene.schema), budget=Budget(1), rows=10, seed=1)
        return [int(answer.counts.sum()) for answer in made.transcript.marginals]

    # 20 tables hit the exact total by chance with probability well under a half each.
    assert not all(total == ROWS for total in totals())
    monkeypatch.setattr(curator, "_checked_sum", lambda exact, noise: exact)
    assert all(total == ROWS for total in totals())
