# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""How results are judged: relative L2 against float64, with reports that name every tensor."""

from dataclasses import dataclass

import numpy as np

# Relative L2 that the contract allows; tests tighten these where measurements are smaller.
CONTRACT_LIMITS = {
    "output": 6e-3,
    "final_state": 6e-3,
    "dq": 1e-2,
    "dk": 1e-2,
    "dv": 1e-2,
    "dg": 1e-2,
    "ddt_bias": 1e-2,
    "dbeta": 1.5e-2,
    "da_log": 4e-2,
    "dh0": 2e-2,
}
# The gradient of the initial state fades with the decay, so a relative error means nothing once the
# reference is this small beside the upstream gradient; then the error is bounded on that scale.
DH0_FADED = 1e-6
DH0_FADED_LIMIT = 1e-8
JUDGED = []  # every Comparison that check_all made since somebody cleared it


def limits(factor=1.0, **overrides):
    """The contract's limits times factor, with single entries replaced."""
    out = {name: factor * value for name, value in CONTRACT_LIMITS.items()}
    out.update(overrides)
    return out


def same_bits(got, want, where=None):
    """AssertionError unless both have arrays of the same bits, or None, under the same names."""
    assert set(got) == set(want), where
    for name, value in want.items():
        if value is None or got[name] is None:
            assert got[name] is value, (name, where)
            continue
        assert got[name].shape == value.shape, (name, where)
        assert got[name].tobytes() == value.tobytes(), (name, where)


def norm(x):
    return float(np.sqrt(np.sum(np.square(np.asarray(x, np.float64)))))


def relative_l2(got, want, floor=0.0, size=0.0):
    """|got - want| / |want| in float64; inf if got has a non-finite value where want is finite.
    floor: an error of each number that does not count, io_types.IoType.tiny where results lie below
    the smallest normal number of their type. size: what is divided by if |want| is smaller."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise AssertionError(f"shape {got.shape}, expected {want.shape}")
    if not np.all(np.isfinite(got)):
        return float("inf")
    scale, error = max(norm(want), size), norm(np.maximum(np.abs(got - want) - floor, 0))
    if scale == 0.0:
        return 0.0 if error == 0.0 else float("inf")
    return error / scale


def apart(got, want, io, floor=0.0):
    """Of two roundings of nearly the same numbers: the share that a rounding step of io tells apart
    (their own, or an operand's), and relative_l2 of all else. A single step may be all of
    relative_l2 where one number is most of a norm."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    off = np.abs(got - want)
    stepped = (off > 0) & (off <= 4 * io.epsilon * np.abs(want))
    share = np.count_nonzero(stepped) / max(1, np.count_nonzero(want))
    return share, relative_l2(np.where(stepped, want, got), want, floor)


@dataclass
class Comparison:
    """One tensor's verdict: `value` is what was measured, `limit` what it may be."""

    name: str
    value: float
    limit: float
    detail: str

    @property
    def passed(self):
        return bool(self.value <= self.limit)

    def __str__(self):
        mark = "ok  " if self.passed else "FAIL"
        return f"{mark} {self.name:<12} {self.value:10.3e}  limit {self.limit:.3e}  {self.detail}"


def _detail(got, want):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    bad = int(np.sum(~np.isfinite(got)))
    text = f"shape {got.shape}, |want| {norm(want):.3e}"
    if bad:
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(got))[0])
        return f"{text}, {bad} of {got.size} values not finite, first at {first}"
    if got.size:
        error = np.abs(got - want)
        at = tuple(int(i) for i in np.unravel_index(np.argmax(error), error.shape))
        text += f", largest error at {at}: got {got[at]:.6g}, want {want[at]:.6g}"
    return text


def compare(name, got, want, limit, floor=0.0, size=0.0):
    """Relative L2 of one tensor."""
    value = relative_l2(got, want, floor, size)
    detail = _detail(got, want)
    return Comparison(name, value, limit, f"on {size:.3e}; {detail}" if size else detail)


def compare_dh0(got, want, upstream_norm, limit, floor=0.0):
    """dh0: relative where the reference is at least DH0_FADED of the upstream gradient's norm, else
    absolute on the upstream gradient's scale."""
    want_norm = norm(want)
    if want_norm >= DH0_FADED * upstream_norm:
        return compare("dh0", got, want, limit, floor)
    got64 = np.asarray(got, np.float64)
    error = np.maximum(np.abs(got64 - np.asarray(want, np.float64)) - floor, 0)
    error = norm(error) if np.all(np.isfinite(got64)) else np.inf
    scale = upstream_norm if upstream_norm > 0 else 1.0
    return Comparison("dh0", error / scale, DH0_FADED_LIMIT, "absolute; " + _detail(got, want))


def compare_all(got, want, allowed, upstream_norm=None, floor=0.0, sizes=None):
    """One Comparison for each name in want. got and want map names to arrays or None. floor: see
    relative_l2; one for all, or a mapping that has those of some. sizes: relative_l2's, a mapping
    that has those of some; or what makes it (tests/support/sizes.py), called if need be."""
    floors = floor if isinstance(floor, dict) else dict.fromkeys(want, floor)
    known = {} if sizes is None or callable(sizes) else sizes
    out = []
    for name, expected in want.items():
        actual = got.get(name)
        if expected is None or actual is None:
            if (expected is None) != (actual is None):
                present = "got None" if actual is None else "expected None"
                out.append(Comparison(name, float("inf"), 0.0, present))
            continue
        floor, size = floors.get(name, 0.0), known.get(name, 0.0)
        if name == "dh0" and upstream_norm is not None:
            out.append(compare_dh0(actual, expected, upstream_norm, allowed[name], floor))
        else:
            out.append(compare(name, actual, expected, allowed[name], floor, size))
    if callable(sizes) and not all(c.passed for c in out):
        again = compare_all(got, want, allowed, upstream_norm, floors, sizes())
        out = [a if a.passed else b for a, b in zip(out, again, strict=True)]
    return out


def report(comparisons, title=""):
    lines = [title] if title else []
    return "\n".join(lines + [str(c) for c in comparisons])


def check_all(got, want, allowed, upstream_norm=None, title="", floor=0.0, sizes=None):
    """compare_all, and AssertionError with the whole report if one of them is over its limit."""
    comparisons = compare_all(got, want, allowed, upstream_norm, floor, sizes)
    JUDGED.extend(comparisons)
    if not all(c.passed for c in comparisons):
        raise AssertionError("\n" + report(comparisons, title))
    return comparisons


class Worst:
    """Keeps the worst value of every name over many cases, with the case it came from."""

    def __init__(self):
        self.values = {}

    def add(self, comparisons, case):
        for c in comparisons:
            key = c.name + " (absolute)" if c.detail.startswith("absolute") else c.name
            value = c.value if np.isfinite(c.value) else float("inf")
            if key not in self.values or value > self.values[key][0]:
                self.values[key] = (value, case)

    def table(self):
        lines = ["| tensor | worst relative L2 | case |", "|---|---|---|"]
        for name, (value, case) in self.values.items():
            lines.append(f"| {name} | {100 * value:.4g} % | {case} |")
        return "\n".join(lines)
