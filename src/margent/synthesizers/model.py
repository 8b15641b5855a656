"""The free half of a method: noisy answers -> model -> records. Nothing here can reach a row of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margent.progress import Progress
from margent.schema.domain import Clique, Domain
from margent.synthesizers.shares import WHOLE, Share
from margent.transcript import Transcript


class Model(Protocol):
    """What a synthesizer makes of a transcript: a law over records that can be sampled and counted."""

    @property
    def domain(self) -> Domain:
        """The codes' domain (never merged: merged codes are spread again on sampling)."""
        ...

    @property
    def total(self) -> int:
        """Noisy number of records, rounded, at least 0: the default number of rows."""
        ...

    def sample(self, rows: int, seed: int, progress: Progress, share: Share = WHOLE) -> NDArray[np.int32]:
        """Draw records: shape (rows, d), one column a name of ``domain.names``, the same bytes for a seed.

        They are in random order: any of them are a random subset. ``share`` says which block of a larger table they
        are, so that all blocks together are as close to the answers as one table (`margent.synthesizers.blocks`).
        """
        ...

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Expected counts of the model over each clique, in records of ``total``; axes in clique order."""
        ...


class Synthesizer(Protocol):
    """`build(transcript) -> Model`; a frozen dataclass whose fields are its parameters."""

    @property
    def name(self) -> str:
        """The name used on the command line and in a release."""
        ...

    def build(self, transcript: Transcript, progress: Progress) -> Model:
        """Post-process the noisy answers into a model. Privacy: none: post-processing."""
        ...
