"""The oldest allowed version of every dependency: the main job and the tests of the core."""

from __future__ import annotations

import tempfile
from pathlib import Path

from environments import ROOT, built, core_dependencies, fresh, lower_bounds, run

TESTS = (
    *("tests/privacy/test_ledger.py", "tests/privacy/test_door.py", "tests/privacy/test_budget_file.py"),
    *("tests/privacy/test_budget_edits.py", "tests/privacy/test_budget_hostile_files.py"),
    *("tests/privacy/test_budget_sums.py", "tests/schema/test_read.py", "tests/schema/test_faults.py"),
    *("tests/schema/test_category_files.py", "tests/schema/test_mutated_schemas.py", "tests/schema/test_cells.py"),
    *("tests/counts", "tests/tables", "tests/release", "tests/resume/test_command.py", "tests/cli/test_synthesize.py"),
    *("tests/cli/test_budget.py", "tests/test_public.py", "tests/test_round_trip.py"),
)
NEED_MORE = tuple(
    f"tests/tables/test_{name}.py" for name in ("addresses", "duckdb", "duckdb_queries", "frames", "memory", "streams")
)


def main() -> None:
    """Install the bounds exactly, then run what needs no further package."""
    bounds = lower_bounds(core_dependencies())
    print(" ".join(bounds))
    with tempfile.TemporaryDirectory(prefix="margent-minimal-") as place:
        wheel, _ = built(Path(place))
        with fresh(str(wheel), *bounds, "pytest>=8", "hypothesis>=6.100") as python:
            (script := Path(place) / "main_job.py").write_text((ROOT / "distribution/main_job.py").read_text())
            (folder := Path(place) / "outside").mkdir()
            print(run([python, script, folder], folder), end="")
            left_out = [word for path in NEED_MORE for word in ("--ignore", path)]
            told = run(
                [python, "-m", "pytest", "-p", "no:randomly", "-k", "not pandas", *TESTS, *left_out],
                ROOT, PYTHONPATH="src",
            )  # fmt: skip
            print(told.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
