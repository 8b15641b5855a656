"""REDCap data dictionaries: field types, validations, choices and checkboxes."""

from __future__ import annotations

import pytest

from margent.errors import SchemaError
from margent.schema.imports.redcap import from_redcap
from tests.schema.imports.drafts import by_name

WEB = (
    "Variable / Field Name,Form Name,Section Header,Field Type,Field Label,"
    '"Choices, Calculations, OR Slider Labels",Field Note,Text Validation Type OR Show Slider Number,'
    "Text Validation Min,Text Validation Max,Identifier?,Branching Logic (Show field only if...),Required Field?\n"
)
API = (
    "field_name,form_name,section_header,field_type,field_label,select_choices_or_calculations,field_note,"
    "text_validation_type_or_show_slider_number,text_validation_min,text_validation_max,identifier,branching_logic,"
    "required_field\n"
)
LINES = """record_id,base,,text,Study ID,,,,,,,,
sex,base,,radio,Sex,"1, Male | 2, Female, or other",,,,,,,y
site,base,,dropdown,Site,"A, North | B, South",,,,,,,
races,base,,checkbox,Race,"1, White | -1, Other | b C, Third",,,,,,,
dob,base,,text,Birth,,,date_dmy,1900-01-01,today,y,,
visit,base,,text,Visit,,,date_mdy,2020-01-01,2020-12-31,,[sex] = '1',
seen,base,,text,Seen,,,datetime_seconds_ymd,,now,,,
age,base,,text,Age,,,integer,0,110,,,
weight,base,,text,Weight,,,number_1dp,0,300,,,
dose,base,,text,Dose,,,number_2dp_comma_decimal,"0,5","9,75",,,
score,base,,text,Score,,,number,,,,,
at,base,,text,At,,,time,08:00,17:30,,,
mail,base,,text,Mail,,,email,,,,,
free,base,,text,Free,,,,,,,,
story,base,,notes,Story,,,,,,,,
scan,base,,file,Scan,,,,,,,,
pain,end,,slider,Pain,,,number,,,,,
bmi,end,,calc,BMI,[a]/[b],,,,,,,
smokes,end,,yesno,Smokes,,,,,,,,
agrees,end,,truefalse,Agrees,,,,,,,,
title,end,,descriptive,Welcome,,,,,,,,
strange,end,,hologram,Strange,,,,,,,,
bad,end,,radio,Bad,"just words | 3, Three",,,,,,,
"""


@pytest.mark.parametrize("header", [WEB, API])
def test_every_field_type(header: str) -> None:
    made = from_redcap(header + LINES, "dictionary.csv")
    fields = by_name(made)
    assert fields["record_id"]["margent"] == {"role": "identifier"}
    assert fields["sex"]["categories"] == [{"value": 1, "label": "Male"}, {"value": 2, "label": "Female, or other"}]
    assert fields["sex"]["type"] == "integer"
    assert "required" not in fields["sex"].get("constraints", {})
    assert [item["value"] for item in fields["site"]["categories"]] == ["A", "B"]
    boxes = [name for name in fields if name.startswith("races")]
    assert boxes == ["races___1", "races____1", "races___b_c"]
    assert {fields[box]["type"] for box in boxes} == {"boolean"}
    assert fields["races___1"]["description"] == "Race: White"
    assert fields["visit"]["constraints"] == {"minimum": "2020-01-01", "maximum": "2020-12-31"}
    assert fields["visit"]["description"] == "Visit (asked only if [sex] = '1')"
    assert fields["seen"]["constraints"] == {"minimum": "todo", "maximum": "todo"}
    assert fields["age"]["constraints"] == {"minimum": 0, "maximum": 110}
    assert fields["weight"]["margent"]["decimals"] == 1
    assert fields["dose"]["decimalChar"] == ","
    assert fields["dose"]["constraints"] == {"minimum": 0.5, "maximum": 9.75}
    assert fields["score"]["margent"]["decimals"] == "todo"
    assert fields["at"]["constraints"] == {"minimum": "08:00:00", "maximum": "17:30:00"}
    assert fields["free"]["categories"] == "todo"
    dropped = {name for name, field in fields.items() if field.get("margent") == {"role": "drop"}}
    assert dropped == {"dob", "mail", "story", "scan"}
    assert fields["pain"]["constraints"] == {"minimum": 0, "maximum": 100}
    assert (fields["smokes"]["trueValues"], fields["agrees"]["falseValues"]) == (["1", "Yes"], ["0", "False"])
    assert "title" not in fields
    assert fields["strange"]["type"] == "todo"
    assert [item["value"] for item in fields["bad"]["categories"]] == [3]
    told = " ".join(map(str, made.left_out))
    for words in ("identifying", "bound that moves", "rule", "hologram", "base_complete", "saved empty", "free text"):
        assert words in told


def test_faults_name_their_lines() -> None:
    with pytest.raises(SchemaError) as caught:
        from_redcap(WEB + "id,f,,text,,,,,,,,,\n,f,,text,,,,,,,,,\na,f,,yesno,,,,,,,,,\na,f,,yesno,,,,,,,,,\n", "d.csv")
    assert [fault.pointer for fault in caught.value.faults] == ["line 3", "line 5"]
    for text in ("", "field_name\nx\n", WEB, WEB + '"x\n', WEB + ",".join("x" * 40)):
        with pytest.raises(SchemaError):
            from_redcap(text, "d.csv")
