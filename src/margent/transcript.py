"""The transcript: a public schema and the noisy answers that were bought. Everything after it is free.

A release is a function of a public schema and a list of noisy answers; privacy is spent only to make that
list. The list is a `Transcript`; it may be published whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margent.schema.domain import Clique, Domain, Merge, clique

if TYPE_CHECKING:
    from margent.privacy.charge import Charge
    from margent.schema.fields import Schema


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """Integer noisy counts over a clique: exact counts plus independent integer noise.

    ``interaction``: the integers are those of what the counts say beyond their margins, in parts of a record, one part
    a cell (`margent.privacy.interactions`); so is ``variance``.

    Shapes: ``counts`` is int64 with one axis a name of ``clique``, in that order; axis sizes are those of the
    domain, or of the transcript's merges where ``merged`` is true.
    Units: records; ``variance`` is that of each cell's noise (records squared), as its law states it.
    Privacy: the charge at ``charge`` in the transcript's list paid for it.
    """

    clique: Clique
    counts: NDArray[np.int64]
    variance: Fraction
    charge: int
    merged: bool = False
    interaction: bool = False


@dataclass(frozen=True, eq=False)
class Scores:
    """Noisy scores, one a clique, in units of ``1 / denominator`` of a record; each has its own draw.

    Shapes: ``values`` is int64, one entry a clique.
    Units: ``values / denominator`` records; ``variance`` is that of the noise, in records squared.
    Where ``children`` are named, score i is of column ``children[i]`` against the others of clique i together.

    Privacy: one charge for the whole vector.
    """

    kind: str
    cliques: tuple[Clique, ...]
    values: NDArray[np.int64]
    denominator: int
    variance: Fraction
    charge: int
    merged: bool = False
    children: tuple[str, ...] = ()

    def records(self) -> NDArray[np.float64]:
        """The scores in records."""
        scaled: NDArray[np.float64] = self.values / float(self.denominator)
        return scaled


@dataclass(frozen=True, eq=False)
class Choice:
    """The cliques that the exponential mechanism chose among the charge's, in the order chosen; no score is told.

    Where ``children`` are named, choice i is of column ``children[i]`` given the others of clique i.

    Privacy: one charge, which names the candidates, for all choices.
    """

    kind: str
    cliques: tuple[Clique, ...]
    charge: int
    merged: bool = False
    children: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Noisy counts of one column on the public grid that its quantiles are read off (`margent.schema.quantile_grid`).

    Shapes: ``counts`` is int64, one entry a code of the column whose bins are the grid's cells.
    Units: records; ``variance`` as of a `NoisyMarginal`.
    Privacy: one charge.
    """

    column: str
    counts: NDArray[np.int64]
    variance: Fraction
    charge: int


@dataclass(frozen=True, eq=False)
class OpenValues:
    """Values of an open set whose noisy counts reached the charge's threshold, by name, with those counts.

    Shapes: ``counts`` is int64, one entry a value.
    Units: records; ``variance`` as of a `NoisyMarginal`, but what is here passed the threshold.
    Privacy: one charge, which also uses up delta. The order says nothing: it is that of the names.
    """

    column: str
    values: tuple[str, ...]
    counts: NDArray[np.int64]
    variance: Fraction
    charge: int


@dataclass(frozen=True, eq=False)
class Sizes:
    """Noisy numbers of persons with 1, 2, ... kept rows; ``column`` has their ids.

    Shapes: ``counts`` is int64, one entry a number of rows.
    Units: persons; ``variance`` in persons squared.
    Privacy: one charge.
    """

    column: str
    counts: NDArray[np.int64]
    variance: Fraction
    charge: int


Bought = Quantiles | OpenValues | Sizes
"""What a schema may have bought before its codes are fixed."""
Answer = NoisyMarginal | Scores | Choice | Bought


@dataclass(frozen=True, slots=True)
class Node:
    """One column of a Bayesian network and the (perhaps merged) columns it is drawn from.

    >>> Node("status", ("age", "sex")).clique
    ('age', 'sex', 'status')
    """

    child: str
    parents: Clique = ()

    @property
    def clique(self) -> Clique:
        """The columns that its noisy table counts together."""
        return clique((self.child, *self.parents))


@dataclass(frozen=True, slots=True)
class Network:
    """A Bayesian network: every column once, in an order in which parents come first.

    Privacy: a function of noisy answers and public facts.
    """

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CliqueTree:
    """The maximal cliques of a triangulated graph, in an order in which each meets those before it inside one of them.

    Privacy: a function of noisy answers and public facts.
    """

    cliques: tuple[Clique, ...]


Structure = Network | CliqueTree
"""What a collector found out about how columns hang together, where its synthesizer needs more than the answers."""


@dataclass(frozen=True, eq=False)
class Transcript:
    """Schema, method, charges and noisy answers in the order they were asked: all that a synthesizer may know.

    Shapes: ``answers[i].charge`` indexes ``charges``; ``merges`` maps a column to its public merge (or a further name
    to the merge that stands beside its column). ``structure`` is what the method made of the answers where its
    synthesizer needs it: a public function of them. ``run`` is the random id of the run that bought the answers (a
    budget file holds the same id), or empty where none was given. Where the schema that was given asks to buy values or
    bins, it is ``declared``, and ``schema`` is what the first answers make of it: a function of both. ``from_query``:
    the rows were those of a query, a view or row-level security that its operator declared to be row-wise; a "row" is
    one of its result. ``filtered``: only the rows of a table that meet a condition (``where=``) were read.
    Privacy: safe to publish; nothing in it was computed from rows without a charge.
    """

    schema: Schema
    domain: Domain
    method: str
    charges: tuple[Charge, ...]
    answers: tuple[Answer, ...]
    merges: Mapping[str, Merge] = field(default_factory=dict)
    run: str = ""
    structure: Structure | None = None
    declared: Schema | None = None
    from_query: bool = False
    filtered: bool = False

    @property
    def selected(self) -> bool:
        """Whether what a row says may have settled if it was read, so that the number of rows read is not public."""
        return self.from_query or self.filtered

    @property
    def spent(self) -> Fraction:
        """What all charges cost together, in the account's unit."""
        return sum((charge.cost for charge in self.charges), Fraction(0))

    @property
    def delta_spent(self) -> Fraction:
        """The deltas that charges used up themselves, together."""
        return sum((charge.delta for charge in self.charges), Fraction(0))

    @property
    def bought(self) -> tuple[Bought, ...]:
        """The answers that fixed the schema's values and bins, in the order they were bought."""
        return tuple(answer for answer in self.answers if isinstance(answer, Bought))

    @property
    def sizes(self) -> Sizes | None:
        """How many rows persons have, where that was bought."""
        return next((answer for answer in self.bought if isinstance(answer, Sizes)), None)

    @property
    def marginals(self) -> tuple[NoisyMarginal, ...]:
        """The noisy marginals among the answers, in the order they were bought; not those of interactions."""
        return tuple(each for each in self.answers if isinstance(each, NoisyMarginal) and not each.interaction)

    @property
    def interactions(self) -> tuple[NoisyMarginal, ...]:
        """What was bought of tables beyond their margins, in the order it was bought."""
        return tuple(each for each in self.answers if isinstance(each, NoisyMarginal) and each.interaction)

    @property
    def merged_domain(self) -> Domain:
        """The domain with every merged column cut down to its groups, and merges of other names beside it."""
        return self.domain.merged(self.merges)
