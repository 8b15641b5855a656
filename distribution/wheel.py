"""Build wheel and sdist; install the wheel into an empty environment; run the main job there, outside the tree."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from environments import ROOT, built, fresh, run


def main() -> None:
    """Print the sizes and times of an installation that works."""
    with tempfile.TemporaryDirectory(prefix="margent-wheel-") as place:
        wheel, sdist = built(Path(place))
        print(f"{wheel.name} {wheel.stat().st_size / 1e6:.2f} MB, {sdist.name} {sdist.stat().st_size / 1e6:.2f} MB")
        started = time.perf_counter()
        with fresh(str(wheel)) as python:
            print(f"installed in {time.perf_counter() - started:.0f} s")
            site = Path(
                run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], python.parent).strip()
            )
            total = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
            print(f"{total / 1e6:.0f} MB in site-packages, pip and compiled files included")
            (script := Path(place) / "main_job.py").write_text((ROOT / "distribution/main_job.py").read_text())
            (folder := Path(place) / "outside").mkdir()
            print(run([python, script, folder], folder), end="")


if __name__ == "__main__":
    main()
