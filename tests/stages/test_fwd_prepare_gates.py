# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""fwd_prepare under gates without a bound: softplus, and a log decay that comes as it is."""

from dataclasses import replace

import numpy as np
import pytest

from tests.stages import stage_runs
from tests.stages import test_fwd_prepare as stage
from tests.support import emulation, inputs, metrics, reference
from tests.support.aclnn import BF16, AclnnError
from tests.support.bfloat16 import round_bf16
from tests.support.io_types import BFLOAT16

UNBOUNDED = ("softplus", "activated")
EVERY_DECAY = [(gate, decay) for gate in UNBOUNDED for decay in inputs.GATES[gate]]
ALL_FP32 = ("g", "beta")
MATRICES = ("aqk", "akk", "w", "u", "qg", "kg")


def run(lib, case, **changes):
    return stage.run(lib, case, **{"fp32": ALL_FP32, **changes})


@pytest.mark.parametrize("tokens", stage.TOKENS)
@pytest.mark.parametrize("gate", UNBOUNDED)
def test_lengths(lib, gate, tokens):
    case = inputs.make_inputs(
        inputs.fresh_seed(), batch=2, tokens=tokens, heads=3, gate=gate, decay="mixed"
    )
    limits = stage.FEW_TOKENS if tokens <= 2 else stage.LIMITS
    layout = ("BSND", "BNSD")[tokens % 2]
    stage.check(run(lib, case, layout=layout), stage.expected(case), limits, case.case)


@pytest.mark.parametrize("gate, decay", EVERY_DECAY)
@pytest.mark.parametrize("keys, beta", (("independent", "sigmoid"), ("parallel", "neg_eigval")))
@pytest.mark.parametrize("l2norm", (True, False))
def test_decays(lib, gate, decay, keys, beta, l2norm):
    case = inputs.make_inputs(
        inputs.fresh_seed(), tokens=129, gate=gate, decay=decay, keys=keys, beta=beta, l2norm=l2norm
    )
    stage.check(run(lib, case), stage.expected(case), title=case.case)


@pytest.mark.parametrize("gate, decay", EVERY_DECAY)
def test_emulation_rounds_the_same_numbers(lib, gate, decay):
    case = inputs.make_inputs(inputs.fresh_seed(), tokens=100, heads=3, gate=gate, decay=decay)
    got, want = run(lib, case, layout="BNSD"), emulation.fwd_prepare(case)
    stage_runs.assert_rounded_alike(got, want, MATRICES, BFLOAT16, 2e-4)


@pytest.mark.parametrize("gate", UNBOUNDED)
@pytest.mark.parametrize("decay", inputs.COMMON_DECAYS)
def test_nats(lib, gate, decay):
    case = inputs.make_inputs(
        inputs.fresh_seed(), tokens=100, gate=gate, decay=decay, use_exp2=False
    )
    got = run(lib, case)
    stage.check(got, stage.expected(case), title=case.case)
    log2 = {name: value.astype(np.float32) for name, value in run(lib, case, use_exp2=True).items()}
    stage_runs.assert_rounded_alike(got, log2, MATRICES, BFLOAT16, 2e-4)


@pytest.mark.parametrize("gate, decay", (("softplus", "mixed"), ("activated", "steps")))
def test_packed_sequences_and_head_groups(lib, gate, decay):
    """One core walks through sequences of every kind; three value heads share the norms of one."""
    cu_seqlens = inputs.packed([5, 0, 65, 1, 129, 16])
    case = inputs.make_inputs(
        inputs.fresh_seed(),
        1,
        cu_seqlens[-1],
        6,
        key_heads=2,
        gate=gate,
        decay=decay,
        cu_seqlens=cu_seqlens,
    )
    lists = {"cu_seqlens": cu_seqlens, "chunk_indices": reference.chunk_indices(cu_seqlens)}
    with lib.cores(1):
        got = run(lib, case, **lists)
    stage.check(got, stage.expected(case, cu_seqlens=cu_seqlens), title=case.case)


@pytest.mark.parametrize("gate", UNBOUNDED)
@pytest.mark.parametrize("fp32", ((), ("g",), ("beta",), ALL_FP32))
@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
def test_gate_and_beta_dtypes(lib, gate, fp32, layout):
    case = inputs.make_inputs(inputs.fresh_seed(), tokens=70, heads=3, gate=gate, beta="unit")
    case.g = (case.g * np.random.default_rng(8).uniform(0.5, 1, case.g.shape)).astype(np.float32)
    for name in ("g", "beta"):
        if name not in fp32:
            setattr(case, name, round_bf16(getattr(case, name)))
    got = run(lib, case, layout=layout, fp32=fp32)
    stage.check(got, stage.expected(case), title=str(fp32))


def test_missing_and_flat_dt_bias(lib):
    case = inputs.make_inputs(inputs.fresh_seed(), tokens=40, gate="softplus")
    metrics.same_bits(run(lib, case, dt_bias=case.dt_bias.reshape(-1)), run(lib, case))
    zero = replace(case, dt_bias=np.zeros_like(case.dt_bias))
    for fp32 in (ALL_FP32, ("beta",)):
        got = run(lib, case, dt_bias=None, fp32=fp32)
        stage.check(got, stage.expected(zero))


def test_softplus_is_right_to_its_last_digits(lib):
    """By elements, from decays of 1e-34 nats to 80. gk of a chunk's first row is the gate."""
    case = inputs.make_inputs(1, tokens=1, heads=64, gate="softplus")
    case.g = np.linspace(-80, 80, 64 * 128).astype(np.float32).reshape(case.g.shape)
    case.dt_bias = np.zeros_like(case.dt_bias)
    want = stage.expected(case, use_exp2=False)["gk"]
    got = run(lib, case, layout="BNSD", use_exp2=False)["gk"]
    error = np.max(np.abs(got / want - 1))
    print(f"largest relative error {error:.1e}")
    # -80 and -x + 0.3 are exact enough in fp32, so exp(-|x|) is what limits it.
    assert error < 6e-7


def test_safe_gate_says_nothing_about_a_gate_that_comes_activated(lib):
    """And lower_bound is read by the safe gate only."""
    case = inputs.make_inputs(inputs.fresh_seed(), tokens=70, gate="activated", decay="extreme")
    metrics.same_bits(run(lib, case), run(lib, case, safe_gate=True))
    metrics.same_bits(run(lib, case), run(lib, case, lower_bound=-77.0))


def test_a_gate_that_grows(lib):
    """Not refused: right as long as exp of the sums over a chunk is finite. The rounding of
    operands grows as well (150 draws: 0.5 % of Akk and u at most, in the emulation too)."""
    case = inputs.make_inputs(inputs.fresh_seed(), tokens=100, gate="activated", beta="unit")
    case.g = np.random.default_rng(3).uniform(-0.2, 0.4, case.g.shape).astype(np.float32)
    got, want = run(lib, case, layout="BNSD"), stage.expected(case)
    assert want["gk"].max() > 5
    stage.check(got, want, {**stage.LIMITS, "akk": 1e-2, "u": 1e-2}, case.case)
    stage_runs.assert_rounded_alike(got, emulation.fwd_prepare(case), MATRICES, BFLOAT16, 2e-4)


@pytest.mark.parametrize("fall", inputs.HARD_FALLS)
@pytest.mark.parametrize("gate", UNBOUNDED)
def test_a_decay_that_fp32_cannot_sum(lib, gate, fall):
    """It leaves nothing of what was before it, and everything of what comes behind it."""
    seed = inputs.fresh_seed()
    got = run(lib, inputs.hard_falls(seed, gate, fall))
    for least, names in ((-105.0, ["gk"]), (-700.0, ["aqk", "akk", "w", "u", "qg", "kg"])):
        want = stage.expected(inputs.hard_falls(seed, gate, max(fall, least)))
        found, want = ({n: of(n) for n in names} for of in (got.f32, want.get))
        metrics.check_all(found, want, stage.LIMITS, title=f"seed {seed}")


@pytest.mark.parametrize("size", (1e-3, 1e3))
@pytest.mark.parametrize("gate, decay", (("softplus", "mixed"), ("activated", "steps")))
def test_large_and_small_keys(lib, gate, decay, size):
    case = inputs.make_inputs(7, tokens=129, gate=gate, decay=decay, beta="unit", l2norm=False)
    case.q, case.k = round_bf16(size * case.q), round_bf16(size * case.k)
    case.beta = (case.beta / size**2).astype(np.float32)
    stage.check(run(lib, case), stage.expected(case), title=case.case)


@pytest.mark.parametrize("mode", ("none", "forward", "recompute", "save"))
@pytest.mark.parametrize("gate", UNBOUNDED)
def test_modes_select_outputs_only(lib, gate, mode):
    case = inputs.make_inputs(12, tokens=65, gate=gate)
    full, part = run(lib, case), run(lib, case, mode=mode)
    metrics.same_bits(part, {name: full[name] for name in part})


@pytest.mark.parametrize("gate", UNBOUNDED)
def test_same_bits_for_any_blocks_and_threads(lib, gate):
    case = inputs.make_inputs(14, batch=3, tokens=200, heads=3, gate=gate, decay="mixed")
    with lib.threads(1):
        want = run(lib, case)
        for cores in (1, 3, 20):
            with lib.cores(cores):
                metrics.same_bits(run(lib, case), want)
    with lib.threads(2):
        metrics.same_bits(run(lib, case), want)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("gate, decay", (("softplus", "medium"), ("activated", "mixed")))
def test_subnormal_numbers(lib, gate, decay, keep):
    case = inputs.make_inputs(9, tokens=130, gate=gate, decay=decay)
    with lib.subnormals(keep):
        got = run(lib, case)
    stage.check(got, stage.expected(case))
    kg = np.abs(got["kg"].astype(np.float32))
    assert ((kg > 0) & (kg < 2.0**-126)).any() == keep


@pytest.mark.parametrize("gate", UNBOUNDED)
@pytest.mark.parametrize("name", ("q", "k", "v", "g", "beta", "a_log", "dt_bias"))
def test_nan_stays_in_its_head(lib, gate, name):
    case = inputs.make_inputs(15, batch=2, tokens=100, heads=3, gate=gate)
    if getattr(case, name) is None:
        return
    clean, bad = run(lib, case, layout="BNSD"), getattr(case, name).copy()
    per_head = name in ("a_log", "dt_bias")
    bad[1 if per_head else (0, 1, 3)] = np.nan
    got = run(lib, replace(case, **{name: bad}), layout="BNSD")
    touched = (slice(None), 1) if per_head else (0, 1)
    for key in clean:
        a, b = got[key].astype(np.float32), clean[key].astype(np.float32)
        a[touched] = b[touched]
        assert np.array_equal(a, b), key
    seen = {"q": "aqk", "v": "u"}.get(name, "w")
    assert np.isnan(got.f32(seen)[touched]).any()


def chunk_macs(rows):
    """The formula in the kernel's header."""
    blocks = -(-rows // 16)
    scores = 32 * 16 * 128 * (blocks * (blocks - 1) // 2 + 4 * blocks)
    return scores + (16 if rows == 1 else rows) * 256 * rows


# Vector instructions and repeats a chunk-head outside the solve.
MOST_WORK = {"softplus": (450, 20000), "activated": (420, 20000)}


@pytest.mark.parametrize("gate", UNBOUNDED)
def test_counters(lib, gate):
    for tokens, chunks in ((320, 5), (321, 6)):
        case = inputs.make_inputs(16, batch=1, tokens=tokens, heads=4, gate=gate)
        lib.reset_counters()
        run(lib, case)
        counters = lib.counters()[stage.KERNEL]
        tail = chunk_macs(1) if tokens == 321 else 0
        assert counters["mmad_macs"] == 4 * (5 * chunk_macs(64) + tail)
        solve = counters["regions"]["1"]
        instructions = (counters["vector_instructions"] - solve["vector_instructions"]) / 4 / chunks
        repeats = (counters["vector_repeats"] - solve["vector_repeats"]) / 4 / chunks
        print(f"{gate} {tokens} tokens: {instructions:.0f} instructions, {repeats:.0f} repeats")
        assert instructions <= MOST_WORK[gate][0] and repeats <= MOST_WORK[gate][1]
        assert repeats / instructions >= 23
        assert counters["scalar_reads"] + counters["scalar_writes"] == 0


@pytest.mark.parametrize("mode", ("none", "forward"))
@pytest.mark.parametrize("name", ("q_rstd", "k_rstd"))
def test_outputs_that_nobody_writes_are_refused(lib, mode, name):
    case = inputs.make_inputs(17, tokens=20)
    outputs = stage.shapes(case, mode, True)
    outputs[name] = (case.q.shape[:3], np.float32)
    with pytest.raises(AclnnError, match=f"{name}: expected none"):
        run(lib, case, mode=mode, outputs=outputs)
    outputs = stage.shapes(case, "save", False)
    outputs[name] = (case.q.shape[:3], np.float32)
    with pytest.raises(AclnnError, match=f"{name}: expected none"):
        run(lib, case, outputs=outputs, use_qk_l2norm_in_kernel=False)


def test_akk_that_nobody_writes_is_refused(lib):
    case = inputs.make_inputs(17, tokens=20)
    outputs = stage.shapes(case, "none", True)
    outputs["akk"] = (case.q.shape[:3] + (64,), BF16)
    with pytest.raises(AclnnError, match="akk: expected none"):
        run(lib, case, mode="none", outputs=outputs)
