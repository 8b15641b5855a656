"""Which tables are neighbors: relation and protected unit as one type, of which every sensitivity is a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from margent.errors import UsageError

Relation = Literal["add-remove", "replace"]


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The pairs of tables that a release must not tell apart.

    - ``add-remove``, one record: one table has one record more. The number of records is protected.
    - ``replace``, one record: as many records in both, one of them different. Their number is public.
    - ``add-remove``, a person: one table has one person more, with all of their records, of which at most
      ``person_rows`` are ever counted (`margent.counts.contribution`).

    ``person_rows`` is None where the unit is a record, else at least 1: a person with one row is another promise
    than a row, since further rows of theirs are left out.

    Privacy: none: a function of schema and options.
    Raises: UsageError for an unknown relation, a number of rows below 1, or the replacement of a person.

    >>> Neighbors().unit_rows, Neighbors("add-remove", 4).unit_rows, str(Neighbors("replace"))
    (1, 4, 'replace one record')
    """

    relation: Relation = "add-remove"
    person_rows: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no mechanism here is priced for."""
        if self.relation not in get_args(Relation):
            raise UsageError(f"the neighbor relation must be 'add-remove' or 'replace', not {self.relation!r}")
        if self.person_rows is None:
            return
        if type(self.person_rows) is not int or self.person_rows < 1:
            raise UsageError("the rows kept of a person must be a whole number of at least 1")
        if self.relation == "replace":
            raise UsageError(
                "relation 'replace' protects single rows and the schema's unit is a person: leave the relation out "
                '(a person is added or removed), or declare unit "row" if that is the promise to make'
            )

    @property
    def unit_rows(self) -> int:
        """Most records by which neighbors differ where records are added or removed, k."""
        return 1 if self.person_rows is None else self.person_rows

    def __str__(self) -> str:
        if self.person_rows is not None:
            rows = "1 row" if self.person_rows == 1 else f"{self.person_rows} rows"
            return f"add or remove one person with at most {rows}"
        return "add or remove one record" if self.relation == "add-remove" else "replace one record"
