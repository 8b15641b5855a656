"""The guide to the report describes every metric in the words of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from margent.metrics.metric import Metric
from margent.metrics.registry import METRICS

GUIDE = " ".join((Path(__file__).parents[2] / "docs" / "reading-the-report.md").read_text().split())


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_the_guide_has_a_section_of_every_metric(metric: Metric) -> None:
    assert f"### {metric.title} `{metric.key}`" in GUIDE
    assert " ".join(metric.paragraph.split()) in GUIDE
