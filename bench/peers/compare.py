"""Margent beside other packages on one table: error, CPU seconds, memory; as Markdown.

    python bench/peers/compare.py FOLDER [--epsilon 1] [--draws 1] [--limit 600] [--only 'dpmm mst'] [--page PAGE.md]

FOLDER holds a table and schema.json, as for `bench/quality.py`; it is treated as public. Every package lives in an
environment of its own in `.venv-peers`, made when it is first needed from `environments/PACKAGE.txt`; every run is a
process of its own and gets the same coded table, domain, epsilon and delta. A package that cannot be installed, fails,
or does not end has a row that says so. Finished runs are in a file under --results and are not run again (delete a line
to repeat it). With --page the table goes between the page's two markers.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from contenders import CONTENDERS, Contender, contender_named
from measured import run_measured
from page import Result, between_markers, caption, latest, results_in, table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENTS = ROOT / ".venv-peers"


def python_of(contender: Contender, python: str) -> Path:
    """The interpreter of the contender's environment, which is made where it is missing or its list has changed.

    Raises: RuntimeError with pip's last line where the package cannot be installed.
    """
    if contender.environment is None:
        return Path(sys.executable)
    folder, wanted = ENVIRONMENTS / contender.environment, HERE / "environments" / f"{contender.environment}.txt"
    interpreter, ready = folder / "bin" / "python", folder / "installed.txt"
    if not ready.exists() or ready.read_bytes() != wanted.read_bytes():
        print(f"installing {contender.environment}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        for command in (
            [python, "-m", "venv", str(folder)],
            [str(interpreter), "-m", "pip", "install", "--quiet", "--requirement", str(wanted)],
        ):
            try:
                subprocess.run(command, check=True, capture_output=True, text=True)
            except FileNotFoundError:
                raise RuntimeError(f"could not be installed: there is no {python}") from None
            except subprocess.CalledProcessError as fault:
                said = [line for line in fault.stderr.splitlines() if line.startswith("ERROR")] or ["no word"]
                raise RuntimeError(f"could not be installed: {said[-1][:160]}") from None
        shutil.copy(wanted, ready)
    return interpreter


def version_of(contender: Contender, interpreter: Path) -> str | None:
    if contender.package == "yardstick":
        return None
    asked = f"from importlib.metadata import version; print(version({contender.package!r}))"
    return subprocess.run([interpreter, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def scoring(*words: str | Path) -> dict[str, Any]:
    """What `scoring.py` says, which runs beside this process so that this one stays small."""
    command = [sys.executable, HERE / "scoring.py", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError((ran.stderr.strip().splitlines() or ["no word"])[-1])
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def machine() -> str:
    info = Path("/proc/cpuinfo")
    models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    return f"Python {platform.python_version()} on {os.cpu_count()} cores ({model})"


def one(contender: Contender, work: Path, options: argparse.Namespace, draw: int) -> dict[str, Any]:
    """A run of a contender and its scores, or why there are none."""
    try:
        interpreter = python_of(contender, options.python)
        facts: dict[str, Any] = {"version": version_of(contender, interpreter)}
    except (RuntimeError, subprocess.CalledProcessError) as fault:
        return {"failed": str(fault)}
    out, log = work / f"{contender.name}-{draw}.csv", work / f"{contender.name}-{draw}.log"
    out.unlink(missing_ok=True)
    words = [contender.method, work, options.epsilon, options.delta, out]
    command = [interpreter, HERE / "drivers" / contender.driver, *words]
    ran = run_measured(command, options.limit, options.memory * 2**30, log)
    facts |= {"cpu": ran.cpu, "wall": ran.wall, "memory": ran.memory}
    if ran.failed:
        return facts | {"failed": ran.failed}
    try:
        return facts | scoring("score", work, out)
    except RuntimeError as fault:
        return facts | {"failed": f"failed: {fault}"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-9")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is given up")
    parser.add_argument("--memory", type=float, default=8, help="GiB at which a run is given up")
    parser.add_argument("--only", default="", help="names of contenders, with commas between them; default: all")
    parser.add_argument("--title", default="", help="what the table is called; default: its folder's name")
    parser.add_argument("--page", type=Path, help="a Markdown page with the two markers")
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results" / "peers", help="where results lie")
    parser.add_argument("--python", default="python3.11", help="what makes the environments")
    options = parser.parse_args()
    chosen = [contender_named(name) for name in options.only.split(",")] if options.only else list(CONTENDERS)
    work = options.results / options.folder.resolve().name
    try:
        facts = scoring("write", options.folder, work)
    except RuntimeError as fault:
        raise SystemExit(f"{options.folder} cannot be compared on: {fault}") from None
    ledger = options.results / f"{work.name}.jsonl"

    def so_far() -> list[Result]:
        return latest(results_in(ledger), facts["digest"], options.epsilon, options.delta)

    for draw in range(options.draws):
        for contender in chosen:
            if any((each["name"], each["draw"]) == (contender.name, draw) for each in so_far()):
                continue
            told: Result = {"name": contender.name, "draw": draw, "epsilon": options.epsilon, "delta": options.delta}
            told |= {"digest": facts["digest"], "date": str(datetime.date.today()), "load": os.getloadavg()[0]}
            told |= {"machine": machine()} | one(contender, work, options, draw)
            with ledger.open("a") as file:
                file.write(json.dumps(told) + "\n")
            print(json.dumps(told), flush=True)
    title = options.title or options.folder.resolve().name
    text = caption(so_far(), facts, title, options.limit) + "\n\n" + table(so_far())
    print(text)
    if options.page:
        options.page.write_text(between_markers(options.page.read_text(), text))


if __name__ == "__main__":
    main()
