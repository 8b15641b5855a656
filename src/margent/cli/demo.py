"""`margent demo`: the whole job on a real public table."""

from __future__ import annotations

from pathlib import Path

import click

from margent.cli.console import say


@click.command(short_help="See the whole job on a real public table.")
@click.option(
    "-o",
    "--out",
    default="margent-demo",
    type=click.Path(path_type=Path),
    metavar="OUT",
    show_default=True,
    help="The folder to make; must not exist.",
)
def demo(out: Path) -> None:
    """Synthesize a real public table at epsilon 1, from start to end.

    The RAND Health Insurance Experiment (20,190 person-years, public domain) ships inside a Python package
    (pip install 'margent[demo]'); it is written to OUT as CSV with a schema, then treated as if it were private.

    \b
    margent demo -o margent-demo
    """
    from margent.cli.console import shown_progress
    from margent.cli.runs import report
    from margent.demonstration import SCHEMA, write_demonstration_table
    from margent.pipeline import synthesize
    from margent.privacy.budget import Budget
    from margent.release.folder import whole_folder
    from margent.release.measurements import canonical_json
    from margent.schema.read import read_schema

    table, schema_path, release_folder = out / "visits.csv", out / "schema.json", out / "release"
    with whole_folder(out) as folder:
        count = write_demonstration_table(folder / table.name)
        (folder / schema_path.name).write_bytes(canonical_json(SCHEMA))
    say(f"A real table of {count:,} person-years is in {table}, its schema in {schema_path}.")
    say(f"Running: margent synthesize {table} --schema {schema_path} --epsilon 1 --single-release -o {release_folder}")
    say()
    with shown_progress() as progress:
        release = synthesize(table, read_schema(schema_path), budget=Budget(epsilon=1), progress=progress)
        release.save(release_folder)
    report(release, release_folder, as_json=False, spent=True)
    say(
        "Next, with a table of your own: `margent schema draft people.csv -o schema.json`. "
        f"More of this one, free: `margent resample {release_folder} --rows 5000 -o {out / 'more'}`."
    )
