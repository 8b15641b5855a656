"""Noisy answers as JSON and back; their integers lie in a file of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.privacy.charge import Charge
from margent.privacy.laws import law_of
from margent.privacy.queries import SCORE_LATTICE
from margent.privacy.registered import require_registered
from margent.release.values import fraction, text, texts, whole
from margent.schema.domain import Clique, Domain
from margent.transcript import Answer, Bought, Choice, NoisyMarginal, OpenValues, Quantiles, Scores, Sizes, Transcript

BOUGHT = ("quantiles", "open-set", "person-sizes")
"""Kinds of the answers that settle a schema; they stand before all others."""


def integers(answer: Answer) -> NDArray[np.int64]:
    """The noisy integers of an answer; a choice has none. Privacy: none: noisy answers are public."""
    if isinstance(answer, Choice):
        return np.zeros(0, dtype=np.int64)
    return answer.values if isinstance(answer, Scores) else answer.counts


def answer_to_json(answer: Answer, offset: int) -> dict[str, Any]:
    """An answer but for its integers, which lie from ``offset`` on in the other file. Privacy: none."""
    if isinstance(answer, Bought):
        return bought_to_json(answer, offset)
    document: dict[str, Any] = {"charge": answer.charge, "merged": answer.merged}
    kind = "interaction" if isinstance(answer, NoisyMarginal) and answer.interaction else "marginal"
    if not isinstance(answer, NoisyMarginal) and answer.children:
        document["children"] = list(answer.children)
    if isinstance(answer, Choice):
        cliques = [list(names) for names in answer.cliques]
        return document | {"kind": "choice", "score": answer.kind, "cliques": cliques}
    document |= {"offset": offset, "variance": str(answer.variance)}
    if isinstance(answer, NoisyMarginal):
        shape = list(answer.counts.shape)
        return document | {"kind": kind, "clique": list(answer.clique), "shape": shape}
    return document | {
        "kind": "scores",
        "score": answer.kind,
        "cliques": [list(names) for names in answer.cliques],
        "denominator": answer.denominator,
    }


def bought_to_json(answer: Bought, offset: int) -> dict[str, Any]:
    """Bins or values that were bought, but for their integers. Privacy: none: noisy answers are public."""
    document = {"charge": answer.charge, "column": answer.column, "offset": offset, "variance": str(answer.variance)}
    if isinstance(answer, Quantiles):
        return document | {"kind": "quantiles", "cells": int(answer.counts.size)}
    if isinstance(answer, Sizes):
        return document | {"kind": "person-sizes", "cells": int(answer.counts.size)}
    return document | {"kind": "open-set", "values": list(answer.values)}


def bought_from_json(document: Mapping[str, Any], stored: NDArray[np.int64], charges: Sequence[Charge]) -> Bought:
    """The bins or values that were written, read against the charges.

    Raises: KeyError, TypeError or ValueError where it is none.
    """
    charge, column = whole(document["charge"]), text(document["column"])
    offset = whole(document["offset"])
    if charge >= len(charges) or charges[charge].cliques != ((column,),):
        raise ValueError
    if charges[charge].query != document["kind"]:
        raise ValueError
    variance = _variance(document, charges[charge])
    if document["kind"] in ("quantiles", "person-sizes"):
        kind = Quantiles if document["kind"] == "quantiles" else Sizes
        return kind(column, _slice(stored, offset, whole(document["cells"])), variance, charge)
    values = texts(document["values"])
    if list(values) != sorted(set(values)):
        raise ValueError
    return OpenValues(column, values, _slice(stored, offset, len(values)), variance, charge)


def answer_from_json(document: Mapping[str, Any], stored: NDArray[np.int64], transcript: Transcript) -> Answer:
    """The answer that was written, read against the transcript's domain, merges and charges.

    Raises: KeyError, TypeError or ValueError where it is none.
    """
    charge, merged = whole(document["charge"]), document["merged"]
    if charge >= len(transcript.charges) or not isinstance(merged, bool):
        raise ValueError
    paid = transcript.charges[charge]
    domain = transcript.merged_domain if merged else transcript.domain
    if document["kind"] == "choice":
        return _choice(document, paid, domain, charge, merged)
    offset = whole(document["offset"])
    if document["kind"] in ("marginal", "interaction"):
        names = texts(document["clique"])
        shape = tuple(whole(size) for size in document["shape"])
        if names != tuple(sorted(set(names))) or domain.shape(names) != shape or paid.cliques != (names,):
            raise ValueError
        if paid.query != document["kind"]:
            raise ValueError
        interaction = document["kind"] == "interaction"
        if interaction:
            require_registered(paid, shape)
        counts = _slice(stored, offset, math.prod(shape)).reshape(shape)
        return NoisyMarginal(names, counts, _variance(document, paid), charge, merged, interaction)
    if document["kind"] != "scores":
        raise ValueError
    cliques = tuple(texts(names) for names in document["cliques"])
    children = _scored(document, cliques, domain)
    score, denominator = text(document["score"]), whole(document["denominator"])
    if denominator != SCORE_LATTICE[score] or (score, cliques, children) != (paid.query, paid.cliques, paid.children):
        raise ValueError
    values = _slice(stored, offset, len(cliques))
    variance = _variance(document, paid, denominator)
    return Scores(score, cliques, values, denominator, variance, charge, merged, children)


def _choice(document: Mapping[str, Any], paid: Charge, domain: Domain, charge: int, merged: bool) -> Choice:
    chosen = tuple(texts(names) for names in document["cliques"])
    children, score = _scored(document, chosen, domain), text(document["score"])
    if paid.mechanism != "exponential" or len(chosen) != paid.choices or bool(children) != bool(paid.children):
        raise ValueError
    if score != paid.query:
        raise ValueError
    candidates = set(zip(paid.cliques, paid.children or [""] * len(paid.cliques), strict=True))
    named = list(zip(chosen, children or [""] * len(chosen), strict=True))
    if len(set(named)) != len(named) or not set(named) <= candidates:
        raise ValueError
    return Choice(score, chosen, charge, merged, children)


def _scored(document: Mapping[str, Any], cliques: Sequence[Clique], domain: Domain) -> tuple[str, ...]:
    """The child of each clique, or none at all; what has no child is a pair of columns, or told from a model."""
    children = texts(document.get("children", []))
    if children and not all(child in names for child, names in zip(children, cliques, strict=True)):
        raise ValueError
    any_size, known = bool(children) or document["score"] == "distance", set(domain.names)
    for names in cliques:
        if len(set(names)) != len(names) or not set(names) <= known or not (any_size or len(names) == 2):
            raise ValueError
    return children


def _variance(document: Mapping[str, Any], paid: Charge, denominator: int = 1) -> Fraction:
    """The stated variance, which is that of the noise that was paid for."""
    variance = fraction(document["variance"])
    if variance != law_of(paid).variance / denominator**2:
        raise ValueError
    return variance


def _slice(stored: NDArray[np.int64], offset: int, count: int) -> NDArray[np.int64]:
    if offset + count > stored.size:
        raise ValueError
    return stored[offset : offset + count]
