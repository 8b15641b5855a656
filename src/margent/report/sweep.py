"""The page of a sweep, from its JSON document alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margent.report import charts
from margent.report.pages import figure, page


def sweep_page(document: Mapping[str, Any]) -> str:
    """Error against epsilon, one chart a metric and one line a method, as one self-contained page.

    Privacy: shows exact figures of a table that its owner called public.
    """
    epsilons, methods = document["epsilons"], document["methods"]
    step = 1 / max(len(epsilons), 1)
    places = [(place + 0.5) * step for place in range(len(epsilons))]
    drawn = []
    for metric in document["metrics"]:
        if "reason" in metric:
            drawn.append(metric)
            continue
        flat = [("y", metric["resample"]), ("z", metric["independent"])]
        series = [(style, [(x, value) for x in places]) for style, value in flat if value is not None]
        series += [
            (f"l{number % charts.SERIES}", list(zip(places, means, strict=True)))
            for number, means in enumerate(metric["means"])
        ]
        top = max(y for _, points in series for _, y in points)
        ticks = [(x, f"{epsilon:g}") for x, epsilon in zip(places, epsilons, strict=True)]
        words = f"{metric['title']} against epsilon"
        chart = charts.lines(series, ticks, words, labels=(figure(top), figure(top / 2), "0"))
        drawn.append(metric | {"chart": chart})
    return page(
        "sweep.html",
        label=document["label"],
        meaning=document["meaning"],
        title=document["title"],
        delta=document["delta"],
        draws=document["draws"],
        epsilons=epsilons,
        names=methods,
        metrics=drawn,
        next_steps=document["nextSteps"],
    )
