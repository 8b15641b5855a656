"""Charges as JSON and back: what was asked and what it cost, in exact fractions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

from margent.privacy.charge import Charge, Mechanism
from margent.privacy.laws import SCALE_LIMIT
from margent.privacy.neighbors import Neighbors
from margent.privacy.registered import require_registered
from margent.release.values import fraction, positive, text, texts, whole

LEAST_SCALE = Fraction(1, 1024)
"""Noise that is narrower is none: a draw is other than 0 once in e^1024. The public grid begins at 1/16."""

_LEAST_SQUARED, _MOST_SQUARED = LEAST_SCALE**2, SCALE_LIMIT**2


def charge_to_json(charge: Charge) -> dict[str, Any]:
    """A charge as JSON; fractions are exact, written as ``"p/q"``.

    Privacy: none: charges are public.
    """
    document: dict[str, Any] = {
        "label": charge.label,
        "query": charge.query,
        "cliques": [list(names) for names in charge.cliques],
        "mechanism": charge.mechanism,
        "relation": charge.relation,
        "personRows": charge.person_rows,
        "sensitivitySquared": str(charge.sensitivity_squared),
        "scaleSquared": None if charge.scale_squared is None else str(charge.scale_squared),
        "account": charge.account,
        "cost": str(charge.cost),
        "delta": str(charge.delta),
    }
    if charge.children:
        document["children"] = list(charge.children)
    if charge.epsilon is None:
        return document
    return document | {"epsilon": str(charge.epsilon), "choices": charge.choices}


def charge_from_json(document: Mapping[str, Any]) -> Charge:
    """The charge that `charge_to_json` wrote, for a question that there is and priced for all that it tells.

    Raises: KeyError, TypeError or ValueError where it is none.
    """
    if document["mechanism"] not in ("discrete-gaussian", "discrete-laplace", "exponential"):
        raise ValueError
    # Absent from files of version 1, whose unit is a row.
    neighbors = Neighbors(document["relation"], document.get("personRows"))
    scale = document["scaleSquared"]
    # Costs are above 0: no answer is free, and none gives budget back.
    made = Charge(
        label=text(document["label"]),
        query=text(document["query"]),
        cliques=tuple(texts(names) for names in document["cliques"]),
        mechanism=cast(Mechanism, document["mechanism"]),
        relation=neighbors.relation,
        person_rows=neighbors.person_rows,
        sensitivity_squared=positive(document["sensitivitySquared"]),
        scale_squared=None if scale is None else positive(scale),
        account=text(document["account"]),
        cost=positive(document["cost"]),
        delta=fraction(document["delta"]),
        epsilon=positive(document["epsilon"]) if "epsilon" in document else None,
        choices=whole(document.get("choices", 1)),
        children=texts(document.get("children", [])),
    )
    if made.delta.numerator < 0 or not _drawable(made):
        raise ValueError
    require_registered(made)
    return made


def _drawable(charge: Charge) -> bool:
    """Whether noise of that scale could have been drawn; the arithmetic of wilder ones has no bound."""
    return charge.scale_squared is None or _LEAST_SQUARED <= charge.scale_squared <= _MOST_SQUARED
