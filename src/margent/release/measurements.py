"""The measurements folder: a transcript as JSON plus one file of little-endian integers, and nothing else.

``transcript.json`` names the format and its version and holds schema, method, charges, merges and, for each
answer, where its integers lie in ``answers.i64`` (8 bytes each, little-endian, C order), whose length and
SHA-256 it states. The format is described for other tools in ``docs/measurements-format.md``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from margent.errors import SchemaError, TranscriptError, UsageError
from margent.privacy.charge import Charge, Mechanism
from margent.privacy.neighbors import Neighbors
from margent.schema.codec import Codec
from margent.schema.domain import Domain, Merge
from margent.schema.read import schema_from_json
from margent.schema.write import schema_to_json
from margent.transcript import Answer, Choice, NoisyMarginal, Scores, Transcript

FORMAT = "margent-measurements"
VERSION = 2
"""2: choices by the exponential mechanism are answers, and their charges say epsilon and how many; charges say how many
rows of a person are counted (in version 1 the unit is always a row)."""
MAX_JSON_BYTES = 64 * 2**20


def measurement_files(transcript: Transcript) -> dict[str, bytes]:
    """File name to content: the allow-list of what a transcript puts on disk.

    Privacy: none: a transcript is safe to publish.
    """
    arrays = [np.ascontiguousarray(_integers(answer), dtype="<i8") for answer in transcript.answers]
    blob = b"".join(array.tobytes() for array in arrays)
    offsets = np.concatenate([[0], np.cumsum([array.size for array in arrays])]) if arrays else [0]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "run": transcript.run,
        "method": transcript.method,
        "schema": schema_to_json(transcript.schema),
        "domain": {"names": list(transcript.domain.names), "sizes": list(transcript.domain.sizes)},
        "merges": {name: list(merge.groups) for name, merge in sorted(transcript.merges.items())},
        "charges": [charge_to_json(charge) for charge in transcript.charges],
        "answers": [
            _answer_to_json(answer, int(offset)) for answer, offset in zip(transcript.answers, offsets, strict=False)
        ],
        "integers": {
            "file": "answers.i64",
            "count": len(blob) // 8,
            "sha256": hashlib.sha256(blob).hexdigest(),
        },
    }
    return {"transcript.json": canonical_json(document), "answers.i64": blob}


def read_measurements(folder: Path) -> Transcript:
    """Read a measurements folder back into the transcript it was made from.

    Raises: TranscriptError, naming the file, when it is absent, damaged, inconsistent or of another version.
    """
    path = folder / "transcript.json"
    document = read_json(path)
    if document.get("format") != FORMAT:
        raise TranscriptError(f"{path}: not a Margent measurements file")
    if document.get("version") not in range(1, VERSION + 1):
        raise TranscriptError(
            f"{path}: format version {document.get('version')!r} is not known to this version of Margent, "
            f"which reads versions 1 to {VERSION}; upgrade Margent"
        )
    try:
        return _transcript(document, _integers_of(folder, document["integers"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError, SchemaError, UsageError) as fault:
        raise TranscriptError(f"{path}: damaged or altered ({type(fault).__name__})") from None


def canonical_json(document: Any) -> bytes:
    """JSON in one spelling: UTF-8, sorted keys within objects, one space of indent, a final newline.

    Privacy: none.
    """
    text = json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False)
    return (text + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object strictly: size-limited, UTF-8, no NaN.

    Raises: TranscriptError naming the file.
    """

    def refuse(_: str) -> None:
        raise ValueError

    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise TranscriptError(f"{path}: larger than {MAX_JSON_BYTES} bytes")
        document = json.loads(path.read_bytes().decode(), parse_constant=refuse)
    except FileNotFoundError:
        raise TranscriptError(f"{path}: there is no such file; is this a release folder?") from None
    except (OSError, ValueError, RecursionError):
        raise TranscriptError(f"{path}: cannot be read as JSON") from None
    if not isinstance(document, dict):
        raise TranscriptError(f"{path}: not a JSON object")
    return document


def charge_to_json(charge: Charge) -> dict[str, Any]:
    """A charge as JSON; fractions are exact, written as ``"p/q"``.

    Privacy: none: charges are public.
    """
    document = {
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
    if charge.epsilon is None:
        return document
    return document | {"epsilon": str(charge.epsilon), "choices": charge.choices}


def _charge(document: Mapping[str, Any]) -> Charge:
    if document["mechanism"] not in ("discrete-gaussian", "discrete-laplace", "exponential"):
        raise ValueError
    # Absent from files of version 1, whose unit is a row.
    neighbors = Neighbors(document["relation"], document.get("personRows"))
    scale = document["scaleSquared"]
    return Charge(
        label=_text(document["label"]),
        query=_text(document["query"]),
        cliques=tuple(tuple(_text(name) for name in names) for names in document["cliques"]),
        mechanism=cast(Mechanism, document["mechanism"]),
        relation=neighbors.relation,
        person_rows=neighbors.person_rows,
        sensitivity_squared=_fraction(document["sensitivitySquared"]),
        scale_squared=None if scale is None else _fraction(scale),
        account=_text(document["account"]),
        cost=_fraction(document["cost"]),
        delta=_fraction(document["delta"]),
        epsilon=_fraction(document["epsilon"]) if "epsilon" in document else None,
        choices=_whole(document.get("choices", 1)),
    )


def _integers(answer: Answer) -> NDArray[np.int64]:
    if isinstance(answer, Choice):
        return np.zeros(0, dtype=np.int64)
    return answer.counts if isinstance(answer, NoisyMarginal) else answer.values


def _answer_to_json(answer: Answer, offset: int) -> dict[str, Any]:
    document: dict[str, Any] = {"charge": answer.charge, "merged": answer.merged}
    if isinstance(answer, Choice):
        cliques = [list(names) for names in answer.cliques]
        return document | {"kind": "choice", "score": answer.kind, "cliques": cliques}
    document |= {"offset": offset, "variance": str(answer.variance)}
    if isinstance(answer, NoisyMarginal):
        shape = list(answer.counts.shape)
        return document | {"kind": "marginal", "clique": list(answer.clique), "shape": shape}
    return document | {
        "kind": "scores",
        "score": answer.kind,
        "cliques": [list(names) for names in answer.cliques],
        "denominator": answer.denominator,
    }


def _answer(document: Mapping[str, Any], integers: NDArray[np.int64], transcript: Transcript) -> Answer:
    charge, merged = _whole(document["charge"]), document["merged"]
    if charge >= len(transcript.charges) or not isinstance(merged, bool):
        raise ValueError
    if document["kind"] == "choice":
        return _choice(document, transcript.charges[charge], charge, merged)
    offset, variance = _whole(document["offset"]), _fraction(document["variance"])
    if variance <= 0:
        raise ValueError
    if document["kind"] == "marginal":
        names = tuple(_text(name) for name in document["clique"])
        shape = tuple(_whole(size) for size in document["shape"])
        domain = transcript.merged_domain if merged else transcript.domain
        if names != tuple(sorted(set(names))) or domain.shape(names) != shape:
            raise ValueError
        values = _slice(integers, offset, math.prod(shape))
        return NoisyMarginal(names, values.reshape(shape), variance, charge, merged)
    if document["kind"] != "scores":
        raise ValueError
    cliques = tuple(tuple(_text(name) for name in names) for names in document["cliques"])
    denominator = _whole(document["denominator"])
    if denominator < 1:
        raise ValueError
    values = _slice(integers, offset, len(cliques))
    return Scores(_text(document["score"]), cliques, values, denominator, variance, charge, merged)


def _choice(document: Mapping[str, Any], paid: Charge, charge: int, merged: bool) -> Choice:
    chosen = tuple(tuple(_text(name) for name in names) for names in document["cliques"])
    if paid.mechanism != "exponential" or len(chosen) != paid.choices or len(set(chosen)) != len(chosen):
        raise ValueError
    if not set(chosen) <= set(paid.cliques):
        raise ValueError
    return Choice(_text(document["score"]), chosen, charge, merged)


def _transcript(document: Mapping[str, Any], integers: NDArray[np.int64]) -> Transcript:
    schema = schema_from_json(document["schema"])
    names = tuple(_text(name) for name in document["domain"]["names"])
    domain = Domain(names, tuple(_whole(size) for size in document["domain"]["sizes"]))
    if domain != Codec(schema).domain:
        raise ValueError
    merges = {}
    for name, groups in document["merges"].items():
        merges[name] = Merge(name, tuple(_whole(group) for group in groups))
        if len(groups) != domain.size(name):
            raise ValueError
    bare = Transcript(
        schema=schema,
        domain=domain,
        method=_text(document["method"]),
        charges=tuple(_charge(charge) for charge in document["charges"]),
        answers=(),
        merges=merges,
        run=_text(document.get("run", "")),  # the first files had none
    )
    if any(charge.person_rows != schema.person_rows for charge in bare.charges):
        raise ValueError
    answers = tuple(_answer(answer, integers, bare) for answer in document["answers"])
    return replace(bare, answers=answers)


def _integers_of(folder: Path, facts: Mapping[str, Any]) -> NDArray[np.int64]:
    path = folder / "answers.i64"
    try:
        blob = path.read_bytes()
    except OSError:
        raise TranscriptError(f"{path}: cannot be read") from None
    if len(blob) != 8 * _whole(facts["count"]) or hashlib.sha256(blob).hexdigest() != facts["sha256"]:
        raise TranscriptError(f"{path}: length or checksum differs from what transcript.json states")
    return np.frombuffer(blob, dtype="<i8").astype(np.int64)


def _slice(integers: NDArray[np.int64], offset: int, count: int) -> NDArray[np.int64]:
    if offset + count > integers.size:
        raise ValueError
    return integers[offset : offset + count]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError
    return value


def _fraction(value: Any) -> Fraction:
    if not isinstance(value, str) or len(value) > 10_000:
        raise ValueError
    return Fraction(value)
