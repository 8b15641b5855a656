"""The page of an evaluation, from its JSON document alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from margent.report import charts
from margent.report.pages import page, percent

YARDSTICKS = 2
"""The first tables of a document are the resample and the independent table."""
COLUMNS_SHOWN = 20
PAIRS_SHOWN = 30
MARGINALS_SHOWN = 12
_GOOD = {"lower": "low", "higher": "high", "nearer": "like independent"}

Document = Mapping[str, Any]


def evaluation_page(document: Document) -> str:
    """The evaluation as one self-contained page, marked INTERNAL at its top and in every section.

    Privacy: shows exact figures of real rows.
    """
    names = [table["name"] for table in document["tables"][YARDSTICKS:]]
    figures = document["figures"]
    return page(
        "evaluation.html",
        label=document["label"],
        meaning=document["meaning"],
        title=document["title"],
        real_rows=document["realRows"],
        absent_from_real=document["absentFromReal"],
        not_compared=document["notCompared"],
        tables=[table | {"epsilon": _epsilon(table)} for table in document["tables"][YARDSTICKS:]],
        names=names,
        metrics=document["metrics"],
        overview=[_overview(metric) for metric in document["metrics"] if _has_scores(metric)],
        silent=_silent(document),
        one_ways=_one_ways(figures["oneWays"], names),
        pairs=_pairs(document, names),
        worst=_worst(figures["worstPairs"], names),
        widths=_widths(document),
        learning=_learning(document),
        no_learning=_reason(document, "learning", "it was not asked for"),
        mgd=_marginals(document),
        mgd_about="moving a record to a neighboring bin costs little, making one costs 1.",
        no_mgd=_reason(document, "mgd", "it was not asked for"),
        next_steps=document["nextSteps"],
    )


def _epsilon(table: Document) -> str:
    """A release's epsilon as a person writes it, or a dash."""
    try:
        return f"{float(Fraction(table['release']['epsilon'])):g}"
    except (TypeError, ValueError, KeyError, ZeroDivisionError, OverflowError):
        return "–"


def _values(metric: Document) -> list[float | None]:
    return [score["value"] if score["status"] == "scored" else None for score in metric["scores"]]


def _has_scores(metric: Document) -> bool:
    return any(value is not None for value in _values(metric)[YARDSTICKS:])


def _overview(metric: Document) -> dict[str, Any]:
    resample, independent, *scores = _values(metric)
    comparable = resample is not None and independent is not None and _worse(independent, resample, metric["better"])
    return {
        "key": metric["key"],
        "title": metric["title"],
        "scores": scores,
        "resample": resample,
        "independent": independent,
        "better": _GOOD[metric["better"]],
        "chart": charts.scale(resample or 0.0, independent or 0.0, scores) if comparable else "",
    }


def _worse(one: float, other: float, better: str) -> bool:
    return (one > other and better == "lower") or (one < other and better == "higher")


def _silent(document: Document) -> list[dict[str, Any]]:
    """Metrics without a score for some table, one entry a reason."""
    names = [table["name"] for table in document["tables"]]
    found = []
    for metric in document["metrics"]:
        reasons: dict[str, list[str]] = {}
        for name, score in zip(names, metric["scores"], strict=True):
            if score["status"] != "scored":
                reasons.setdefault(score["reason"], []).append(name)
        for reason, tables in reasons.items():
            every = len(tables) == len(names)
            found.append({"title": metric["title"], "tables": [] if every else tables, "reason": reason})
    return found


def _one_ways(entries: Any, names: Sequence[str]) -> Any:
    if isinstance(entries, Mapping):
        return entries
    drawn = []
    for entry in sorted(entries, key=lambda each: -max([0.0, *each["distances"][YARDSTICKS:]])):
        own = entry["distances"][YARDSTICKS:]
        words = f"{entry['column']}: " + ", ".join(
            f"{name} off by {percent(each)}" for name, each in zip(names, own, strict=True)
        )
        drawn.append(
            {
                "column": entry["column"],
                "grouped": entry["grouped"],
                "svg": charts.overlay(entry["real"], entry["tables"][YARDSTICKS:], words),
                "first": _short(entry["labels"][0]),
                "last": _short(entry["labels"][-1]) if len(entry["labels"]) > 1 else "",
                "numbers": [
                    (_short(label), values)
                    for label, *values in zip(
                        entry["labels"], entry["real"], *entry["tables"][YARDSTICKS:], strict=True
                    )
                ],
                "distances": own,
                "resample": entry["distances"][0],
            }
        )
    return drawn


def _pairs(document: Document, names: Sequence[str]) -> Any:
    found = document["figures"]["pairs"]
    if "reason" in found:
        return found
    distances = np.array(found["distances"]).reshape(len(document["tables"]), -1)
    own = distances[YARDSTICKS:]
    top = float(max(np.quantile(own, 0.99) if own.size else 0.0, 1e-6))
    side = len(document["columns"])
    maps = []
    for number in (*range(len(names)), None):
        name = "real rows resampled" if number is None else names[number]
        values = distances[0 if number is None else YARDSTICKS + number]
        cells = [(other, one, value) for (one, other), value in zip(found["cliques"], values.tolist(), strict=True)]
        words = f"Errors of pairs of columns: {name}, {percent(float(values.mean()))} on average"
        maps.append(
            {
                "svg": charts.triangle(cells, side, top, words),
                "name": name,
                "series": None if number is None else number % charts.SERIES,
                "mean": float(values.mean()),
            }
        )
    return {
        "top": top,
        "maps": maps,
        "chosen": len(found["cliques"]),
        "possible": found["possible"],
        "numbers": _largest(document, found["cliques"], distances),
        "by_column": _by_column(document, found["cliques"], distances),
    }


def _largest(document: Document, cliques: Sequence[Sequence[int]], distances: Any) -> list[tuple[list[str], Any]]:
    """The pairs whose error is largest in any table: the names of the columns, the tables' errors, the resample's."""
    names = [column["name"] for column in document["columns"]]
    order = np.argsort(-distances[YARDSTICKS:].max(axis=0), kind="stable")[:PAIRS_SHOWN]
    return [
        ([names[column] for column in cliques[place]], [*distances[YARDSTICKS:, place].tolist(), distances[0, place]])
        for place in order.tolist()
    ]


def _by_column(document: Document, cliques: Sequence[Sequence[int]], distances: Any) -> list[dict[str, Any]]:
    members = np.array(cliques, dtype=np.int64).reshape(-1, 2)
    rows = []
    for place, column in enumerate(document["columns"]):
        holds = (members == place).any(axis=1)
        if holds.any():
            means = distances[:, holds].mean(axis=1)
            rows.append((float(means[YARDSTICKS:].max()), float(means[0]), column["name"]))
    rows.sort(key=lambda row: (-row[0], row[2]))
    top = max([1e-12, *(row[0] for row in rows), *(row[1] for row in rows)])
    return [
        {"column": name, "value": value, "resample": resample, "chart": charts.bar(value / top, resample / top)}
        for value, resample, name in rows[:COLUMNS_SHOWN]
    ]


def _worst(entries: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    if isinstance(entries, Mapping):
        return []
    drawn = []
    for entry in entries:
        real = np.array(entry["real"])
        gaps = [np.array(table) - real for table in entry["tables"]]
        top = max([1e-9, *(float(np.abs(gap).max()) for gap in gaps)])
        maps = []
        for name, gap, distance in zip(names, gaps, entry["distances"][YARDSTICKS:], strict=True):
            words = f"{entry['columns'][0]} by {entry['columns'][1]}: {name} minus real"
            row, column = np.unravel_index(int(np.abs(gap).argmax()), gap.shape)
            most = ""
            if gap[row, column] != 0:
                labels = f"{_short(entry['labels'][0][row])}, {_short(entry['labels'][1][column])}"
                many = "too many" if gap[row, column] > 0 else "too few"
                most = f"{labels} ({percent(abs(float(gap[row, column])))} {many})"
            maps.append(
                {"svg": charts.signed(gap.tolist(), top, words), "name": name, "distance": distance, "most": most}
            )
        drawn.append({"columns": entry["columns"], "maps": maps, "top": top, "resample": entry["distances"][0]})
    return drawn


def _widths(document: Document) -> Any:
    metric = next((each for each in document["metrics"] if each["key"] == "range-contiguous-absolute"), None)
    if metric is None or not _has_scores(metric):
        return ""
    styles = ["y", "z", *(f"l{place % charts.SERIES}" for place in range(len(metric["scores"]) - YARDSTICKS))]
    series, ticks, top = [], [], 0.0
    for style, score in zip(styles, metric["scores"], strict=True):
        points = score["details"].get("byWidth", [])
        if points:
            # Widths are drawn at equal distances, so that the narrow ones can be told apart.
            step = 1 / len(points)
            series.append((style, [((place + 0.5) * step, point["error"]) for place, point in enumerate(points)]))
            ticks = [((place + 0.5) * step, f"{100 * point['width']:g} %") for place, point in enumerate(points)]
            top = max(top, *(point["error"] for point in points))
    if not series:
        return ""
    labels = (percent(top), percent(top / 2), "0")
    found = [
        {point["width"]: point["error"] for point in each["details"].get("byWidth", [])} for each in metric["scores"]
    ]
    widths = sorted({width for each in found for width in each})
    return {
        "chart": charts.lines(series, ticks, "Mean absolute error of range queries by width", labels=labels),
        "numbers": [(f"{100 * width:g} %", [each.get(width) for each in found]) for width in widths],
    }


def _learning(document: Document) -> list[dict[str, Any]]:
    rows = []
    for metric in document["metrics"]:
        if not metric["key"].startswith("learning") or not _has_scores(metric):
            continue
        tasks = [score["details"].get("tasks") for score in metric["scores"][YARDSTICKS:]]
        for place, task in enumerate(next(each for each in tasks if each)):
            rows.append(
                {
                    "title": metric["title"],
                    "column": task["column"],
                    "value": _short(task["value"]),
                    "scores": [None if each is None else each[place]["score"] for each in tasks],
                    "real": task["trainedOnReal"],
                    "guessing": task["guessing"],
                }
            )
    return rows


def _marginals(document: Document) -> list[dict[str, Any]]:
    metric = next((each for each in document["metrics"] if each["key"] == "mgd"), None)
    if metric is None or not _has_scores(metric):
        return []
    found = [
        {tuple(each["columns"]): each["value"] for each in score["details"].get("marginals", [])}
        for score in metric["scores"]
    ]
    first = next(each for each in found[YARDSTICKS:] if each)
    worst = sorted(first, key=lambda columns: (-first[columns], columns))[:MARGINALS_SHOWN]
    return [
        {
            "columns": columns,
            "scores": [each.get(columns) for each in found[YARDSTICKS:]],
            "resample": found[0].get(columns),
        }
        for columns in worst
    ]


def _reason(document: Document, prefix: str, otherwise: str) -> str:
    for metric in document["metrics"]:
        if metric["key"].startswith(prefix):
            return next((score["reason"] for score in metric["scores"] if score["reason"]), otherwise)
    return otherwise


def _short(label: str, most: int = 40) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"
