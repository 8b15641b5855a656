"""Fresh environments, and what `pyproject.toml` asks of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def core_dependencies() -> list[str]:
    """What the core asks for, as written."""
    return list(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])


def lower_bounds(dependencies: Sequence[str]) -> list[str]:
    """The oldest version of each dependency that is allowed.

    >>> lower_bounds(["numpy>=2.0", "mbi>=2,<3"])
    ['numpy==2.0', 'mbi==2']
    """
    found = []
    for dependency in dependencies:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)(?:,.*)?", dependency)
        if match is None:
            raise SystemExit(f"{dependency!r} has no lower bound")
        found.append(f"{match[1]}=={match[2]}")
    return found


@contextmanager
def fresh(*packages: str) -> Iterator[Path]:
    """The Python of an empty environment with these packages, outside the tree; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="margent-env-") as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if packages:
            run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], Path(folder))
        yield python


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """Run a command outside the tree, without what the caller's environment adds to Python; its output."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=own | environment, text=True, capture_output=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(str(word) for word in command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """Wheel and sdist, built by the build backend in an environment of its own."""
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    with fresh(*backend) as python:
        run([python, "-m", "hatchling", "build", "-d", folder], ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist
