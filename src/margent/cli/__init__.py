"""The command line. `main` turns every outcome into one clear message and an exit code.

0 done, 1 a bug, 2 usage, 3 a schema or file that cannot be read or written, 4 budget refused, 5 plan too large,
130 interrupted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Privacy: a message depends on header, schema and options, never on a row; a bug's report names code lines
    only, since the text of an exception could hold a cell.
    """
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Privacy: as `main`.
    """
    import io

    import click

    from margent.cli.app import app
    from margent.cli.console import say
    from margent.errors import MargentError

    given = tuple(sys.argv[1:] if arguments is None else arguments)
    try:
        outcome = app.main(args=list(given), prog_name="margent", standalone_mode=False, obj=given)
        # A command that leaves early has its exit code handed back here; others hand back nothing.
        return outcome if isinstance(outcome, int) else 0
    except MargentError as fault:
        say(_repeatable(f"margent: {fault}", given), err=True, lines=True)
        _say_advice(fault)
        return fault.exit_code
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as fault:
        told = io.StringIO()
        fault.show(file=told)
        say(_repeatable(told.getvalue(), given).removesuffix("\n"), err=True, lines=True)
        return fault.exit_code
    except (KeyboardInterrupt, click.Abort) as stop:
        say("margent: interrupted; nothing was written, and what was charged stays charged", err=True)
        _say_advice(stop)
        return 130
    except BrokenPipeError:
        return 0
    except Exception as bug:  # the last line of defense: no text of a stranger's exception may be shown
        say(f"margent: this is a bug in Margent ({type(bug).__name__}); please report these lines:", err=True)
        for frame in traceback.extract_tb(bug.__traceback__):
            say(f"  {frame.filename}:{frame.lineno} in {frame.name}", err=True)
        _say_advice(bug)
        return 1


def _repeatable(text: str, given: Sequence[str]) -> str:
    """A message without the addresses that must not be repeated: one may stand where a path belongs, which is named."""
    from margent.tables.address import repeatable

    return repeatable(text, given)


def _say_advice(fault: BaseException) -> None:
    """How to go on, where a command of ours added that to a reason to stop (`margent.cli.interrupts`)."""
    from margent.cli.console import say

    for reason in (fault, fault.__context__):  # click makes another exception of an interrupt
        for line in vars(reason).get("margent_advice", ()) if reason else ():
            say(line, err=True)
