"""Settings of a method: read from text, all faults at once, recorded in the release, the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import margent
from margent.cli import run
from margent.errors import UsageError
from margent.methods import METHODS, SYNTHESIZERS, method_named
from margent.schema.write import schema_text
from margent.settings import configured, settings_of

FIELDS = [
    margent.Category("sex", ["F", "M"]),
    margent.Integer("age", 0, 60, bins=6),
    margent.Category("job", ["a", "b"]),
]
SCHEMA = margent.Schema(FIELDS, unit="row")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_setting_reads_back_what_it_shows(method: margent.methods.Method) -> None:  # type: ignore[name-defined]
    shown = settings_of(method.collector) | settings_of(method.synthesizer)
    assert not set(settings_of(method.collector)) & set(settings_of(method.synthesizer)), "one name, one setting"
    again = method.configured(shown)
    assert again == method
    assert all(settings_of(each) == settings_of(configured(each, settings_of(each))) for each in SYNTHESIZERS)


def test_settings_reach_collector_and_synthesizer() -> None:
    made = method_named("privsyn").configured(
        {"gamma": "70", "rounds": "3", "uncovered": "connect", "shrink_scores": "false"}
    )
    found = settings_of(made.collector) | settings_of(made.synthesizer)
    assert (found["gamma"], found["rounds"], found["uncovered"], found["shrink_scores"]) == (
        "70",
        "3",
        "connect",
        "false",
    )
    assert made != method_named("privsyn")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gama": "1", "gamma": "2"}, ["'gama'", "gamma", "rounds"]),
        (
            {"gamma": "many", "merge_below": "inf", "uncovered": "both", "shrink_scores": "1"},
            ["gamma", "merge_below", "isolate, connect", "true or false"],
        ),
        ({"one_way_share": "1/0"}, ["one_way_share must be a fraction"]),
        ({"one_way_share": "9/10"}, ["sum below 1"]),
    ],
)
def test_faults_are_told_all_at_once(settings: dict[str, str], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        method_named("privsyn").configured(settings)
    assert all(word in str(caught.value) for word in words)


def test_a_run_records_its_settings_and_resampling_uses_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.csv").write_text("sex,age,job\n" + "F,12,a\nM,30,b\nM,55,b\n" * 2000)
    (tmp_path / "schema.json").write_text(schema_text(SCHEMA))
    given = [
        "--schema",
        str(tmp_path / "schema.json"),
        "--epsilon",
        "2",
        "--single-release",
        "--method",
        "privsyn",
        "--seed",
        "5",
    ]
    out, again, other = (tmp_path / name for name in ("out", "again", "other"))
    table = str(tmp_path / "people.csv")
    assert run(["synthesize", table, *given, "--set", "rounds=0", "--set", "gamma=9", "-o", str(out)]) == 0
    assert json.loads((out / "summary.json").read_text())["settings"] == {"gamma": "9", "rounds": "0"}
    assert run(["resample", str(out), "--seed", "5", "-o", str(again)]) == 0
    assert (again / "synthetic.csv").read_bytes() == (out / "synthetic.csv").read_bytes()
    assert run(["resample", str(out), "--seed", "5", "--set", "rounds=30", "-o", str(other)]) == 0
    assert (other / "synthetic.csv").read_bytes() != (out / "synthetic.csv").read_bytes()
    assert json.loads((other / "summary.json").read_text())["settings"] == {"gamma": "9", "rounds": "30"}
    capsys.readouterr()
    assert run(["resample", str(out), "--set", "gamma=1", "-o", str(tmp_path / "no")]) == 2
    assert "no setting 'gamma'" in capsys.readouterr().err
    assert run(["plan", *given[:4], "--method", "privsyn", "--set", "one_way_share=1/2"]) == 0
    assert "50" in capsys.readouterr().out
    for flawed in (["--set", "gamma"], ["--set", "gamma=1", "--set", "gamma=2"], ["--set", "x=1"]):
        assert run(["synthesize", table, *given, *flawed, "-o", str(tmp_path / "no")]) == 2
    assert not (tmp_path / "no").exists()
    assert run(["methods", "--settings"]) == 0
    assert "--set     gamma=5000" in capsys.readouterr().out
