"""Committed noisy answers read back as what was asked for, and held against the question that is asked now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import MargentError, TranscriptError
from margent.privacy.charge import Charge
from margent.release.answer_json import answer_from_json, bought_from_json
from margent.resume.journal import Call
from margent.schema.domain import Merge
from margent.transcript import Answer, Transcript


def require_same_question(
    call: Call, charges: Sequence[Charge], recorded: Mapping[str, Merge] | None, merges: Mapping[str, Merge]
) -> None:
    """Refuse an answer to another question: the charges say all of it, but for merges of columns.

    Privacy: none: public facts.
    Raises: TranscriptError naming the call.
    """
    if call.charges != tuple(charges) or (recorded is not None and dict(recorded) != dict(merges)):
        raise TranscriptError(
            f"question {call.number} of the resumed run differs from the one that was asked before the interruption: "
            "the run cannot be resumed here. Was it begun on another machine, or with other versions of its packages?"
        )


def read_back(
    call: Call,
    found: Sequence[tuple[Mapping[str, Any], NDArray[np.int64]]],
    merges: Mapping[str, Merge],
    bare: Transcript | None,
    charges: Sequence[Charge],
) -> tuple[Answer, ...]:
    """The answers of a call, checked as those of a measurements folder are; without ``bare`` there is no domain yet.

    Privacy: none: noisy answers.
    Raises: TranscriptError where one does not go with its charge.
    """
    try:
        asked = None if bare is None else replace(bare, charges=tuple(charges), merges=merges)
        answers = tuple(
            answer_from_json(document, numbers, asked)
            if asked is not None
            else bought_from_json(document, numbers, charges)
            for document, numbers in found
        )
        if [answer.charge for answer in answers] != list(range(call.first, call.first + len(call.charges))):
            raise ValueError
        return answers
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, MargentError) as fault:
        raise TranscriptError(
            f"the answers to question {call.number} of the interrupted run are damaged or altered "
            f"({type(fault).__name__}): the run cannot be resumed, and what it charged stays spent"
        ) from None
