"""Marginal difference: the least cost of turning synthetic marginals into the real ones, by meaning, with tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.metrics.mgd.attribute import Attribute
from margent.metrics.mgd.certificate import Certificate, certified, left_over, price_terms
from margent.metrics.mgd.costs import Axis, Convention, Weight, axes_of, whole_costs
from margent.metrics.mgd.split import Plan, planned
from margent.schema.domain import Clique

LARGEST = 4_000_000
"""A general flow on more cells than this is not solved; its two bounds are given instead."""
BIGGEST_COUNT = 2**31


@dataclass(frozen=True, eq=False)
class Cells:
    """Where the cost of a marginal sits.

    Shapes: each has the table's shape. Units: records. ``moved``: records moved out of the cell less those moved
    in. ``left``: records over (positive) or short (negative) after the moves and the tolerance. ``priced``: what
    the cell adds to the cost, which its sum is where the result is exact; negative where a cell takes records of
    others at a price.
    """

    moved: NDArray[np.float64]
    left: NDArray[np.float64]
    priced: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Aemc:
    """Approximate earth mover's cost of one marginal, a share of the real records.

    ``exact`` where the certificate proves ``value``; else it is the ``upper`` bound. ``moved`` is the part of the
    value spent on moves along each attribute, ``left`` the part for records over or short: together the value.
    """

    clique: Clique
    value: float
    lower: float
    upper: float
    exact: bool
    certificate: Certificate
    moved: Mapping[str, float]
    left: float
    _plan: Plan = field(repr=False)
    _bounds: tuple[NDArray[np.int64], NDArray[np.int64]] = field(repr=False)
    _scale: tuple[int, int] = field(repr=False)

    def cells(self) -> Cells:
        """The contribution of each cell."""
        unit, grain = self._scale
        return Cells(
            self._plan.outflow / grain,
            left_over(self._plan.outflow, *self._bounds) / grain,
            price_terms(self._plan.price, *self._bounds) / (unit * grain),
        )


@dataclass(frozen=True, eq=False)
class MgdResult:
    """Marginal difference: the weighted mean of the marginals' costs.

    ``attributes``: the part of the value that is spent on moves along each attribute.
    """

    value: float
    lower: float
    upper: float
    exact: bool
    marginals: tuple[Aemc, ...]
    attributes: Mapping[str, float]
    left: float


def mgd(
    real: Mapping[Clique, NDArray[np.integer[Any]]],
    synthetic: Mapping[Clique, NDArray[np.integer[Any]]],
    attributes: Mapping[str, Attribute],
    *,
    tolerance: Fraction | float | int = 2,
    weights: Mapping[str, Weight] | None = None,
    marginal_weights: Mapping[Clique, float] | None = None,
    levels: Mapping[str, str] | None = None,
    convention: Convention = "definition",
    largest: int = LARGEST,
) -> MgdResult:
    """MGD = sum over marginals of w AEMC / sum of w.

    AEMC = min over plans X of (sum of moves X_ij times distance + sum over cells of what is over or short by more
    than the tolerance) / number of real records. ``weights``: an attribute it does not name weighs infinitely;
    finite ones are scaled to sum to 1 in each marginal. ``levels``: the level of a hierarchy at which an attribute
    is compared, instead of its values.

    Shapes: one table of whole counts a clique, axes in the clique's order, the same cliques on both sides.
    Privacy: exact: as private as the real counts.
    Source: Li, Dang, Wang and Li 2021; `docs/how-it-works/mgd.md`.
    Raises: UsageError listing what does not fit together.

    >>> ages = {"age": Attribute("age", 3, 3, "order")}
    >>> [mgd({("age",): np.array([5, 4, 1])}, {("age",): np.array(table)}, ages, tolerance=0).value
    ...  for table in ([4, 5, 1], [4, 4, 2])]
    [0.05, 0.1]
    """
    faults = _faults(real, synthetic, attributes, marginal_weights or {})
    if not 0 <= tolerance < math.inf:
        faults.append("tolerance: must be a number of 0 or more")
    faults += [f"levels: no attribute {name!r}" for name in levels or {} if name not in attributes]
    faults += [f"weights: no attribute {name!r}" for name in weights or {} if name not in attributes]
    if faults:
        raise UsageError("these marginals cannot be compared:\n" + "\n".join(f"  {fault}" for fault in faults))
    allowed = Fraction(str(tolerance)) if isinstance(tolerance, float) else Fraction(tolerance)
    results = []
    for clique, counts in real.items():
        chosen, truth = _at_levels(clique, np.asarray(counts, dtype=np.int64), attributes, levels or {})
        _, made = _at_levels(clique, np.asarray(synthetic[clique], dtype=np.int64), attributes, levels or {})
        results.append(_aemc(clique, truth, made, axes_of(chosen, weights, convention), allowed, convention, largest))
    shares = [float((marginal_weights or {}).get(result.clique, 1.0)) for result in results]
    total = sum(shares)

    def mean(values: Sequence[float]) -> float:
        return sum(share * value for share, value in zip(shares, values, strict=True)) / total

    names = dict.fromkeys(name for result in results for name in result.clique)
    return MgdResult(
        mean([result.value for result in results]),
        mean([result.lower for result in results]),
        mean([result.upper for result in results]),
        all(result.exact for result in results),
        tuple(results),
        {name: mean([result.moved.get(name, 0.0) for result in results]) for name in names},
        mean([result.left for result in results]),
    )


def _aemc(
    clique: Clique,
    real: NDArray[np.int64],
    synthetic: NDArray[np.int64],
    axes: tuple[Axis, ...],
    tolerance: Fraction,
    convention: Convention,
    largest: int,
) -> Aemc:
    """One marginal; counts are multiplied by the tolerance's denominator, so that all numbers are whole."""
    grain = tolerance.denominator
    real, synthetic, allowed = real * grain, synthetic * grain, tolerance.numerator
    floor = real - allowed if convention == "table1" else np.maximum(real - allowed, 0)
    least, most = synthetic - (real + allowed), synthetic - floor
    unit, steps = whole_costs(axes)
    if (int(real.sum()) + int(synthetic.sum()) + allowed * real.size) * unit >= 2**62:
        raise UsageError(f"{clique}: counts times the tolerance's denominator are too large; round the tolerance")
    plan = planned(least, most, axes, unit, steps, largest)
    proof = certified(plan, least, most, axes, unit, steps)
    # Without a real record there is nothing to be a share of but the synthetic ones.
    total = int(real.sum()) or int(synthetic.sum()) or 1
    moved = {
        axis.attribute.name: float((axis.step or Fraction(0)) * made / total)
        for axis, made in zip(axes, plan.steps, strict=True)
    }
    left = int(np.abs(left_over(plan.outflow, least, most)).sum()) / total
    upper = float(proof.primal / total)
    return Aemc(
        clique,
        upper,
        float(proof.dual / total),
        upper,
        proof.optimal,
        Certificate(proof.primal / grain, proof.dual / grain),
        moved,
        left,
        plan,
        (least, most),
        (unit, grain),
    )


def _at_levels(
    clique: Clique, counts: NDArray[np.int64], attributes: Mapping[str, Attribute], levels: Mapping[str, str]
) -> tuple[list[Attribute], NDArray[np.int64]]:
    chosen = []
    for axis, name in enumerate(clique):
        one = attributes[name]
        if name in levels:
            one, codes = one.coarsened(levels[name])
            coarse = np.zeros((one.size, *np.moveaxis(counts, axis, 0).shape[1:]), dtype=np.int64)
            np.add.at(coarse, codes, np.moveaxis(counts, axis, 0))
            counts = np.moveaxis(coarse, 0, axis)
        chosen.append(one)
    return chosen, np.ascontiguousarray(counts)


def _faults(
    real: Mapping[Clique, NDArray[Any]],
    synthetic: Mapping[Clique, NDArray[Any]],
    attributes: Mapping[str, Attribute],
    marginal_weights: Mapping[Clique, float],
) -> list[str]:
    faults = [] if real else ["there is no marginal; give at least one table of counts"]
    if set(real) != set(synthetic):
        faults.append("real and synthetic tables are over different cliques; count the same ones")
    for clique in real:
        if lacking := [name for name in clique if name not in attributes]:
            faults.append(f"{clique}: no attribute is given for {', '.join(map(repr, lacking))}")
            continue
        shape = tuple(attributes[name].size for name in clique)
        for side, tables in (("real", real), ("synthetic", synthetic)):
            if clique not in tables:
                continue
            table = np.asarray(tables[clique])
            if table.dtype.kind not in "iu":
                faults.append(f"{clique}: the {side} table must hold whole counts")
            elif table.shape != shape:
                faults.append(f"{clique}: the {side} table has shape {table.shape}, its attributes {shape}")
            elif table.size and (table.min() < 0 or table.max() > BIGGEST_COUNT):
                faults.append(f"{clique}: counts of the {side} table must lie in 0..{BIGGEST_COUNT}")
    faults += [f"marginal weights: {clique} is not among the marginals" for clique in set(marginal_weights) - set(real)]
    given = [float(marginal_weights.get(clique, 1.0)) for clique in real]
    if real and (min(given) < 0 or not sum(given) > 0):
        faults.append("marginal weights: must be 0 or more, and not all 0")
    return faults
