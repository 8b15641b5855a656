"""The levels of hierarchies as merges that stand beside their columns: coarser views of a column, all public."""

from __future__ import annotations

from collections.abc import Mapping

from margent.schema.domain import Merge
from margent.schema.fields import Schema
from margent.schema.hierarchy import groups_at
from margent.schema.labels import scalar_text
from margent.schema.layout import Layout, layout_of, listed_values


def hierarchy_merges(schema: Schema) -> Mapping[str, Merge]:
    """One merge a level of every modeled field's hierarchy, named ``column@level``, finest first.

    Codes that are no listed values (special, missing, unlisted) stay groups of their own. Levels that merge nothing
    beyond the one below are left out, as is one that has a single group.

    Privacy: none: a function of the schema.

    >>> from margent.schema.fields import Category
    >>> tree = {"levels": ["county"], "parents": [{"101": "North", "102": "North", "201": "South"}]}
    >>> field = Category("zip", ["101", "102", "201"], hierarchy=tree, required=True, unlisted={"to": "101"})
    >>> hierarchy_merges(Schema([field], unit="row"))
    {'zip@county': Merge(column='zip', groups=(0, 0, 1))}
    """
    taken = {field.name for field in schema.fields}
    merges: dict[str, Merge] = {}
    for field in schema.modelled:
        if field.hierarchy is None:
            continue
        layout = layout_of(field, schema.missing_of(field))
        below = layout.size
        for place, level in enumerate(field.hierarchy.levels):
            merge = _level(layout, place)
            if 1 < merge.size < below:
                name = f"{field.name}@{level}"
                while name in taken:
                    name += "@"
                taken.add(name)
                merges[name] = merge
                below = merge.size
    return merges


def _level(layout: Layout, level: int) -> Merge:
    """The codes of a column grouped at a level of its hierarchy, then its other codes one by one."""
    field = layout.field
    assert field.hierarchy is not None
    values = [scalar_text(item.value) for item in listed_values(field) or ()]
    names, groups = groups_at(field.hierarchy, values, level)
    others = range(len(names), len(names) + layout.size - len(groups))
    return Merge(field.name, (*groups, *others))
