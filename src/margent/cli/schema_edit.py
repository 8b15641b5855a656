"""`margent schema edit`: the open questions of a schema, one by one, in plain words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from margent.cli.console import say
from margent.cli.questions import say_questions
from margent.errors import UsageError

if TYPE_CHECKING:
    from margent.schema.editing.dialogue import Dialogue, Place
    from margent.schema.editing.question import Question

LITERAL = ("\\q", "\\b", "\\x", "\\?")
"""How the answers q, b, x and ? are typed where they are meant as values."""


@click.command(short_help="Answer a schema's open questions in the terminal.")
@click.argument("schema_path", type=click.Path(path_type=Path), metavar="S")
@click.argument("columns", nargs=-1, metavar="[COLUMN]...")
@click.option("--all", "every", is_flag=True, help="Ask about every column, answered or not.")
@click.option("-o", "--out", default=None, type=click.Path(path_type=Path), metavar="S2",
              help="Write another file, and leave S as it is.")  # fmt: skip
def edit(schema_path: Path, columns: tuple[str, ...], every: bool, out: Path | None) -> None:
    """Ask what the schema S leaves open, column by column, or about the COLUMNs you name; check each answer at once.

    Enter keeps what stands in brackets, ? explains, b goes back, x leaves the column out of the result, q saves what
    is done so far. Answer from the manual or the form, never from the rows. The file is written at the end, whole or
    not at all.

    \b
    margent schema edit schema.json
    margent schema edit schema.json age income -o other.json
    """
    from margent.release.folder import refuse_existing, replaced_file, whole_file
    from margent.schema.draft import Draft
    from margent.schema.editing.dialogue import Dialogue
    from margent.schema.strict_json import load_bytes, parse_strict

    if out is not None:
        refuse_existing(out)
    document = parse_strict(load_bytes(schema_path), str(schema_path))
    dialogue = Dialogue(document, columns, every=every, folder=schema_path.parent)
    if dialogue.open_question() is None:
        say(f"{schema_path} leaves no question open. Name columns, or say --all, to go through answered ones.")
    else:
        say("Enter keeps what stands in brackets, ? explains, b goes back, x leaves the column out of the result, q "
            "saves what is done.")  # fmt: skip
        _ask_all(dialogue)
    made = Draft(dialogue.result)
    target = schema_path if out is None else out
    if made.document == document and out is None:
        say(f"Nothing was changed in {schema_path}.")
    else:
        whole_file(out, made.text.encode()) if out is not None else replaced_file(schema_path, made.text.encode())
        say(f"Saved in {target}.")
    if not say_questions(made, target):
        say(f"No question is open: `margent schema check {target}` says whether all fits together.")


def _ask_all(dialogue: Dialogue) -> None:
    """Ask until nothing is open, or until somebody leaves."""
    column: int | None = -1
    seen: set[str] = set()
    ahead: list[str] = []
    while (found := dialogue.open_question()) is not None:
        place, question = found
        if place[0] != column:
            if ahead:
                say(f"  Not asked for, and not used: {' '.join(ahead)}")
                ahead.clear()
            column = place[0]
            _say_column(dialogue, place)
        if ahead:
            faults = dialogue.answer(place, question, given := "" if question.aside else ahead.pop(0))
            if not faults:
                continue
            ahead.clear()
            say(f"  {given!r} is no answer to what is asked next:")
            _say_faults(faults)
        if not _ask(dialogue, place, question, question.again if question.key in seen else "", ahead):
            return
        seen.add(question.key)


def _say_column(dialogue: Dialogue, place: Place) -> None:
    name, described = dialogue.column(place)
    at, of = dialogue.progress(place)
    count = "" if place[0] is None else f" ({at} of {of})"
    say()
    say(f"{name}{count}" + (f": {described}" if described else ""))


def _ask(dialogue: Dialogue, place: Place, question: Question, again: str, ahead: list[str]) -> bool:
    """Ask one question, in shorter words ``again`` if there are any; False where somebody leaves.

    Answers to the next questions that were given with this one go to ``ahead``.
    """
    from margent.schema.editing.kinds import kind_and_more

    now = f" [{question.now}]" if question.now else ""
    words = again or question.words
    while True:
        _say_lines(words + now)
        words = question.again or words
        text = _line()
        if text is None or text.strip() == "q":
            return False
        if text.strip() == "?":
            _say_lines(question.explained)
        elif text.strip() == "b":
            if dialogue.back():
                return True
            say("  This is the first question.")
        elif text.strip() == "x":
            if dialogue.leave_out(place):
                say("  It is left out: neither read nor written.")
                return True
            say("  x leaves a column out, and this question is about the whole table.")
        else:
            text = text.strip()[1:] if text.strip() in LITERAL else text
            text, more = kind_and_more(text) if question.key == "kind" else (text, [])
            faults = dialogue.answer(place, question, text)
            if not faults:
                ahead += more
                return True
            _say_faults(faults)


def _say_faults(faults: list[str]) -> None:
    for fault in faults[:5]:
        say(f"  That does not fit: {fault}")


def _say_lines(words: str) -> None:
    for line in words.split("\n"):
        say(f"  {line}")


def _line() -> str | None:
    """What somebody types, without the end of the line; None where nothing comes any more."""
    say("> ", newline=False)
    try:
        line = sys.stdin.readline()
    except UnicodeDecodeError:
        raise UsageError("an answer is not UTF-8 text") from None
    if not sys.stdin.isatty():
        say()
    if any(0xD800 <= ord(char) <= 0xDFFF for char in line):
        raise UsageError("an answer is not UTF-8 text")
    return line.rstrip("\r\n") if line else None
