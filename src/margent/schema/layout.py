"""The codes of one column: values or bins, then special codes, then missing cells, then (if needed) unlisted.

Every raw cell has exactly one code. `Layout.code_of` reads one text at a time, exactly; the codec does the
same for whole columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from margent.schema.bins import Cuts, bin_of, cut
from margent.schema.differences import difference_field
from margent.schema.formats import BLANKS
from margent.schema.parts import Field, ListedValue, MissingToken, Scalar, SpecialCode
from margent.schema.positions import Position, cell_position, scalar_position

MissingCell = tuple[MissingToken, ...]


@dataclass(frozen=True)
class Layout:
    """Which codes a modeled column has and what they stand for.

    ``values`` codes come first (the closed list, or the bins of ``cuts``). ``unlisted`` is the code of cells
    that cannot be read or are not in the closed list, where they have one of their own, never sampled;
    ``fallback`` is the code that such cells get in any case. ``texts`` are cell texts with a code of their
    own, ``points`` likewise exact positions on the axis. Of a date relative to another, ``differences`` is the layout
    of the whole numbers that are modeled instead; its bins and spikes are this one's.

    Privacy: none: a function of the schema.
    """

    field: Field
    values: int
    cuts: Cuts | None
    special: tuple[SpecialCode, ...]
    missing: tuple[MissingCell, ...]
    unlisted: int | None
    fallback: int
    texts: Mapping[str, int]
    points: Mapping[Position, int]
    differences: Layout | None = None

    @property
    def size(self) -> int:
        """Number of codes."""
        return self.first_missing + len(self.missing) + (self.unlisted is not None)

    @property
    def first_missing(self) -> int:
        """The code of the first missing cell, where there is one: values and special codes come before."""
        return self.values + len(self.special)

    @property
    def null(self) -> int:
        """The code of a null in a typed column: the first missing cell, or that of unreadable cells."""
        return self.first_missing if self.missing else self.fallback

    def code_of(self, text: str) -> int | None:
        """The code of a cell's text, or None where it cannot be read or is not in the closed list."""
        field = self.field
        if text in self.texts:
            return self.texts[text]
        if field.type == "string":
            return None
        trimmed = text.strip(BLANKS)
        if trimmed in self.texts or field.type == "boolean":
            return self.texts.get(trimmed)
        position = cell_position(field.type, text, field.spelling, field.time_zone)
        if position is None or self.differences is not None:
            return None if position is None else self.points.get(position)  # a date alone has no difference
        if position in self.points or self.cuts is None:
            return self.points.get(position)
        return bin_of(self.cuts, position)


def listed_values(field: Field) -> tuple[ListedValue, ...] | None:
    """The closed list of a field's values, or None; a boolean always has one."""
    if field.listed is None and field.type == "boolean":
        return (ListedValue(False), ListedValue(True))
    return field.listed


def _missing_cells(field: Field, tokens: Sequence[MissingToken]) -> tuple[MissingCell, ...]:
    """The missing cells of a field: one for all plain tokens together, one for each token that stands alone.

    >>> from margent.schema.parts import Field
    >>> plain, refused = [MissingToken(""), MissingToken("NA")], MissingToken("-9", "refused", alone=True)
    >>> [[token.text for token in cell] for cell in _missing_cells(Field("x", "string"), [*plain, refused])]
    [['', 'NA'], ['-9']]
    """
    if field.required:
        return ()
    cells: list[list[MissingToken]] = []
    shared: list[MissingToken] | None = None
    for token in tokens:
        if token.alone:
            cells.append([token])
        elif shared is None:
            shared = [token]
            cells.append(shared)
        else:
            shared.append(token)
    # A nullable field without tokens still has nulls in typed tables; as text they are written empty.
    return tuple(tuple(cell) for cell in cells) or ((MissingToken(""),),)


def layout_of(field: Field, tokens: Sequence[MissingToken]) -> Layout:
    """The codes of a modeled field, whose missing tokens are ``tokens``.

    Where a required field has one possible value, every cell gets its code: there is nothing to measure.

    Raises: ValueError saying what is wrong with the bins or the policy for unlisted cells.
    """
    listed = listed_values(field)
    cells = _missing_cells(field, tokens)
    differences = None if field.relative_to is None else layout_of(difference_field(field), ())
    apart = own_positions(field, [special.text for special in field.special])
    apart |= own_positions(field, [token.text for token in tokens if field.nullable])
    spikes = {} if differences is not None else spike_positions(field)
    if differences is not None:
        cuts, special = differences.cuts, differences.special
    else:
        cuts = cut(field, [*apart.values(), *spikes]) if listed is None else None
        special = (*field.special, *(SpecialCode(_spike_text(field, cuts, spike)) for spike in field.spikes))
    values = len(listed) if listed is not None else len(cuts.starts) if cuts else 0

    texts: dict[str, int] = {}
    points: dict[Position, int] = {}
    for code, item in enumerate(listed or ()):
        if field.type == "string":
            texts[str(item.value)] = code
        elif field.type == "boolean":
            spelling = field.spelling
            for text in spelling.true_values if item.value else spelling.false_values:
                texts[text.strip(BLANKS)] = code
        else:
            points[scalar_position(field.type, item.value, field.time_zone)] = code
    for code, one in enumerate(field.special, start=values):
        texts[one.text] = code
    first_missing = values + len(special)
    declared = set(tokens)
    for code, cell in enumerate(cells, start=first_missing):
        # A nullable field that declares no tokens reads none: an empty text is then like any unreadable one.
        texts |= {token.text: code for token in cell if token in declared}
    points |= {position: texts[text] for text, position in apart.items()}
    points |= {position: values + len(field.special) + place for place, position in enumerate(spikes)}

    layout = Layout(field, values, cuts, special, cells, None, first_missing, texts, points, differences)
    if field.unlisted_to is not None:
        target = layout.code_of(field.unlisted_to)
        if target is None:
            raise ValueError("the value it names is not one of the field's own; name a category or a special code")
        return _with(layout, None, target)
    if cells:
        return layout
    if layout.size == 1:
        return _with(layout, None, 0)
    return _with(layout, layout.size, layout.size)


def own_positions(field: Field, texts: Sequence[str]) -> dict[str, Position]:
    """Those of the texts that stand for a position on the field's axis, so that typed cells match them too.

    >>> from margent.schema.parts import Field
    >>> own_positions(Field("income", "integer"), ["-9", "<5"])
    {'-9': -9}
    """
    if field.type in ("string", "boolean"):
        return {}
    found = {text: cell_position(field.type, text, field.spelling, field.time_zone) for text in texts}
    return {text: position for text, position in found.items() if position is not None}


def spike_positions(field: Field) -> dict[Position, None]:
    """Where the spikes stand on the field's axis, in the order declared."""
    return {scalar_position(field.type, spike, None): None for spike in field.spikes}


def _spike_text(field: Field, cuts: Cuts | None, spike: Scalar) -> str:
    """A spike as it is written: with as many decimals as the other values.

    >>> from margent.schema.bins import EqualBins
    >>> pay = Field("pay", "number", minimum=0, maximum=9, bins=EqualBins(3), decimals=2, spikes=(Decimal("1.5"),))
    >>> _spike_text(pay, cut(pay), Decimal("1.5"))
    '1.50'
    """
    digits = len(str(int(1 / cuts.grid.unit))) - 1 if cuts is not None and field.type == "number" else 0
    scaled = round(Fraction(Decimal(spike)) * 10**digits)
    whole, part = divmod(abs(scaled), 10**digits)
    sign = "-" if scaled < 0 else ""
    return f"{sign}{whole}{field.spelling.decimal_char}{part:0{digits}}" if digits else f"{sign}{whole}"


def _with(layout: Layout, unlisted: int | None, fallback: int) -> Layout:
    return replace(layout, unlisted=unlisted, fallback=fallback)
