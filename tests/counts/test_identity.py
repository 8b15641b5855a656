"""Whose row it is: which id cells are one person's, and that pseudonyms are a keyed function of the id alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from margent.counts.identity import Identity, keyed_hashes

KEY = bytes(range(32))


def groups(cells: Any, kind: str = "string", missing: Sequence[str] = ("", "?")) -> list[int]:
    """The number of the person of each cell in the order they come, -1 for nobody."""
    words = Identity("id", tuple(missing), kind, key=KEY).pseudonyms(pa.RecordBatch.from_arrays([cells], ["id"]))
    seen: dict[tuple[int, ...], int] = {(0, 0): -1}
    return [seen.setdefault(tuple(word), len(seen) - 1) for word in words.tolist()]


def raw(*cells: bytes | None) -> Any:
    return pa.array(cells, pa.binary())


def test_texts_are_compared_byte_for_byte() -> None:
    cells = raw(
        b"P1", b"P1 ", b" P1", b"p1", b"P1", b"", b"?", None, b"\xff\xfe", b"\xff", b"\xff\xfe", b" ", b"x" * 99
    )
    assert groups(cells) == [0, 1, 2, 3, 0, -1, -1, -1, 4, 5, 4, 6, 7]


def test_whole_numbers_are_compared_as_numbers_where_the_field_is_an_integer() -> None:
    cells = raw(
        b"7", b"007", b" 7 ", b"+7", b"-7", b"-07", b"0", b"-0", b"7.0", b"x", b" x", b"9" * 30, b" " + b"9" * 30
    )
    assert groups(cells, "integer") == [0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5]
    assert groups(raw(b"7", b"007", b"\xff", b" \xff"), "number") == [0, 1, 2, 2]
    assert groups(raw(b"-9", b" -9 ", b"-09", b"9"), "integer", ["-9"]) == [-1, -1, -1, 0]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (pa.array([3, None, 3, 5], pa.int64()), [0, -1, 0, 1]),
        (pa.array([3, None, 3, 5], pa.uint8()), [0, -1, 0, 1]),
        (pa.array([3.0, None, 3.0, float("nan"), 0.5]), [0, -1, 0, -1, 1]),
        (pa.array([0.0, -0.0]), [0, 0]),
        (pa.array(["a", None, "a", "?"]), [0, -1, 0, -1]),
        (pa.array(["a", None, "a", "b"]).dictionary_encode(), [0, -1, 0, 1]),
        (pa.array(["a", "?", "", "a"], pa.large_string()).dictionary_encode(), [0, -1, -1, 0]),
        (pa.array([True, False, None]), [0, 1, -1]),
        (pa.array([1, 1, 2], pa.date32()), [0, 0, 1]),
        (pa.nulls(3), [-1, -1, -1]),
        (pa.array([], pa.int64()), []),
    ],
    ids=str,
)
def test_typed_cells_are_compared_by_their_canonical_text(cells: Any, expected: list[int]) -> None:
    assert groups(cells) == expected


def test_a_typed_id_and_its_text_are_one_person() -> None:
    """Text files and typed files of one table protect the same persons."""
    made = [
        Identity("id", ("",), "string", key=KEY).pseudonyms(pa.RecordBatch.from_arrays([cells], ["id"]))
        for cells in (raw(b"12", b"-3"), pa.array([12, -3]), pa.array([12.0, -3.0]), pa.array(["12", "-3"]))
    ]
    assert all((each == made[0]).all() for each in made)


def slow_mac(key: bytes, text: bytes) -> bytes:
    """CBC-MAC as the textbook has it: CBC encryption under a zero vector, last block."""
    message = len(text).to_bytes(16, "little") + text + bytes(-len(text) % 16)
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    return (encryptor.update(message) + encryptor.finalize())[-16:]


@given(st.lists(st.binary(max_size=80)), st.integers(0, 3))
def test_hashes_are_those_of_the_textbook(texts: list[bytes], skip: int) -> None:
    column = pa.array(texts, pa.large_binary()).slice(min(skip, len(texts)))
    assert [word.tobytes() for word in keyed_hashes(KEY, column)] == [slow_mac(KEY, text) for text in texts[skip:]]


def test_buffers_of_any_length_are_read_as_far_as_there_are_texts() -> None:
    """A damaged Arrow file may say that its offsets are 25 bytes long, and a column of no rows may have none."""
    texts = [b"P1", b"P22"]
    offsets, letters = pa.array(texts, pa.large_binary()).buffers()[1:]
    longer = pa.py_buffer(offsets.to_pybytes()[:24] + b"\x07")
    column = pa.Array.from_buffers(pa.large_binary(), 2, [None, longer, letters])
    assert [word.tobytes() for word in keyed_hashes(KEY, column)] == [slow_mac(KEY, text) for text in texts]
    nothing = pa.Array.from_buffers(pa.large_binary(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    assert keyed_hashes(KEY, nothing).shape == (0, 2)


def test_every_run_has_its_own_key_and_no_text_shows_it() -> None:
    one, two = Identity("id", (), "string"), Identity("id", (), "string")
    batch = pa.RecordBatch.from_arrays([raw(b"secret")], ["id"])
    assert not np.array_equal(one.pseudonyms(batch), two.pseudonyms(batch))
    assert "key" not in repr(one)
    assert len(one.key) == 32
