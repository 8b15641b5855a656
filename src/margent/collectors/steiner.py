"""Exact small designs by formula: points and blocks such that every t points lie together in a block, most just once.

| design | points, block size | t | blocks | made of |
|---|---|---|---|---|
| affine plane | q^2, q | 2 | q^2 + q | lines over GF(q) |
| projective plane | q^2 + q + 1, q + 1 | 2 | q^2 + q + 1 | lines over GF(q) |
| quadruple system | 2^m, 4 | 3 | 2^m (2^m - 1)(2^m - 2)/24 | planes over GF(2) |
| inversive plane | q^2 + 1, q + 1 | 3 | q (q^2 + 1) | plane sections of an elliptic quadric over GF(q) |
| complete | g, t | t | g choose t | all t-subsets |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

Block = tuple[int, ...]
Element = int
"""An element of GF(q): a whole number below q whose digits to the field's prime are a polynomial's coefficients."""

_REDUCTIONS: dict[int, tuple[int, tuple[int, ...]]] = {
    2: (2, ()),
    3: (3, ()),
    4: (2, (1, 1)),  # x^2 = x + 1
    5: (5, ()),
    7: (7, ()),
    8: (2, (1, 1, 0)),  # x^3 = x + 1
    9: (3, (2, 0)),  # x^2 = 2
}
"""Order q to its prime and, for powers, the coefficients (lowest first) that the highest power is replaced by."""


@dataclass(frozen=True, slots=True)
class Design:
    """Blocks of the points 0 .. points - 1 such that every ``strength`` points lie together in at least one block."""

    name: str
    strength: int
    points: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class GaloisField:
    """The field of q elements as tables of sums and products.

    >>> field = galois_field(4)
    >>> [field.times[2][value] for value in range(4)], field.plus[2][3]
    ([0, 2, 3, 1], 1)
    """

    plus: tuple[tuple[Element, ...], ...]
    times: tuple[tuple[Element, ...], ...]

    def dot(self, left: tuple[Element, ...], right: tuple[Element, ...]) -> Element:
        """The sum of products."""
        total = 0
        for one, other in zip(left, right, strict=True):
            total = self.plus[total][self.times[one][other]]
        return total


@lru_cache(maxsize=16)
def galois_field(order: int) -> GaloisField:
    """GF(q) for q = 2, 3, 4, 5, 7, 8, 9: polynomials over the prime field, modulo an irreducible one.

    Privacy: none: arithmetic.
    Raises: KeyError for another order.
    """
    prime, reduction = _REDUCTIONS[order]
    degree = max(len(reduction), 1)
    digits = [tuple(value // prime**place % prime for place in range(degree)) for value in range(order)]
    number = {each: value for value, each in enumerate(digits)}

    def times(one: tuple[int, ...], other: tuple[int, ...]) -> Element:
        raw = [0] * (2 * degree - 1)
        for low, high in product(range(degree), repeat=2):
            raw[low + high] += one[low] * other[high]
        for power in range(2 * degree - 2, degree - 1, -1):
            for place, coefficient in enumerate(reduction):
                raw[power - degree + place] += raw[power] * coefficient
        return number[tuple(value % prime for value in raw[:degree])]

    return GaloisField(
        tuple(
            tuple(number[tuple((a + b) % prime for a, b in zip(one, other, strict=True))] for other in digits)
            for one in digits
        ),
        tuple(tuple(times(one, other) for other in digits) for one in digits),
    )


def affine_plane(order: int) -> Design:
    """The points of a plane over GF(q), and its lines y = s x + c and x = c.

    Privacy: none: arithmetic.

    >>> plane = affine_plane(3)
    >>> plane.points, len(plane.blocks), len(plane.blocks[0])
    (9, 12, 3)
    """
    field = galois_field(order)
    blocks = [
        tuple(sorted(x * order + field.plus[field.times[slope][x]][rise] for x in range(order)))
        for slope, rise in product(range(order), repeat=2)
    ]
    blocks += [tuple(x * order + y for y in range(order)) for x in range(order)]
    return Design(f"affine plane of order {order}", 2, order**2, tuple(blocks))


def projective_plane(order: int) -> Design:
    """The lines through the origin of a space over GF(q), and the planes that hold them.

    Privacy: none: arithmetic.

    >>> fano = projective_plane(2)
    >>> fano.points, len(fano.blocks), len(fano.blocks[0])
    (7, 7, 3)
    """
    field = galois_field(order)
    points = [
        *[(1, x, y) for x, y in product(range(order), repeat=2)],
        *[(0, 1, x) for x in range(order)],
        (0, 0, 1),
    ]
    blocks = [
        tuple(place for place, point in enumerate(points) if field.dot(point, line) == 0)
        for line in points  # lines have the same coordinates as points
    ]
    return Design(f"projective plane of order {order}", 2, len(points), tuple(blocks))


def quadruple_system(dimension: int) -> Design:
    """The points of a space over GF(2), and its planes: four points whose sum is zero.

    Privacy: none: arithmetic.

    >>> system = quadruple_system(3)
    >>> system.points, len(system.blocks)
    (8, 14)
    """
    points = 2**dimension
    blocks = {tuple(sorted((a, b, c, a ^ b ^ c))) for a, b, c in combinations(range(points), 3)}
    return Design(f"quadruple system of {points} points", 3, points, tuple(sorted(blocks)))


def inversive_plane(order: int) -> Design:
    """The points of the quadric f(x, y) + z w = 0, f without a root, and its sections by planes that are circles.

    Privacy: none: arithmetic.

    >>> plane = inversive_plane(3)
    >>> plane.points, len(plane.blocks), len(plane.blocks[0])
    (10, 30, 4)
    """
    field = galois_field(order)
    plus, times = field.plus, field.times

    def form(first: Element, second: Element, x: Element, y: Element) -> Element:
        mixed, squared = times[first][times[x][y]], times[second][times[y][y]]
        return plus[plus[times[x][x]][mixed]][squared]

    first, second = next(
        (a, b) for a, b in product(range(order), repeat=2) if b and all(form(a, b, x, 1) for x in range(order))
    )
    negative = [plus[value].index(0) for value in range(order)]
    points = [(x, y, negative[form(first, second, x, y)], 1) for x, y in product(range(order), repeat=2)]
    points.append((0, 0, 1, 0))
    sections = {
        tuple(place for place, point in enumerate(points) if field.dot(point, plane) == 0)
        for plane in product(range(order), repeat=4)
        if any(plane)
    }
    circles = sorted(section for section in sections if len(section) > 1)
    return Design(f"inversive plane of order {order}", 3, len(points), tuple(circles))


def complete(strength: int, points: int) -> Design:
    """All subsets of ``strength`` points. Privacy: none: arithmetic."""
    return Design(f"all {strength}-subsets of {points}", strength, points, tuple(combinations(range(points), strength)))


@lru_cache(maxsize=4)
def known_designs(strength: int) -> tuple[Design, ...]:
    """The designs of this strength that are tried, small ones first; none for a strength other than 2 or 3.

    Privacy: none: arithmetic.
    """
    if strength == 2:
        found = [complete(2, points) for points in (3, 5, 6)]
        found += [affine_plane(order) for order in _REDUCTIONS] + [projective_plane(order) for order in _REDUCTIONS]
    elif strength == 3:
        found = [complete(3, points) for points in (4, 6, 7)] + [quadruple_system(3), quadruple_system(4)]
        found += [inversive_plane(order) for order in (2, 3, 4, 5)]
    else:
        found = []
    return tuple(sorted(found, key=lambda design: (design.points, len(design.blocks), design.name)))
