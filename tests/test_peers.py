"""The comparison with other packages, as far as it needs none of them: codes, measuring, scores, table, its place."""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent
PEERS = ROOT / "bench" / "peers"
BEFORE = list(sys.path)
sys.path[:0] = [str(PEERS), str(PEERS / "drivers")]
import adult  # noqa: E402
import coded  # noqa: E402
import compare  # noqa: E402
import measured  # noqa: E402
import page  # noqa: E402
import rounding  # noqa: E402
import scoring  # noqa: E402
import zcdp  # noqa: E402
from contenders import CONTENDERS, Contender, contender_named  # noqa: E402

sys.path[:] = BEFORE

RESULT = {
    "draw": 0,
    "epsilon": "1",
    "delta": "1e-9",
    "digest": "d",
    "date": "2026-11-28",
    "load": 3.2,
    "machine": "two cores",
    "version": "1.2.3",
    "cpu": 2.61,
    "wall": 4.0,
    "memory": 333_000_000,
}
SCORES = {"TVD1": 0.02, "TVD2": 0.034, "TVD3": 0.0834, "range": 0.00153, "invalid": 0.0, "rows": 10}


def result(name: str, **facts: Any) -> dict[str, Any]:
    return RESULT | {"name": name} | facts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table with its schema.json, as the comparison takes it."""
    made = tmp_path / "table"
    made.mkdir()
    domain = {"a b": 3, "c>1": 4, "d": 2}
    schema = adult.schema_of(domain, "made")
    (made / "schema.json").write_text(json.dumps(schema))
    rng = np.random.default_rng(5)
    with (made / "made.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(domain)
        writer.writerows([int(rng.integers(0, size)) for size in domain.values()] for _ in range(300))
    return made


@given(
    codes=st.integers(1, 4).flatmap(
        lambda columns: st.lists(st.lists(st.integers(0, 10**6), min_size=columns, max_size=columns), max_size=5)
    )
)
def test_codes_come_back_as_they_were(codes: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("codes") / "t.csv"
    columns = len(codes[0]) if codes else 2
    names = tuple(f"c{place}" for place in range(columns))
    table = np.array(codes, dtype=np.int64).reshape(-1, columns)
    coded.write_codes(path, names, table)
    assert np.array_equal(coded.read_codes(path, names), table)


def test_cells_that_are_no_code_and_columns_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("b,a\n1,2\n,0.5\nnan,3.0\n-4,word\ninf,7\n")
    assert coded.read_codes(path, ("a", "b")).tolist() == [[2, 1], [-1, -1], [3, -1], [-1, -4], [7, -1]]
    with pytest.raises(SystemExit, match="not those of the domain"):
        coded.read_codes(path, ("a", "c"))


def test_a_budget_that_divides_is_near_and_its_parts_keep_within_it() -> None:
    refused = [0.014973055271364706 * (1 - steps * rounding.STEP) for steps in range(1, 8)]
    assert [rho for rho in refused if rounding.divides(rho, 13)] == []  # what OpenDP 0.16.0 itself refused
    lowered = rounding.divisible(0.014973055271364706, 13)
    assert 0.99999 < lowered / 0.014973055271364706 < 1
    assert rounding.added_up(1.0, 2.0**-60) == 1 + 2.0**-52
    assert rounding.added_up(1.0, 2.0) == 3.0


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_rho_is_the_largest_that_keeps_delta(epsilon: float) -> None:
    rho = zcdp.rho_of(epsilon, 1e-9)
    assert zcdp.delta_of(rho, epsilon) <= 1e-9 < zcdp.delta_of(rho * 1.001, epsilon)
    # The simpler conversion epsilon = rho + 2 sqrt(rho log(1/delta)) is looser (Bun, Steinke 2016).
    logs = math.log(1e9)
    assert rho > (math.sqrt(logs + epsilon) - math.sqrt(logs)) ** 2


def test_a_table_scored_against_itself_and_with_cells_that_are_none(folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    facts = scoring.write(folder, work)
    assert (facts["rows"], facts["columns"], facts["codes"]) == (300, 3, 9)
    names, sizes, ordered = coded.read_domain(work)
    assert (names, sizes, ordered) == (("c0", "c1", "c2"), (3, 4, 2), (False, False, False))
    same = scoring.score(work, work / "coded.csv")
    assert {same[key] for key in ("TVD1", "TVD2", "TVD3", "range", "invalid")} == {0.0}
    codes = coded.read_codes(work / "coded.csv", names)
    codes[:30, 1] = 4
    codes[:15, 2] = -1
    coded.write_codes(tmp_path / "broken.csv", names, codes)
    broken = scoring.score(work, tmp_path / "broken.csv")
    assert broken["invalid"] == pytest.approx(45 / 900)
    assert broken["TVD1"] > 0
    (tmp_path / "empty.csv").write_text("c0,c1,c2\n")
    with pytest.raises(SystemExit, match="no rows"):
        scoring.score(work, tmp_path / "empty.csv")


def test_a_run_is_measured(tmp_path: Path) -> None:
    code = "held = bytearray(60_000_000)\nwhile __import__('time').process_time() < .2: pass"
    ran = measured.run_measured([sys.executable, "-c", code], 600, 2**33, tmp_path / "log")
    assert ran.failed == ""
    assert ran.cpu >= 0.2
    assert ran.wall > 0
    assert 60e6 < ran.memory < 2e9


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell how much a process held")
def test_the_peak_is_not_that_of_a_large_parent(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(measured.__file__).parent)!r})
from measured import run_measured
held = bytearray(300_000_000)
code = "import time; held = bytearray(60_000_000); time.sleep(0.3)"
print(run_measured([sys.executable, "-c", code], 600, 2**33, Path("log")).memory)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert 60e6 < int(told.stdout) < 200e6


@pytest.mark.parametrize(
    ("code", "limit", "memory", "said"),
    [
        ("print('before'); raise ValueError('|told|')", 600, 2**33, "failed: ValueError: |told|"),
        ("print('Fault: told'); print(')\\n\"'); raise SystemExit(1)", 600, 2**33, "failed: Fault: told"),
        ("raise SystemExit(3)", 600, 2**33, "failed: exit code 3"),
        ("import time; time.sleep(600)", 0.3, 2**33, "did not end within 0.3 s"),
        ("import subprocess; subprocess.run(['sleep', '600'])", 0.3, 2**33, "did not end within 0.3 s"),
        ("import time; held = b'1' * 80_000_000; time.sleep(600)", 600, 2**26, "was stopped at 0.0625 GiB of memory"),
    ],
)
def test_a_run_that_fails_says_why(code: str, limit: float, memory: float, said: str, tmp_path: Path) -> None:
    if memory < 2**30 and not Path("/proc/self/statm").exists():
        pytest.skip("this system does not tell how much memory a process holds")
    ran = measured.run_measured([sys.executable, "-c", code], limit, memory, tmp_path / "log")
    assert ran.failed == said


def test_the_table_has_the_closest_first_and_the_failed_last() -> None:
    results = [
        result("dpmm aim", failed="did not | end\nat all"),
        result("dpmm mst", **(SCORES | {"TVD2": 0.06, "invalid": 0.0052})),
        result("margent dense", **SCORES),
        result("margent dense", draw=1, **(SCORES | {"TVD2": 0.036}), cpu=3.0),
        result("dpmm privbayes", **(SCORES | {"TVD2": 0.07})),
        result("dpmm privbayes", draw=1, failed="failed: exit code 1"),
        result("yardstick resample", **(SCORES | {"TVD2": 0.015}), version=None),
        {"name": "opendp mst", "failed": "could not be installed: no such release"},
    ]
    rows = page.table(results).splitlines()[2:]
    assert rows == [
        "| *real rows drawn again (not private)* | .020 | .015 | .083 | .0015 | 0 |  |  |",
        "| **Margent 1.2.3, `dense`** | .020 | .035 | .083 | .0015 | 0 | 2.8 | 333 |",
        "| dpmm 1.2.3, MST | .020 | .060 | .083 | .0015 | 0.52 % | 2.6 | 333 |",
        "| dpmm 1.2.3, PrivBayes (1 of 2 draws failed) | .020 | .070 | .083 | .0015 | 0 | 2.6 | 333 |",
        "| OpenDP, MST: could not be installed: no such release | | | | | |  |  |",
        "| dpmm 1.2.3, AIM: did not \\| end at all | | | | | | 2.6 | 333 |",
    ]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 9 for row in rows)


def test_figures_have_three_digits_at_most() -> None:
    assert [page.figure(value) for value in (0, 0.00153, 0.0834, 0.999, 2.61, 118.2, 1272.4)] == [
        *("0", ".0015", ".083", ".999", "2.6", "118", "1,272")
    ]
    assert page.figure(0.99996) == "1.000"


def test_the_caption_tells_what_was_measured() -> None:
    facts = {"rows": 48842, "columns": 14, "codes": 588}
    text = page.caption([result("margent dense"), result("margent dense", draw=1, load=7.6)], facts, "Adult", 600)
    for words in ("Adult: 48,842 rows, 14 columns, 588 codes", "epsilon 1, delta 1e-9, 2 draws each", "at most 600 s"):
        assert words in text
    for words in ("2026-11-28", "two cores", "load of 3 to 8"):
        assert words in text


def test_the_text_stands_between_the_markers_and_nothing_else_moves() -> None:
    before = f"# Top\n\n{page.OPENS}\nold\n{page.CLOSES}\n\nend\n"
    after = page.between_markers(before, "\nnew | table\n\n")
    assert after == f"# Top\n\n{page.OPENS}\nnew | table\n{page.CLOSES}\n\nend\n"
    assert page.between_markers(after, "new | table") == after
    for broken in ("# Top", before + before, f"{page.CLOSES} {page.OPENS}"):
        with pytest.raises(SystemExit, match="once"):
            page.between_markers(broken, "new")


def test_only_results_of_this_table_and_budget_count_and_the_last_of_two() -> None:
    results = [
        result("margent dense", cpu=1.0),
        result("margent dense", digest="another table"),
        result("margent dense", epsilon="5"),
        result("margent dense", delta="1e-6"),
        result("margent dense", cpu=2.0),
        result("margent dense", draw=1, cpu=3.0),
    ]
    assert [each["cpu"] for each in page.latest(results, "d", "1", "1e-9")] == [2.0, 3.0]


def test_a_package_that_cannot_be_installed_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "ENVIRONMENTS", tmp_path / "environments")
    options = argparse.Namespace(python=str(tmp_path / "no-python"), epsilon="1", delta="1e-9", limit=9, memory=1)
    told = compare.one(contender_named("dpmm mst"), tmp_path, options, 0)
    assert told == {"failed": f"could not be installed: there is no {options.python}"}
    with pytest.raises(SystemExit, match="there is no 'dpmm gan'"):
        contender_named("dpmm gan")


def test_a_whole_comparison_ends_on_the_page_and_is_not_run_twice(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = tmp_path / "page.md"
    readme.write_text(f"{page.OPENS}\n{page.CLOSES}\n")
    words = ["compare.py", str(folder), "--results", str(tmp_path / "results"), "--page", str(readme)]
    monkeypatch.setattr(sys, "argv", [*words, "--only", "yardstick resample,yardstick independent"])
    compare.main()
    ledger = tmp_path / "results" / "table.jsonl"
    results = page.results_in(ledger)
    assert [(each["name"], "failed" in each) for each in results] == [
        ("yardstick resample", False),
        ("yardstick independent", False),
    ]
    assert results[0]["TVD1"] > 0
    shown = readme.read_text()
    assert shown.startswith(f"{page.OPENS}\ntable: 300 rows, 3 columns, 9 codes; epsilon 1")
    assert "| *exact single columns, independent (not private)* |" in shown
    written = ledger.read_bytes()
    compare.main()
    assert (ledger.read_bytes(), readme.read_text()) == (written, shown)
    monkeypatch.setattr(sys, "argv", [*words[:1], str(tmp_path), *words[2:]])
    with pytest.raises(SystemExit, match="cannot be compared on"):
        compare.main()
    capsys.readouterr()


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda each: each.name)
def test_every_contender_has_a_driver_and_pinned_versions(contender: Contender) -> None:
    assert (PEERS / "drivers" / contender.driver).exists()
    if contender.environment is None:
        return
    text = (PEERS / "environments" / f"{contender.environment}.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", line)] == []
    assert contender.package in {line.partition("==")[0] for line in lines}


def test_the_readme_shows_every_contender() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = readme[readme.index(page.OPENS) : readme.index(page.CLOSES)]
    for contender in CONTENDERS:
        package, _, method = contender.label.partition(",")
        assert re.search(rf"\| \**{re.escape(package)}[^|,]*,?{re.escape(method)}[*:| (]", shown), contender.name
