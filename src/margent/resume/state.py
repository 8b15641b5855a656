"""Where a run keeps what it needs to survive an interruption, and the run while it goes on.

Order is everything: state on disk, then the budget file's reservation; then for each question its charge in the state,
the word to the budget file that a look is coming, the look, and the committed answer.
Whatever is cut off in between, each charge of which a look may have come is on disk, and nothing was made of an answer
that is not. Of copies of a state under a budget file one goes on (`proofs/resuming.md`).
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margent.errors import BudgetError, UsageError
from margent.resume.facts import covering, require_same
from margent.resume.refusals import is_there
from margent.resume.table import differences, marks_of, require_same_files

if TYPE_CHECKING:
    from margent.privacy.budget import Budget
    from margent.privacy.budget_file import BudgetFile
    from margent.privacy.charge import Charge
    from margent.privacy.ledger import Ledger
    from margent.privacy.purchases import Merchant
    from margent.privacy.requests import Curator
    from margent.resume.journal import Call, Journal
    from margent.schema.domain import Merge
    from margent.schema.fields import Unit
    from margent.transcript import Answer, Transcript


@dataclass
class Pause:
    """An interrupt that waits for the end of a look, so that no answer is lost: ``asked`` while ``looking``.

    Privacy: none: it only ends a run.
    """

    looking: bool = False
    asked: bool = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """While a question is charged, looked at and committed. Raises: KeyboardInterrupt at its end if asked to."""
        self.looking = True
        try:
            yield
        finally:
            self.looking = False
        if self.asked:
            raise KeyboardInterrupt


@dataclass
class Spending:
    """Whether a run has ``begun`` to spend: set before anything is reserved or charged, for whoever may spend once.

    Privacy: none: whether there was a run, never what came of it.
    """

    begun: bool = False


@dataclass(frozen=True)
class RunState:
    """A folder, for its owner alone, in which a run keeps its charges and committed noisy answers until it is saved.

    ``resume``: go on with the interrupted run whose state is there; else there must be none. ``pay_again``: buy anew a
    question that was charged and whose answer was lost. It stays spent, so the release's epsilon is then larger (and
    a budget file must cover it); without it such a run is refused, with that epsilon.

    >>> RunState(".OUT.margent-run", resume=True)
    RunState(folder=PosixPath('.OUT.margent-run'), resume=True, pay_again=False)
    """

    folder: Path
    resume: bool = False
    pay_again: bool = False
    pause: Pause = field(default_factory=Pause, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Take a path as text too."""
        if not isinstance(self.folder, str | Path):
            raise UsageError(f"the folder of a run's state is a path, not {type(self.folder).__name__}")
        object.__setattr__(self, "folder", Path(self.folder))

    @property
    def exists(self) -> bool:
        """Whether there is such a folder. Raises: UsageError where nobody can tell."""
        return is_there(self.folder)

    def require_usable(self) -> None:
        """Refuse, before anything is read or charged, a state that is there unasked for, or is asked for and not there.

        Raises: UsageError with the next step.
        """
        if self.resume and not self.exists:
            raise UsageError(f"{self.folder}: there is no interrupted run to resume; leave --resume out to start one")
        if not self.resume and self.exists:
            raise UsageError(
                f"{self.folder} holds the state of an interrupted run: add --resume to go on with it, or delete that "
                "folder to start anew (what it charged stays spent)"
            )
        if not self.resume and not self.folder.absolute().parent.is_dir():
            raise UsageError(f"{self.folder.absolute().parent} is not a folder; create it first")

    def remove(self) -> None:
        """Remove the state: the release is saved, or nobody will go on with the run. What was charged stays spent."""
        if not self.folder.is_symlink():
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def kept(
    state: RunState | None, facts: Mapping[str, Any], table: object, spending: Spending | None = None
) -> Iterator[KeptRun]:
    """A run whose state is kept in ``state``, or nowhere. Where nothing was reserved or charged, it is removed.

    ``spending`` is told when that begins.

    Raises: UsageError where the state is of another run, in use or damaged; nothing is then charged.
    """
    spending = spending or Spending()
    if state is None:
        yield KeptRun(None, None, secrets.token_hex(16), (), table, spending)
        return
    from margent.resume.journal import Journal

    state.require_usable()
    if state.resume:
        journal = Journal.opened(state.folder)
    else:
        journal = Journal.made(state.folder, secrets.token_hex(16), {"run": dict(facts), "table": marks_of(table)})
    run = None
    try:
        held = journal.facts
        require_same(state.folder, held["run"], facts, differences(held["table"], table))
        run = KeptRun(state, journal, journal.run, journal.calls(), table, spending, held["table"])
        yield run
    finally:
        begun = state.resume or run is None or spending.begun
        if not begun:
            state.remove()  # while it is held: once let go, another process could have gone on with it
        journal.close()
        if not begun and os.name == "nt":  # where no open file can be removed
            state.remove()
        elif not begun:  # a network's folder keeps a removed file for as long as it is open
            with suppress(OSError):
                state.folder.rmdir()


class KeptRun:
    """One run: answers of before its interruption by position, then live ones, each committed before it is used.

    Privacy: holds charges and noisy answers.
    """

    def __init__(
        self,
        state: RunState | None,
        journal: Journal | None,
        run: str,
        calls: Sequence[Call],
        table: object,
        spending: Spending,
        marks: Mapping[str, Any] | None = None,
    ) -> None:
        """Use `kept`."""
        self._state, self._journal, self.run = state, journal, run
        self._recorded = list(calls)
        self._table, self._marks_then = table, marks or {}
        self._file: BudgetFile | None = None
        self._marks = [call.mark for call in calls]
        self._carried = [charge for call in calls for charge in call.charges]
        self._seen: int | None = 0
        self.lost = tuple(charge for call in calls if not call.answered for charge in call.charges)
        self._replaying = [call for call in calls if call.answered]
        self.spending = spending
        spending.begun = bool(calls)

    @property
    def pending(self) -> bool:
        """Whether the last question was charged and its answer is lost, and was not bought anew since."""
        return bool(self._recorded) and not self._recorded[-1].answered

    def paid(self, budget: Budget) -> Budget:
        """What the run promises: its budget and, on top, what lost answers cost."""
        return covering(budget, self.lost)

    def reserve(self, file: BudgetFile | None, budget: Budget, unit: Unit) -> None:
        """Reserve the run's whole price, or what is missing of it since its interruption, before the first look.

        Raises: BudgetError where another copy of the state went on, lost answers are not to be paid again, or the file
            does not cover them.
        """
        whole = self.paid(budget)
        resumed = self._state is not None and self._state.resume
        unlooked = file.unlooked(self.run, self._marks) if file is not None and resumed else 0
        if self.pending:
            require_same_files(self._marks_then, self._table)
            if self._state is None or not self._state.pay_again:
                raise BudgetError(lost_words(budget, whole))
        if file is None:
            return
        self._file = file
        if self.spending.begun or (resumed and file.balance().of_run(self.run)):
            file.reserve_again(whole, unit, self.run)
            if unlooked:  # cut off before the file was told of its last call, which is held as a lost one
                file.look(self.run, self._marks)
            return
        self.spending.begun = True  # whatever cuts it off from here on, it may have been reserved
        try:
            file.reserve(budget, unit, self.run)
        except BudgetError:
            self.spending.begun = False
            raise

    def ledger(self, budget: Budget) -> Ledger:
        """A ledger that holds what was charged before, and writes each charge to disk before it stands."""
        from margent.privacy.ledger import Ledger

        return Ledger(budget, journal=self._charged, carried=self._carried, lost=self.lost)

    def curator(self, live: Curator) -> Curator:
        """Who answers: the committed answers first, then ``live``."""
        from margent.resume.curators import ResumedCurator

        return live if self._journal is None else ResumedCurator(self, live)

    def merchant(self, live: Merchant, budget: Budget) -> Merchant:
        """Who sells bins and values: the committed answers first, then ``live``."""
        from margent.resume.curators import ResumedMerchant

        return live if self._journal is None else ResumedMerchant(self, live, budget)

    @property
    def seen(self) -> int | None:
        """How many charges had been written when the answer last given was; None once answers are live."""
        return self._seen

    def answer(
        self,
        charges: Sequence[Charge],
        merges: Mapping[str, Merge],
        look: Callable[[], tuple[Answer, ...]],
        bare: Transcript | None = None,
    ) -> tuple[Answer, ...]:
        """The committed answers to the next question, or those of ``look``, committed before they are returned.

        ``bare``: a transcript without answers, for the domain that they are read in; None before there is one.

        Privacy: ``look`` charges before it looks; what was committed is returned for an equal question only.
        Raises: TranscriptError where the question is not the recorded one.
        """
        from margent.resume.answers import read_back, require_same_question

        assert self._journal is not None
        assert self._state is not None
        if self._replaying:
            call = self._replaying.pop(0)
            recorded, found = self._journal.answers(call)
            require_same_question(call, charges, recorded, merges)
            self._seen = call.first + len(call.charges)
            return read_back(call, found, recorded, bare, self._carried)
        if self.pending:
            require_same_question(self._recorded[-1], charges, None, merges)
        if self._state.resume:
            require_same_files(self._marks_then, self._table)
        with self._state.pause.held():
            self._recorded.clear()
            self._seen = None
            answers = look()
            self._journal.answered(answers, merges)
        return answers

    def _charged(self, charges: Sequence[Charge]) -> None:
        self.spending.begun = True
        if self._journal is None:
            return
        self._marks.append(self._journal.charged(charges))
        if self._file is not None:
            self._file.look(self.run, self._marks)  # where this fails nobody looks


def lost_words(budget: Budget, whole: Budget) -> str:
    """Why a run whose last answer was lost is refused, and what buying it anew would promise instead.

    Privacy: none: prices are public.
    """
    delta = "" if whole.delta == budget.delta else f" and delta {float(whole.delta):.6g}"
    return (
        "nothing more was charged: the last question was charged and its answer was lost in the interruption. It stays "
        f"spent; to buy it anew makes the release's epsilon {float(whole.epsilon):.6g}{delta} instead of "
        f"{float(budget.epsilon):.6g}. If that is acceptable add --pay-again (pay_again=True)"
    )
