"""AIM's buying half: rounds of noisy errors of the model so far, and of the tables in which it errs most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np

from margent.collectors.builder import Builder, Fitted
from margent.collectors.first_tables import FirstTables, first_stage, first_tables, measured
from margent.collectors.gaps import fitted, gaps, model_counts
from margent.collectors.one_ways import informative_columns
from margent.collectors.stage import Stage, score_stage, shares_leave_a_rest
from margent.errors import UsageError
from margent.postprocessing.dependence import Counts
from margent.postprocessing.junction import tree_cells
from margent.privacy.budget import Budget
from margent.privacy.queries import marginal_law, score_law
from margent.privacy.requests import Curator
from margent.schema.domain import Clique, Domain, clique
from margent.settings import MOST_CELLS, require_between
from margent.transcript import Answer, Transcript


@dataclass(frozen=True)
class Aim:
    """Buy one-ways, the errors of independence on every candidate, then, in rounds, the tables a model errs on most.

    Each round refreshes the noisy errors of the ``refreshed`` most promising candidates, measures up to ``at_once`` of
    them that share no column, and fits the model again. A candidate r is worth w_r (error_r - noise of measuring it),
    where w_r counts the columns that it shares with each table of the workload: all tables of ``order`` columns.
    Candidates are those tables and all of fewer columns but one, where the model has room: its junction tree may hold
    ``most_tree_cells`` times the share of the budget that is used by then. ``choice_share`` of a round's budget buys
    errors.

    The budget of a round is a part in ``rounds`` of what the beginning leaves. Where measuring moved the model by less
    than its noise, rounds get dearer (half the noise); a round that has no room for any table leaves its part to the
    next, and the last one spends what is left, on one-ways again where there is room for nothing else.

    Privacy: Gaussian releases, or Laplace ones where the account is pure, whose costs add up to the budget on every
    path; sensitivities as registered for `marginal` and `distance`.
    Source: McKenna, Mullins, Sheldon, Miklau 2022, with Gaussian scores of few candidates a round in place of the
    exponential mechanism (as in Google's dpsynth); several tables a round are ours.
    """

    builder: Builder
    one_way_share: Fraction = Fraction(15, 100)
    first_share: Fraction = Fraction(3, 100)
    choice_share: Fraction = Fraction(1, 10)
    rounds: int = 16
    refreshed: int = 16
    at_once: int = 4
    order: int = 2
    merge_below: float = 3.0
    most_tree_cells: int = 200_000
    max_table_cells: int = 50_000
    name: str = "aim"

    def __post_init__(self) -> None:
        """Check the shares and counts. Raises: UsageError."""
        beginning = self.one_way_share, self.first_share
        if not (shares_leave_a_rest(*beginning) and shares_leave_a_rest(self.choice_share)):
            raise UsageError("aim: shares must be positive, those of the beginning and of choices below 1")
        require_between(
            self,
            rounds=(1, 1000),
            refreshed=(1, 1_000_000),
            at_once=(1, 1000),
            order=(2, 3),
            merge_below=(0, 1e6),
            most_tree_cells=(1, MOST_CELLS),
            max_table_cells=(4, MOST_CELLS),
        )

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """One-ways, the first errors, and all rounds at most. Privacy: none: public facts only."""
        columns = informative_columns(domain)
        first = first_stage(domain, budget, self.one_way_share)
        if len(columns) < 2:
            return (first,)
        cells = sorted(min(domain.cells(names), self.max_table_cells) for names in self._tables(columns))
        rest = 1 - self.one_way_share - self.first_share
        tables = self.rounds * self.at_once
        law = score_law("distance", len(cells), budget.total * self.first_share, budget.neighbors, budget.account)
        part = budget.total * rest * (1 - self.choice_share) / tables
        error_part = budget.total * rest * self.choice_share / self.rounds
        return (
            first,
            score_stage(
                "errors of independence",
                self.first_share,
                cells,
                law,
                f"one score a table of at most {self.order} columns and {self.max_table_cells:,} merged cells",
            ),
            Stage(
                name="errors of the model",
                share=rest * self.choice_share,
                questions=self.rounds * self.refreshed,
                largest=cells[-1],
                cells=self.rounds * sum(cells[-self.refreshed :]),
                law=score_law("distance", self.refreshed, error_part, budget.neighbors, budget.account),
                note=f"at most {self.rounds} rounds of {self.refreshed} errors, noise as in the first",
                scores=True,
                looks=self.rounds,
                new=0,
            ),
            Stage(
                name="tables that the model errs on",
                share=rest * (1 - self.choice_share),
                questions=max(tables, len(columns)),
                largest=max(cells[-1], first.largest),
                cells=max(tables * cells[-1], first.cells),
                law=marginal_law(part, budget.neighbors, budget.account),
                note=f"at most {self.rounds} rounds of {self.at_once}, noise as in the first; a model of at most "
                f"{self.most_tree_cells:,} cells",
                looks=self.rounds,
                new=0,
            ),
        )

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the budget in rounds, each sized from public facts and earlier noisy answers."""
        domain = curator.domain
        if not informative_columns(domain):
            return Transcript(curator.schema, domain, self.name, curator.charges, ())
        first = first_tables(curator, budget, self.one_way_share, self.merge_below, self.name)
        answers: list[Answer] = list(first.one_ways)
        if len(first.one_ways) > 1:
            left = budget.total * (1 - self.one_way_share)
            several = [name for name in first.domain.names if first.domain.size(name) > 1]
            tables = [names for names in self._tables(several) if first.domain.cells(names) <= self.max_table_cells]
            if tables:
                run = _Run(self, curator, first, budget.total, left, answers)
                run.begin(tables)
                run.play()
            else:
                answers += measured(curator, first.merges, (), left, "tables that the model errs on")
        return Transcript(curator.schema, domain, self.name, curator.charges, tuple(answers), first.merges)

    def _tables(self, columns: Sequence[str]) -> Iterator[Clique]:
        for size in range(2, min(self.order, len(columns)) + 1):
            yield from (clique(names) for names in combinations(columns, size))


@dataclass
class _Run:
    """One run's state: what was bought, what is left, the latest noisy error of every candidate."""

    aim: Aim
    curator: Curator
    first: FirstTables
    whole: Fraction
    left: Fraction
    answers: list[Answer]
    errors: dict[Clique, float] = field(default_factory=dict)
    weights: dict[Clique, int] = field(default_factory=dict)
    bought: list[Clique] = field(default_factory=list)
    model: Fitted | None = None

    def begin(self, tables: Sequence[Clique]) -> None:
        """Buy the distance of every candidate from the product of its one-ways."""
        self.weights = weights(tables, self.aim.order)
        share = self.whole * self.aim.first_share
        self._refresh(tables, share, "errors of independence")
        self.left -= share

    def play(self) -> None:
        """All rounds."""
        part, waiting = self.left / self.aim.rounds, Fraction(0)
        for _ in range(self.aim.rounds):
            last = self.left < 2 * part + waiting
            budget = self.left if last else part + waiting
            chosen, before = self._choose(budget)
            if not chosen and not last:
                waiting = budget
                continue
            waiting = Fraction(0)
            share = budget * (1 - self.aim.choice_share) if chosen else budget
            noise = self._noise(share, max(len(chosen), 1))
            self.answers += measured(self.curator, self.first.merges, chosen, share, "tables that the model errs on")
            self.left -= budget
            if last:
                break
            self.bought += chosen
            self.model = fitted(self.curator, self.first, self.answers, self.aim.name, self.aim.builder)
            after = model_counts(self.model, self.first, chosen)
            small = {names: noise * self.first.domain.cells(names) for names in chosen}
            for names in chosen:
                self.errors[names] = min(self.errors[names], small[names])
            if all(float(np.abs(after[names] - before[names]).sum()) <= small[names] for names in chosen):
                # Half the noise: four times the cost of a Gaussian, twice that of a Laplace.
                part = part * 2**self.curator.account.scale_power

    def _choose(self, part: Fraction) -> tuple[list[Clique], Mapping[Clique, Counts]]:
        """The tables to measure with a round's budget, and what the model says of them; none (and nothing bought) where
        there is no room."""
        share = part * (1 - self.aim.choice_share)
        noise = self._noise(share, self.aim.at_once)
        used = (self.whole - self.left + part) / self.whole
        room = math.floor(self.aim.most_tree_cells * used)
        promising: list[Clique] = []
        for names in sorted(self.errors, key=lambda names: (-self._worth(names, noise), names)):
            if len(promising) < self.aim.refreshed and self._cells([names]) <= room:
                promising.append(names)
        if not promising:
            return [], {}
        before = self._refresh(promising, part * self.aim.choice_share, "errors of the model")
        chosen: list[Clique] = []
        for names in sorted(promising, key=lambda names: (-self._worth(names, noise), names)):
            fresh = not any(set(names) & set(other) for other in chosen)
            worth = not chosen or self._worth(names, noise) > 0
            if fresh and worth and len(chosen) < self.aim.at_once and self._cells([*chosen, names]) <= room:
                chosen.append(names)
        return chosen, before

    def _refresh(self, cliques: Sequence[Clique], share: Fraction, label: str) -> Mapping[Clique, Counts]:
        """Buy the model's errors on some tables anew."""
        model = model_counts(self.model, self.first, cliques)
        scores = gaps(self.curator, self.first, model, share, label)
        self.answers.append(scores)
        self.errors |= dict(zip(scores.cliques, scores.records().tolist(), strict=True))
        return model

    def _worth(self, names: Clique, noise: float) -> float:
        return self.weights[names] * (self.errors[names] - noise * self.first.domain.cells(names))

    def _noise(self, share: Fraction, tables: int) -> float:
        """Mean absolute noise of a cell if so many tables are measured with the share."""
        return marginal_law(share / tables, self.curator.neighbors, self.curator.account).mean_absolute

    def _cells(self, more: Sequence[Clique]) -> int:
        singles: list[Clique] = [(name,) for name in self.first.domain.names]
        return tree_cells([*singles, *self.bought, *more], self.first.domain)


def weights(candidates: Sequence[Clique], order: int) -> dict[Clique, int]:
    """w_r = sum over the workload's tables s of |r and s|; the workload is every candidate of ``order`` columns.

    Privacy: none: public facts and names only.

    >>> weights([("a", "b"), ("a", "c")], 2)
    {('a', 'b'): 3, ('a', 'c'): 3}
    """
    workload = [set(names) for names in candidates if len(names) == order] or [set(names) for names in candidates]
    holders: dict[str, int] = {}
    for table in workload:
        for name in table:
            holders[name] = holders.get(name, 0) + 1
    return {names: sum(holders.get(name, 0) for name in names) for names in candidates}
