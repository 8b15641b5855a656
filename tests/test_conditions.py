"""Records under conditions: words read against the schema, the model's law kept, what cannot be refused in words."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import margent
from margent.cli import run
from margent.conditions import drawn_under, read_conditions
from margent.errors import UsageError
from margent.progress import silent
from margent.schema.codec import Codec
from margent.schema.write import schema_text
from margent.synthesizers.blocks import block_rows
from margent.synthesizers.shares import WHOLE

SCHEMA = margent.Schema(
    [
        margent.Category("sex", {"F": "woman", "M": "man"}),
        margent.Integer("age", 0, 59, bins=6),
        margent.Date("day", "2020-01-01", "2020-12-31", bins="month"),
        margent.Category("job, a=b", ["x", "y, z"]),
        margent.Number("pay", 0, 10, bins=4),
        margent.Integer("rooms", 1, 4),
    ],
    unit="row",
)
CODEC = Codec(SCHEMA)


def allowed(*given: str) -> dict[str, list[int]]:
    conditions = read_conditions(given, CODEC)
    assert conditions is not None
    return {name: np.flatnonzero(codes).tolist() for name, codes in conditions.allowed.items()}


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        (["sex=F"], {"sex": [0]}),
        (["sex=woman"], {"sex": [0]}),
        (["sex=F,sex=M"], {"sex": [0, 1]}),
        (["sex=(missing)"], {"sex": [2]}),
        (["age=20..39", "rooms=2"], {"age": [2, 3], "rooms": [1]}),
        (["age=20 to 29"], {"age": [2]}),
        (["age=..9"], {"age": [0]}),
        (["age=50.."], {"age": [5]}),
        (["rooms=2..3"], {"rooms": [1, 2]}),
        (["day=2020-02-01..2020-03-31"], {"day": [1, 2]}),
        (["pay=2.5..7.5"], {"pay": [1, 2]}),
        (["pay=7.5..10"], {"pay": [3]}),
        (['"job, a=b=y, z"'], {"job, a=b": [1]}),
        (['sex=M,"job, a=b=x"'], {"sex": [1], "job, a=b": [0]}),
    ],
)
def test_words_are_read_against_the_schema(given: list[str], codes: dict[str, list[int]]) -> None:
    assert allowed(*given) == codes


def test_no_words_are_no_condition() -> None:
    assert read_conditions([], CODEC) is None
    assert read_conditions([" "], CODEC) is None


def test_all_faults_are_told_at_once() -> None:
    flawed = ["sex=X", "height=3", "age=34", "age=20..35", "age=39..20", "day=soon..later", "rooms", "rooms=(unlisted)"]
    with pytest.raises(UsageError) as caught:
        read_conditions(flawed, CODEC)
    said = str(caught.value)
    for words in (
        "'X' is not a value of 'sex'; there are 'woman', 'man', '(missing)'",
        "'height' is not a modeled column; there are 'sex', 'age', 'day', 'job, a=b', 'pay', 'rooms'",
        "'34' lies inside '30 to 39'",
        "'20..35' does not begin and end where bins do; its bins are '0 to 9', '10 to 19'",
        "'39..20' is not a range",
        "'soon..later' is not a range",
        "'rooms' is not NAME=VALUE",
        "'(unlisted)' is not a value of 'rooms'",
    ):
        assert words in said, words


def table(path: Path, rows: int = 3000) -> None:
    rng = np.random.default_rng(4)
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["sex", "age", "day", "job, a=b", "pay", "rooms"])
        for _ in range(rows):
            sex = rng.integers(2)
            age = int(rng.integers(0, 30) + 30 * (sex and rng.random() < 0.8))
            writer.writerow(["FM"[sex], age, f"2020-{rng.integers(1, 13):02}-03", ["x", "y, z"][rng.integers(2)], 1, 1])


def test_a_table_under_conditions_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(tmp_path / "people.csv")
    (tmp_path / "schema.json").write_text(schema_text(SCHEMA))
    out, part, whole = (str(tmp_path / name) for name in ("out", "part", "whole"))
    common = ["--schema", str(tmp_path / "schema.json"), "--epsilon", "5", "--single-release", "--seed", "1"]
    assert run(["synthesize", str(tmp_path / "people.csv"), *common, "-o", out]) == 0
    assert run(["resample", out, "--where", "sex=F,age=0..29", "--rows", "4000", "--seed", "1", "-o", part]) == 0
    said = capsys.readouterr().out
    assert "holds only records with sex=F and age=0..29" in said
    with (tmp_path / "part" / "synthetic.csv").open(newline="") as read:
        rows = list(csv.DictReader(read))
    assert len(rows) == 4000  # more than the whole table holds
    assert {row["sex"] for row in rows} == {"F"}
    assert all(0 <= int(row["age"]) <= 29 for row in rows)
    summary = json.loads((tmp_path / "part" / "summary.json").read_text())
    assert summary["where"] == ["sex=F", "age=0..29"]
    assert summary["oneWays"]["columns"] == []
    page = (tmp_path / "part" / "release.html").read_text()
    assert "holds only records with sex=F and age=0..29" in page
    assert "synthetic against noisy" not in page
    # Without rows: those of the very table that the seed gives.
    assert run(["resample", out, "--where", "sex=F,age=0..29", "--seed", "1", "-o", whole]) == 0
    with (tmp_path / "out" / "synthetic.csv").open(newline="") as read:
        met = [row for row in csv.DictReader(read) if row["sex"] == "F" and row["age"] and int(row["age"]) <= 29]
    with (tmp_path / "whole" / "synthetic.csv").open(newline="") as read:
        kept = list(csv.DictReader(read))
    assert len(kept) == len(met)
    assert [row["day"][:7] for row in kept] == [row["day"][:7] for row in met]
    capsys.readouterr()
    assert run(["resample", out, "--where", "sex=X", "-o", str(tmp_path / "no")]) == 2
    assert "not a value of 'sex'" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


class Coin:
    """A model of two columns in which half of the records have code 1 in the first, and none code 2."""

    domain = CODEC.domain
    total = 1000

    def sample(self, rows, seed, progress, share=WHOLE):  # type: ignore[no-untyped-def]
        rng = np.random.default_rng(seed)
        codes = np.zeros((rows, len(self.domain.names)), dtype=np.int32)
        codes[:, 0] = rng.integers(0, 2, rows)
        codes[:, 1] = rng.integers(0, 2, rows) + 2 * codes[:, 0]
        return codes

    def marginals(self, cliques, seed):  # type: ignore[no-untyped-def]
        raise NotImplementedError


def test_records_follow_the_law_given_the_condition() -> None:
    """Given sex=M the model's age is code 2 or 3, each with chance 1/2: 5 standard errors, false alarm below 1e-6."""
    conditions = read_conditions(["sex=M"], CODEC)
    assert conditions is not None
    codes = drawn_under(conditions, Coin(), 60_000, 3, silent)
    assert codes.shape == (60_000, 6)
    assert set(codes[:, 0].tolist()) == {1}
    assert set(codes[:, 1].tolist()) == {2, 3}
    assert abs((codes[:, 1] == 2).mean() - 0.5) < 5 * 0.5 / np.sqrt(60_000)
    assert np.array_equal(codes, drawn_under(conditions, Coin(), 60_000, 3, silent))
    assert not np.array_equal(codes, drawn_under(conditions, Coin(), 60_000, 4, silent))


def test_a_model_of_billions_of_records_is_drawn_in_parts() -> None:
    drawn: list[int] = []

    class Vast(Coin):
        total = 10**10

        def sample(self, rows, seed, progress, share=WHOLE):  # type: ignore[no-untyped-def]
            drawn.append(rows)
            return super().sample(min(rows, 1000), seed, progress)

    conditions = read_conditions(["sex=M"], CODEC)
    assert conditions is not None
    drawn_under(conditions, Vast(), None, 3, silent)
    drawn_under(conditions, Vast(), 5, 3, silent)
    assert max(drawn) <= block_rows(len(CODEC.domain.names))
    assert 55_000_000 <= sum(drawn) < 55_000_000 + len(drawn)


@pytest.mark.parametrize("rows", [None, 5])
def test_what_the_model_does_not_hold_is_refused(rows: int | None) -> None:
    conditions = read_conditions(["sex=(missing)"], CODEC)
    assert conditions is not None
    with pytest.raises(UsageError, match="holds no record with sex=\\(missing\\)"):
        drawn_under(conditions, Coin(), rows, 3, silent)


def test_what_is_too_rare_is_refused_with_what_could_be_had() -> None:
    class Rare(Coin):
        def sample(self, rows, seed, progress, share=WHOLE):  # type: ignore[no-untyped-def]
            codes = super().sample(rows, seed, progress)
            codes[:, 0] = np.arange(rows) % 10_000 == 0
            return codes

    conditions = read_conditions(["sex=M"], CODEC)
    assert conditions is not None
    with pytest.raises(UsageError, match=r"about 0\.0001 .* at most 5,000 rows"):
        drawn_under(conditions, Rare(), 6000, 3, silent)
    assert drawn_under(conditions, Rare(), 50, 3, silent).shape[0] == 50


ODD_WORDS = st.text(alphabet=[*"ab,\"=.'; \n\\", "é", "\u3000"], min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_the_recorded_words_are_the_same_conditions_again(data: st.DataObject) -> None:
    """Of names and values with commas, quotes, equal signs, dots and line breaks; one by one, or all in one text."""
    names = data.draw(st.lists(ODD_WORDS, min_size=1, max_size=3, unique=True))
    values = [data.draw(st.lists(ODD_WORDS, min_size=1, max_size=3, unique=True)) for _ in names]
    try:
        codec = Codec(margent.Schema([margent.Category(*each) for each in zip(names, values, strict=True)], unit="row"))
    except margent.SchemaError:
        return  # no names or values of a table
    place = data.draw(st.integers(0, len(names) - 1))
    asked = io.StringIO()
    csv.writer(asked).writerow([f"{names[place]}={data.draw(st.sampled_from(values[place]))}"])
    try:
        first = read_conditions([asked.getvalue()], codec)
    except UsageError:
        return  # a space at an end of a name or value, which is not told from one around it
    assert first is not None
    for again in (first.words, [",".join(first.words)]):
        read = read_conditions(again, codec)
        assert read is not None
        assert read.words == first.words
        assert read.allowed.keys() == first.allowed.keys()
        assert all((read.allowed[name] == first.allowed[name]).all() for name in read.allowed)


def test_a_resample_s_recorded_conditions_give_the_same_table(tmp_path: Path) -> None:
    schema = margent.Schema([margent.Category("job, main", ["clerk, senior", "boss"]), *SCHEMA.fields[:1]], unit="row")
    frame = pa.table({"job, main": ["clerk, senior", "boss"] * 500, "sex": ["F", "M"] * 500})
    made = margent.synthesize(frame, schema, budget=margent.Budget(1), seed=1)
    same = {"budget": made.budget, "synthesizer": made.synthesizer, "rows": 50, "seed": 3}
    first = margent.from_transcript(made.transcript, where=['"job, main=clerk, senior","sex=F"'], **same)
    recorded = json.loads((first.save(tmp_path / "OUT") / "summary.json").read_text())["where"]
    assert recorded == ['"job, main=clerk, senior"', "sex=F"]
    again = margent.from_transcript(made.transcript, where=recorded, **same)
    assert again.table.equals(first.table)


def test_what_cannot_be_read_as_a_condition_is_refused_in_words() -> None:
    for text in ("sex=F\rsex=M", "sex=" + "F" * 200_000):
        with pytest.raises(UsageError, match="condition"):
            read_conditions([text], CODEC)
