"""Files that are small on disk and huge when opened, headers without end, and paths that point elsewhere."""

from __future__ import annotations

import gzip
import json
import os
import resource
from pathlib import Path

import pytest

from margent.cli import run
from margent.errors import MargentError
from margent.schema.read import schema_from_json
from margent.tables.source import open_table
from tests.conftest import SCHEMA
from tests.peaks import COMMAND, alone


def measured(*arguments: str) -> tuple[int, int, str]:
    """Exit code, peak MiB and what was said, of the command line in a process of its own."""
    done = alone(COMMAND, *arguments, seconds=300)
    return done.code, done.peak // 2**20, done.said


def synthesized(table: Path, schema: Path, out: Path) -> tuple[int, int, str]:
    """The same of `margent synthesize` on a table."""
    return measured(
        "synthesize", str(table), "--schema", str(schema), "--epsilon", "1", "--single-release", "-o", str(out)
    )


@pytest.fixture
def schema_path(tmp_path: Path) -> Path:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SCHEMA))
    return path


def test_a_million_columns_are_refused_by_the_header(tmp_path: Path, schema_path: Path) -> None:
    table = tmp_path / "wide.csv"
    table.write_text(",".join(f"c{place}" for place in range(1_000_000)) + "\n" + "1," * 999_999 + "1\n")
    code, peak, said = synthesized(table, schema_path, tmp_path / "OUT")
    assert code == 3
    assert peak < 900
    assert len(said) < 20_000, "a message need not repeat a million names"
    assert not (tmp_path / "OUT").exists()


def test_a_bomb_is_counted_in_bounded_memory(tmp_path: Path, schema_path: Path) -> None:
    """400 MB of one endless cell in 400 kB of gzip: the run ends, within a bound, one way or the other."""
    table = tmp_path / "bomb.csv.gz"
    header = ",".join(field["name"] for field in SCHEMA["fields"])
    with gzip.open(table, "wb") as file:
        file.write(f"{header}\n".encode())
        for _ in range(400):
            file.write(b"x" * 1_000_000)
    assert table.stat().st_size < 1_000_000
    code, peak, _ = synthesized(table, schema_path, tmp_path / "OUT")
    assert code in (0, 3)
    assert peak < 2500


@pytest.mark.parametrize("depth", [33, 200, 100_000])
def test_deep_json_is_refused(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * depth + "]" * depth)
    assert run(["schema", "check", str(path)]) == 3


def test_a_huge_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    path.write_bytes(b'{"fields": [' + b'{"name": "a", "type": "string"},' * 2_000_000 + b"]}")
    code, peak, _ = measured("schema", "check", str(path))
    assert code == 3
    assert peak < 600


@pytest.mark.parametrize(
    "where", ["../outside.csv", "/etc/hostname", "a/../../b.csv", "..\\\\b.csv", "\u0000", "codes\n.csv"]
)
def test_a_code_file_stays_beside_its_schema(where: str, tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "outside.csv").write_text("value\nsecretvalue\n")
    (tmp_path / "b.csv").write_text("value\nsecretvalue\n")
    path = folder / "s.json"
    path.write_text(
        json.dumps(
            {"fields": [{"name": "a", "type": "string", "categories": {"file": where}}], "margent": {"unit": "row"}}
        )
    )
    from margent import read_schema

    with pytest.raises(MargentError) as refusal:
        read_schema(path)
    assert "secretvalue" not in str(refusal.value)


def test_a_link_that_leads_out_is_no_code_file(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "outside.csv").write_text("value\nsecretvalue\n")
    (folder / "codes.csv").symlink_to(tmp_path / "outside.csv")
    path = folder / "s.json"
    path.write_text(
        json.dumps(
            {
                "fields": [{"name": "a", "type": "string", "categories": {"file": "codes.csv"}}],
                "margent": {"unit": "row"},
            }
        )
    )
    from margent import read_schema

    with pytest.raises(MargentError):
        read_schema(path)


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_is_no_file_is_no_table(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with pytest.raises(MargentError):
        open_table(path, schema_from_json(SCHEMA)).close()
