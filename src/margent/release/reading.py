"""A release folder read back: what was bought, and what is promised of it; refused where that is not what it cost.

Everybody may write such a folder. What is read here is therefore whole, consistent and bounded, or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from margent.errors import BudgetError, TranscriptError, UsageError, on_one_line
from margent.privacy.budget import Budget
from margent.privacy.ledger import require_paid
from margent.release.files import read_json
from margent.release.folder import internal_files
from margent.release.measurements import read_measurements
from margent.release.values import fraction, text, whole
from margent.schema.stored import schema_of_texts
from margent.tables.options import FILE_SUFFIXES, ReadOptions
from margent.transcript import Transcript


def read_release(folder: str | Path) -> tuple[Transcript, Budget, dict[str, Any]]:
    """Read a release folder's transcript, budget and summary; no data is needed for anything that follows.

    The budget is one that paid for the answers: every price is computed anew, and their sum is within it. The summary's
    words ("promise") are the file's: `margent.release.promise.promise_words` has those that follow from the charges.

    Privacy: none: reads published files only.
    Raises: TranscriptError naming the file that is absent, damaged or says what another denies, or that was made from
        real rows and lies there.
    """
    root = Path(folder)
    require_publishable(root)
    path = root / "summary.json"
    summary = read_json(path)
    transcript = read_measurements(root / "measurements")
    try:
        budget = _budget(summary, transcript)
        _require_facts(summary)
    except (KeyError, TypeError, AttributeError, ValueError, UsageError):
        raise TranscriptError(f"{path}: damaged or altered") from None
    for key, own in (("run", transcript.run), ("method", transcript.method)):
        if summary.setdefault(key, own) != own:
            raise TranscriptError(
                f"{path}: its {key!r} is not that of measurements/transcript.json: they are of two releases"
            )
    try:
        require_paid(transcript, budget)
    except BudgetError:
        raise TranscriptError(
            f"{path}: epsilon and delta are not what the noisy answers cost: the charges in "
            "measurements/transcript.json add up to more, are priced too low, are on other terms (relation, unit, "
            "accountant), or are of too many different epsilons to check. The promise would be false: get the release "
            "again from whoever made it"
        ) from None
    return transcript, budget, summary


def _budget(summary: Mapping[str, Any], transcript: Transcript) -> Budget:
    rows = transcript.schema.person_rows
    if summary.get("personRows", rows) != rows:
        raise ValueError
    return Budget(
        epsilon=_exact(summary["epsilon"]),
        delta=_exact(summary["delta"]),
        accountant=summary["accountant"],
        relation=summary["relation"],
        delta_for_atoms=_exact(summary.get("deltaForAtoms", "0")),
        person_rows=rows,
    )


def _exact(value: Any) -> Fraction | str:
    """A number of the budget as a release writes it, p/q of any length (delta may be 1e-300), or as people do."""
    return fraction(value) if "/" in text(value) else value


def _require_facts(summary: dict[str, Any]) -> None:
    """Refuse a summary without what some command uses, or with another kind of it; fill in what old ones had not."""
    for key in ("margent", "synthesizer"):
        text(summary[key])
    for key in ("python", "numpy"):
        text(summary["versions"][key])
    for key in ("seed", "rows"):
        whole(summary[key])
    if summary["format"] not in FILE_SUFFIXES:
        raise ValueError
    summary["settings"] = {text(key): text(value) for key, value in summary.get("settings", {}).items()}


def dialect_of(summary: Mapping[str, Any]) -> ReadOptions:
    """The dialect that a release's table was written in.

    Privacy: none: options.
    Raises: TranscriptError when the summary was altered.
    """
    facts = summary.get("dialect")
    if facts is None:
        return ReadOptions()
    try:
        if not isinstance(facts["header"], bool):
            raise TypeError
        quote = None if facts["quote"] is None else text(facts["quote"])
        return ReadOptions(delimiter=text(facts["delimiter"]), quote=quote, header=facts["header"])
    except (KeyError, TypeError, UsageError):
        raise TranscriptError("summary.json: the dialect is damaged or altered") from None


def types_of(summary: Mapping[str, Any]) -> pa.Schema | None:
    """The column types of a release's typed table, so that a resample has them too; None for text.

    Privacy: none: declared types.
    Raises: TranscriptError when the summary was altered.
    """
    if (types := summary.get("types")) is None:
        return None
    try:
        return schema_of_texts({name: text(kind) for name, kind in types.items()})
    except (AttributeError, TypeError, ValueError, OverflowError, pa.ArrowException):
        raise TranscriptError("summary.json: the column types are damaged or altered") from None


def require_publishable(folder: Path) -> None:
    """Refuse a folder that holds what was computed from real rows: published whole, it would give that away.

    Privacy: none: names of files only.
    Raises: TranscriptError naming the file and the next step.
    """
    try:
        found = internal_files(folder) if folder.is_dir() else []
    except OSError:
        raise TranscriptError(
            f"{on_one_line(str(folder))}: not everything in it can be looked into, so that it may hold what is "
            "INTERNAL; take out what does not belong into a release, or make it readable"
        ) from None
    if found:
        raise TranscriptError(
            f"{on_one_line(str(found[0]))}: is INTERNAL, made from real rows, and must not lie in a release, which may "
            "be published whole; move it out, and make sure that nobody was given the folder with it"
        )
