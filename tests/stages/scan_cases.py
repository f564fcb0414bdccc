# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Inputs of the state scans: what the forward leaves behind for random q, k, v, g and beta."""

from dataclasses import dataclass

import numpy as np

from tests.stages import stage_runs
from tests.support import inputs, reference
from tests.support.io_types import BFLOAT16, IoType

K, V, C = 128, 128, 64


@dataclass
class ScanCase:
    """float32 arrays; those that the stages take as `io` hold its values."""

    kg: np.ndarray
    w: np.ndarray
    u: np.ndarray
    gk: np.ndarray
    qg: np.ndarray
    d_o: np.ndarray
    dv: np.ndarray
    state: np.ndarray  # an initial or upstream state of every sequence
    scale: float
    io: IoType = BFLOAT16

    @property
    def shape(self):
        return self.kg.shape[:3]


def make(seed, batch=1, tokens=65, heads=2, decay="medium", io=BFLOAT16):
    x = inputs.make_inputs(seed, batch, tokens, heads, decay=decay, initial_state=True, io=io)
    _, _, cache = x.forward()
    rounded = {name: io.round(cache[name]) for name in ("kg", "w", "u", "qg", "aqk")}
    _, dv, _ = reference.bwd_prepare(
        rounded["aqk"], cache["v_new"], x.d_o, cache["h"], scale=x.scale
    )
    return ScanCase(
        kg=rounded["kg"],
        w=rounded["w"],
        u=rounded["u"],
        gk=np.asarray(cache["gk"], np.float32),
        qg=rounded["qg"],
        d_o=np.asarray(x.d_o, np.float32),
        dv=io.round(dv),
        state=np.asarray(x.initial_state, np.float32),
        scale=x.scale,
        io=io,
    )


def draw(seed, batch=1, tokens=65, heads=2, io=BFLOAT16):
    """Plain random operands of about the right size: for tests that need many heads, not a real
    forward behind them."""
    rng = np.random.default_rng(seed)

    def normal(*shape, size=0.05):
        return io.round(size * rng.standard_normal(shape, np.float32))

    rows = (batch, heads, tokens, 128)
    kg, w, u, qg, d_o, dv = (normal(*rows) for _ in range(6))
    gk = -np.abs(rng.standard_normal(rows, np.float32))
    state = normal(batch, heads, 128, 128, size=1.0)
    return ScanCase(kg, w, u, gk, qg, d_o, dv, state, 0.125, io)


def empty(batch, heads):
    """No tokens at all."""
    none = np.zeros((batch, heads, 0, 128), np.float32)
    state = np.ones((batch, heads, 128, 128), np.float32)
    return ScanCase(none, none, none, none, none, none, none, state, 1.0)


def stored(case, *names):
    """Stage arguments by name, as the case's io."""
    return [case.io.array(getattr(case, name)) for name in names]


def rows(tokens):
    return [min(C, tokens - start) for start in range(0, tokens, C)]


def scan_macs(tokens, *, columns, query_columns=0, zero_start, keeps_last):
    """One sequence and head: the formula of op_kernel/common/state_scan.h. Rows in scan order do
    not matter to the sum but for the first and the last step: pass tokens of the scan's order."""
    steps = rows(tokens) if isinstance(tokens, int) else list(tokens)
    total = 0
    for i, r in enumerate(steps):
        if not (i == 0 and zero_start):
            total += (16 if r == 1 else r) * K * columns
        if i + 1 < len(steps) or keeps_last:
            total += K * r * (columns + query_columns)
    return total


def check_nan_stays_in_its_head(lib, op_type, arguments, name, token, final, chunks, rows):
    """NaN at one token of the array `name` reaches the state `final` of its batch row and head, and
    neither there nor in `chunks`, states of every chunk, and `rows`, of every token, another one.
    `arguments` makes the call's of a case and its state."""
    case, spoiled = draw(8, batch=2, tokens=70, heads=4), (1, 1)
    with lib.cores(1):
        want = lib.call(op_type, **arguments(case, case.state))
        getattr(case, name)[(*spoiled, token)] = np.nan
        got = lib.call(op_type, **arguments(case, case.state))
    assert np.isnan(got.f32(final)[spoiled]).any()
    for output in (rows, final):
        stage_runs.assert_contained(want[output], got[output], spoiled)
    stage_runs.assert_contained(
        np.swapaxes(want[chunks], 1, 2), np.swapaxes(got[chunks], 1, 2), spoiled
    )
