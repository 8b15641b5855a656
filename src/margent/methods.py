"""A method = a collector (which spends) + a synthesizer (which is free). The only place that joins them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec

from margent.collectors.aim import Aim
from margent.collectors.capped_pairs import CappedPairs
from margent.collectors.collector import Collector
from margent.collectors.dense import Dense
from margent.collectors.full_table import FullTable
from margent.collectors.independent import Independent
from margent.collectors.jtree import JTree
from margent.collectors.mst import Mst
from margent.collectors.privbayes import PrivBayes
from margent.collectors.priview import PriView
from margent.collectors.privmrf import PrivMrf
from margent.collectors.privsyn import PrivSyn
from margent.errors import UsageError
from margent.schema.domain import Domain
from margent.settings import Settings, configured, require_known, settings_of
from margent.synthesizers.ancestral import Ancestral
from margent.synthesizers.descent import Descent
from margent.synthesizers.direct import Direct
from margent.synthesizers.gum import Gum
from margent.synthesizers.independent import IndependentColumns
from margent.synthesizers.junction_tree import JunctionTreeSampling
from margent.synthesizers.mcf import MinCostFlow
from margent.synthesizers.model import Synthesizer
from margent.synthesizers.pgm import Pgm
from margent.synthesizers.random_field import FieldSettings

DEFAULT_METHOD = "dense"

COMPILED_FIELDS = 3 * 2**30
"""What JAX and the programs it compiles for junction trees take: 1 to 3.4 GiB were measured."""


@dataclass(frozen=True, slots=True)
class Method:
    """A published or own method: what it buys, how it builds records, what it is good at, where it comes from.

    ``cost``: how time and memory grow, in words. ``package``: what must be installed beside Margent (the extra that
    brings it is named like the method's synthesizer); empty where nothing must. ``memory``: bytes that package and its
    compiled programs take beyond the cells, for the plan.
    """

    name: str
    collector: Collector
    synthesizer: Synthesizer
    buys: str
    good_at: str
    cost: str
    source: str
    package: str = ""
    memory: int = 0

    def configured(self, settings: Settings) -> Method:
        """This method with other settings of its collector and synthesizer (see `margent methods --settings`).

        Privacy: none: settings are public options.
        Raises: UsageError naming every setting there is none of, or whose value is off.
        """
        require_known(settings, [(self.collector.name, self.collector), (self.synthesizer.name, self.synthesizer)])
        collector, synthesizer = configured(self.collector, settings), configured(self.synthesizer, settings)
        # What a collector builds on the way has the room of what is built in the end.
        if isinstance(synthesizer, Pgm) and isinstance(collector, Aim | PrivMrf) and isinstance(collector.builder, Pgm):
            builder = replace(collector.builder, most_cells=synthesizer.most_cells)
            collector = replace(collector, builder=builder)
        return replace(self, collector=collector, synthesizer=synthesizer)

    def refusal(self, domain: Domain) -> str | None:
        """Why the synthesizer might refuse what the collector may buy, before anything is bought; None if it never can.

        Privacy: none: public facts only.
        """
        if isinstance(self.synthesizer, Pgm):
            return self.synthesizer.refusal(domain)
        if isinstance(self.synthesizer, JunctionTreeSampling) and isinstance(self.collector, JTree):
            return self.synthesizer.refusal(self.collector.most_cells(domain))
        return None

    @property
    def told_records(self) -> bool:
        """Whether its settings state a public number of records."""
        return settings_of(self.collector).get("records", "") != ""

    @property
    def installed(self) -> bool:
        """Whether the method's package is here, if it needs one."""
        return not self.package or find_spec(self.package) is not None

    def require_package(self) -> None:
        """Refuse a method whose package is not installed, before anything is charged.

        Privacy: none.
        Raises: UsageError saying what to install.
        """
        if not self.installed:
            raise UsageError(
                f"method {self.name!r} needs the package {self.package!r}: "
                f"pip install 'margent[{self.synthesizer.name}]', or take another method (see `margent methods`)"
            )


METHODS: tuple[Method, ...] = (
    Method(
        "dense",
        Dense(),
        Descent(),
        "one-way tables, an unbiased score for every pair, then the pairs and further one-ways worth their noise",
        "nearly every table: the most accurate method here",
        "seconds to a minute; memory grows with the cells of the tables bought",
        "ours: competing models as priors, shrinkage, record descent",
    ),
    Method(
        "privsyn",
        PrivSyn(),
        Gum(),
        "all one-way tables, a score for every pair, then the pairs (and small merged tables) worth their noise",
        "comparison with the literature; many weak dependences at a larger budget",
        "seconds to minutes; memory grows with the cells of the tables bought",
        "Zhang et al., PrivSyn, USENIX Security 2021, with its errors corrected",
    ),
    Method(
        "privbayes",
        PrivBayes(),
        Ancestral(),
        "one-way tables, then for each column a choice of parents and their table: a Bayesian network",
        "comparison with the literature; a model that can be read",
        "seconds to minutes; time grows with the sets of parents tried, one pass over the table a column",
        "Zhang et al., PrivBayes, SIGMOD 2014 and TODS 2017",
    ),
    Method(
        "priview",
        PriView(),
        Descent(),
        "tables of a covering design: every two columns, or every three where noise allows, lie in one of them",
        "questions nobody thought of before (`margent query`); few columns of few codes",
        "seconds; memory grows with the cells of the tables bought",
        "Qardaji et al., PriView, SIGMOD 2014, for columns of any number of codes",
    ),
    Method(
        "jtree",
        JTree(),
        JunctionTreeSampling(),
        "one-way tables, private picks of dependent pairs, and the tables of their junction tree's cliques in clusters",
        "columns whose dependence runs along a sparse graph; comparison with the literature; records fast",
        "seconds; memory grows with the cells of the junction tree, which are capped",
        "Chen et al., JTree, KDD 2015, with its selection made private and its errors corrected",
    ),
    Method(
        "pgm",
        CappedPairs(),
        Pgm(),
        "one-way tables, a score for every pair, then the pairs worth their noise that a junction tree has room for",
        "tables whose strong dependences form a sparse graph; exact answers from the model",
        "half a minute to minutes, half of it compiling; memory grows with the junction tree, capped",
        "McKenna, Sheldon, Miklau 2019 (Private-PGM); one pass under a cap as in SWIFT (Google, 2026)",
        "mbi",
        COMPILED_FIELDS,
    ),
    Method(
        "mst",
        Mst(),
        Pgm(),
        "one-way tables, a spanning tree of the most dependent pairs, and its pairs",
        "wide tables and small budgets; what users of other tools know by this name",
        "half a minute, most of it compiling; little memory",
        "McKenna, Miklau, Sheldon 2021 (winner of NIST's 2018 challenge)",
        "mbi",
        COMPILED_FIELDS,
    ),
    Method(
        "aim",
        Aim(builder=Pgm(settings=FieldSettings(steps=500))),
        Pgm(),
        "one-way tables, then in rounds the tables that the model so far is most wrong about",
        "a stated workload of pairs or triples; what users of other tools know by this name",
        "minutes: the model is fitted, and compiled, in every round; memory grows with the junction tree, capped",
        "McKenna, Mullins, Sheldon, Miklau 2022, with Gaussian scores throughout",
        "mbi",
        COMPILED_FIELDS,
    ),
    Method(
        "privmrf",
        PrivMrf(builder=Pgm(settings=FieldSettings(steps=500))),
        Pgm(),
        "one-way tables, a score for every pair, tables inside a graph of the strongest, then those of large gaps",
        "dependence among three columns and more, at larger budgets",
        "minutes: the model is fitted, and compiled, in every round; memory grows with the junction tree, capped",
        "Cai, Lei, Wei, Xiao 2021 (PrivMRF), without its exact entropies and counts",
        "mbi",
        COMPILED_FIELDS,
    ),
    Method(
        "independent",
        Independent(),
        IndependentColumns(),
        "one-way tables only",
        "a baseline, and very small budgets: every column right, no dependence between columns",
        "under a second; next to no memory",
        "baseline",
    ),
    Method(
        "laplace",
        FullTable(),
        Direct(),
        "one table over all columns, where it fits",
        "a baseline, and tables of two to four columns of few codes",
        "seconds; memory grows with the product of all columns' codes, refused beyond ten million",
        "baseline: Dwork, McSherry, Nissim, Smith 2006",
    ),
)

SYNTHESIZERS: tuple[Synthesizer, ...] = (
    Descent(),
    Gum(),
    MinCostFlow(),
    IndependentColumns(),
    Ancestral(),
    Direct(),
    JunctionTreeSampling(),
    Pgm(),
)


def method_named(name: str) -> Method:
    """Return the method of this name.

    Privacy: none.
    Raises: UsageError listing the names there are.
    """
    for method in METHODS:
        if method.name == name:
            return method
    known = ", ".join(method.name for method in METHODS)
    raise UsageError(f"there is no method {name!r}; the methods are: {known} (see `margent methods`)")


def synthesizer_named(name: str) -> Synthesizer:
    """Return the synthesizer of this name, with its default parameters.

    Privacy: none.
    Raises: UsageError listing the names there are.
    """
    for synthesizer in SYNTHESIZERS:
        if synthesizer.name == name:
            return synthesizer
    known = ", ".join(synthesizer.name for synthesizer in SYNTHESIZERS)
    raise UsageError(f"there is no synthesizer {name!r}; the synthesizers are: {known}")
