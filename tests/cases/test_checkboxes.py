"""Which test answers which thing asked of which small input, in the order in which they are asked.

A case without an entry here, an entry that names no test, and a case of which more or fewer things are asked than
answered all fail.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.cases.inputs import FOLDER

HERE = Path(__file__).resolve().parents[1]
READING, TYPES, CONTENTS, INTERFACE = (
    f"cases/test_{name}.py::test_" for name in ("reading", "types", "contents", "interface")
)
MADE_UP = "cases/test_arguments.py::test_"

ANSWERS: dict[str, tuple[str, ...]] = {
    "01": (
        f"{READING}01_the_default_delimiter_is_refused_with_a_hint_and_no_entry_in_the_budget",
        f"{READING}01_decimal_commas_and_grouping_are_read",
        f"{READING}01_the_output_is_read_again_with_the_same_options",
    ),
    "02": (f"{READING}02_a_byte_order_mark_is_dropped",) * 2,
    "03": (
        f"{READING}03_the_declared_encoding_gives_the_words_themselves",
        f"{READING}03_undecodable_cells_go_where_the_schema_says",
        "hostile/test_messages.py::test_no_malformed_cell_is_told_of",
    ),
    "04": (f"{READING}04_quotes_newlines_and_commas",) * 2,
    "05": (f"{READING}05_a_name_twice",) * 2,
    "07": (f"{READING}07_odd_names_pass_through_and_are_escaped",) * 3,
    "08": (f"{READING}08_leading_zeros_stay",) * 2,
    "10": (f"{TYPES}10_integers_beside_missing_cells_stay_integers",) * 3,
    "11": (f"{TYPES}11_no_float_touches_big_integers",) * 2,
    "12": (f"{TYPES}12_truth_in_the_words_of_the_schema",) * 2,
    "14": (f"{TYPES}14_mixed_offsets_and_zones",) * 3,
    "16": (
        f"{TYPES}16_orders_and_unused_categories_come_from_the_schema",
        f"{TYPES}16_an_unused_category_can_be_drawn",
        f"{TYPES}16_orders_and_unused_categories_come_from_the_schema",
    ),
    "18": (
        f"{TYPES}18_one_category_however_a_cell_is_typed",
        f"{TYPES}18_special_texts_are_drawn_and_nested_columns_named",
        f"{TYPES}18_special_texts_are_drawn_and_nested_columns_named",
    ),
    "20": (f"{TYPES}20_codes_inside_numbers",) * 3,
    "21": (
        f"{TYPES}21_negative_bounds_and_one_value",
        f"{TYPES}21_negative_bounds_and_one_value",
        f"{TYPES}21_bounds_in_the_wrong_order_are_refused_before_the_table_is_opened",
    ),
    "22": (f"{TYPES}22_a_parquet_files_types_come_back_field_by_field",),
    "23": (
        f"{TYPES}23_a_column_of_missing_cells_spoils_no_other",
        f"{TYPES}23_a_column_of_missing_cells_spoils_no_other",
        f"{TYPES}23_the_comparison_says_what_cannot_be_computed",
    ),
    "25": (f"{CONTENTS}25_a_list_of_one_costs_nothing_and_no_list_shrinks_to_what_was_seen",) * 3,
    "27": (
        f"{CONTENTS}27_values_outside_the_schema_drop_no_row_and_are_never_shown",
        f"{CONTENTS}27_values_outside_the_schema_drop_no_row_and_are_never_shown",
        f"{CONTENTS}27_values_outside_the_schema_drop_no_row_and_are_never_shown",
        f"{CONTENTS}27_strict_refuses_and_says_that_it_depends_on_the_rows",
    ),
    "28": (
        f"{CONTENTS}28_the_plan_tells_cells_and_memory_and_reads_no_row",
        f"{CONTENTS}large_lists_and_wide_tables_fit_in_little_memory",
        f"{CONTENTS}28_no_table_above_the_cap_is_ever_counted",
    ),
    "29": (f"{CONTENTS}29_nothing_of_names_numbers_and_notes_is_anywhere",) * 3,
    "30": (f"{CONTENTS}30_categories_alone_use_the_whole_budget",) * 2,
    "32": (f"{CONTENTS}32_what_the_model_holds_the_records_hold",) * 3,
    "34": (
        f"{CONTENTS}34_the_noise_covers_all_rows_of_one_person",
        f"{CONTENTS}34_three_of_five_rows_are_kept",
        f"{CONTENTS}34_the_noise_covers_all_rows_of_one_person",
    ),
    "35": (
        f"{CONTENTS}35_a_header_alone_is_a_table",
        f"{CONTENTS}35_no_byte_is_no_table",
        f"{CONTENTS}35_a_header_alone_is_a_table",
    ),
    "37": (
        f"{CONTENTS}large_lists_and_wide_tables_fit_in_little_memory",
        f"{CONTENTS}37_something_is_said_before_the_first_row_is_read",
        f"{CONTENTS}large_lists_and_wide_tables_fit_in_little_memory",
    ),
    "39": (
        f"{INTERFACE}39_refused_before_the_table_is_opened",
        f"{INTERFACE}39_every_given_value_runs_or_is_refused",
        f"{INTERFACE}39_a_tiny_epsilon_is_noise_and_finite",
        f"{MADE_UP}a_large_epsilon_shows_the_table_and_a_tiny_one_does_not",
    ),
    "40": (
        f"{INTERFACE}40_no_rows_have_columns_and_types",
        f"{INTERFACE}40_a_negative_number_needs_no_table",
        f"{INTERFACE}40_the_default_is_the_noisy_number",
        f"{INTERFACE}40_a_million_rows_in_bounded_memory",
    ),
    "42": (
        f"{INTERFACE}42_two_fits_differ_and_two_samples_of_one_seed_do_not",
        f"{INTERFACE}42_two_fits_differ_and_two_samples_of_one_seed_do_not",
        f"{INTERFACE}42_two_fits_differ_and_two_samples_of_one_seed_do_not",
        "privacy/test_randomness.py::test_threads_differ",
    ),
    "43": (
        f"{INTERFACE}43_a_saved_release_holds_no_value_and_works_elsewhere",
        "hostile/test_same_bytes.py::test_the_same_answers_and_seed_give_the_same_bytes",
        f"{INTERFACE}43_a_saved_release_holds_no_value_and_works_elsewhere",
        f"{INTERFACE}43_a_saved_release_holds_no_value_and_works_elsewhere",
    ),
    "45": (f"{INTERFACE}45_rows_under_each_condition_in_order_and_for_free",) * 3,
    "47": (f"{INTERFACE}47_odd_tables_are_compared_all_the_same",) * 3,
    "48": (f"{INTERFACE}48_what_may_be_published_needs_no_real_table_and_what_does_is_marked",) * 2,
    "50": (
        f"{INTERFACE}50_the_ledger_adds_up_and_all_but_one_percent_is_used",
        f"{INTERFACE}50_the_ledger_adds_up_and_all_but_one_percent_is_used",
        f"{INTERFACE}50_every_method_leaves_the_share_of_no_stage_behind",
    ),
}


def test_every_answer_is_a_test() -> None:
    named = {answer for answers in ANSWERS.values() for answer in answers}
    for answer in sorted(named):
        file, _, test = answer.partition("::")
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, answer


def test_everything_asked_has_an_answer() -> None:
    if not FOLDER.is_dir():
        pytest.skip("the shared cases are not beside this checkout")
    asked = {
        path.name[:2]: (path / "expected.md").read_text(encoding="utf-8").count("\n- [") for path in FOLDER.iterdir()
    }
    assert {number: len(answers) for number, answers in ANSWERS.items()} == asked
