"""Who is compared: the package, its methods, its driver, and what it was given. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """A package (its name on PyPI, and of its environment), one method of it, the driver that calls it."""

    package: str
    method: str
    driver: str
    label: str
    private: bool = True

    @property
    def name(self) -> str:
        return f"{self.package} {self.method}"

    @property
    def environment(self) -> str | None:
        """The environment in `.venv-peers`; none: the one that runs this."""
        return None if self.package in {"margent", "yardstick"} else self.package


# The slowest come last.
CONTENDERS = (
    Contender("yardstick", "resample", "yardsticks.py", "real rows drawn again", private=False),
    Contender("yardstick", "independent", "yardsticks.py", "exact single columns, independent", private=False),
    Contender("margent", "dense", "margent_methods.py", "Margent, `dense`"),
    Contender("margent", "privsyn", "margent_methods.py", "Margent, `privsyn`"),
    Contender("privsyn-core", "privsyn", "privsyn_core.py", "privsyn-core, PrivSyn"),
    Contender("mbi", "tree", "mbi_tree.py", "mbi, a maximum spanning tree"),
    Contender("dpmm", "mst", "dpmm_pipelines.py", "dpmm, MST"),
    Contender("dpmm", "privbayes", "dpmm_pipelines.py", "dpmm, PrivBayes"),
    Contender("opendp", "mst", "opendp_tables.py", "OpenDP, MST"),
    Contender("smartnoise-synth", "mst", "smartnoise_synth.py", "SmartNoise, MST"),
    Contender("dpmm", "aim", "dpmm_pipelines.py", "dpmm, AIM"),
    Contender("opendp", "aim", "opendp_tables.py", "OpenDP, AIM"),
    Contender("smartnoise-synth", "aim", "smartnoise_synth.py", "SmartNoise, AIM"),
)


def contender_named(name: str) -> Contender:
    for contender in CONTENDERS:
        if contender.name == name:
            return contender
    raise SystemExit(f"there is no {name!r}; there are: {', '.join(each.name for each in CONTENDERS)}")
