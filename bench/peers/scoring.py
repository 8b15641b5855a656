"""The part of the comparison that needs arrays, in a process of its own so that `compare.py` stays small.

    python bench/peers/scoring.py write FOLDER WORK        the table as codes: WORK/coded.csv, WORK/domain.json
    python bench/peers/scoring.py score WORK SYNTHETIC.csv scores of a coded table, one JSON object

The table is read and scored as `bench/quality.py` does it; columns are renamed c0, c1, ... so that no package meets a
name that it cannot take. A process forked from a large one counts the large one's memory as its own peak: hence two.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "drivers")]

from coded import read_codes, read_domain, write_codes  # noqa: E402

from margent.schema.codec import Codec  # noqa: E402
from quality import Scorer, load  # noqa: E402

MOST_CODES = 300


def write(folder: Path, work: Path) -> dict[str, Any]:
    """Facts of the coded table, with the digest of what was written."""
    schema, domain, columns, ordinal = load(folder, MOST_CODES)
    # A code for cells that the schema does not list comes last and is no part of the domain that others are given.
    unlisted = Codec(schema).unlisted_codes
    sizes = [unlisted.get(name, size) for name, size in zip(domain.names, domain.sizes, strict=True)]
    for name, size, codes in zip(domain.names, sizes, columns, strict=True):
        if codes.max(initial=0) >= size:
            raise SystemExit(f"{name}: some cells are none of the schema's values; list them or say what they become")
    names = tuple(f"c{place}" for place in range(len(columns)))
    work.mkdir(parents=True, exist_ok=True)
    described = [
        {"name": name, "column": column, "size": size, "ordered": ordered}
        for name, column, size, ordered in zip(names, domain.names, sizes, ordinal, strict=True)
    ]
    (work / "domain.json").write_text(json.dumps({"columns": described}, indent=1))
    write_codes(work / "coded.csv", names, np.stack(columns, axis=1))
    digest = hashlib.sha256((work / "coded.csv").read_bytes() + (work / "domain.json").read_bytes())
    return {
        "rows": int(columns[0].size),
        "columns": len(columns),
        "codes": sum(sizes),
        "digest": digest.hexdigest(),
    }


def score(work: Path, synthetic: Path) -> dict[str, Any]:
    """Scores of `Scorer`, rows, and the share of cells that are no code; these count as the nearest code."""
    names, sizes, ordered = read_domain(work)
    real, made = read_codes(work / "coded.csv", names), read_codes(synthetic, names)
    if made.shape[0] == 0:
        raise SystemExit("the table has no rows")
    most = np.asarray(sizes) - 1
    invalid = float(((made < 0) | (made > most)).mean())
    scorer = Scorer(list(real.T), sizes, list(ordered))
    return scorer.scores(np.clip(made, 0, most)) | {"invalid": invalid, "rows": int(made.shape[0])}


if __name__ == "__main__":
    done = write if sys.argv[1] == "write" else score
    print(json.dumps(done(Path(sys.argv[2]), Path(sys.argv[3]))))
