"""MGD: how far synthetic marginals are from the real ones, by what the values mean, with a tolerance for noise."""

from margent.metrics.mgd.attribute import Attribute, attributes_from_schema
from margent.metrics.mgd.certificate import Certificate
from margent.metrics.mgd.mgd import Aemc, Cells, MgdResult, mgd

__all__ = ["Aemc", "Attribute", "Cells", "Certificate", "MgdResult", "attributes_from_schema", "mgd"]
