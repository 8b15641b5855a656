"""What the page on the measurements folder says of the files beside it is what is in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa

from margent import Budget, Category, Schema
from margent.pipeline import synthesize

PAGE = (Path(__file__).parents[2] / "docs" / "measurements-format.md").read_text()


def test_every_key_of_a_summary_is_on_the_page(tmp_path: Path) -> None:
    section = PAGE.split("## The files beside it")[1].split("\n## ")[0]
    told = {key for line in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for key in re.findall(r"`(\w+)`", line)}
    schema = Schema([Category("a", ["x", "y"])], unit="row")
    release = synthesize(pa.table({"a": ["x", "y"] * 50}), schema, budget=Budget(epsilon=1), method="independent")
    found = set()
    for file_format in ("csv", "parquet"):
        release.save(tmp_path / file_format, file_format=file_format, rows_per_file=60)
        found |= set(json.loads((tmp_path / file_format / "summary.json").read_text()))
    assert told == found
    charges = json.loads((tmp_path / "csv" / "charges.json").read_text())
    assert set(charges) <= set(re.findall(r"`(\w+)`", section.split("`datapackage.json`")[0]))
    table = PAGE.split("| key of a charge |")[1].split("\n\n")[0]
    assert set(charges["charges"][0]) < set(re.findall(r"`(\w+)`", table))
