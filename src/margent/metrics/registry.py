"""Every metric there is, in the order of the page; a new one is one file and one line here."""

from __future__ import annotations

from margent.metrics.copies import CopiedRows
from margent.metrics.dependence import ConditionalEntropy, Correlation
from margent.metrics.learning import Learning
from margent.metrics.marginals import JTreeL2, MarginalDistance
from margent.metrics.metric import Metric
from margent.metrics.mgd_score import MarginalDifference
from margent.metrics.missingness import Missingness
from margent.metrics.nist_density import KMarginal, KMarginalByGroup, NistDensity
from margent.metrics.nist_range import NistRange
from margent.metrics.pay_gap import PayGap
from margent.metrics.pie_chart import PieChart
from margent.metrics.propensity import Propensity
from margent.metrics.ranges import RangeQueries

METRICS: tuple[Metric, ...] = (
    MarginalDistance(1, "tvd"),
    MarginalDistance(2, "tvd"),
    MarginalDistance(3, "tvd"),
    RangeQueries("contiguous", "absolute"),
    RangeQueries("contiguous", "relative"),
    RangeQueries("subset", "absolute"),
    RangeQueries("subset", "relative"),
    MarginalDifference(),
    Correlation(),
    ConditionalEntropy(),
    Propensity(),
    Missingness(),
    CopiedRows(),
    Learning("svm", "error"),
    Learning("svm", "auc"),
    Learning("boosting", "error"),
    Learning("boosting", "auc"),
    KMarginal(),
    KMarginalByGroup(),
    NistDensity(),
    NistRange(),
    PieChart(),
    PayGap("gini"),
    PayGap("rank"),
    JTreeL2(),
    MarginalDistance(1, "l1"),
    MarginalDistance(2, "l1"),
    MarginalDistance(3, "l1"),
    MarginalDistance(1, "l2"),
    MarginalDistance(2, "l2"),
    MarginalDistance(3, "l2"),
)
