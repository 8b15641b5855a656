"""Public names: exported, documented, cheap to import, and not shadowed by modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import margent


def test_all_public_names_resolve_and_are_documented() -> None:
    for name in margent.__all__:
        value = getattr(margent, name)
        if name != "__version__":
            assert inspect.getdoc(value), name


def test_no_submodule_shadows_a_public_name() -> None:
    for module in pkgutil.walk_packages(margent.__path__, "margent."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in margent.__all__:
        assert not inspect.ismodule(getattr(margent, name)), name


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom margent.cli import run\nrun(['--help'])\n"
        "heavy = {'numpy', 'numba', 'pyarrow', 'pandas', 'mpmath', 'jinja2'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["synthesize"],
        ["schema", "draft"],
        ["plan"],
        ["resample"],
        ["query"],
        ["evaluate"],
        ["inspect"],
        ["sweep"],
        ["demo"],
    ],
)
def test_every_command_explains_itself(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from margent.cli import run

    assert run([*command, "--help"]) == 0
    assert "Usage: margent" in capsys.readouterr().out
