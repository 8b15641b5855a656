"""Privacy bugs to plant, each as somebody once wrote it, and the gate that must catch it."""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from margent import pipeline
from margent.collectors import privbayes
from margent.counts import source
from margent.errors import MargentError
from margent.privacy import curator, exponential, gdp, ledger, noise, queries, scores
from margent.privacy.laws import Gaussian
from margent.privacy.neighbors import Neighbors
from margent.privacy.requests import PublicTables
from tests.audits import gates

Plant = Callable[[pytest.MonkeyPatch], None]
Noise = Callable[[int, Fraction], NDArray[np.int64]]
exact = noise.discrete_gaussian


@dataclass(frozen=True)
class Bug:
    name: str
    gate: Callable[..., None]
    plant: Plant


def noisy(law: Noise) -> Plant:
    """The curator draws from ``law`` unless it is told otherwise."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        made = functools.partial(curator.DataCurator, noise=law)
        for module in ("margent.privacy.curator", "margent.pipeline", "margent.audits.doors"):
            patch.setattr(f"{module}.DataCurator", made)

    return plant


def adding(rule: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[Any]]) -> Plant:
    """Exact counts and noise meet by ``rule``."""
    return lambda patch: patch.setattr(curator, "_checked_sum", rule)


def setting(place: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(place, value)


def normal(scale_squared: Fraction) -> float:
    return float(scale_squared) ** 0.5


class Remembered:
    """The same draws whenever the same question comes."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, Fraction], NDArray[np.int64]] = {}

    def __call__(self, count: int, scale_squared: Fraction) -> NDArray[np.int64]:
        if (count, scale_squared) not in self.known:
            self.known[count, scale_squared] = exact(count, scale_squared)
        return self.known[count, scale_squared]


def seldom_none(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return exact(count, scale_squared) * (random.random() > 0.01)


def global_numpy(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.rint(np.random.normal(0, normal(scale_squared), count)).astype(np.int64)


def forked_generator() -> Noise:
    generator = np.random.default_rng()
    return lambda count, s2: np.rint(generator.normal(0, normal(s2), count)).astype(np.int64)


def laplace(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return noise.discrete_laplace(count, Fraction(round(normal(scale_squared) / 2**0.5 * 1000) or 1, 1000))


def uniform(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    reach = round(normal(scale_squared) * 3**0.5)
    return np.random.default_rng().integers(-reach, reach + 1, count)


def tiled(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.resize(exact(min(count, 1000), scale_squared), count)


def mirrored(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    half = exact(-(-count // 2), scale_squared)
    return np.concatenate([half, -half])[:count]


def running(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    """Neighbors share a part of their noise."""
    parts = exact(count + 1, scale_squared / 2)
    return parts[1:] + parts[:-1]


NOISE: tuple[tuple[str, Noise], ...] = (
    ("half the noise", lambda n, s2: exact(n, s2 / 4)),
    ("half the variance", lambda n, s2: exact(n, s2 / 2)),
    ("a tenth less noise", lambda n, s2: exact(n, s2 * Fraction(81, 100))),
    ("a fiftieth less noise", lambda n, s2: exact(n, s2 * Fraction(96, 100))),
    ("s taken for s^2", lambda n, s2: exact(n, Fraction(max(math.isqrt(int(s2)), 1)))),
    ("s^2 rounded down to a whole number", lambda n, s2: exact(n, Fraction(max(int(s2), 1), 1 if s2 > 1 else 4))),
    ("no noise at all", lambda n, s2: np.zeros(n, dtype=np.int64)),
    ("noise cut at two scales", lambda n, s2: np.clip(exact(n, s2), -int(2 * normal(s2)), int(2 * normal(s2)))),
    ("noise cut at four scales", lambda n, s2: np.clip(exact(n, s2), -int(4 * normal(s2)), int(4 * normal(s2)))),
    ("noise in eight bits", lambda n, s2: exact(n, s2).astype(np.int8).astype(np.int64)),
    ("only positive noise", lambda n, s2: np.abs(exact(n, s2))),
    ("noise with a lean", lambda n, s2: exact(n, s2) + (np.arange(n) % 40 == 0)),
    ("only even noise", lambda n, s2: 2 * exact(n, s2 / 4)),
    ("normal noise, rounded", lambda n, s2: np.rint(np.random.default_rng().normal(0, normal(s2), n)).astype(np.int64)),
    ("normal noise, cut to whole", lambda n, s2: np.random.default_rng().normal(0, normal(s2), n).astype(np.int64)),
    ("Laplace noise of that variance", laplace),
    ("uniform noise of that variance", uniform),
)

REUSE: tuple[tuple[str, Noise], ...] = (
    ("a thousand draws over and over", tiled),
    ("each draw and its mirror image", mirrored),
    ("neighboring cells share noise", running),
    ("the same draws for tables of one shape", Remembered()),
    ("one draw for a whole block", lambda n, s2: np.repeat(exact(-(-n // 4), s2), 4)[:n]),
)


def no_noise_on_empty(table: NDArray[np.int64], draws: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(table == 0, 0, table + draws)


def less_noise_on_large(table: NDArray[np.int64], draws: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(table > 3, table + draws // 2, table + draws)


def priced(share: Fraction) -> Plant:
    """Every table is charged this share of its price."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        genuine = queries.marginal_charge

        def cheap(*arguments: Any, **options: Any) -> Any:
            import dataclasses

            charge = genuine(*arguments, **options)
            return dataclasses.replace(charge, cost=charge.cost * share)

        patch.setattr(queries, "marginal_charge", cheap)
        patch.setattr(ledger, "_mechanism_fault", lambda charge: None)

    return plant


def only_the_first(patch: pytest.MonkeyPatch) -> None:
    genuine = ledger.Ledger.spend

    def spend(self: Any, charges: Sequence[Any]) -> range:
        genuine(self, charges[:1])
        return range(len(charges))

    patch.setattr(ledger.Ledger, "spend", spend)


def looked_first(patch: pytest.MonkeyPatch) -> None:
    genuine = curator.DataCurator.measure

    def measure(self: Any, requests: Any, **options: Any) -> Any:
        self.source.count([request.clique for request in requests])
        return genuine(self, requests, **options)

    patch.setattr(curator.DataCurator, "measure", measure)


def refunded(patch: pytest.MonkeyPatch) -> None:
    genuine = curator.DataCurator.measure

    def measure(self: Any, requests: Any, **options: Any) -> Any:
        before = self.ledger._charges
        try:
            return genuine(self, requests, **options)
        except MargentError:
            self.ledger._charges = before
            raise

    patch.setattr(curator.DataCurator, "measure", measure)


def unlocked(patch: pytest.MonkeyPatch) -> None:
    """Afford, think, write: two threads can both afford the last of it."""

    def spend(self: Any, charges: Sequence[Any]) -> range:
        cost = sum((charge.cost for charge in charges), Fraction(0))
        if cost > self.left:
            raise ledger.BudgetError("too much")
        time.sleep(0.002)
        self._charges += tuple(charges)
        self._spent += cost
        return range(len(self._charges) - len(charges), len(self._charges))

    patch.setattr(ledger.Ledger, "spend", spend)


def unchecked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger, "_exact_positive", lambda value: True)
    patch.setattr(ledger, "_mechanism_fault", lambda charge: None)


def too_much_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger.Ledger, "left", property(lambda self: self._total * Fraction(12, 10) - self._spent))


def score_sensitivity(rule: Callable[[str, int, Neighbors, PublicTables | None], Fraction]) -> Plant:
    return lambda patch: patch.setattr(queries, "score_sensitivity_squared", rule)


def mutual_information_price(rule: Callable[[Neighbors, PublicTables], Fraction]) -> Plant:
    return lambda patch: patch.setattr(queries, "mutual_information_sensitivity", rule)


def f_for_half_a_record(patch: pytest.MonkeyPatch) -> None:
    for relation in ("add-remove", "replace"):
        patch.setitem(queries._SCORE_SENSITIVITY, ("f", relation), Fraction(1, 2))  # type: ignore[arg-type]


def usefulness_from_the_exact_number(patch: pytest.MonkeyPatch) -> None:
    """How large tables may get follows from n itself instead of noisy answers: the questions then tell n."""
    genuine = privbayes.PrivBayes.collect

    def collect(self: Any, door: Any, budget: Any) -> Any:
        exact = float(door.source.count([()])[0])
        patch.setattr(privbayes, "noisy_total", lambda one_ways: exact)
        return genuine(self, door, budget)

    patch.setattr(privbayes.PrivBayes, "collect", collect)


genuine_scores = queries.score_sensitivity_squared
genuine_information = queries.mutual_information_sensitivity
genuine_interaction = queries.interaction_sensitivity_squared


def own_margins(table: NDArray[np.int64], rows: Any, columns: Any, total: float) -> int:
    """Distance from the product of the table's own margins: another sensitivity altogether."""
    return scores_indif(table) // 256


scores_indif = scores.indif


def rounded_half_even(table: NDArray[np.int64], rows: Any, columns: Any, total: float) -> int:
    expected = np.outer(rows, columns) / total
    return round(float(np.abs(table - np.rint(expected * 2) / 2).sum()))


def counted_twice(patch: pytest.MonkeyPatch) -> None:
    genuine = source.CodedCounts.count

    def count(self: Any, cliques: Any, *merges: Any) -> Any:
        return [
            table * 2 if len(names) > 1 else table
            for names, table in zip(cliques, genuine(self, cliques, *merges), strict=True)
        ]

    patch.setattr(source.CodedCounts, "count", count)


def total(factor: Fraction) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        genuine = gdp.GdpAccount.total
        patch.setattr(gdp.GdpAccount, "total", lambda self, e, d: genuine(self, e, d) * factor)

    return plant


def delta_as(factor: int) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        genuine = gdp.GdpAccount.total
        patch.setattr(gdp.GdpAccount, "total", lambda self, e, d: genuine(self, e, d * factor))

    return plant


def continuous_price(patch: pytest.MonkeyPatch) -> None:
    """Discrete noise priced as if it were continuous: at s^2 = 1/2 that is 2 % too cheap."""
    patch.setattr(gdp.GdpAccount, "gaussian_cost", lambda self, d2, s2: d2 / (2 * s2))


def choosing(rule: Callable[[list[int], Fraction, Fraction], int]) -> Plant:
    return lambda patch: patch.setattr(exponential, "exponential_choice", rule)


genuine_choice = exponential.exponential_choice


def permute_and_flip(values: list[int], epsilon: Fraction, sensitivity: Fraction) -> int:
    rng = np.random.default_rng()
    while True:
        for place in rng.permutation(len(values)):
            if rng.random() < math.exp(float(epsilon) * (values[place] - max(values)) / (2 * float(sensitivity))):
                return int(place)


def exact_rows(patch: pytest.MonkeyPatch) -> None:
    """As many rows as the table has: the number of records is nobody's business."""
    genuine = pipeline.synthesize

    def counted(table: Any, *arguments: Any, **options: Any) -> Any:
        options["rows"] = len(Path(table).read_text().splitlines()) - 1
        return genuine(table, *arguments, **options)

    patch.setattr(pipeline, "synthesize", counted)


def grown_tables(patch: pytest.MonkeyPatch) -> None:
    """Counting without the domain's size: the table ends at the last value that somebody has."""
    genuine = curator.DataCurator._exact_tables

    def cut(self: Any, *arguments: Any) -> Any:
        for position, table in genuine(self, *arguments):
            yield position, table[: int(np.flatnonzero(table.reshape(len(table), -1).sum(axis=1)).max(initial=0)) + 1]

    patch.setattr(curator.DataCurator, "_exact_tables", cut)


def told_of_a_cell(patch: pytest.MonkeyPatch) -> None:
    from margent.errors import SchemaError
    from margent.schema.codec import Codec

    genuine = Codec.encode

    def encode(self: Any, batch: Any) -> Any:
        if any("secretvalue" in str(cell) for column in batch.columns for cell in column.to_pylist()):
            raise SchemaError(["there is a value 'secretvalue' that the schema does not list"], "the table")
        return genuine(self, batch)

    patch.setattr(Codec, "encode", encode)


def hashed_input(patch: pytest.MonkeyPatch) -> None:
    """A checksum of the table in the release, for provenance."""
    import hashlib

    from margent.release import release as module

    genuine = pipeline.synthesize
    seen: dict[str, str] = {}

    def noted(table: Any, *arguments: Any, **options: Any) -> Any:
        seen["hash"] = hashlib.sha256(Path(table).read_bytes()).hexdigest()
        return genuine(table, *arguments, **options)

    summary = module.Release.__dict__["summary"].func
    patch.setattr(pipeline, "synthesize", noted)
    patch.setattr(module.Release, "summary", property(lambda self: summary(self) | {"input": dict(seen)}))


def picked_exactly(patch: pytest.MonkeyPatch) -> None:
    """JTree's edges in the order of the exact scores, while the noisy ones are charged and published."""
    from margent.collectors import jtree
    from margent.privacy.requests import ScoreRequest

    genuine = jtree.JTree._pick

    def pick(self: Any, door: Any, share: Any, merges: Any, known: Any, total: float) -> Any:
        answers, edges, distances = genuine(self, door, share, merges, known, total)
        if not hasattr(door, "source"):
            return answers, edges, distances
        pairs = tuple(sorted({pair for answer in answers for pair in answer.cliques}))
        request = ScoreRequest("independence", pairs, Gaussian(Fraction(1)), bool(merges), known.counts)
        values = dict(zip(pairs, door._exact_scores(request, merges, "pairs").tolist(), strict=True))
        told = None if distances is None else {pair: float(values[pair]) for pair in pairs}
        return answers, sorted(pairs, key=lambda pair: (-values[pair], pair)), told

    patch.setattr(jtree.JTree, "_pick", pick)


BUGS: tuple[Bug, ...] = (
    *(Bug(name, gates.the_noise_has_the_charged_law, noisy(law)) for name, law in NOISE),
    *(Bug(name, gates.no_draw_is_used_twice, noisy(law)) for name, law in REUSE),
    Bug("no noise in one run of a hundred", gates.no_run_goes_without_noise, noisy(seldom_none)),
    Bug("noise from numpy's global generator", gates.no_seed_reaches_the_noise, noisy(global_numpy)),
    Bug("noise from a generator that a fork copies", gates.no_seed_reaches_the_noise, noisy(forked_generator())),
    Bug("no noise on empty cells", gates.the_noise_has_the_charged_law, adding(no_noise_on_empty)),
    Bug("less noise on large cells", gates.the_noise_has_the_charged_law, adding(less_noise_on_large)),
    Bug(
        "counts below zero cut off before they are kept",
        gates.the_noise_has_the_charged_law,
        adding(lambda table, draws: np.maximum(table + draws, 0)),
    ),
    Bug("composition forgotten", gates.every_answer_is_charged_at_its_price, priced(Fraction(1, 2))),
    Bug("a thousandth of the price forgotten", gates.every_answer_is_charged_at_its_price, priced(Fraction(999, 1000))),
    Bug("only the first table charged", gates.every_answer_is_charged_at_its_price, only_the_first),
    Bug("discrete noise priced as continuous", gates.every_answer_is_charged_at_its_price, continuous_price),
    Bug("looked before the charge", gates.charges_come_before_looks_and_stay, looked_first),
    Bug("refunded after a failure", gates.charges_come_before_looks_and_stay, refunded),
    Bug("two threads spend the last of it", gates.the_budget_is_never_passed, unlocked),
    Bug("a fifth more than there is", gates.the_budget_is_never_passed, too_much_left),
    Bug(
        "charges of nothing",
        gates.the_budget_is_never_passed,
        unchecked,
    ),
    Bug(
        "charges below any price",
        gates.the_budget_is_never_passed,
        setting("margent.privacy.ledger._mechanism_fault", lambda charge: None),
    ),
    Bug(
        "replacing a record taken for one change",
        gates.answers_move_no_more_than_registered,
        setting(
            "margent.privacy.queries.marginal_sensitivity_squared", lambda neighbors: Fraction(neighbors.unit_rows**2)
        ),
    ),
    Bug(
        "PrivSyn's constant under replacement",
        gates.answers_move_no_more_than_registered,
        score_sensitivity(
            lambda kind, count, neighbors, _: genuine_scores(
                kind, count, Neighbors("add-remove", neighbors.person_rows)
            )
        ),
    ),
    Bug(
        "a person's rows taken for one row",
        gates.answers_move_no_more_than_registered,
        setting(
            "margent.privacy.queries.marginal_sensitivity_squared",
            lambda neighbors: Fraction(2 if neighbors.relation == "replace" else 1),
        ),
    ),
    Bug(
        "a person's rows taken for as many persons",
        gates.answers_move_no_more_than_registered,
        setting(
            "margent.privacy.queries.marginal_sensitivity_squared",
            lambda neighbors: Fraction(2 if neighbors.relation == "replace" else neighbors.unit_rows),
        ),
    ),
    Bug(
        "an interaction taken for a table",
        gates.answers_move_no_more_than_registered,
        setting("margent.privacy.queries.interaction_sensitivity_squared", lambda sizes, neighbors: Fraction(1)),
    ),
    Bug(
        "an interaction under replacement taken for two that do not overlap",
        gates.answers_move_no_more_than_registered,
        setting(
            "margent.privacy.queries.interaction_sensitivity_squared",
            lambda sizes, neighbors: (
                genuine_interaction(sizes, Neighbors("add-remove", neighbors.person_rows))
                * (2 if neighbors.relation == "replace" else 1)
            ),
        ),
    ),
    Bug(
        "scores: the root of m forgotten",
        gates.answers_move_no_more_than_registered,
        score_sensitivity(lambda kind, count, neighbors, _: genuine_scores(kind, 1, neighbors)),
    ),
    Bug(
        "InDif taken for a sensitivity of one",
        gates.answers_move_no_more_than_registered,
        score_sensitivity(lambda kind, count, neighbors, _: genuine_scores(kind, count, neighbors) / 16),
    ),
    Bug(
        "expectations from the exact margins",
        gates.answers_move_no_more_than_registered,
        setting("margent.privacy.scores.independence_distance", own_margins),
    ),
    Bug(
        "mutual information of all columns priced as that of binary ones",
        gates.mutual_information_moves_no_more_than_registered,
        mutual_information_price(
            lambda neighbors, tables: genuine_information(neighbors, replace(tables, binary=True)),
        ),
    ),
    Bug(
        "mutual information sold where the number of records is private",
        gates.mutual_information_moves_no_more_than_registered,
        mutual_information_price(lambda neighbors, tables: genuine_information(Neighbors("replace"), tables)),
    ),
    Bug("F priced at half a record", gates.f_moves_no_more_than_registered, f_for_half_a_record),
    Bug(
        "usefulness of tables from the exact number of records",
        gates.questions_follow_from_answers_alone,
        usefulness_from_the_exact_number,
    ),
    Bug("a record counted twice in pairs", gates.answers_move_no_more_than_registered, counted_twice),
    Bug(
        "scores rounded half to even",
        gates.scores_are_rounded_without_a_second_step,
        setting("margent.privacy.scores.independence_distance", rounded_half_even),
    ),
    Bug("one percent over the total", gates.the_stated_epsilon_is_true, total(Fraction(101, 100))),
    Bug("delta taken ten times", gates.the_stated_epsilon_is_true, delta_as(10)),
    Bug(
        "the best candidate, without noise",
        gates.choices_have_the_exponential_law,
        choosing(lambda values, epsilon, sensitivity: values.index(max(values))),
    ),
    Bug(
        "permute and flip, priced as the exponential mechanism",
        gates.choices_have_the_exponential_law,
        choosing(permute_and_flip),
    ),
    Bug(
        "choices at twice epsilon",
        gates.choices_have_the_exponential_law,
        choosing(lambda values, epsilon, sensitivity: genuine_choice(values, 2 * epsilon, sensitivity)),
    ),
    Bug(
        "the sensitivity of choices forgotten",
        gates.choices_have_the_exponential_law,
        choosing(lambda values, epsilon, sensitivity: genuine_choice(values, epsilon, Fraction(1))),
    ),
    Bug("pairs picked by their exact scores", gates.pairs_are_picked_by_noisy_answers_alone, picked_exactly),
    Bug("as many rows as records", gates.nothing_but_the_answers_depends_on_the_data, exact_rows),
    Bug("the domain read from the table", gates.nothing_but_the_answers_depends_on_the_data, grown_tables),
    Bug("a cell in a message", gates.nothing_but_the_answers_depends_on_the_data, told_of_a_cell),
    Bug("a checksum of the table", gates.nothing_but_the_answers_depends_on_the_data, hashed_input),
    Bug(
        "half the noise, seen through the whole run",
        gates.the_whole_run_keeps_its_promise,
        noisy(lambda n, s2: exact(n, s2 / 4)),
    ),
    Bug(
        "half the noise, seen in one run",
        gates.one_run_shows_no_more_than_promised,
        noisy(lambda n, s2: exact(n, s2 / 4)),
    ),
)
