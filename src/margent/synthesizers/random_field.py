"""Estimation of a Markov random field by mirror descent (the library mbi on JAX): noisy tables -> calibrated tree.

The one module that imports JAX, and it does so when a model is built, not before. Everything runs on the CPU in 64-bit
floats, whatever the process asks of JAX elsewhere; columns are given as numbers, because the library keeps sets of
cliques, and sets of names would be gone through in another order in every process.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from margent.errors import UsageError
from margent.postprocessing.calibrated import CalibratedTree
from margent.postprocessing.junction import JunctionTree
from margent.postprocessing.tables import Table
from margent.progress import Progress
from margent.schema.domain import Domain

Numbers = tuple[int, ...]
BLOCK = 50
"""Steps between two looks at the objective, which is what the library compiles as one program."""


@dataclass(frozen=True, slots=True)
class FieldSettings:
    """At most ``steps`` steps of mirror descent, which end where ``BLOCK`` of them gain next to nothing, twice.

    ``tolerance``: that gain, relative to the objective. ``first_step``: the first step, relative to the one that the
    theory calls safe for a table measured most precisely; a step that does not pay is halved.
    """

    steps: int = 2000
    tolerance: float = 1e-5
    first_step: float = 8.0


def fit_field(
    tables: Sequence[Table],
    domain: Domain,
    tree: JunctionTree,
    total: float,
    settings: FieldSettings,
    progress: Progress,
) -> CalibratedTree:
    """The law of most entropy among those on the tree that minimize sum (mu_r - y)^2 / (2 v) over tables and cells.

    mu ranges over the marginals of all laws over records with ``total`` records. Mirror descent from the uniform law:
    the logarithm of the law stays a sum of functions of the measured tables, and a law of that kind that is a
    minimum has the most entropy of all minima.

    Shapes: every table's clique lies inside a clique of ``tree``, which has every column of ``domain``.
    Units: records; variances v in records squared.
    Privacy: none: post-processing.
    Source: McKenna, Sheldon, Miklau 2019 (Private-PGM), algorithm 1.
    Raises: UsageError where the library is not installed.
    """
    with _double_precision() as (jax, mbi):
        number = {name: place for place, name in enumerate(sorted(domain.names))}
        whole = mbi.Domain(range(len(number)), [domain.size(name) for name in sorted(domain.names)])
        cliques = tuple(tuple(number[name] for name in names) for names in tree.cliques)
        measurements = tuple(
            mbi.LinearMeasurement(
                jax.numpy.asarray(table.values),
                tuple(number[name] for name in table.clique),
                jax.numpy.asarray(np.sqrt(table.variance)),
            )
            for table in tables
        )
        least = min((float(table.variance.min()) for table in tables), default=1.0)
        loss = mbi.MarginalLossFn(cliques, _squared_error, measurements, 1 / (least * settings.first_step))
        estimator = mbi.estimation.MirrorDescent(marginal_oracle=_Oracle(cliques, tree.parents))
        blocks = -(-settings.steps // BLOCK)
        done = [0]

        def note(_: object) -> None:
            done[0] += 1
            progress("model", min(done[0] / blocks, 1.0))

        model = estimator.estimate(whole, loss, total, iters=settings.steps, callback_fn=note, tol=settings.tolerance)
        beliefs = tuple(np.asarray(model.marginals[names].values, dtype=np.float64) for names in cliques)
    progress("model", 1.0)
    return CalibratedTree(domain, tree, beliefs, total)


def _squared_error(marginals: Any, measurements: Sequence[Any]) -> Any:
    """Sum of (mu - y)^2 / (2 v), v cell by cell: groups of codes have the noise of all their members."""
    import jax.numpy as jnp

    loss = jnp.zeros(())
    for each in measurements:
        off = (marginals.project(each.clique).values - each.noisy_measurement) / each.stddev
        loss += 0.5 * jnp.vdot(off, off)
    return loss


@dataclass(frozen=True)
class _Oracle:
    """Belief propagation along a given junction tree, in logarithms: potentials of its cliques -> their marginals.

    Equal trees are equal oracles, so that a compiled program serves every fit on the same tree.
    """

    cliques: tuple[Numbers, ...]
    parents: tuple[int | None, ...]

    @cached_property
    def _links(self) -> tuple[tuple[int, int, Numbers, Numbers], ...]:
        """Child, parent, and the axes of each that the other lacks; children after their parents."""
        links = []
        for child, parent in enumerate(self.parents):
            if parent is not None:
                own, other = self.cliques[child], self.cliques[parent]
                links.append(
                    (
                        child,
                        parent,
                        tuple(axis for axis, name in enumerate(own) if name not in other),
                        tuple(axis for axis, name in enumerate(other) if name not in own),
                    )
                )
        return tuple(links)

    def __call__(self, potentials: Any, total: Any = 1.0, *, constraints: Sequence[Any] = ()) -> Any:
        """Marginals with sum ``total`` over each clique; there are no constraints here."""
        import jax.numpy as jnp

        assert not constraints
        beliefs = [potentials.tables[names].values for names in self.cliques]
        upward = {}
        for child, parent, own, other in reversed(self._links):
            upward[child] = _log_sum(beliefs[child], own)
            beliefs[parent] = beliefs[parent] + jnp.expand_dims(upward[child], other)
        for child, parent, own, other in self._links:
            downward = _log_sum(beliefs[parent], other) - upward[child]
            beliefs[child] = beliefs[child] + jnp.expand_dims(downward, own)
        factors = {
            names: _like(potentials.tables[names], _with_sum(belief, total))
            for names, belief in zip(self.cliques, beliefs, strict=True)
        }
        return type(potentials)(potentials.domain, self.cliques, factors)


def _log_sum(values: Any, axes: Numbers) -> Any:
    """ln sum exp over axes; values are finite."""
    import jax.numpy as jnp

    if not axes:
        return values
    most = values.max(axis=axes, keepdims=True)
    return jnp.log(jnp.exp(values - most).sum(axis=axes)) + most.squeeze(axes)


def _with_sum(values: Any, total: Any) -> Any:
    """exp(values), scaled to sum ``total``: by its own sum, since large potentials are rounded by more than 1."""
    import jax.numpy as jnp

    weights = jnp.exp(values - values.max())
    return weights * (total / weights.sum())


def _like(factor: Any, values: Any) -> Any:
    return type(factor)(factor.domain, values)


def require_mbi() -> None:
    """Refuse to build without the library. Privacy: none. Raises: UsageError saying what to install."""
    if find_spec("mbi") is None:
        raise UsageError("this synthesizer needs the package 'mbi': pip install 'margent[pgm]', or take another one")


@contextmanager
def _double_precision() -> Iterator[tuple[ModuleType, ModuleType]]:
    """JAX and mbi on the CPU in 64-bit floats, for as long as the context lasts and no longer."""
    require_mbi()
    import jax

    with warnings.catch_warnings(), jax.enable_x64(True), jax.default_device(jax.local_devices(backend="cpu")[0]):
        # Said once on import, of the process's own settings: the first is not so here, the second is not ours to set.
        warnings.filterwarnings("ignore", "JAX is running in float32 mode", UserWarning)
        warnings.filterwarnings("ignore", "JAX persistent compilation cache is enabled", UserWarning)
        import mbi

        yield jax, mbi
