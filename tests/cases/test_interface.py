"""Cases 39 to 50: options, seeds, saved files, the comparison with real rows, and the ledger."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import margent
from margent import Budget, TableSynthesizer
from margent.cli import run
from margent.methods import method_named, synthesizer_named
from margent.pipeline import measure
from margent.progress import silent
from margent.schema.read import schema_from_json
from tests.cases.inputs import SCHEMAS, Made, given, listed, role, schema_file, synthesize
from tests.peaks import COMMAND, alone

BANNER = "not differentially private"


def persons() -> Any:
    return schema_from_json({"fields": SCHEMAS["39"], "margent": {"unit": "row"}})


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1,5"])
def test_39_refused_before_the_table_is_opened(epsilon: str, tmp_path: Path) -> None:
    assert synthesize(tmp_path / "absent.csv", SCHEMAS["39"], tmp_path, epsilon=epsilon).code == 2


def test_39_every_given_value_runs_or_is_refused(tmp_path: Path) -> None:
    texts = given("39", "values.txt").read_text().split()
    codes = {}
    for place, text in enumerate(texts):
        plain = text.strip('"')
        made = synthesize(given("39"), SCHEMAS["39"], tmp_path, "--rows", "8", epsilon=plain, out=f"O{place}")
        codes[text] = made.code
    assert {text for text, code in codes.items() if code == 2} == {"0", "-1", "inf", "nan", "1,5"}
    assert set(codes.values()) == {0, 2}
    assert Budget(1) == Budget(1.0) == Budget("1")


def test_39_a_tiny_epsilon_is_noise_and_finite() -> None:
    found = measure(given("39"), persons(), budget=Budget("1e-9"), rows=10)
    for name in ("descent", "gum", "independent"):
        model = synthesizer_named(name).build(found.transcript, silent)
        assert model.sample(10, 1, silent).shape == (10, 3)
    # The one whose law needs no records: the noisy number of records may be billions here.
    for table in model.marginals([("sex",), ("sex", "edu")], 1):
        assert np.isfinite(table).all()
        assert (table >= 0).all()


def test_40_no_rows_have_columns_and_types() -> None:
    made = TableSynthesizer(persons(), epsilon=1).fit(given("40")).sample(0)
    assert made.num_rows == 0
    assert [str(kind) for kind in made.schema.types][1] == "int64"
    assert made.schema.names == ["sex", "age", "edu"]


def test_40_a_negative_number_needs_no_table(tmp_path: Path) -> None:
    assert synthesize(tmp_path / "absent.csv", SCHEMAS["39"], tmp_path, "--rows", "-1").code == 2


@pytest.mark.parametrize("rows", [-1, 3.5, 3.0, "10", True])
def test_40_other_kinds_of_numbers_are_refused_in_python_too(rows: Any) -> None:
    with pytest.raises(margent.UsageError, match="rows"):
        margent.synthesize(given("40"), persons(), budget=Budget(1), rows=rows)


def test_40_the_default_is_the_noisy_number() -> None:
    """At epsilon 0.2 its noise has a deviation above 5: 12 runs that all give 8 have probability under 1e-12."""
    found = {margent.synthesize(given("40"), persons(), budget=Budget("0.2")).rows for _ in range(12)}
    assert found != {8}


def test_40_a_million_rows_in_bounded_memory(tmp_path: Path) -> None:
    schema = schema_file(tmp_path, SCHEMAS["39"])
    arguments = ["synthesize", str(given("40")), "--schema", str(schema), "--epsilon", "1", "--single-release"]
    done = alone(COMMAND, *arguments, "--rows", "1000000", "--method", "independent", "-o", str(tmp_path / "OUT"))
    assert done.code == 0
    assert done.peak < 2**30
    with (tmp_path / "OUT" / "synthetic.csv").open("rb") as file:
        assert sum(1 for _ in file) == 1_000_001


def test_40_progress_is_told() -> None:
    told: list[tuple[str, float | None]] = []
    margent.synthesize(
        given("40"), persons(), budget=Budget(1), rows=20_000, progress=lambda stage, share: told.append((stage, share))
    )
    assert len({stage for stage, _ in told}) >= 3
    assert all(share is None or 0 <= share <= 1 for _, share in told)


def test_42_two_fits_differ_and_two_samples_of_one_seed_do_not(tmp_path: Path) -> None:
    one, two = (synthesize(given("42"), SCHEMAS["39"], tmp_path, "--seed", "3", epsilon="1", out=out) for out in "AB")
    blobs = [(made.out / "measurements" / "answers.i64").read_bytes() for made in (one, two)]
    assert blobs[0] != blobs[1]
    for out in ("C", "D"):
        assert run(["resample", str(one.out), "--seed", "3", "-o", str(tmp_path / out)]) == 0
    tables = [(folder / "synthetic.csv").read_bytes() for folder in (one.out, tmp_path / "C", tmp_path / "D")]
    assert tables[0] == tables[1] == tables[2]
    for name in ("charges.json", "measurements/transcript.json", "datapackage.json"):
        assert "seed" not in (one.out / name).read_text()
    assert two.document("summary.json")["seed"] == 3, "that of the sampling, which is public"


FRESH = """
import sys
from margent.cli import run
sys.exit(run(["resample", sys.argv[1], "--seed", "3", "-o", sys.argv[2]]))
"""


def test_43_a_saved_release_holds_no_value_and_works_elsewhere(tmp_path: Path) -> None:
    fields = [*SCHEMAS["39"][:2], role("edu", "drop")]
    fields[1] = fields[1] | {"margent": {"bins": {"width": 60}}}
    made = synthesize(given("43"), fields, tmp_path, "--seed", "3", "--rows", "8", epsilon="1")
    before = {path: path.read_bytes() for path in made.out.rglob("*") if path.is_file()}
    kept = "".join(content.decode("latin-1") for path, content in before.items() if path.parent.name == "measurements")
    for secret in ("hi", "lo", "mid"):
        assert f'"{secret}"' not in kept, "a column that is not modeled leaves nothing"
    subprocess.run(
        [sys.executable, "-c", FRESH, str(made.out), str(tmp_path / "AGAIN")], check=True, capture_output=True
    )
    first = made.out / "synthetic.csv"
    rows = made.document("summary.json")["rows"]
    assert rows == 8
    assert run(["resample", str(made.out), "--seed", "3", "--rows", "8", "-o", str(tmp_path / "SAME")]) == 0
    assert (tmp_path / "SAME" / "synthetic.csv").read_bytes() == first.read_bytes()
    assert before == {path: path.read_bytes() for path in made.out.rglob("*") if path.is_file()}
    facts = made.out / "measurements" / "transcript.json"
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"version": 4711}))
    assert run(["resample", str(made.out), "-o", str(tmp_path / "NEWER")]) == 3


def test_45_rows_under_each_condition_in_order_and_for_free(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run a condition; each table holds its rows, and the impossible one leaves nothing."""
    fields = [*SCHEMAS["39"][:2], listed("edu", ["lo", "mid", "hi"], categoriesOrdered=True)]
    # More rows than the eight, some of each condition that can be met: what the model does not hold is refused.
    lines = given("45").read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *[*lines[1:], "F,40,", "M,30,mid"] * 30, ""]))
    made = synthesize(tmp_path / "t.csv", fields, tmp_path, epsilon="20")
    charges = (made.out / "charges.json").read_bytes()
    with given("45", "conditions.csv").open(newline="") as file:
        conditions = list(csv.DictReader(file))
    assert len(conditions) == 4
    for place, condition in enumerate(conditions):
        out = tmp_path / f"C{place}"
        words = f"sex={condition['sex']},edu={condition['edu']}"
        arguments = ["resample", str(made.out), "--where", words, "--rows", condition["n"], "-o", str(out)]
        capsys.readouterr()
        if condition["sex"] not in ("F", "M"):
            assert run(arguments) == 2
            said = capsys.readouterr().err
            assert "'sex'" in said
            assert "'F', 'M'" in said
            assert not out.exists()
            continue
        assert run(arguments) == 0
        with (out / "synthetic.csv").open(newline="") as file:
            rows = [(row["sex"], row["edu"]) for row in csv.DictReader(file)]
        assert rows == [(condition["sex"], condition["edu"])] * int(condition["n"])
        assert (out / "charges.json").read_bytes() == charges, "nothing is added to what was spent"


@pytest.mark.parametrize("name", ["synth.csv", "synth_empty.csv", "synth_identical.csv"])
def test_47_odd_tables_are_compared_all_the_same(name: str, tmp_path: Path) -> None:
    schema = schema_file(tmp_path, SCHEMAS["47"])
    real, other = given("47", "real.csv"), given("47", name)
    assert run(["evaluate", str(real), str(other), "--schema", str(schema), "-o", str(tmp_path / "I")]) == 0
    page = (tmp_path / "I" / "INTERNAL-evaluation.html").read_text()
    assert "nan%" not in page.lower()
    assert "nan %" not in page.lower()
    document = json.loads((tmp_path / "I" / "INTERNAL-evaluation.json").read_text())
    for metric in document["metrics"]:
        for score in metric["scores"]:
            assert score["status"] == "scored" or (score["status"] == "skipped" and score["reason"])
    ones = np.mean([entry["distances"] for entry in document["figures"]["oneWays"]], axis=0)
    (tvd,) = [metric for metric in document["metrics"] if metric["key"] == "tvd-1"]
    scored = [score["value"] for score in tvd["scores"]]
    assert scored == pytest.approx(ones.tolist(), abs=1e-5)


def test_48_what_may_be_published_needs_no_real_table_and_what_does_is_marked(tmp_path: Path) -> None:
    real = tmp_path / "real.csv"
    real.write_bytes(given("48", "real.csv").read_bytes())
    made = synthesize(real, SCHEMAS["48"], tmp_path, epsilon="1", out="OUT")
    real.unlink()
    assert run(["resample", str(made.out), "-o", str(tmp_path / "AGAIN")]) == 0
    assert (tmp_path / "AGAIN" / "release.html").exists()
    schema = tmp_path / "schema.json"
    arguments = ["evaluate", str(given("48", "real.csv")), str(given("48", "synth.csv")), "--schema", str(schema)]
    assert run([*arguments, "-o", str(tmp_path / "I")]) == 0
    assert {path.name[:9] for path in (tmp_path / "I").iterdir()} == {"INTERNAL-"}
    page = (tmp_path / "I" / "INTERNAL-evaluation.html").read_text()
    assert BANNER in page.split("<h2", 1)[0]


def spent_again(made: Made) -> float:
    """The total by an accountant of its own: mu^2 / 2 of each Gaussian charge, epsilon of each Laplace one."""
    document = made.document("charges.json")
    total = 0.0
    for charge in document["charges"]:
        sensitivity, scale = Fraction(charge["sensitivitySquared"]), Fraction(charge["scaleSquared"])
        if document["accountant"] == "pure":
            total += math.sqrt(sensitivity / scale)
        elif document["accountant"] == "zcdp":
            total += float(sensitivity / (2 * scale))
        else:
            deviation = math.sqrt(scale)
            weights = [math.exp(-k * k / float(2 * scale)) for k in range(int(40 * deviation) + 2)]
            at_zero = weights[0] / (2 * sum(weights) - weights[0])
            total += float(sensitivity) * (2 * NormalDist().inv_cdf((1 + at_zero) / 2)) ** 2 / 2
    return total


@pytest.mark.parametrize("accountant", ["gdp", "zcdp", "pure"])
@pytest.mark.parametrize("number", ["50", "30"])
def test_50_the_ledger_adds_up_and_all_but_one_percent_is_used(number: str, accountant: str, tmp_path: Path) -> None:
    fields = SCHEMAS["39"] if number == "50" else SCHEMAS["30"]
    delta = ("--delta", "0") if accountant == "pure" else ()
    made = synthesize(given(number), fields, tmp_path, "--accountant", accountant, *delta, epsilon="1")
    assert made.code == 0
    document = made.document("charges.json")
    spent, total = (float(Fraction(document[key])) for key in ("spent", "total"))
    assert spent == pytest.approx(spent_again(made), rel=1e-6)
    assert spent == pytest.approx(sum(float(Fraction(charge["cost"])) for charge in document["charges"]), rel=1e-12)
    assert 0.99 * total <= spent <= total


def test_50_every_method_leaves_the_share_of_no_stage_behind() -> None:
    for method in ("dense", "privsyn", "independent"):
        found = measure(given("30"), schema_from_json({"fields": SCHEMAS["30"], "margent": {"unit": "row"}}),
                        budget=Budget(1), method=method)  # fmt: skip
        assert method_named(method).name == method
        assert sum(charge.cost for charge in found.transcript.charges) >= Fraction(99, 100) * Budget(1).total
