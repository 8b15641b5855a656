"""The table of the README's comparison, from the two files that others measure on too.

    python bench/peers/adult.py adult.csv adult-domain.json FOLDER

Both files are in the folder `data` of https://github.com/ryan112358/private-pgm: the Adult census table (UCI, CC BY
4.0) as codes, age and hours from 0, `fnlwgt` and the two capital columns cut into 100 bins. FOLDER then holds the table
and a schema.json with every code of the domain, as `compare.py` and `quality.py` read it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

ORDERED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


def schema_of(domain: dict[str, int], name: str) -> dict[str, Any]:
    """Every column a category of codes 0..size-1; those in `ORDERED` have an order."""
    fields = [
        {
            "name": column,
            "type": "integer",
            "categories": list(range(size)),
            "categoriesOrdered": column in ORDERED,
            "constraints": {"required": True},
        }
        for column, size in domain.items()
    ]
    return {"name": name, "fields": fields, "margent": {"unit": "row", "provenance": "the domain published with it"}}


if __name__ == "__main__":
    table, domain, folder = (Path(word) for word in sys.argv[1:])
    folder.mkdir(parents=True)
    shutil.copy(table, folder / "adult.csv")
    schema = schema_of(json.loads(domain.read_text()), folder.name)
    (folder / "schema.json").write_text(json.dumps(schema, indent=1))
