"""What a collector found out about how columns hang together, as JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margent.release.values import text, texts
from margent.schema.domain import Domain, clique
from margent.transcript import CliqueTree, Network, Node, Structure


def structure_to_json(structure: Structure) -> dict[str, Any]:
    """A network or a clique tree as JSON. Privacy: none: a function of noisy answers.

    >>> structure_to_json(Network((Node("sex"), Node("age", ("sex",)))))
    {'network': [{'child': 'sex', 'parents': []}, {'child': 'age', 'parents': ['sex']}]}
    """
    if isinstance(structure, Network):
        return {"network": [{"child": node.child, "parents": list(node.parents)} for node in structure.nodes]}
    return {"cliqueTree": [list(names) for names in structure.cliques]}


def structure_from_json(document: Mapping[str, Any], domain: Domain) -> Structure:
    """The structure that `structure_to_json` wrote, of columns of ``domain``.

    Privacy: none.
    Raises: KeyError, TypeError or ValueError where it is none.
    """
    if "network" in document:
        nodes = tuple(Node(text(node["child"]), texts(node["parents"])) for node in document["network"])
        known = set(domain.names)
        for node in nodes:
            if node.parents != clique(node.parents) or not {node.child, *node.parents} <= known:
                raise ValueError
        if len({node.child for node in nodes}) != len(nodes):
            raise ValueError
        return Network(nodes)
    cliques = tuple(texts(names) for names in document["cliqueTree"])
    if any(names != clique(names) or not set(names) <= set(domain.names) for names in cliques):
        raise ValueError
    return CliqueTree(cliques)
