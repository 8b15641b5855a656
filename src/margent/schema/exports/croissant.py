"""The released table as a Croissant 1.0 data set (MLCommons): JSON-LD with its file, columns and promise."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from margent.schema.exports.table_schema import special_codes, written_fields
from margent.schema.parts import DEFAULT_SPELLING
from margent.schema.positions import spelled_number

FILE, RECORDS = "synthetic", "records"
SHOWN = 30
"""Values that a column's description lists."""

_TYPES = {
    "integer": "sc:Integer",
    "year": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
}
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(
    document: Mapping[str, Any], *, promise: str | None = None, file: str = "synthetic.csv", content: Path | None = None
) -> dict[str, Any]:
    """The Croissant description of a table of this schema; ``content`` is the released file, whose SHA-256 is told.

    Licence, creator, address and date are the publisher's to add.

    Privacy: none: a function of the schema, the promise and the released file.
    """
    said = document.get("description")
    text = [said] if isinstance(said, str) else []
    text.append(promise or "A synthetic table with the columns of this schema.")
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": document.get("title") or document.get("name") or "synthetic-table",
        "description": " ".join(text),
        "distribution": _files(file, content),
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": RECORDS,
                "name": RECORDS,
                "description": "One record a row of the synthetic table.",
                "field": [_field(field, document) for field in written_fields(document)],
            }
        ],
    }


def _files(file: str, content: Path | None) -> list[dict[str, Any]]:
    """The file, and for a compressed one also what is in it."""
    packed = {"@type": "cr:FileObject", "@id": FILE, "name": file, "contentUrl": file}
    if content is not None:
        with content.open("rb") as stream:
            packed["sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
        packed["contentSize"] = f"{content.stat().st_size} B"
    inner = file.removesuffix(".gz")
    kind = {
        ".tsv": "text/tab-separated-values",
        ".parquet": "application/x-parquet",
        ".feather": "application/vnd.apache.arrow.file",
    }
    encoding = kind.get(Path(inner).suffix, "text/csv")
    if inner == file:
        return [packed | {"encodingFormat": encoding}]
    archive = packed | {"@id": f"{FILE}-archive", "encodingFormat": "application/gzip"}
    unpacked = {"@type": "cr:FileObject", "@id": FILE, "name": inner, "contentUrl": inner, "encodingFormat": encoding}
    return [archive, unpacked | {"containedIn": {"@id": archive["@id"]}}]


def _field(field: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    name = str(field["name"])
    made = {"@type": "cr:Field", "@id": f"{RECORDS}/{quote(name, safe='')}", "name": name}
    if described := _description(field):
        made["description"] = described
    source = {"fileObject": {"@id": FILE}, "extract": {"column": name}}
    return made | {"dataType": _type(field, document), "source": source}


def _type(field: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """The type of the written cells: text where a number's column also holds texts that are no numbers."""
    kind = _TYPES.get(str(field["type"]), "sc:Text")
    if kind == "sc:Text" or field.get("margent", {}).get("role") == "identifier":
        return kind
    tokens = field.get("missingValues", document.get("missingValues", [""]))
    required = field.get("constraints", {}).get("required") is True
    written = [each["value"] for each in special_codes(field)]
    if not required:
        written += [each["value"] if isinstance(each, Mapping) else each for each in tokens[:1]]
        written += [each["value"] for each in tokens[1:] if isinstance(each, Mapping)]
    plain = all(text == "" or spelled_number(text, DEFAULT_SPELLING) is not None for text in written)
    unusual = "decimalChar" in field or "groupChar" in field or "format" in field or "trueValues" in field
    return "sc:Text" if unusual or not plain else kind


def _description(field: Mapping[str, Any]) -> str:
    parts = [field[key].rstrip(". ") for key in ("title", "description") if isinstance(field.get(key), str)]
    listed = field.get("categories", field.get("constraints", {}).get("enum"))
    if isinstance(listed, list) and any(isinstance(each, Mapping) for each in listed):
        told = [
            f"{each['value']}: {each['label']}" for each in listed if isinstance(each, Mapping) and each.get("label")
        ]
        more = f", and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
        parts.append(f"Values: {', '.join(told[:SHOWN])}{more}")
    return ". ".join(part for part in parts if part)
