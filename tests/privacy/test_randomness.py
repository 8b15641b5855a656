"""The secret bits: uniform, never repeated by forks, threads or seeds, and alone on the private path."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import margent
from margent.privacy import exponential, inversion, noise, randomness, rejection
from tests.privacy.exact_laws import ALPHA
from tests.sizes import rounds

CHILDREN = rounds(50, 2_000)
PRIVATE = Path(margent.__file__).parent / "privacy"

FORK = (
    f"CHILDREN = {CHILDREN}"
    + """
import os, sys
from margent.privacy.randomness import random_bytes
random_bytes(64)
for _ in range(CHILDREN):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, random_bytes(64))
        os._exit(0)
    os.waitpid(child, 0)
    sys.stdout.write(os.read(read, 64).hex() + "\\n")
    os.close(read), os.close(write)
sys.stdout.write(random_bytes(64).hex() + "\\n")
"""
)


def test_sizes_and_kinds() -> None:
    for count in (0, 1, 7, 8, 9, 100_003):
        assert len(randomness.random_bytes(count)) == count
        assert randomness.random_words(count).shape == (count,)
    assert randomness.random_words(2).dtype == np.uint64
    assert randomness.random_words(2).flags.writeable
    assert {randomness.random_bits(3) for _ in range(400)} == set(range(8))
    assert randomness.random_bits(130) >> 66 > 0


def test_bits_are_balanced_and_bytes_uniform() -> None:
    """Monobit at each position, runs and byte frequencies, each at ALPHA."""
    words = randomness.random_words(1 << 18)
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64)
    per_position = (bits.sum(axis=0) - bits.shape[0] / 2) / np.sqrt(bits.shape[0] / 4)
    assert np.abs(per_position).max() < stats.norm.isf(ALPHA / 128)
    stream = bits.ravel()
    runs = np.count_nonzero(stream[1:] != stream[:-1])
    assert abs(runs - (stream.size - 1) / 2) < stats.norm.isf(ALPHA / 2) * np.sqrt(stream.size / 4)
    assert stats.chisquare(np.bincount(words.view(np.uint8), minlength=256)).pvalue > ALPHA
    assert np.unique(words).size == words.size  # a repeated word has probability 2^-29


def test_the_key_is_replaced_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Across a change of key the stream goes on, whole and without repetition."""
    assert randomness._BYTES_PER_KEY // 16 <= 2**28
    asked = []
    genuine = os.urandom
    monkeypatch.setattr(randomness, "_BYTES_PER_KEY", 1000)
    monkeypatch.setattr(randomness._streams, "own", randomness._Stream())
    monkeypatch.setattr(randomness.os, "urandom", lambda size: asked.append(size) or genuine(size))
    words = randomness.random_words(1000)
    assert asked == [32] * 8
    assert np.unique(words).size == words.size


def test_a_new_process_number_takes_a_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forks made outside Python run no hook: the process number alone must be enough."""
    randomness.random_words(1)
    cipher = randomness._streams.own._cipher
    monkeypatch.setattr(randomness.os, "getpid", lambda: -7)
    randomness.random_words(1)
    assert randomness._streams.own._cipher is not cipher
    monkeypatch.undo()
    randomness.random_words(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_children_and_their_parent_differ() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=600)
    lines = done.stdout.split()
    assert len(lines) == CHILDREN + 1
    assert len(set(lines)) == CHILDREN + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_fork_hook_alone_is_enough() -> None:
    """With the process number pinned, as where it comes round again, the hook still separates the child."""
    script = "import os\nos.getpid = lambda: 1\n" + FORK
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    assert len(set(done.stdout.split())) == CHILDREN + 1


def test_threads_differ() -> None:
    seen: list[bytes] = []

    def draw() -> None:
        for _ in range(20):
            seen.append(randomness.random_bytes(64))

    threads = [threading.Thread(target=draw) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == len(set(seen)) == 400


def test_seeds_of_other_generators_change_nothing() -> None:
    seen = set()
    for _ in range(5):
        np.random.seed(1)
        seen.add(randomness.random_bytes(64))
        seen.add(noise.discrete_gaussian(64, noise.Fraction(10**6)).tobytes())
    assert len(seen) == 10


def test_no_public_function_takes_a_seed_or_a_generator() -> None:
    forbidden = ("seed", "rng", "random_state", "generator", "key", "entropy")
    checked = 0
    for module in (randomness, inversion, noise, rejection, exponential):
        for name, thing in inspect.getmembers(module):
            if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
                continue
            if not (inspect.isfunction(thing) or inspect.isclass(thing)):
                continue
            methods = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else []
            for function in [thing, *(method for _, method in methods)]:
                checked += 1
                assert not set(inspect.signature(function).parameters) & set(forbidden)
    assert checked >= 10


def _names_used(source: str) -> set[str]:
    """Dotted names a module imports or reads, with numpy's usual short name spelt out."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node).replace("np.", "numpy.", 1))
    return names


def _weak(names: set[str]) -> set[str]:
    roots = ("random", "numpy.random", "secrets", "scipy.stats", "uuid", "margent.stream")
    return {name for name in names if any(name == root or name.startswith(root + ".") for root in roots)}


def test_no_weak_generator_on_the_private_path() -> None:
    modules = sorted(PRIVATE.glob("*.py"))
    assert len(modules) >= 6
    for module in modules:
        names = _names_used(module.read_text(encoding="utf-8"))
        assert not _weak(names), module.name
        if module.name != "randomness.py":
            assert not {name for name in names if name.startswith(("os.urandom", "cryptography"))}, module.name


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "from random import gauss",
        "import numpy as np\nnp.random.normal()",
        "import numpy.random",
        "from numpy.random import default_rng",
        "from numpy import random",
        "from margent.stream import Stream",
    ],
)
def test_the_gate_sees_a_weak_generator(planted: str) -> None:
    assert _weak(_names_used(planted))
