"""Every JSON example of the schema's page is a schema that can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.schema.settled import planned

PAGE = Path(__file__).parents[2] / "docs" / "schema.md"
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_can_be_read_and_coded(example: str) -> None:
    assert Codec(planned(schema_from_json(json.loads(example)))).domain.names


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5
