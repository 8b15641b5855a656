"""Every JSON example of the pages on the schema and its rules is a schema that can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.schema.settled import planned

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "".join((DOCS / page).read_text() for page in ("schema.md", "rules.md"))
EXAMPLES = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_can_be_read_and_coded(example: str) -> None:
    assert Codec(planned(schema_from_json(json.loads(example)))).domain.names


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5
