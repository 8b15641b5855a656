"""SDNist's data dictionaries, with their several ways to say a range."""

from __future__ import annotations

import pytest

from margent.errors import SchemaError
from margent.schema.imports.sdnist import from_sdnist
from tests.schema.imports.drafts import by_name

DICTIONARY = {
    "AREA": {"description": "Area", "values": {"01-1": "North", "01-2": "South"}},
    "MSP": {"description": "Marital status", "values": {"N": "N/A (under 15)", "1": "Married", "2": "Never"}},
    "POV": {"description": "Ratio", "values": {"N": "N/A", "min": 0, "max": 500, "501": "above"}},
    "INC": {"description": "Income", "N": "N/A (under 15)", "min": -9000, "max": 1341000},
    "DEC": {"description": "Decile", "N": "N/A", "0": "lowest", "1": "next"},
    "WGT": {"description": "Weight", "values": {"min": 0, "max": 999.999, "step_size": 0.001}},
    "IND": {"description": "Industry", "link": "https://example.org"},
    "ODD": {"description": 3, "values": {"a": {"b": 1}}},
}


def test_codes_ranges_and_what_is_not_applicable() -> None:
    made = from_sdnist(DICTIONARY, "d.json")
    fields = by_name(made)
    assert fields["AREA"]["categories"][0] == {"value": "01-1", "label": "North"}
    token = {"value": "N", "label": "N/A (under 15)"}
    assert fields["MSP"]["missingValues"] == ["", token]
    assert [item["value"] for item in fields["MSP"]["categories"]] == [1, 2]
    assert fields["POV"]["margent"]["special"] == {"501": "above"}
    assert fields["POV"]["constraints"] == {"minimum": 0, "maximum": 500}
    assert fields["INC"]["missingValues"] == ["", token]
    assert [item["value"] for item in fields["DEC"]["categories"]] == [0, 1]
    assert fields["WGT"]["margent"] == {"bins": "todo", "decimals": 3}
    assert fields["IND"] == {"type": "todo", "description": "Industry"}
    assert fields["ODD"] == {"type": "todo"}
    assert {note.pointer for note in made.left_out} == {"/IND/link", "/ODD/a"}


def test_a_list_of_values_will_do_and_a_text_will_not() -> None:
    assert by_name(from_sdnist({"A": {"values": ["x", "y"]}}, "d.json"))["A"]["categories"] == ["x", "y"]
    with pytest.raises(SchemaError) as caught:
        from_sdnist({"A": "x", "B": []}, "d.json")
    assert [fault.pointer for fault in caught.value.faults] == ["/A", "/B"]
