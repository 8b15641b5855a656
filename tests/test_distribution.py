"""What is installed: wheel, licenses, bill of materials, oldest versions, completion and help."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

import margent
from margent.cli import run
from margent.cli.app import app

ROOT = Path(__file__).parent.parent
SOURCE = Path(margent.__file__).parent


def script(name: str) -> ModuleType:
    """A script of ``distribution/`` as a module."""
    spec = importlib.util.spec_from_file_location(f"distribution_{name}", ROOT / "distribution" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
    ours = {str(file.relative_to(SOURCE.parent)) for file in SOURCE.rglob("*") if file.is_file()}
    assert {name for name in names if ".dist-info/" not in name} == {
        name for name in ours if "__pycache__" not in name
    }  # the tests run on the source, so this is all they saw
    assert "margent/py.typed" in names
    assert {Path(name).suffix for name in names if ".dist-info/" not in name} == {".py", ".typed", ".html", ".json"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_every_dependency_has_an_oldest_version() -> None:
    environments = script("environments")
    bounds = environments.lower_bounds(environments.core_dependencies())
    assert len(bounds) >= 8
    with pytest.raises(SystemExit):
        environments.lower_bounds(["numpy"])


def licenses() -> dict[str, str]:
    rows = re.findall(r"(?m)^\| ([A-Za-z0-9_-]+) \| ([^|]+) \| [^|]+ \|$", (ROOT / "LICENSES.md").read_text())
    return {name.lower(): told.strip() for name, told in rows if name != "package"}


def words_of(told: str) -> set[str]:
    """A license's family: 'BSD License' and 'BSD-3-Clause' are both BSD."""
    return {word for word in ("apache", "bsd", "mit", "zlib", "cc0") if word in told.lower()}


def test_the_page_of_licenses_is_that_of_what_is_installed() -> None:
    sbom = script("sbom")
    packages = {name: package for name, package in sbom.closure().items() if name != "margent"}
    told = licenses()
    assert set(packages) <= set(told), "a package is missing from LICENSES.md"
    assert set(told) - set(packages) <= {"colorama", "pycparser", "mdurl", "markdown-it-py"}, "one is there too many"
    for name, package in packages.items():
        stated = words_of(sbom.license_of(package))
        assert stated, name
        assert stated & words_of(told[name]), f"{name}: {sbom.license_of(package)} is not {told[name]}"
    assert not any("gpl" in sbom.license_of(package).lower() for package in packages.values())


def test_the_bill_of_materials_is_whole_and_tells_nothing_of_this_machine() -> None:
    sbom = script("sbom")
    bill = sbom.bill()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    refs = {each["bom-ref"] for each in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {each["ref"] for each in bill["dependencies"]} == refs
    assert all(set(each["dependsOn"]) <= refs for each in bill["dependencies"])
    (own,) = [each["dependsOn"] for each in bill["dependencies"] if "/margent@" in each["ref"]]
    environments = script("environments")
    assert len(own) == len(environments.core_dependencies())
    assert str(Path.home()) not in json.dumps(bill)
    assert str(ROOT) not in json.dumps(bill)


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    for name, part in getattr(command, "commands", {}).items():
        yield from commands(part, (*words, name))


@pytest.mark.parametrize("words", [words for words, _ in commands(app)], ids=" ".join)
def test_help_is_a_page_one_paragraph_options_and_an_example(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--help"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"Usage: {' '.join(['margent', *words])}")
    assert re.search(rf"(?m)^ {{2,}}.*margent {' '.join(words)}", page), "an example to copy"
    assert "Options:" in page
    found = dict(commands(app))[words]
    for option in found.params:
        if isinstance(option, click.Option):
            assert option.help, f"{words}: {option.name} says nothing"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_speaks_every_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_MARGENT_COMPLETE={shell}_complete" in capsys.readouterr().out
    assert run(["completion", "tcsh"]) == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_takes_it_and_completes(tmp_path: Path) -> None:
    (tmp_path / "margent").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m margent "$@"\n')
    (tmp_path / "margent").chmod(0o755)
    lines = """
    eval "$(margent completion bash)"
    complete -p margent > /dev/null || exit 3
    COMP_WORDS=(margent syn); COMP_CWORD=1; _margent_completion margent; echo "${COMPREPLY[@]}"
    COMPREPLY=()
    COMP_WORDS=(margent synthesize --single); COMP_CWORD=2; _margent_completion margent; echo "${COMPREPLY[@]}"
    """
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(["bash", "-c", lines], env=os.environ | own, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["synthesize", "--single-release"]
