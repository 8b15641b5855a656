"""`margent selftest`: check the promise on this very machine."""

from __future__ import annotations

import click

from margent.cli.console import say, say_json


@click.command(short_help="Check noise, prices and randomness on this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def selftest(as_json: bool) -> None:
    """Check on this very machine what the privacy promise rests on; reads no table, takes under a minute.

    The noise is compared with exact arithmetic, an attack is run on a made-up table, the ledger is stormed from
    many threads. A correct machine fails once in a million runs. Exit code 0: all passed; 1: something failed.

    \b
    margent selftest
    """
    from margent.audits.selftest import self_test
    from margent.cli.console import shown_progress
    from margent.version import VERSION

    with shown_progress() as progress:
        findings = self_test(progress=progress)
    failed = [finding for finding in findings if not finding.passed]
    if as_json:
        listed = [{"check": each.name, "passed": each.passed, "seen": each.seen} for each in findings]
        say_json({"version": VERSION, "passed": not failed, "findings": listed})
    else:
        for each in findings:
            say(f"{'passed' if each.passed else 'FAILED'}  {each.name} ({each.seconds:.1f} s)")
            say(f"        {each.seen}")
        say()
        say(
            "This machine keeps the promise as far as these checks can see."
            if not failed
            else "Do not publish anything made on this machine; please report the lines above."
        )
    if failed:
        raise click.exceptions.Exit(1)
