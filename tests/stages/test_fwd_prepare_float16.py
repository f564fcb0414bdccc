# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""fwd_prepare with float16 tensors: three more bits, a shorter range."""

from dataclasses import replace

import numpy as np
import pytest

from tests.stages import stage_runs, test_fwd_prepare_causality, test_fwd_prepare_gates
from tests.stages import test_fwd_prepare as stage
from tests.stages import test_precise_prepare as precise
from tests.support import emulation, inputs, metrics, reference
from tests.support.aclnn import BF16, AclnnError
from tests.support.io_types import FLOAT16

F16 = np.dtype(np.float16)
ALL_FP32 = ("g", "beta")
EVERY_DECAY = [(gate, decay) for gate in inputs.GATES for decay in inputs.GATES[gate]]
GATES = pytest.mark.parametrize("gate", inputs.GATES)


def make(*args, **kwargs):
    return inputs.make_inputs(*args, io=FLOAT16, **kwargs)


def run(lib, case, **changes):
    return stage.run(lib, case, **{"fp32": ALL_FP32, **changes})


def check(got, want, case, of=stage.LIMITS):
    """With an eighth of the limits for bfloat16. Numbers below 2^-14 are rounded to a multiple of
    2^-24: results, and the operands of which others are made."""
    halves = type(got)({name: x for name, x in got.items() if x.dtype == F16})
    floats = type(got)({name: x for name, x in got.items() if x.dtype == np.float32})
    narrow = stage_runs.limits(of, FLOAT16)
    stage.check(halves, want, narrow, case.case, floor=2 * FLOAT16.tiny)
    stage.check(floats, want, {**of, "u": narrow["u"]}, case.case)


@GATES
@pytest.mark.parametrize("tokens", stage.TOKENS)
def test_lengths(lib, gate, tokens):
    case = make(inputs.fresh_seed(), batch=2, tokens=tokens, heads=3, gate=gate, decay="mixed")
    got = run(lib, case, layout=("BSND", "BNSD")[tokens % 2])
    check(got, stage.expected(case), case, stage.FEW_TOKENS if tokens <= 2 else stage.LIMITS)
    for name, (dtype, _, modes) in stage.OUTPUTS.items():
        if "save" in modes:
            assert got[name].dtype == (F16 if dtype == BF16 else dtype), name


@pytest.mark.parametrize("gate, decay", EVERY_DECAY)
@pytest.mark.parametrize("keys, beta", (("independent", "sigmoid"), ("parallel", "neg_eigval")))
@pytest.mark.parametrize("l2norm", (True, False))
def test_decays(lib, gate, decay, keys, beta, l2norm):
    case = make(
        inputs.fresh_seed(), tokens=129, gate=gate, decay=decay, keys=keys, beta=beta, l2norm=l2norm
    )
    check(run(lib, case), stage.expected(case), case)


@pytest.mark.parametrize("gate, decay", EVERY_DECAY)
def test_emulation_rounds_the_same_numbers(lib, gate, decay):
    case = make(inputs.fresh_seed(), tokens=100, heads=3, gate=gate, decay=decay)
    want = emulation.fwd_prepare(case, emulation.Numerics(io=FLOAT16))
    got = run(lib, case, layout="BNSD")
    stage_runs.assert_rounded_alike(got, want, test_fwd_prepare_gates.MATRICES, FLOAT16, 1e-4)


@GATES
@pytest.mark.parametrize("decay", inputs.COMMON_DECAYS)
@pytest.mark.parametrize("use_exp2", (True, False))
def test_precise_relay(lib, gate, decay, use_exp2):
    case = make(inputs.fresh_seed(), tokens=100, heads=3, gate=gate, decay=decay, use_exp2=use_exp2)
    got, want = precise.run(lib, case, layout="BNSD", fp32=ALL_FP32), stage.expected(case)
    for name in ("kg", "k_hat"):
        assert got[name + "_low"].dtype == F16
        # A pair's lower number ends at 2^-24 as well.
        error = metrics.relative_l2(precise.pair(got, name), want[name], FLOAT16.tiny)
        print(f"{name} {error:.1e}")
        assert error < 1e-6
    assert got["u"].dtype == np.float32
    plain = {name: got[name] for name in got if not name.endswith("_low")}
    check(type(got)(plain), want, case)


@pytest.mark.parametrize("tokens", (1, 17, 65, 200))
def test_precise_u_where_the_scores_hardly_matter(lib, tokens):
    case = make(tokens, tokens=tokens, heads=2, decay="bound")
    error = metrics.relative_l2(precise.run(lib, case)["u"], stage.expected(case)["u"])
    print(f"u {error:.1e}")
    assert error < 1e-6


@GATES
@pytest.mark.parametrize("fp32", ((), ("g",), ("beta",), ALL_FP32))
@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
def test_gate_and_beta_dtypes(lib, gate, fp32, layout):
    case = make(inputs.fresh_seed(), tokens=70, heads=3, gate=gate, beta="unit")
    case.g = (case.g * np.random.default_rng(8).uniform(0.5, 1, case.g.shape)).astype(np.float32)
    for name in ("g", "beta"):
        if name not in fp32:
            setattr(case, name, FLOAT16.round(getattr(case, name)))
    check(run(lib, case, layout=layout, fp32=fp32), stage.expected(case), case)


@GATES
def test_packed_sequences_and_head_groups(lib, gate):
    cu_seqlens = inputs.packed([5, 0, 65, 1, 129, 16])
    case = make(
        inputs.fresh_seed(), 1, cu_seqlens[-1], 6,
        key_heads=2, gate=gate, decay="mixed", cu_seqlens=cu_seqlens,
    )  # fmt: skip
    lists = {"cu_seqlens": cu_seqlens, "chunk_indices": reference.chunk_indices(cu_seqlens)}
    with lib.cores(1):
        got = run(lib, case, **lists)
    check(got, stage.expected(case, cu_seqlens=cu_seqlens), case)


@pytest.mark.parametrize("size", (0.1, 30))
@GATES
def test_large_and_small_keys(lib, gate, size):
    """As far as the products of two of them, and beta, are normal numbers."""
    case = make(7, tokens=129, gate=gate, beta="unit", l2norm=False)
    case.q, case.k = FLOAT16.round(size * case.q), FLOAT16.round(size * case.k)
    case.beta = (case.beta * min(1, size**-2)).astype(np.float32)
    check(run(lib, case), stage.expected(case), case)


@GATES
def test_later_tokens_change_no_bit_of_earlier_rows(lib, gate):
    x = make(21, tokens=75, heads=2, gate=gate, decay="weak")
    clean = run(lib, x, layout="BNSD")
    for token in (1, 8, 15, 16, 40, 64, 70):
        other = test_fwd_prepare_causality.changed_from(x, gate, token, 22)
        got = run(lib, other, layout="BNSD")
        for name in test_fwd_prepare_causality.CAUSAL:
            before, after = clean[name][:, :, :token], got[name][:, :, :token]
            assert np.array_equal(before.view(np.uint8), after.view(np.uint8)), (name, token)
            if name != "akk" or token % 64:
                assert not np.array_equal(clean[name][:, :, token], got[name][:, :, token]), name


def test_same_bits_for_any_blocks_and_threads(lib):
    case = make(14, batch=3, tokens=200, heads=3, decay="mixed")
    want = run(lib, case)
    for cores in stage_runs.CORES:
        with lib.cores(cores), lib.threads(1):
            metrics.same_bits(run(lib, case), want)


@pytest.mark.parametrize("mode", ("none", "forward", "recompute", "save"))
def test_modes_select_outputs_only(lib, mode):
    case = make(12, tokens=65)
    full, part = run(lib, case), run(lib, case, mode=mode)
    metrics.same_bits(part, {name: full[name] for name in part})


@pytest.mark.parametrize("name", ("q", "k", "v", "g", "beta", "a_log", "dt_bias"))
def test_nan_stays_in_its_head(lib, name):
    case = make(15, batch=2, tokens=100, heads=3)
    clean, bad = run(lib, case, layout="BNSD"), getattr(case, name).copy()
    per_head = name in ("a_log", "dt_bias")
    bad[1 if per_head else (0, 1, 3)] = np.nan
    got = run(lib, replace(case, **{name: bad}), layout="BNSD")
    touched = (slice(None), 1) if per_head else (0, 1)
    seen = {"q": "aqk", "v": "u"}.get(name, "w")
    assert np.isnan(got.f32(seen)[touched]).any()
    for key in clean:
        a, b = got[key].astype(np.float32), clean[key].astype(np.float32)
        a[touched] = b[touched]
        assert np.array_equal(a, b), key


def test_counters(lib):
    """The work of a gate without a bound, under any gate."""
    case = make(16, tokens=320, heads=4)
    lib.reset_counters()
    run(lib, case)
    counters = lib.counters()[stage.KERNEL]
    assert counters["mmad_macs"] == 4 * 5 * test_fwd_prepare_gates.chunk_macs(64)
    assert counters["scalar_reads"] + counters["scalar_writes"] == 0
    assert stage_runs.mean_repeats(counters) >= 23


def test_inference(lib):
    case = make(17, tokens=65)
    arguments = stage.arguments(case, "BSND", ALL_FP32)
    for precise_relay in (False, True):
        inferred = lib.infer(
            stage.OP, scale=case.scale, layout="BSND", precise_relay=precise_relay, **arguments
        )
        for name, (dtype, _, _) in stage.OUTPUTS.items():
            wide = dtype != BF16 or (name == "u" and precise_relay)
            assert inferred[name][1] == (np.float32 if wide else F16), name


@pytest.mark.parametrize("name", ("q", "k", "v", "g", "beta", "w", "aqk", "kg"))
def test_types_may_not_be_mixed(lib, name):
    case = make(17, tokens=65)
    good = stage.arguments(case, "BSND", ())
    outputs = stage.shapes(case, "save", True)
    changes = {}
    if name in good:
        changes[name] = good[name].astype(BF16)
    else:
        changes["outputs"] = {**outputs, name: (outputs[name][0], BF16)}
    with pytest.raises(AclnnError, match=rf"\b{name}(Out)? BF16.* no supported combination"):
        run(lib, case, fp32=(), **changes)
    run(lib, case)  # the next call works
