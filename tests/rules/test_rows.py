"""Rows that are written obey every rule: of any synthesizer, of rehearsals, inside bins, for hostile answers."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent import Schema
from margent.errors import SchemaError
from margent.methods import SYNTHESIZERS, synthesizer_named
from margent.progress import silent
from margent.rehearsal import rehearse
from margent.schema.allowed import StructuralZeros
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Merge
from margent.schema.read import schema_from_json
from margent.synthesizers.blocks import DrawnRecords
from margent.transcript import NoisyMarginal, Transcript
from tests.rules.oracle import Reader
from tests.rules.strategies import document, rules_for, wide_fields
from tests.synthesizers.made import TAKING_ANY, fitting

NAMES = [synthesizer.name for synthesizer in SYNTHESIZERS]


def written(schema: Schema, codes: NDArray[np.int32], seed: int = 5) -> list[dict[str, str]]:
    """The rows as a CSV spells them, read back by the standard library."""
    table = Codec(schema).decode_text(codes, seed)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return list(csv.DictReader(io.StringIO(text.getvalue())))


def noise_transcript(schema: Schema, seed: int, merged: bool) -> Transcript:
    """All one-ways and some pairs as pure noise of any size: the worst answers there can be."""
    rng = np.random.default_rng(seed)
    domain = Codec(schema).domain
    merges = {}
    if merged:
        for name in domain.names:
            size = domain.size(name)
            groups = np.unique(rng.integers(0, max(1, size // 2), size), return_inverse=True)[1]
            merges[name] = Merge(name, tuple(groups.tolist()))
    pairs = [tuple(sorted(rng.choice(domain.names, 2, replace=False).tolist())) for _ in range(4)]
    cliques: list[Clique] = [(name,) for name in domain.names]
    cliques += sorted(set(pairs))
    answers = tuple(
        NoisyMarginal(names, np.rint(rng.normal(3, 20, domain.shape(names))).astype(np.int64), Fraction(400), 0, False)
        for names in cliques
    )
    return Transcript(schema, domain, "made", (), answers, merges)


# Shrinking would fit and search hundreds of tables: minutes, for examples that are small anyway.
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_rows_of_every_synthesizer_obey_every_rule_as_written(data: st.DataObject) -> None:
    fields = data.draw(wide_fields())
    rules = data.draw(rules_for(fields))
    try:
        schema = schema_from_json(document(fields, rules))
    except SchemaError:
        assume(False)
    reader, seed = Reader(fields), data.draw(st.integers(0, 999))
    for block in rehearse(schema, rows=60, seed=seed, text=True):
        assert reader.broken(block.to_pylist(), rules) == []
    name = data.draw(st.sampled_from(NAMES))
    if name == "direct":
        assume(Codec(schema).domain.cells(Codec(schema).domain.names) <= 10**6)
    transcript = fitting(noise_transcript(schema, seed, data.draw(st.booleans())), name, seed)
    codes = synthesizer_named(name).build(transcript, silent).sample(60, seed, silent)
    assert codes.shape == (60, len(fields))
    assert reader.broken(written(schema, codes, seed), rules) == []


def order_schema(rules: list[dict[str, Any]]) -> Schema:
    fields = [
        {
            "name": name,
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 99, "required": True},
            "margent": {"bins": 5},
        }
        for name in ("a", "b", "t")
    ]
    return schema_from_json(document(fields, rules))


@pytest.mark.parametrize("name", ["independent", "junction-tree", "ancestral"])
def test_what_a_model_expects_obeys_too(name: str) -> None:
    """Those with a closed form count records instead, since records that break a rule are changed."""
    schema = order_schema([{"order": ["a", "b"], "strict": True}])
    assert schema.rulebook is not None
    allowed = schema.rulebook.zeros.mask(("a", "b"))
    assert allowed is not None
    model = synthesizer_named(name).build(fitting(noise_transcript(schema, 2, merged=False), name, 2), silent)
    (table,) = model.marginals([("a", "b")], seed=1)
    assert table.sum() == pytest.approx(model.total)
    assert table.sum() > 0 == table[~allowed].sum()


def test_values_of_rows_do_not_depend_on_the_block_they_are_decoded_in() -> None:
    schema = order_schema([{"order": ["a", "b"], "strict": True}, {"sum": ["a", "b"], "equals": "t"}])
    codes = next(iter_codes(schema, 300))
    codec = Codec(schema)
    whole = codec.decode(codes, 7).to_pydict()
    part = codec.decode(codes[100:220], 7, first_row=100).to_pydict()
    assert all(whole[name][100:220] == part[name] for name in whole)


def iter_codes(schema: Schema, rows: int) -> Any:
    """Codes that a rehearsal makes, by encoding its rows again."""
    for block in rehearse(schema, rows=rows, seed=1):
        yield np.stack(Codec(schema).encode(block.combine_chunks().to_batches()[0]), axis=1).astype(np.int32)


def test_pairs_in_one_bin_are_uniform_among_those_in_order() -> None:
    """Both in the first bin of 20 values, strictly ordered: 190 pairs, chi-square with 189 degrees.

    False alarm under 1e-6: mean 189, deviation 19.4, and 5.5 deviations above. Drawing one value after the other, which
    makes pairs with a large first value more frequent, gives more than 1,000.
    """
    schema = order_schema([{"order": ["a", "b"], "strict": True}])
    rows = 190 * 100
    table = Codec(schema).decode(np.zeros((rows, 3), dtype=np.int32), 3).to_pydict()
    assert statistic(table["a"], table["b"]) < 189 + 5.5 * 19.4
    first = np.random.default_rng(1).integers(0, 19, rows)
    second = first + 1 + (np.random.default_rng(2).random(rows) * (19 - first)).astype(int)
    assert statistic(first, second) > 1000


def statistic(first: Any, second: Any) -> float:
    pairs = np.bincount(np.array(first) * 20 + np.array(second), minlength=400).reshape(20, 20)
    assert (np.tril(pairs) == 0).all()
    drawn = pairs[np.triu_indices(20, 1)]
    mean = drawn.mean()
    return float((np.square(drawn - mean) / mean).sum())


@pytest.mark.parametrize("name", [each.name for each in TAKING_ANY])
def test_every_row_of_every_block_obeys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("margent.synthesizers.blocks.MOST_ROWS", 150)
    rules = [{"if": {"s": "a"}, "then": {"t": "a"}}, {"never": {"s": "b", "t": ["a", "b"]}}]
    fields = [{"name": name, "type": "string", "categories": ["a", "b", "c"]} for name in ("s", "t", "u")]
    schema = schema_from_json(document(fields, rules))
    records = DrawnRecords(synthesizer_named(name).build(noise_transcript(schema, 3, False), silent), 400, 3)
    assert records.blocks.count == 3
    blocks = [records.block(index) for index in range(3)]
    assert len({block.tobytes() for block in blocks}) == 3
    assert Reader(fields).broken(written(schema, np.concatenate(blocks)), rules) == []


def test_a_synthesizer_that_forgets_a_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [{"if": {"s": "a"}, "then": {"t": "a"}}, {"never": {"s": "b", "t": ["a", "b"]}}]
    fields = [{"name": name, "type": "string", "categories": ["a", "b", "c"]} for name in ("s", "t")]
    schema = schema_from_json(document(fields, rules))
    original = StructuralZeros.merged

    def forgetful(zeros: StructuralZeros, groups: Any) -> StructuralZeros:
        whole = original(zeros, groups)
        return StructuralZeros(whole.factors[:1], whole.possible)

    monkeypatch.setattr(StructuralZeros, "merged", forgetful)
    codes = synthesizer_named("descent").build(noise_transcript(schema, 3, False), silent).sample(400, 3, silent)
    with pytest.raises(ValueError, match="break the rules"):
        Codec(schema).decode_text(codes, 5)
    unruled = schema_from_json(document(fields, []))
    assert Reader(fields).broken(written(unruled, codes), rules) == [1]
