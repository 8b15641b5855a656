"""The measurements folder: a transcript as JSON plus one file of little-endian integers, and nothing else.

``transcript.json`` names the format and its version and holds schema, method, charges, merges and, for each
answer, where its integers lie in ``answers.i64`` (8 bytes each, little-endian, C order), whose length and
SHA-256 it states. The format is described for other tools in ``docs/measurements-format.md``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import SchemaError, TranscriptError, UsageError
from margent.release.answer_json import BOUGHT, answer_from_json, answer_to_json, bought_from_json, integers
from margent.release.charge_json import charge_from_json, charge_to_json
from margent.release.files import read_integers, read_json
from margent.release.structure_json import structure_from_json, structure_to_json
from margent.release.values import require_addable, text, whole
from margent.schema.codec import Codec
from margent.schema.domain import Domain, Merge
from margent.schema.read import schema_from_json
from margent.schema.settled import settled
from margent.schema.write import schema_to_json
from margent.transcript import Transcript

FORMAT = "margent-measurements"
VERSION = 5
"""5: answers may be interactions: what a table says beyond its margins, in parts of a record. 4: bins and values may
have been bought: the schema is then the declared one, and the first answers settle it.
3: scores and choices may name a child a clique, merges may stand beside their column, a network or clique tree may be
given. 2: choices by the exponential mechanism are answers, and their charges say epsilon and how many; charges say how
many rows of a person are counted (in version 1 the unit is always a row)."""
FROM_QUERY = "queryDeclaredRowWise"
"""Present, and true, where the rows were those of a database's query or view, or of row-level security; the same word
stands in charges.json."""
FILTERED = "rowsMeetACondition"
"""Present, and true, where the rows were those of a database's table that meet a condition; in charges.json too."""


def measurement_files(transcript: Transcript) -> dict[str, bytes]:
    """File name to content: the allow-list of what a transcript puts on disk.

    Privacy: none: a transcript is safe to publish.
    """
    arrays = [np.ascontiguousarray(integers(answer), dtype="<i8") for answer in transcript.answers]
    blob = b"".join(array.tobytes() for array in arrays)
    offsets = np.concatenate([[0], np.cumsum([array.size for array in arrays])]) if arrays else [0]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "run": transcript.run,
        "method": transcript.method,
        "schema": schema_to_json(transcript.declared or transcript.schema),
        "domain": {"names": list(transcript.domain.names), "sizes": list(transcript.domain.sizes)},
        "merges": {name: list(merge.groups) for name, merge in sorted(transcript.merges.items())},
        "mergedColumns": {
            name: merge.column for name, merge in sorted(transcript.merges.items()) if merge.column != name
        },
        "charges": [charge_to_json(charge) for charge in transcript.charges],
        "answers": [
            answer_to_json(answer, int(offset)) for answer, offset in zip(transcript.answers, offsets, strict=False)
        ],
        "integers": {
            "file": "answers.i64",
            "count": len(blob) // 8,
            "sha256": hashlib.sha256(blob).hexdigest(),
        },
    }
    if transcript.from_query:
        document[FROM_QUERY] = True
    if transcript.filtered:
        document[FILTERED] = True
    if transcript.structure is not None:
        document["structure"] = structure_to_json(transcript.structure)
    return {"transcript.json": canonical_json(document), "answers.i64": blob}


def digest_of(transcript: Transcript) -> str:
    """SHA-256 of charges and noisy answers: equal for all releases that were drawn from the same ones.

    Privacy: none: they are published.
    """
    charges = [charge_to_json(charge) for charge in transcript.charges]
    answers = [answer_to_json(answer, 0) for answer in transcript.answers]
    digest = hashlib.sha256(canonical_json([charges, answers]))
    for answer in transcript.answers:
        digest.update(np.ascontiguousarray(integers(answer), dtype="<i8").tobytes())
    return digest.hexdigest()


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
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, SchemaError, UsageError) as fault:
        raise TranscriptError(f"{path}: damaged or altered ({type(fault).__name__})") from None


def canonical_json(document: Any) -> bytes:
    """JSON in one spelling: UTF-8, sorted keys within objects, one space of indent, a final newline.

    Privacy: none.
    """
    return (json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _transcript(document: Mapping[str, Any], stored: NDArray[np.int64]) -> Transcript:
    declared = schema_from_json(document["schema"])
    charges = tuple(charge_from_json(charge) for charge in document["charges"])
    require_addable(charge.cost for charge in charges)
    require_addable(charge.delta for charge in charges)
    first = [answer for answer in document["answers"] if answer["kind"] in BOUGHT]
    if document["answers"][: len(first)] != first:
        raise ValueError
    bought = tuple(bought_from_json(answer, stored, charges) for answer in first)
    schema = settled(declared, bought)
    names = tuple(text(name) for name in document["domain"]["names"])
    domain = Domain(names, tuple(whole(size) for size in document["domain"]["sizes"]))
    if domain != Codec(schema).domain:
        raise ValueError
    merges = {}
    beside = {name: text(column) for name, column in document.get("mergedColumns", {}).items()}
    for name, groups in document["merges"].items():
        merge = merges[name] = Merge(beside.get(name, name), tuple(whole(group) for group in groups))
        if len(groups) != domain.size(merge.column) or (name in beside and name in domain.position):
            raise ValueError
    bare = Transcript(
        schema=schema,
        domain=domain,
        method=text(document["method"]),
        charges=charges,
        answers=(),
        merges=merges,
        run=text(document.get("run", "")),  # the first files had none
        declared=declared if bought else None,
        from_query=document.get(FROM_QUERY, False) is True,
        filtered=document.get(FILTERED, False) is True,
    )
    if any(charge.person_rows != schema.person_rows for charge in bare.charges):
        raise ValueError
    later = [answer_from_json(answer, stored, bare) for answer in document["answers"][len(bought) :]]
    if len({answer.charge for answer in (*bought, *later)}) != len(bought) + len(later):
        raise ValueError  # a charge pays for one answer
    found = document.get("structure")
    structure = None if found is None else structure_from_json(found, bare.merged_domain)
    return replace(bare, answers=(*bought, *later), structure=structure)


def _integers_of(folder: Path, facts: Mapping[str, Any]) -> NDArray[np.int64]:
    path = folder / "answers.i64"
    blob = read_integers(path, whole(facts["count"]))
    if hashlib.sha256(blob).hexdigest() != facts["sha256"]:
        raise TranscriptError(f"{path}: length or checksum differs from what transcript.json states")
    return np.frombuffer(blob, dtype="<i8").astype(np.int64)
