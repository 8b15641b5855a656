"""A software bill of materials (CycloneDX 1.5, JSON) of this Python's margent and all that it needs.

Run by the Python of an environment in which the core is installed: ``python sbom.py > sbom.cdx.json``; with
``--fresh`` by any Python, which makes such an environment first.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from typing import Any


def name_of(requirement: str) -> str | None:
    """The package a requirement names; None where it is for an extra or another system.

    >>> name_of("cffi>=1.14; platform_python_implementation != 'PyPy'"), name_of("tox; extra == 'dev'")
    ('cffi', None)
    """
    words, _, marker = requirement.partition(";")
    if (
        "extra" in marker
        or "win32" in marker
        or "Windows" in marker
        or re.search(r"python_(full_)?version\s*<", marker)
    ):
        return None
    found = re.match(r"[A-Za-z0-9_.-]+", words.strip())
    return found[0] if found else None


def closure(start: str = "margent") -> dict[str, metadata.Distribution]:
    """All installed packages that ``start`` needs, by name in small letters, itself included."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            found[key] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system
        waiting += [other for each in found[key].requires or () if (other := name_of(each))]
    return dict(sorted(found.items()))


def license_of(package: metadata.Distribution) -> str:
    """What a package says its license is: the expression, else its classifiers, else its first line of words."""
    facts = package.metadata
    if expression := facts.get("License-Expression"):
        return str(expression)
    classes = [text.split(" :: ")[-1] for text in facts.get_all("Classifier", []) if text.startswith("License ::")]
    if classes := [text for text in classes if text != "OSI Approved"]:
        return " and ".join(classes)
    return (facts.get("License") or "unknown").strip().splitlines()[0]


def bill() -> dict[str, Any]:
    """The bill: each component with its version, license and what it depends on; no time, host or path."""
    packages = closure()
    refs = {name: f"pkg:pypi/{name}@{package.version}" for name, package in packages.items()}

    def component(name: str) -> dict[str, Any]:
        return {
            "type": "application" if name == "margent" else "library",
            "bom-ref": refs[name],
            "name": name,
            "version": packages[name].version,
            "purl": refs[name],
            "licenses": [{"license": {"name": license_of(packages[name])}}],
        }

    needs = {
        name: sorted(
            refs[key]
            for each in package.requires or ()
            if (other := name_of(each)) and (key := re.sub(r"[-_.]+", "-", other).lower()) in refs
        )
        for name, package in packages.items()
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component("margent")},
        "components": [component(name) for name in packages if name != "margent"],
        "dependencies": [{"ref": refs[name], "dependsOn": needs[name]} for name in packages],
    }


def main() -> None:
    """Print the bill of this Python, or of a fresh one."""
    if "--fresh" in sys.argv[1:]:
        from environments import ROOT, fresh, run

        with fresh(str(ROOT)) as python:
            print(run([python, __file__], python.parent), end="")
        return
    print(json.dumps(bill(), indent=1))


if __name__ == "__main__":
    main()
