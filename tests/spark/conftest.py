"""One small Spark for all tests of this folder: two cores, and a task may fail three times before its job does."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


def why_not() -> str:
    """Why Spark cannot be tested here; empty where it can."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed (extra: spark)"
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        return "there is no Java on this machine"
    return ""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine, in a zone of its own, so that instants and wall clocks differ."""
    if reason := why_not():
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    # Workers import the package that is tested, wherever the tests were started.
    source = str(Path(__file__).resolve().parents[2] / "src")
    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "PYTHONPATH")}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [source, before["PYTHONPATH"]]))
    builder: Any = SparkSession.builder.master("local[2,4]").appName("tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        # Little data: what compiles best is not worth its time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.checkpoint.dir": str(folder / "checkpoints"),
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "America/New_York",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    for name, old in before.items():
        if old is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = old
