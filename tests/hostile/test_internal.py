"""What was computed from real rows is never written into a release, never taken for one, and never lies in one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from margent import Budget, BudgetFile, read_release, read_schema, synthesize
from margent.cli import run
from margent.errors import MargentError, TranscriptError, UsageError
from margent.internal import label
from margent.internal.evaluation import evaluate
from margent.internal.inspection import inspect
from margent.internal.label import LABEL, save_internal
from margent.internal.sweep import sweep
from margent.metrics.marginals import MarginalDistance
from margent.release import reading
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.sizes import rounds


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release under a budget file, and one INTERNAL folder of each kind."""
    root = tmp_path_factory.mktemp("internal")
    table = write_csv(root / "t.csv", people_rows(120))
    (root / "s.json").write_text(json.dumps(SCHEMA))
    schema = read_schema(root / "s.json")
    file = BudgetFile(root / "b.budget", "people")
    file.init(Budget(9))
    synthesize(table, schema, budget=file.budget(3), budget_file=file, rows=30, seed=1).save(root / "OUT")
    evaluate(table, [table], schema, metrics=[MarginalDistance(1, "tvd")]).save(root / "INTERNAL-a")
    inspect(table, schema).save(root / "INTERNAL-b")
    sweep(table, schema, epsilons=["1"], methods=["independent"], on_public_data=True).save(root / "INTERNAL-c")
    return root


def taken_for_a_release(folder: Path, root: Path) -> list[str]:
    """Commands that take a folder for a release, or leave something behind."""
    before = sorted(root.iterdir())
    taken = []
    for command in (
        ["resample", str(folder), "-o", str(root / "MADE")],
        ["statement", str(folder), "--no-selftest", "-o", str(root / "MADE.html")],
        ["budget", "verify", str(root / "b.budget"), str(folder)],
    ):
        if run(command) == 0:
            taken.append(command[0])
    try:
        read_release(folder)
        taken.append("read_release")
    except TranscriptError:
        pass
    for path in set(root.iterdir()) - set(before):
        taken.append(path.name)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return taken


@pytest.mark.parametrize("kind", ["a", "b", "c"])
def test_an_internal_folder_is_no_release(kind: str, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert taken_for_a_release(made / f"INTERNAL-{kind}", made) == []
    assert "Traceback" not in capsys.readouterr().err
    assert len(taken_for_a_release(made / "OUT", made)) == 6, "the check must see what is taken"
    for path in (made / f"INTERNAL-{kind}").iterdir():
        assert path.name.startswith("INTERNAL")
        assert LABEL in path.read_text()


def bundles(made: Path, folder: Path) -> Iterator[Path]:
    """Releases with something INTERNAL put in, anywhere, under its name in any case, as file, folder or link."""
    rng = np.random.default_rng(4)
    internal = sorted(path for kind in "abc" for path in (made / f"INTERNAL-{kind}").iterdir())
    for place in range(rounds(40, 500)):
        bundle = folder / f"B{place}"
        shutil.copytree(made / "OUT", bundle)
        where = bundle / ["", "measurements", "deep/er"][int(rng.integers(0, 3))]
        where.mkdir(parents=True, exist_ok=True)
        one = internal[int(rng.integers(0, len(internal)))]
        name = one.name.lower() if rng.random() < 0.3 else one.name
        how = int(rng.integers(0, 6))
        if how == 0:
            shutil.copy(one, where / name)
        elif how == 1:
            shutil.copytree(one.parent, where / one.parent.name)
        elif how == 2:
            (where / name).symlink_to(one)
        elif how == 3:
            (where / "notes.html").symlink_to(one)
        elif how == 4:
            (where / "notes").symlink_to(one.parent)
        else:  # a release whose own file was replaced
            shutil.copy(one, where / name)
            victim = ["summary.json", "release.html", "measurements/transcript.json"][int(rng.integers(0, 3))]
            shutil.copy(one, bundle / victim)
        yield bundle


def test_a_mixed_bundle_is_refused(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(made / "b.budget", tmp_path / "b.budget")
    for bundle in bundles(made, tmp_path):
        assert taken_for_a_release(bundle, tmp_path) == [], [path.name for path in bundle.rglob("*")]
        shutil.rmtree(bundle)
    assert "must not lie in a release" in capsys.readouterr().err


def test_a_bundle_that_cannot_be_looked_into_is_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(made / "b.budget", tmp_path / "b.budget")
    bundle, genuine = tmp_path / "B", os.scandir
    shutil.copytree(made / "OUT", bundle)
    (bundle / "deep").mkdir()
    (bundle / "round").symlink_to(bundle)
    assert len(taken_for_a_release(bundle, tmp_path)) == 6

    def scandir(path: str) -> object:
        if Path(path).name == "deep":
            raise PermissionError(13, "denied", path)
        return genuine(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert taken_for_a_release(bundle, tmp_path) == []
    assert "looked into" in capsys.readouterr().err


def test_a_reader_that_does_not_look_is_caught(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(made / "b.budget", tmp_path / "b.budget")
    monkeypatch.setattr(reading, "internal_files", lambda folder: [])
    assert any(taken_for_a_release(bundle, tmp_path) for bundle in bundles(made, tmp_path))


def test_nothing_internal_is_written_anywhere_in_a_release(made: Path, tmp_path: Path) -> None:
    """At any depth, by any way of writing the path, through links, and where the release lost files."""
    for lost in ([], ["release.html"], ["charges.json", "release.html"], ["summary.json"], ["measurements"]):
        out = tmp_path / f"OUT{len(lost)}{''.join(lost)[:3]}"
        shutil.copytree(made / "OUT", out)
        for name in lost:
            shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink()
        (out / "deep" / "er").mkdir(parents=True)
        (tmp_path / f"link{out.name}").symlink_to(out)
        for inside in ("I", "measurements/I", "deep/I", "deep/er/I", "../" + out.name + "/I", "deep/../I"):
            for place in (out / inside, tmp_path / f"link{out.name}" / inside):
                with pytest.raises(UsageError, match=r"inside the release|create it first"):
                    save_internal(place, {"INTERNAL-x.json": b"{}"})
        assert not [path for path in out.rglob("*") if path.name.startswith(("I", ".I"))]
    shutil.copytree(made / "OUT" / "measurements", tmp_path / "alone")
    with pytest.raises(UsageError, match="inside the release"):
        save_internal(tmp_path / "alone" / "I", {"INTERNAL-x.json": b"{}"})


def test_a_writer_that_does_not_look_is_caught(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(made / "OUT", tmp_path / "OUT")
    monkeypatch.setattr(label, "release_of", lambda path: None)
    save_internal(tmp_path / "OUT" / "I", {"INTERNAL-x.json": b"{}"})
    with pytest.raises(MargentError, match="must not lie in a release"):
        read_release(tmp_path / "OUT")
