"""Whose row it is: id cells -> 128-bit pseudonyms under a secret key that lives as long as the run.

Two rows belong to one person when the texts that their id cells are compared as are equal, byte for byte. For a
string field that is the cell as it stands, spaces included; around any other field's, blanks are taken off, and
whole numbers of an integer field are compared as numbers (007 is 7). A typed cell is compared as its canonical
text: 12 for 12 and 12.0. A missing cell is nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from margent.privacy.randomness import random_bytes
from margent.schema.cells import absent, canonical_texts, is_text, plain
from margent.schema.fields import PersonUnit, Schema
from margent.schema.formats import BLANKS

Words = NDArray[np.uint64]

KEY_BYTES = 32
_BLOCK = 16
_WHOLE = "^[-+]?[0-9]{1,18}$"


def fresh_key() -> bytes:
    """A secret key that nobody can predict or repeat.

    Privacy: as `margent.privacy.randomness.random_bytes`.
    """
    return random_bytes(KEY_BYTES)


def encrypted(key: bytes, blocks: Words) -> Words:
    """AES-256 of every block under one key: a pseudo-random permutation of 128-bit blocks.

    Shapes: (n, 2) words -> (n, 2) words.
    """
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  (one block each, as CBC-MAC has it)
    raw = np.ascontiguousarray(blocks, dtype=np.uint64)
    out = np.empty(raw.nbytes + _BLOCK, dtype=np.uint8)
    cipher.update_into(raw.data.cast("B") if raw.size else b"", out.data)
    return out[: raw.nbytes].view(np.uint64).reshape(-1, 2)


def keyed_hashes(key: bytes, texts: Any) -> Words:
    """AES-CBC-MAC of each text, its length in front: equal for equal texts, pseudo-random for others.

    With the length in the first block no message is the beginning of another, which is what CBC-MAC needs to be a
    pseudo-random function; two of N texts have one hash with probability about N^2 / 2^129.

    Shapes: n texts (``large_binary`` without nulls) -> (n, 2) words.
    Privacy: private; meaningless without the key.
    Source: Bellare, Kilian, Rogaway 2000; Petrank, Rackoff 2000 (prefix-free messages).
    """
    count = len(texts)
    if not count:
        return np.zeros((0, 2), dtype=np.uint64)  # of no texts there may be no offsets either
    # As many as are needed: how long the buffer of a damaged file says to be need be no whole number of offsets.
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64, count=count + 1, offset=8 * texts.offset)
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    first = np.zeros((count, 2), dtype=np.uint64)
    first[:, 0] = lengths
    state = encrypted(key, first)
    places, done = np.arange(count), 0
    while (places := places[lengths[places] > done]).size:
        inside = done + np.arange(_BLOCK)
        within = inside < lengths[places, np.newaxis]
        at = np.where(within, starts[places, np.newaxis] + inside, 0)
        block = np.where(within, data[at], 0).astype(np.uint8).view(np.uint64)
        state[places] = encrypted(key, state[places] ^ block)
        done += _BLOCK
    return state


@dataclass(frozen=True)
class Identity:
    """Which person each row of a batch is of, as a 128-bit pseudonym; (0, 0) is nobody.

    Privacy: pseudonyms are private; no id leaves this class, and nothing here raises or speaks of one.
    """

    name: str
    missing: tuple[str, ...]
    type: str
    key: bytes = field(default_factory=fresh_key, repr=False)

    @staticmethod
    def of(schema: Schema, unit: PersonUnit) -> Identity:
        """How the ids of a schema's persons are read, under a fresh key."""
        (column,) = (field for field in schema.fields if field.name == unit.field)
        return Identity(column.name, tuple(token.text for token in schema.missing_of(column)), column.type)

    def pseudonyms(self, batch: pa.RecordBatch) -> Words:
        """Shapes: n rows -> (n, 2) words."""
        return self._of_column(plain(batch.column(self.name)))

    def _of_column(self, column: Any) -> Words:
        if pa.types.is_null(column.type):
            return np.zeros((len(column), 2), dtype=np.uint64)
        if pa.types.is_dictionary(column.type):
            distinct = np.append(self._of_column(plain(column.dictionary)), np.zeros((1, 2), np.uint64), axis=0)
            places = pc.fill_null(column.indices.cast(pa.int64()), distinct.shape[0] - 1)
            found: Words = distinct[places.to_numpy(zero_copy_only=False)]
            return found
        texts = self._texts(column)
        nobody = absent(column) | np.asarray(
            pc.is_in(texts, value_set=self._tokens, skip_nulls=True).to_numpy(zero_copy_only=False), dtype=np.bool_
        )
        hashes = keyed_hashes(self.key, pc.fill_null(texts, b""))
        hashes[nobody] = 0
        return hashes

    def _texts(self, column: Any) -> Any:
        """What each cell is compared as, ``large_binary``; null where the cell is."""
        if pa.types.is_integer(column.type):
            return column.cast(pa.large_string()).cast(pa.large_binary())
        texts = canonical_texts(column).cast(pa.large_binary())
        return texts if not is_text(column.type) or self.type == "string" else self._trimmed(texts)

    def _trimmed(self, texts: Any) -> Any:
        """Texts without the blanks around them; whole numbers in one spelling where the field is an integer."""
        # Bytes that are not UTF-8 pass through functions for ASCII as they are.
        trimmed = pc.ascii_trim(texts.view(pa.large_string()), characters=BLANKS).view(pa.large_binary())
        if self.type != "integer":
            return trimmed
        whole = pc.fill_null(pc.match_substring_regex(trimmed, _WHOLE), False)
        digits = pc.ascii_ltrim(trimmed.filter(whole).cast(pa.large_string()), characters="+")
        numbers = digits.cast(pa.int64()).cast(pa.large_string()).cast(pa.large_binary())
        return pc.replace_with_mask(trimmed, whole, numbers)

    @cached_property
    def _tokens(self) -> Any:
        texts = pa.array([token.encode() for token in self.missing], pa.large_binary())
        return texts if self.type == "string" else self._trimmed(texts)
