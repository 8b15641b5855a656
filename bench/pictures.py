"""The pictures of docs/how-it-works/dense.md, as SVG beside it.

    python bench/pictures.py              draws; the same bytes every time
    python bench/pictures.py --measure    first measures again what two of them show (minutes; exact noise, no seed)

Measured figures lie in docs/how-it-works/pictures/*.csv, so that drawing needs no data.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from drawing import Frame, Picture
from margent.collectors.waterfill import Program, largest_kappa, pair_sketch, sketch, stacked, variance_factors
from margent.postprocessing.departures import expected_given
from margent.stream import Stream

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "how-it-works" / "pictures"


def flow() -> Picture:
    """What is charged, what is free, and what goes into what."""
    picture = Picture(720, 346, "From a private table to records: four charged answers, everything else is free")
    picture.box(10, 36, 700, 106, "panel", round_=8)
    picture.box(10, 152, 700, 184, "panel", round_=8)
    picture.text(22, 56, "charged: asked of the private table, answered with noise", kind="small soft")
    picture.text(22, 324, "free: computed from the noisy answers alone, as often as one likes", kind="small soft")
    picture.text(10, 22, "dense", kind="bold")

    def step(x: float, y: float, width: float, name: str, note: str, color: str) -> None:
        picture.box(x, y, width, 54, "page", edge=color, round_=6)
        picture.text(x + width / 2, y + 23, name, anchor="middle", kind="bold")
        picture.text(x + width / 2, y + 41, note, anchor="middle", kind="small soft")

    step(30, 72, 140, "one-ways", ".15 of the budget", "orange")
    step(290, 72, 140, "scores", ".05, one a pair", "orange")
    step(550, 72, 140, "pairs, one-ways", "what is left", "orange")
    step(420, 170, 130, "one program", "least summed error", "blue")
    step(20, 170, 160, "three models", "mixture, forest, product", "blue")
    step(30, 246, 140, "shrinkage", "noise against model", "blue")
    step(225, 246, 140, "targets", "for every pair", "blue")
    step(420, 246, 130, "descent", "cell by cell", "blue")
    step(600, 246, 90, "records", "any number", "green")
    picture.arrow([(170, 99), (290, 99)])
    picture.arrow([(360, 126), (360, 197), (420, 197)])
    picture.arrow([(550, 197), (590, 197), (590, 126)])
    picture.arrow([(650, 126), (650, 160), (205, 160), (205, 197), (180, 197)])
    picture.arrow([(100, 224), (100, 246)])
    picture.arrow([(170, 273), (225, 273)])
    picture.arrow([(365, 273), (420, 273)])
    picture.arrow([(550, 273), (600, 273)])
    return picture


def shrinkage() -> Picture:
    """Sixteen cells of a table: truth, noisy answer, what is believed."""
    picture = Picture(720, 360, "Sixteen cells of a noisy table before and after shrinkage to a model")
    stream = Stream(1, "picture", "shrinkage")
    cells, s = 16, 30.0

    def normal(count: int) -> np.ndarray:
        return np.sqrt(-2 * np.log(1 - stream.unit(count))) * np.cos(2 * np.pi * stream.unit(count))

    prior = 12 + 260 * np.exp(-np.arange(cells) / 4.5)
    truth = np.maximum(prior + np.sqrt(4.0 * prior) * normal(cells), 0)
    noisy = truth + s * normal(cells)
    kappa = max(float(((noisy - prior) ** 2).sum() - s * s * cells), 0.0) / prior.sum()
    believed = expected_given(noisy, prior, np.full(cells, kappa), np.full(cells, s * s))
    frame = Frame(picture, 70, 60, 700, 300, (-0.6, cells - 0.4), (0, 350))
    frame.axes([], [0, 100, 200], "cells of the table, by the records the model expects", "records")
    for cell in range(cells):
        x = frame.x(cell)
        picture.line([(x - 14, frame.y(truth[cell])), (x + 14, frame.y(truth[cell]))], "ink", width=3)
        picture.line([(x, frame.y(noisy[cell])), (x, frame.y(believed[cell]))], "line", width=2)
        picture.dot(x, frame.y(noisy[cell]), "orange", 4, hollow=True)
        picture.dot(x, frame.y(believed[cell]), "blue", 4)
    places = [(frame.x(cell), frame.y(prior[cell])) for cell in range(cells)]
    picture.line(places, "soft", width=1.5, dash="5 4")
    error = [np.abs(each - truth).mean() for each in (noisy, believed)]
    picture.line([(400, 74), (428, 74)], "ink", width=3)
    picture.text(438, 78, "truth")
    picture.line([(400, 96), (428, 96)], "soft", width=1.5, dash="5 4")
    picture.text(438, 100, "model")
    picture.dot(414, 118, "orange", 4, hollow=True)
    picture.text(438, 122, f"noisy answer: off by {error[0]:.0f} records a cell")
    picture.dot(414, 140, "blue", 4)
    picture.text(438, 144, f"shrunk: off by {error[1]:.0f} records a cell")
    return picture


def water_level() -> Picture:
    """Twenty-four pairs: the gain of the first bit of budget, and the level at which all bought ones end."""
    picture = Picture(720, 360, "The water level: a pair is bought as far as its gain is above the level")
    words = Stream(3, "picture", "level")
    rows, columns = 50_000.0, 8
    sizes = [2, 3, 5, 8, 12, 16, 24, 40]
    counts = [rows * (weights := words.unit(size) ** 2 + 0.02) / weights.sum() for size in sizes]
    sketches = [sketch(each) for each in counts]
    pairs = [(one, other) for one in range(columns) for other in range(one)][:24]
    expected, weights = stacked([pair_sketch(sketches[one], sketches[other], rows) for one, other in pairs])
    most = np.array([largest_kappa(counts[one], counts[other]) for one, other in pairs])
    kappas = variance_factors(rows * 0.5 * words.unit(len(pairs)) ** 3, expected, weights, most)
    budget = 0.0003
    program = Program(
        expected, weights, kappas, np.ones(len(kappas)), np.array([2.0]), np.array([0.0]), np.array([1.0])
    )
    bought, _ = program.solve(budget)
    grid = np.append(0.0, budget * np.exp2(-np.arange(40, -1, -1) / 2.0))
    first = program.slopes(grid)[:, 0]
    some = int(np.argmax(bought))
    near = program.errors(bought[some] * np.array([0.99, 1.01]))[some]
    level = float((near[0] - near[1]) / (0.02 * bought[some]))
    order = np.argsort(-first)
    top = 10 ** np.ceil(np.log10(first.max()))
    low = top / 10**7
    frame = Frame(picture, 70, 50, 700, 280, (0, len(pairs)), (low, top), log_y=True)
    picture.text(26, 32, "gain of the next bit of budget (fewer wrong records, logarithmic)", kind="soft")
    wide = (frame.right - frame.left) / len(pairs)
    for place, pair in enumerate(order):
        x, height = frame.x(place) + 3, max(first[pair], low * 1.05)
        if bought[pair] > 0:
            picture.box(x, frame.y(height), wide - 6, frame.y(level) - frame.y(height), "blue", round_=2)
            picture.box(x, frame.y(level), wide - 6, frame.bottom - frame.y(level), "line")
            share = 100 * bought[pair] / budget
            shown = f"{share:.0f}" if share >= 1 else "<1"
            picture.text(x + (wide - 6) / 2, frame.y(height) - 6, shown, anchor="middle", kind="small", color="blue")
        else:
            picture.box(x, frame.y(height), wide - 6, frame.bottom - frame.y(height), "line")
    picture.line([(frame.left, frame.y(level)), (frame.right, frame.y(level))], "orange", width=2, dash="7 4")
    picture.text(frame.right, frame.y(level) - 8, "level λ", anchor="end", color="orange", kind="bold")
    picture.line([(frame.left, frame.bottom), (frame.right, frame.bottom)], "soft", width=1)
    picture.text(frame.left, 306, "24 pairs of columns, the steepest first", kind="soft")
    picture.box(frame.left, 324, 12, 12, "blue", round_=2)
    picture.text(frame.left + 20, 335, "bought until its gain is down at λ; number: percent of the budget")
    picture.box(frame.left + 480, 324, 12, 12, "line")
    picture.text(frame.left + 500, 335, "not worth its noise")
    return picture


def error_by_round() -> Picture:
    picture = Picture(720, 360, "Error after every sweep of descent, round of GUM and pass of MCF, without noise")
    with (FOLDER / "rounds.csv").open() as file:
        table = list(csv.DictReader(file))
    frame = Frame(picture, 80, 50, 620, 290, (0, len(table)), (0.0005, 0.2), log_y=True)
    frame.axes(
        [1, 5, 10, 15, 20],
        [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2],
        "sweeps (descent), rounds (GUM), passes (MCF)",
        "mean total variation per measured pair: Adult, 40 exact pairs",
    )
    rounds = [float(row["round"]) for row in table]
    for name, color, label in (("mcf", "violet", "MCF"), ("gum", "orange", "GUM"), ("descent", "blue", "descent")):
        frame.curve(rounds, [float(row[name]) for row in table], color, label)
    return picture


def error_by_epsilon() -> Picture:
    picture = Picture(720, 380, "Mean error over all pairs against epsilon: dense, privsyn, independent")
    with (FOLDER / "epsilon.csv").open() as file:
        table = list(csv.DictReader(file))
    found: dict[str, list[tuple[float, float]]] = {}
    for row in table:
        found.setdefault(row["method"], []).append((float(row["epsilon"]), float(row["TVD2"])))
    epsilons = sorted({epsilon for points in found.values() for epsilon, _ in points})
    frame = Frame(picture, 80, 50, 600, 310, (epsilons[0], epsilons[-1]), (0.008, 0.2), log_x=True, log_y=True)
    frame.axes(
        epsilons,
        [0.01, 0.02, 0.05, 0.1, 0.2],
        "ε (δ = 1e-9)",
        "mean total variation over all 91 pairs: Adult, 48,842 records",
    )
    for name, color in (("independent", "violet"), ("privsyn", "orange"), ("dense", "blue")):
        xs, ys = zip(*sorted(found[name]), strict=True)
        frame.curve(xs, ys, color, name)
    return picture


def measure() -> None:
    from descent import rounds
    from margent.counts.source import CodedCounts
    from margent.methods import method_named
    from margent.privacy.budget import Budget
    from margent.privacy.curator import DataCurator
    from margent.privacy.ledger import Ledger
    from margent.progress import silent
    from quality import Scorer, load
    from synthesizers import ADULT

    schema, domain, columns, ordinal = load(ADULT, 300)
    lines = ["round,descent,gum,mcf"]
    for number, row in enumerate(zip(*rounds(schema, domain, columns).values(), strict=True), start=1):
        lines.append(",".join([str(number), *(f"{value:.5f}" for value in row)]))
    (FOLDER / "rounds.csv").write_text("\n".join(lines) + "\n")
    scorer = Scorer(columns, domain.sizes, ordinal)
    lines = ["method,epsilon,TVD2"]
    for name in ("dense", "privsyn", "independent"):
        method = method_named(name)
        for epsilon in ("0.1", "0.2", "0.5", "1", "2", "5", "10"):
            errors = []
            for draw in range(3):
                budget = Budget(epsilon=epsilon, delta="1e-9")
                curator = DataCurator(schema, CodedCounts(columns, domain), Ledger(budget))
                model = method.synthesizer.build(method.collector.collect(curator, budget), silent)
                codes = model.sample(model.total, draw, silent)
                other = [codes[:, place].astype(np.int64) for place in range(len(domain.names))]
                errors.append(np.mean([scorer.distance(other, pair) for pair in scorer.pairs]))
            lines.append(f"{name},{epsilon},{np.mean(errors):.4f}")
    (FOLDER / "epsilon.csv").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", action="store_true")
    FOLDER.mkdir(exist_ok=True)
    if parser.parse_args().measure:
        measure()
    for draw in (flow, shrinkage, water_level, error_by_round, error_by_epsilon):
        (FOLDER / f"{draw.__name__.replace('_', '-')}.svg").write_text(draw().svg())


if __name__ == "__main__":
    main()
