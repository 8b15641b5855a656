"""Which Spark session to use, which table a name like ``spark:parquet:/data/people`` means, and whether tasks run.

pyspark is imported only where a table is named or handed over as Spark's.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from margent.errors import MargentError, TableError, UsageError
from margent.tables.spark_forms import Form
from margent.tables.spark_pieces import FAULT, FAULT_PLACE, PIECES, Piece, TaskFault, pieces, sound
from margent.version import VERSION

if TYPE_CHECKING:
    import pyarrow as pa

Answer = TypeVar("Answer")

PREFIX = "spark:"
TYPED_FORMATS = ("parquet", "orc", "delta", "iceberg", "hudi", "avro")
"""Formats that declare their columns' types, so that Spark looks at no row to find them."""
UNTYPED_FORMATS = ("csv", "json", "text", "xml")

LOST = (
    "Spark could not finish a pass over the table (a file that cannot be read, executors that failed or were taken "
    "away with their part of the snapshot, or a cell on which an expression of the DataFrame fails). What was charged "
    "so far stays spent. Look at Spark's own log, which may hold cells and is yours alone, then start a new run"
)
_WORDS_OF_FORMS = "spark:table:NAME (a table of Spark's catalog), spark:PATH (Parquet) or spark:FORMAT:PATH"
_SECRET = re.compile(r"//[^/@]*:(?!\d{1,5}/)[^@]*@")
"""A key or a user with its secret before a server or bucket; a port is none."""
_PROBES = 8
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def spark_name(table: object) -> str | None:
    """What follows ``spark:`` in a table's name, or None where it is none; a path object never is one.

    Privacy: none: names only.
    Raises: UsageError for an address with a secret in it, which is not repeated, and for that of a cluster, which is no
        table.

    >>> spark_name("spark:table:people"), spark_name("people.csv"), spark_name("./spark:people")
    ('table:people', None, None)
    """
    if not isinstance(table, str) or not table.startswith(PREFIX):
        return None
    rest = table[len(PREFIX) :]
    if _SECRET.search(rest):
        raise UsageError(
            "the address of a Spark table must not hold a key or a password: it would stay in the shell's history and "
            "in lists of processes. Leave it out here, and give it to Spark (for s3a in spark-defaults.conf as "
            "spark.hadoop.fs.s3a.access.key and spark.hadoop.fs.s3a.secret.key, or in the environment)"
        )
    if rest.startswith("//"):
        raise UsageError(
            f"{table} is the address of a cluster, not a table: set SPARK_MASTER to it (SPARK_REMOTE for Spark "
            f"Connect) and name the table {_WORDS_OF_FORMS}"
        )
    return rest


def is_spark_frame(table: object) -> bool:
    """Whether an object is a DataFrame of Spark, by its classes' modules: nothing is imported to find out."""
    return any(cls.__name__ == "DataFrame" and cls.__module__.startswith("pyspark.") for cls in type(table).__mro__)


def is_spark_session(session: object) -> bool:
    """Whether an object is a session of Spark, by its classes' modules."""
    return any(
        cls.__name__ == "SparkSession" and cls.__module__.startswith("pyspark.") for cls in type(session).__mro__
    )


def _format_and_path(rest: str) -> tuple[str, str]:
    """The format and the place of a Spark table from what follows ``spark:``; a bare path is Parquet.

    Privacy: none: names only.
    Raises: UsageError naming the forms there are.

    >>> _format_and_path("delta:s3a://bucket/people"), _format_and_path("s3a://bucket/people")
    (('delta', 's3a://bucket/people'), ('parquet', 's3a://bucket/people'))
    """
    word, colon, place = rest.partition(":")
    if colon and word in UNTYPED_FORMATS:
        raise UsageError(
            f"{PREFIX}{rest}: a file of {word} declares no types, and Spark would look at its rows to guess them: name "
            "a CSV by its path alone, or save the table as Parquet"
        )
    known = bool(colon) and word in (*TYPED_FORMATS, "table")
    found = (word, place) if known else ("parquet", rest)
    if not found[1]:
        raise UsageError(f"{PREFIX}{rest}: the name of a Spark table is {_WORDS_OF_FORMS}")
    return found


def parquet_place(rest: str) -> str | None:
    """Where the Parquet files lie that a name means; None where it means something else.

    >>> parquet_place("s3a://bucket/people"), parquet_place("table:people")
    ('s3a://bucket/people', None)
    """
    form, place = _format_and_path(rest)
    return place if form == "parquet" else None


def require_pyspark() -> None:
    """Refuse to go on without pyspark.

    Raises: UsageError with the next step.
    """
    if find_spec("pyspark") is None:
        raise UsageError("tables of Spark need the extra: pip install 'margent[spark]' (and Java 17 or newer)")


def frame_named(rest: str) -> tuple[Any, Any]:
    """The DataFrame that a name means, and the session if it was started for it (None: it was there already).

    Privacy: none spent; file footers or the catalog are looked at, no row.
    Raises: UsageError without pyspark or for another form; TableError when Spark finds no such table.
    """
    form, place = _format_and_path(rest)
    session, started = _session()
    frame = None
    try:
        frame = session.table(place) if form == "table" else session.read.format(form).load(place)
        _ = frame.schema
    except Exception:
        frame = None
    if frame is None:
        if started is not None:
            started.stop()
        raise TableError(
            f"{PREFIX}{rest}: Spark finds no such table or cannot read its description; check the name, the session "
            "(SPARK_MASTER or SPARK_REMOTE, spark-defaults.conf) and that it has the format's package"
        )
    return frame, started


def require_workers(session: Any) -> None:
    """Run a few tasks without data: do Spark's workers import this version of margent?

    Found out only after the charge, a cluster without margent would spend a budget for nothing.

    Privacy: none: no table is looked at.
    Raises: TableError with the next step.
    """
    fault = ""
    try:
        probe = session.range(0, _PROBES, 1, _PROBES).mapInArrow(partial(_probed, VERSION), PIECES)
        collected(probe)
    except TaskFault as other:
        fault = f"they have {other}"
    except Exception:
        fault = "a task that only imports margent failed"
    if fault:
        raise TableError(
            f"Spark's workers need margent {VERSION}, with Python {sys.version_info.major}.{sys.version_info.minor}: "
            f"{fault}. Install it on every worker (pip install 'margent[spark]'), or ship it with the session, and let "
            "PYSPARK_PYTHON name the Python that has it. Nothing was charged"
        )


def quietly(action: Callable[[], Answer]) -> Answer:
    """What ``action`` gives; where Spark fails, a TableError with fixed text, since Spark's own may hold a cell.

    Raises: TableError; MargentError where a task met a fault of this program.
    """
    fault: str | None = None
    try:
        with _unlogged():
            return action()
    except MargentError:
        raise
    except TaskFault as inner:
        fault = str(inner)
    except Exception:
        fault = None
    if fault not in (None, TableError.__name__):
        raise MargentError(f"internal fault: a task of Spark failed ({fault}); please report it, without your table")
    raise TableError(LOST)


@contextmanager
def _unlogged() -> Iterator[None]:
    """pyspark writes the text of an exception to stderr as it makes it; not while rows are looked at."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, off in zip(loggers, before, strict=True):
            logger.disabled = off


def streamed(frame: Any) -> Iterator[Piece]:
    """The pieces of a frame, one part of it after the other.

    Raises: as `quietly`.
    """
    rows = quietly(lambda: iter(frame.toLocalIterator()))
    while (row := quietly(partial(next, rows, None))) is not None:
        yield quietly(partial(sound, Piece(row.kind, row.place, bytes(row.data))))


def collected(frame: Any) -> list[Piece]:
    """All pieces of a frame, from tasks that run side by side. To be called by `quietly`."""
    return [sound(Piece(row.kind, row.place, bytes(row.data))) for row in frame.collect()]


@contextmanager
def well_batched(session: Any, form: Form) -> Iterator[None]:
    """The session has the settings under which rows of this form are read; then they are put back."""
    before = {name: session.conf.get(name, None) for name in form.settings}
    try:
        for name, value in form.settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            session.conf.unset(name) if old is None else session.conf.set(name, old)


def _probed(version: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task without data: whether this worker has the same version."""
    import margent.schema.codec  # noqa: F401  (with all that it needs)

    def work() -> Iterator[Piece]:
        for _ in batches:
            pass
        if version != VERSION:
            yield Piece(FAULT, FAULT_PLACE, f"version {VERSION}".encode())

    return pieces(work)


def _session() -> tuple[Any, Any]:
    """The session that is active, or a new one, which is also returned as one to stop."""
    require_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active, None
    builder: Any = SparkSession.builder.appName("margent")
    remote, master = os.environ.get("SPARK_REMOTE"), os.environ.get("SPARK_MASTER")
    session = None
    try:
        session = builder.remote(remote).getOrCreate() if remote else _classic(builder, master)
    except Exception:
        session = None
    if session is None:
        raise TableError(
            "no Spark session could be started: is Java 17 or newer installed (JAVA_HOME), and does SPARK_MASTER or "
            "SPARK_REMOTE name a cluster that answers?"
        )
    return session, session


def _classic(builder: Any, master: str | None) -> Any:
    if master:
        builder = builder.master(master)
    if not master or master.startswith("local"):
        # The workers of a local session are this Python, not the first one on PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # One machine is busy with rows, not with answering: the collector that costs least.
        builder = builder.config("spark.driver.extraJavaOptions", "-XX:+UseParallelGC")
    for key, value in (("spark.ui.enabled", "false"), ("spark.ui.showConsoleProgress", "false")):
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # Spark's messages may hold cells; a session of the user's own keeps its level.
    session.sparkContext.setLogLevel("OFF")
    return session
