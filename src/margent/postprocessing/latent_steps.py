"""The loops of the latent-class fit, compiled: shares, their gradient, and one step of Adam."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled
from margent.postprocessing.steady import exponential, logarithm

Matrix = NDArray[np.float32]
Integers = NDArray[np.int64]


@compiled
def softmax(logits: Matrix, starts: Integers, shares: Matrix, logs: Matrix) -> None:
    """Per column of the table and class: shares = e^logits / sum, logs = ln shares.

    Shapes: ``logits`` (codes of all columns, K); column a has rows ``starts[a] : starts[a + 1]``.
    Privacy: none: post-processing.
    """
    for column in range(starts.size - 1):
        first, last = starts[column], starts[column + 1]
        for latent in range(logits.shape[1]):
            top = logits[first, latent]
            for code in range(first + 1, last):
                top = max(top, logits[code, latent])
            total = 0.0
            for code in range(first, last):
                value = exponential(float(logits[code, latent] - top))
                shares[code, latent] = value
                total += value
            shift = top + logarithm(total)
            for code in range(first, last):
                shares[code, latent] /= total
                logs[code, latent] = logits[code, latent] - shift


@compiled
def pair_gradient(
    shares: Matrix,
    turned: Matrix,
    weights: NDArray[np.float32],
    pair_start: Integers,
    pair_size: Integers,
    pair_offset: Integers,
    precision: NDArray[np.float32],
    targets: NDArray[np.float32],
    gradient: Matrix,
) -> None:
    """Add, for every pair (a, b), the gradient of sum_ij w (sum_k pi_k p_ik p_jk - y_ij)^2 / 2 by p, over pi.

    Shapes: ``shares`` (codes, K) and ``turned`` its transpose; pair t has ``pair_size[t] = (k_a, k_b)`` cells
    from ``pair_offset[t]`` of ``targets``.
    Privacy: none: post-processing.
    """
    latent = shares.shape[1]
    mine = np.empty(latent, dtype=np.float32)
    for pair in range(precision.size):
        first, second = pair_start[pair, 0], pair_start[pair, 1]
        rows, columns = pair_size[pair, 0], pair_size[pair, 1]
        line = np.empty(columns, dtype=np.float32)
        for row in range(rows):
            base = pair_offset[pair] + row * columns
            aims = targets[base : base + columns]
            for column in range(columns):
                line[column] = -aims[column]
            own = shares[first + row]
            for k in range(latent):
                factor = own[k] * weights[k]
                other = turned[k, second : second + columns]
                for column in range(columns):
                    line[column] += factor * other[column]
            for k in range(latent):
                mine[k] = 0
            for column in range(columns):
                residual = line[column] * precision[pair]
                theirs, slope = shares[second + column], gradient[second + column]
                for k in range(latent):
                    mine[k] += residual * theirs[k]
                for k in range(latent):
                    slope[k] += residual * own[k]
            slope = gradient[first + row]
            for k in range(latent):
                slope[k] += mine[k]


@compiled
def adam_step(
    values: Matrix, gradient: Matrix, mean: Matrix, square: Matrix, step: float, mean_scale: float, square_scale: float
) -> None:
    """One step of Adam, in place (decay .9 and .99).

    Privacy: none: post-processing. Source: Kingma and Ba 2015, Algorithm 1.
    """
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            slope = gradient[row, column]
            mean[row, column] = np.float32(0.9) * mean[row, column] + np.float32(0.1) * slope
            square[row, column] = np.float32(0.99) * square[row, column] + np.float32(0.01) * slope * slope
            move = mean[row, column] * mean_scale / (np.sqrt(square[row, column] * square_scale) + 1e-8)
            values[row, column] -= step * move


@compiled
def logit_gradient(
    shares: Matrix,
    logs: Matrix,
    weights: NDArray[np.float32],
    starts: Integers,
    base: NDArray[np.float32],
    base_logs: NDArray[np.float32],
    single: NDArray[np.float32],
    spread: float,
    pull: float,
    gradient: Matrix,
    weight_gradient: Matrix,
) -> None:
    """Turn the gradient by shares into the one by logits, with the one-way terms and the two penalties.

    In place: ``gradient`` enters as the pairs' part over pi_k and leaves by logits; ``weight_gradient`` (1, K)
    leaves by the weights' logits. Penalties: spread * sum_k pi_k KL(p_k || q) and pull * (-sum q ln p).

    Shapes: ``single`` the one-way part, one entry a code; ``base`` q and ``base_logs`` ln q.
    Privacy: none: post-processing.
    """
    latent = shares.shape[1]
    for k in range(latent):
        weight_gradient[0, k] = 0.0
        total = 0.0
        for code in range(shares.shape[0]):
            excess = logs[code, k] - base_logs[code]
            total += shares[code, k] * (0.5 * gradient[code, k] + single[code] + spread * excess)
        weight_gradient[0, k] = total
        for column in range(starts.size - 1):
            mean = 0.0
            for code in range(starts[column], starts[column + 1]):
                excess = logs[code, k] - base_logs[code]
                slope = (gradient[code, k] + single[code] + spread * (excess + 1.0)) * weights[k]
                gradient[code, k] = slope
                mean += slope * shares[code, k]
            for code in range(starts[column], starts[column + 1]):
                gradient[code, k] = shares[code, k] * (gradient[code, k] - mean) + pull * (shares[code, k] - base[code])
    mean = 0.0
    for k in range(latent):
        mean += weights[k] * weight_gradient[0, k]
    for k in range(latent):
        weight_gradient[0, k] = weights[k] * (weight_gradient[0, k] - mean)
