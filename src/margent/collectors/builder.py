"""What an adaptive collector needs of a synthesizer: a model of the answers so far, and its marginals.

Collectors import no synthesizer: the one they build with is put in where methods are joined (`margent.methods`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margent.progress import Progress
from margent.schema.domain import Clique
from margent.transcript import Transcript


class Fitted(Protocol):
    """A model of noisy answers, as far as a collector asks it."""

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Expected counts over each clique, in records; axes in clique order, codes unmerged."""
        ...


class Builder(Protocol):
    """`build(transcript) -> Fitted`, the same for the same answers: every `Synthesizer` is one.

    Privacy: none: post-processing of the answers so far.
    """

    def build(self, transcript: Transcript, progress: Progress) -> Fitted:
        """Post-process the noisy answers into a model."""
        ...
