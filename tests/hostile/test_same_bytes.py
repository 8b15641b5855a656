"""From given noisy answers and a seed every machine makes the same bytes, whatever its hash seed, threads, place, time.

A process of its own for each hash seed; in it, threads by number, and places (locale and time zone) by turns. At each
commit every process makes the records by every synthesizer, and the threads are set before it starts as well, as users
do; in the audit hundreds of processes go through all threads and places, with one synthesizer each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import margent
from margent import Budget, synthesize
from margent.schema.read import schema_from_json
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.sizes import LONG_AUDIT, rounds
from tests.synthesizers.made import TAKING_ANY

PLACES = (
    ("C", "UTC"), ("C.UTF-8", "Asia/Kathmandu"), ("de_DE.UTF-8", "America/St_Johns"), ("tr_TR.UTF-8", "Pacific/Apia"),
)  # fmt: skip
"""Locales that a machine lacks are asked for all the same: the environment names them, and C is then in force."""
THREADS = (1, 2, 4)
SOURCE = Path(margent.__file__).parent
THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

PROGRAM = """
import contextlib, hashlib, locale, os, sys, time
from pathlib import Path
from tempfile import TemporaryDirectory
import pyarrow as pa
from threadpoolctl import threadpool_limits
from margent import read_release
from margent.pipeline import from_transcript

def digest(root, budget, transcript, name, kind):
    made = from_transcript(transcript, budget=budget, synthesizer=name, rows=150, seed=11, kind=kind)
    with TemporaryDirectory() as folder:
        out = made.save(Path(folder) / "OUT")
        files = sorted(path for path in out.rglob("*") if path.is_file())
        hashed = hashlib.sha256()
        for path in files:
            hashed.update(str(path.relative_to(out)).encode() + bytes(1) + path.read_bytes())
    return hashed.hexdigest()

transcript, budget, _ = read_release(sys.argv[1])
for threads in [int(part) for part in sys.argv[2].split(",")]:
    pa.set_cpu_count(threads)
    with threadpool_limits(threads):
        for place in sys.argv[3].split(","):
            name, zone = place.split("@")
            os.environ["TZ"] = zone
            time.tzset()
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, name)
            for synthesizer in sys.argv[4].split(","):
                kind = ["csv", "parquet"][threads % 2]
                print(kind, synthesizer, digest(sys.argv[1], budget, transcript, synthesizer, kind))
"""
PLANTED = """
import margent.pipeline as pipeline
genuine = pipeline.from_transcript
def from_transcript(transcript, *, seed, **rest):
    return genuine(transcript, seed=%s, **rest)
pipeline.from_transcript = from_transcript
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("same")
    table = write_csv(folder / "t.csv", people_rows(400))
    return synthesize(table, schema_from_json(SCHEMA), budget=Budget(20), rows=10, seed=1).save(folder / "OUT")


def made_by(
    release: Path, hash_seed: int, used: list[str], threads: str, places: str, setting: Mapping[str, str], planted: str
) -> set[tuple[str, str, str]]:
    """(file format, synthesizer, checksum of the whole release) of all that one process makes."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", planted + PROGRAM, str(release), threads, places, ",".join(used)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(SOURCE.parent), **setting},
        capture_output=True, text=True, check=False, cwd=release,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == len(threads.split(",")) * len(places.split(",")) * len(used)
    return {(kind, name, checksum) for kind, name, checksum in lines}


def every(release: Path, hash_seeds: int, planted: str = "") -> set[tuple[str, str, str]]:
    """What all processes make together."""
    places = ["@".join(place) for place in PLACES]
    names = ["independent"] if planted else [each.name for each in TAKING_ANY]
    quick = [name for name in names if name != "pgm"]
    jobs = []
    for seed in range(hash_seeds):
        if LONG_AUDIT and not planted:
            # A library compiles its steps anew in each process of `pgm`: it has one in twenty.
            used = ["pgm"] if seed % 20 == 19 else [quick[seed % len(quick)]]
            jobs.append((seed, used, ",".join(map(str, THREADS)), ",".join(places), {}))
        else:
            language, zone = PLACES[seed % len(PLACES)]
            threads = str(THREADS[seed % len(THREADS)])
            setting = dict.fromkeys(THREAD_SETTINGS, threads) | {"LANG": language, "LC_ALL": language, "TZ": zone}
            jobs.append((seed, names, "1,2", places[seed % len(places)], setting))
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(lambda job: made_by(release, *job, planted), jobs)
        return set().union(*made)


def test_the_same_answers_and_seed_give_the_same_bytes(release: Path) -> None:
    made = every(release, rounds(3, 200))
    assert len(made) == 2 * len(TAKING_ANY), "one checksum for each file format and synthesizer"
    assert len({checksum for *_, checksum in made}) == len(made)


@pytest.mark.parametrize(
    "leak",
    ["abs(hash('x')) % 2**53", "__import__('time').localtime(0).tm_hour",
     "int(__import__('os').environ['OMP_NUM_THREADS'])"],
    ids=["hash seed", "time zone", "threads"],
)  # fmt: skip
def test_what_depends_on_the_process_is_caught(leak: str, release: Path) -> None:
    assert len(every(release, 2, PLANTED % leak)) > 2
