"""Ids that group rows: bought numbers of persons by their rows, from the schema to the released table."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margent import Budget, Category, Identifier, PersonUnit, Schema, read_release, synthesize
from margent.cli import run
from margent.collectors.purchases import purchases_of
from margent.errors import SchemaError, UsageError
from margent.postprocessing.persons import apportioned, person_ids
from margent.privacy.neighbors import Neighbors
from margent.privacy.purchases import SizesRequest, purchase_charge
from margent.privacy.replay_purchases import ReplayMerchant
from margent.release.measurements import measurement_files
from margent.release.synthetic import SyntheticTable
from margent.schema.read import schema_from_json
from margent.schema.write import schema_text, schema_to_json

FIELDS = [Identifier("id"), Category("what", ["a", "b"])]
SCHEMA = Schema(FIELDS, unit=PersonUnit("id", 3, sizes=True))


def visits() -> pa.Table:
    """600 persons with one row, 300 with two, 100 with six."""
    rows = np.repeat(np.arange(1000), np.repeat([1, 2, 6], [600, 300, 100]))
    rng = np.random.default_rng(1)
    return pa.table({"id": [f"p{row}" for row in rows], "what": np.array(["a", "b"])[rng.integers(0, 2, rows.size)]})


@pytest.mark.parametrize("accountant", ["gdp", "pure"])
def test_written_ids_have_as_many_rows_as_persons_do(accountant: str, tmp_path: Path) -> None:
    budget = Budget(20, accountant=accountant)
    release = synthesize(visits(), SCHEMA, budget=budget, seed=4, rows=3000)
    sizes = release.transcript.sizes
    assert sizes is not None
    assert np.abs(sizes.counts - [600, 300, 100]).max() < 25
    charge = release.charges[0]
    assert (charge["query"], charge["sensitivitySquared"], charge["cliques"]) == ("person-sizes", "1", [["id"]])
    ids = release.table.column("id").to_pylist()
    persons = Counter(Counter(ids).values())
    assert set(persons) <= {1, 2, 3}
    shares = np.array([persons[size] for size in (1, 2, 3)]) / sum(persons.values())
    assert np.abs(shares - [0.6, 0.3, 0.1]).max() < 0.03
    folder = release.save(tmp_path / "OUT", file_format="csv")
    written = [line.split(",")[0] for line in (folder / "synthetic.csv").read_text().splitlines()[1:]]
    assert written == ids
    transcript, read, _ = read_release(folder)
    assert transcript.schema == SCHEMA
    assert measurement_files(transcript) == measurement_files(release.transcript)
    purchases = purchases_of(SCHEMA, read)
    assert purchases.buy(ReplayMerchant(transcript)) == transcript.bought
    again = tmp_path / "again"
    assert run(["resample", str(folder), "--rows", "40", "--seed", "9", "-o", str(again)]) == 0
    drawn = [line.split(",")[0] for line in (again / "synthetic.csv").read_text().splitlines()[1:]]
    assert len(drawn) == 40 > len(set(drawn))


def test_blocks_of_rows_have_the_same_ids_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    release = synthesize(visits(), SCHEMA, budget=Budget(5), seed=4, rows=500)
    whole = release.table
    monkeypatch.setattr("margent.release.synthetic.BLOCK_ROWS", 7)
    made = SyntheticTable(release.transcript, release.records, release.seed, pairs=True)
    assert pa.concat_tables(list(made.tables(None))) == whole


def test_no_person_has_rows_in_two_blocks_and_all_blocks_have_as_many_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("margent.synthesizers.blocks.MOST_ROWS", 300)
    release = synthesize(visits(), SCHEMA, budget=Budget(5), seed=4, rows=1000)
    assert release.records.blocks.count == 4
    ids = [set(block.column("id").to_pylist()) for block in release.blocks()]
    assert sum(map(len, ids)) == len(set.union(*ids))
    assert len({len(block) for block in ids}) == 1
    assert set.union(*ids) == {str(number) for number in range(1, sum(map(len, ids)) + 1)}
    assert max(Counter(release.table.column("id").to_pylist()).values()) == 3


def test_without_asking_every_row_has_an_id_of_its_own() -> None:
    release = synthesize(visits(), Schema(FIELDS, unit=PersonUnit("id", 3)), budget=Budget(5), seed=4, rows=50)
    assert release.table.column("id").to_pylist() == [str(row) for row in range(1, 51)]


@given(st.lists(st.integers(-50, 400), min_size=1, max_size=12), st.integers(0, 3000))
def test_all_rows_are_shared_out_in_the_proportions_told(counts: list[int], rows: int) -> None:
    clipped = [max(count, 0) for count in counts]
    persons = apportioned(clipped, rows)
    assert min(persons) >= 0
    assert sum(size * number for size, number in enumerate(persons, start=1)) == rows
    weight = sum(size * count for size, count in enumerate(clipped, start=1))
    if weight:
        for count, number in zip(clipped, persons, strict=True):
            assert number >= rows * count // weight
        # What rounding left is less than one person of each size.
        assert sum(persons) - sum(rows * count // weight for count in clipped) <= len(counts) * (len(counts) + 1) / 2
    ids = person_ids(np.array(counts), rows, 3)
    assert sorted(Counter(ids.tolist()).values()) == sorted(
        size for size, number in enumerate(persons, start=1) for _ in range(number)
    )
    assert ids.tolist() == person_ids(np.array(counts), rows, 3).tolist()


def test_the_price_is_that_of_one_cell_however_many_rows_are_kept() -> None:
    account = Budget(1).account
    law = account.law(Fraction(1, 1000), Fraction(1), Fraction(1))
    charges = [purchase_charge(SizesRequest("id", law), "x", Neighbors("add-remove", k), account) for k in (1, 50)]
    assert {charge.sensitivity_squared for charge in charges} == {1}
    assert charges[0].cost == charges[1].cost == account.gaussian_cost(Fraction(1), law.scale_squared)
    for neighbors in (Neighbors(), Neighbors("replace")):
        with pytest.raises(UsageError, match="person is protected"):
            purchase_charge(SizesRequest("id", law), "x", neighbors, account)


def test_it_is_planned_and_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert schema_from_json(schema_to_json(SCHEMA)) == SCHEMA
    path = tmp_path / "schema.json"
    path.write_text(schema_text(SCHEMA))
    assert run(["plan", "--schema", str(path), "--epsilon", "1", "--json"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    assert plan["stages"][0]["name"] == "rows of persons"
    assert plan["stages"][0]["share"] == pytest.approx(0.05)
    assert plan["stages"][0]["cells"] == 3


def test_ids_that_are_not_written_cannot_group_rows() -> None:
    for fields, rows in ((FIELDS, 2000), ([Category("id", ["x"]), FIELDS[1]], 3)):
        with pytest.raises(SchemaError, match="/margent/unit/sizes"):
            Schema(fields, unit=PersonUnit("id", rows, sizes=True))
