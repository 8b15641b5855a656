"""A text file as blocks of UTF-8: decompressed and transcoded on the way, never whole in memory."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, cast

from margent.tables.options import codec_name

BLOCK_BYTES = 2**22
"""Bytes read at a time."""

_UNDECODABLE = "margent.undecodable"


def utf8_blocks(path: Path, kind: str, encoding: str, block_bytes: int = BLOCK_BYTES) -> Generator[bytes, None, None]:
    """The file's text as UTF-8, about ``block_bytes`` at a time; where the blocks are cut means nothing.

    UTF-8 passes through byte for byte, valid or not. From any other encoding, bytes that cannot be decoded
    become the byte FF, which is not UTF-8 anywhere and so equals no value of a schema. However far a
    compressed file expands, no more than a block of it is held.

    Privacy: private text; decoding never stops at a byte.
    Raises: OSError, EOFError or an Arrow error where the file cannot be read to its end.
    """
    decoder = None
    if codec_name(encoding) != "utf-8":
        codecs.register_error(_UNDECODABLE, _undecodable)
        decoder = codecs.getincrementaldecoder(encoding)(_UNDECODABLE)
    with path.open("rb") as raw, closing(_decompressed(raw, kind)) as stream:
        while block := stream.read(block_bytes):
            yield block if decoder is None else _utf8(decoder.decode(block))
    if decoder is not None:
        yield _utf8(decoder.decode(b"", final=True))


def _decompressed(raw: IO[bytes], kind: str) -> IO[bytes]:
    if kind.endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if kind.endswith(".zst"):
        import pyarrow as pa

        return cast("IO[bytes]", pa.CompressedInputStream(raw, "zstd"))
    return raw


def _undecodable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def without(blocks: Iterator[bytes], skip: int) -> Iterator[bytes]:
    """The same bytes without the first ``skip``.

    >>> b"".join(without(iter([b"ab", b"cd", b"ef"]), 3))
    b'def'
    """
    for block in blocks:
        if skip < len(block):
            yield block[skip:]
        skip = max(0, skip - len(block))
