"""The guards of the door, as tests that fail if the door opens."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import margent
from margent import Budget, Category, Integer, Schema
from margent.counts.source import CodedCounts
from margent.errors import BudgetError, TranscriptError
from margent.methods import METHODS, Method
from margent.pipeline import from_transcript
from margent.privacy.curator import DataCurator
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.queries import marginal_law
from margent.privacy.replay import ReplayCurator
from margent.privacy.requests import MarginalRequest
from margent.release.measurements import measurement_files
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Domain, Merge
from margent.transcript import Transcript
from tests.conftest import quick

SOURCE = Path(margent.__file__).parent

SCHEMA = Schema(
    [
        Category("a", ["x", "y", "z"]),
        Category("b", ["u", "v"]),
        Integer("c", 0, 5),
        Category("constant", ["only"]),
    ],
    unit="row",
)


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_name(path: Path) -> str:
    return ".".join(("margent", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def importers(prefix: str) -> set[str]:
    return {
        module_name(path)
        for path in SOURCE.rglob("*.py")
        if any(name == prefix or name.startswith(prefix + ".") for name in imports_of(path))
        and not module_name(path).startswith(prefix)
    }


def test_only_the_door_and_the_flow_import_counts() -> None:
    # plan.py takes one number, the cap on cells, from the kernel.
    # The operator's own comparison reads the real table too; everything it makes is marked INTERNAL.
    flow = {"margent.privacy.curator", "margent.privacy.merchant", "margent.pipeline"}
    # The audits count tables that they made up themselves; they open none.
    others = {"margent.internal.reading", "margent.counts.contribution", "margent.counts.texts", "margent.audits.doors"}
    assert importers("margent.counts.source") == flow | others | {"margent.counts.engines"}
    assert importers("margent.counts.engines") == {"margent.pipeline"}
    for module in ("contribution", "identity", "people"):
        assert importers(f"margent.counts.{module}") <= {
            "margent.counts.contribution",
            "margent.counts.engines",
            "margent.counts.spark_people",
            "margent.counts.texts",
        }
    assert importers("margent.counts.texts") == {"margent.counts.engines", "margent.counts.spark_texts"}
    for module in ("spark", "spark_tables", "spark_people", "spark_texts"):
        assert all(name.startswith("margent.counts.") for name in importers(f"margent.counts.{module}"))
    assert importers("margent.privacy.merchant") == {"margent.pipeline"}
    in_spark = {"margent.counts.spark", "margent.counts.spark_tables"}
    assert importers("margent.counts.kernel") <= {"margent.counts.source", "margent.plan"} | in_spark


def test_only_the_flow_opens_tables() -> None:
    allowed = {"margent.pipeline", "margent.cli.schema", "margent.counts.source"}
    allowed |= {"margent.internal.reading", "margent.internal.inspection"}
    assert {name for name in importers("margent.tables.source") if not name.startswith("margent.tables")} <= allowed


def test_the_free_half_cannot_reach_the_door() -> None:
    private = ("margent.privacy.curator", "margent.privacy.scores", "margent.privacy.noise", "margent.counts")
    private += ("margent.privacy.merchant",)
    for folder in ("synthesizers", "postprocessing", "release", "answers", "collectors", "schema", "metrics", "report"):
        for path in (SOURCE / folder).rglob("*.py"):
            for name in imports_of(path):
                assert not name.startswith(private), f"{module_name(path)} imports {name}"


def reachable_from(start: str) -> set[str]:
    """Every module of ours that importing ``start`` or calling into it could load, local imports included."""
    modules = {module_name(path): path for path in SOURCE.rglob("*.py")}
    found, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name in modules and name not in found:
            found.add(name)
            waiting += [imported for imported in imports_of(modules[name]) if imported in modules]
    return found


def test_nothing_that_makes_a_release_reaches_what_compares_with_real_rows() -> None:
    for start in ("margent.pipeline", "margent.release.release", "margent.release.page", "margent.table_synthesizer"):
        reached = reachable_from(start)
        assert len(reached) > 5
        assert not [name for name in reached if name.startswith(("margent.internal", "margent.metrics"))], start
    # The check is not blind: the command reaches it, and so does a page's own package where it should.
    assert "margent.internal.reading" in reachable_from("margent.cli.evaluate")
    assert {name.split(".")[1] for name in importers("margent.internal")} == {"cli"}


def test_randomness_has_one_source_for_noise_and_no_seed_reaches_it() -> None:
    for path in (SOURCE / "privacy").rglob("*.py"):
        text = path.read_text()
        names = set(imports_of(path))
        assert "np.random" not in text, path
        assert "margent.stream" not in names, path
        assert "random" not in names, path
        if path.name != "randomness.py":
            assert "os.urandom" not in text, path
            assert "secrets" not in names, path


def test_no_code_loads_code() -> None:
    for path in SOURCE.rglob("*.py"):
        names = set(imports_of(path))
        assert not names & {"pickle", "yaml", "joblib", "cloudpickle", "dill", "marshal", "shelve"}, path
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"eval", "exec", "compile", "__import__"}, path


class PinnedNoise:
    """The same noise for every run: call i gives the same draws whatever the data were."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Fraction]] = []

    def __call__(self, count: int, scale_squared: Fraction) -> NDArray[np.int64]:
        self.calls.append((count, scale_squared))
        rng = np.random.default_rng(len(self.calls))
        return np.rint(rng.normal(0, float(scale_squared) ** 0.5, count)).astype(np.int64)


def columns_of(records: int, seed: int) -> list[NDArray[np.uint16]]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, records)
    sizes = Codec(SCHEMA).domain.sizes
    made = {"a": a, "b": (a > 0).astype(int), "c": (a + rng.integers(0, 2, records)) % 6}
    return [
        made.get(name, np.zeros(records, dtype=int)).astype(np.uint16) % sizes[place]
        for place, name in enumerate(Codec(SCHEMA).domain.names)
    ]


def first_of(scores: list[int], epsilon: Fraction, sensitivity: Fraction) -> int:
    """A choice that does not look at the scores."""
    return 0


BUDGETS = {"gdp": Budget(epsilon=2, delta="1e-6"), "pure": Budget(epsilon=2, accountant="pure")}
with_budgets = pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))


def collected(
    method: Method,
    columns: Sequence[NDArray[np.uint16]],
    noise: PinnedNoise,
    budget: Budget = BUDGETS["gdp"],
) -> Transcript:
    source = CodedCounts(columns, Codec(SCHEMA).domain)
    curator = DataCurator(
        SCHEMA,
        source,
        Ledger(budget),
        noise=noise,
        laplace_noise=lambda count, scale: noise(count, 2 * scale**2),
        chooser=first_of,
    )
    return method.collector.collect(curator, budget)


@with_budgets
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_replay_without_data_gives_the_same_transcript_and_the_same_bytes(method: Method, budget: Budget) -> None:
    first = collected(method, columns_of(500, 1), PinnedNoise(), budget)
    again = method.collector.collect(ReplayCurator(first), budget)
    assert measurement_files(again) == measurement_files(first)
    tables = [
        from_transcript(each, budget=budget, synthesizer=method.synthesizer.name, seed=5).table
        for each in (first, again)
    ]
    assert tables[0].equals(tables[1])


def test_replay_insists_on_the_recorded_questions() -> None:
    privsyn = METHODS[0]
    first = collected(privsyn, columns_of(500, 1), PinnedNoise())
    with pytest.raises(TranscriptError, match="question 1 differs"):
        ReplayCurator(first).measure([MarginalRequest(("a",), Gaussian(Fraction(1024)))], label="another question")


@with_budgets
@pytest.mark.parametrize("method", [quick(each) for each in METHODS], ids=lambda method: method.name)
def test_neighbors_ask_the_same_first_questions(method: Method, budget: Budget) -> None:
    """With pinned noise, everything up to the first data-dependent choice is the same for neighbors."""
    columns = columns_of(200, 3)
    full, removed = PinnedNoise(), PinnedNoise()
    first = collected(method, columns, full, budget)
    second = collected(method, [column[1:] for column in columns], removed, budget)
    one_ways = sum(1 for charge in first.charges if charge.label == "one-way marginals")
    assert full.calls[:one_ways] == removed.calls[:one_ways]
    for left, right in zip(first.answers, second.answers, strict=False):
        if left.charge >= one_ways:
            break
        difference = np.abs(np.asarray(left.counts) - np.asarray(right.counts))
        assert difference.sum() == 1, "one record changes one cell by one and nothing else"


class Watched:
    """A count source that notes when it is looked at."""

    def __init__(self, inner: CodedCounts, ledger: Ledger) -> None:
        self.inner, self.ledger, self.looks = inner, ledger, list[int]()

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    def count(self, cliques: Sequence[Clique], merges: Mapping[str, Merge] | None = None) -> list[NDArray[np.int64]]:
        self.looks.append(len(self.ledger.charges))
        return self.inner.count(cliques, merges or {})


def test_every_look_is_paid_for_before_it_happens() -> None:
    budget = Budget(epsilon=1)
    ledger = Ledger(budget)
    watched = Watched(CodedCounts(columns_of(100, 1), Codec(SCHEMA).domain), ledger)
    curator = DataCurator(SCHEMA, watched, ledger)
    law = marginal_law(budget.total / 4, curator.neighbors, curator.account)
    curator.measure([MarginalRequest(("a",), law), MarginalRequest(("b",), law)], label="two")
    assert watched.looks == [2]


def test_a_refused_charge_leaves_data_and_ledger_untouched() -> None:
    budget = Budget(epsilon=1)
    ledger = Ledger(budget)
    watched = Watched(CodedCounts(columns_of(100, 1), Codec(SCHEMA).domain), ledger)
    curator = DataCurator(SCHEMA, watched, ledger)
    law = marginal_law(budget.total * 2 / 3, curator.neighbors, curator.account)
    with pytest.raises(BudgetError):
        curator.measure([MarginalRequest(("a",), law), MarginalRequest(("b",), law)], label="two")
    assert watched.looks == []
    assert ledger.charges == ()


@with_budgets
@pytest.mark.parametrize("method", [quick(each) for each in METHODS], ids=lambda method: method.name)
def test_the_budget_is_used_and_never_passed(method: Method, budget: Budget) -> None:
    transcript = collected(method, columns_of(500, 1), PinnedNoise(), budget)
    spent = sum((charge.cost for charge in transcript.charges), Fraction(0))
    assert Fraction(99, 100) * budget.total <= spent <= budget.total
