# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""fwd_prepare on the simulator against the float64 reference."""

import dataclasses

import numpy as np
import pytest

from tests.support import inputs, metrics, reference
from tests.support.aclnn import AclnnError
from tests.support.bfloat16 import BF16, round_bf16

OP = "ChunkKdaFwdPrepare"
KERNEL = "chunk_kda_fwd_prepare"
# name -> (dtype, last dimension or None, modes that return it); BF16 stands for that of q, k and v
OUTPUTS = {
    "gk": (np.float32, 128, "none forward recompute save"),
    "aqk": (BF16, 64, "none forward recompute save"),
    "akk": (BF16, 64, "forward save"),
    "w": (BF16, 128, "none forward recompute save"),
    "u": (BF16, 128, "none forward recompute save"),
    "qg": (BF16, 128, "save"),
    "kg": (BF16, 128, "none forward recompute save"),
    "qg_scaled": (BF16, 128, "none forward recompute save"),
    "q_hat": (BF16, 128, "recompute save"),
    "k_hat": (BF16, 128, "recompute save"),
    "q_rstd": (np.float32, None, "recompute save"),
    "k_rstd": (np.float32, None, "recompute save"),
    "beta_eff": (np.float32, None, "recompute save"),
    "kg_low": (BF16, 128, ""),  # test_precise_prepare.py
    "k_hat_low": (BF16, 128, ""),
}
TOKENS = (1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 200)
# Twice the worst that was measured over this file's cases: roundings to bf16 of one (hats, kg),
# two (qg, u) or three (aqk: two operands and the result) numbers; w sums terms that partly cancel
# when keys are parallel.
LIMITS = {
    "gk": 6e-7,
    "aqk": 7e-3,
    "akk": 4e-3,
    "w": 1e-2,
    "u": 5e-3,
    "qg": 4e-3,
    "kg": 4e-3,
    "qg_scaled": 4.6e-3,
    "q_hat": 4e-3,
    "k_hat": 4e-3,
    "q_rstd": 2e-7,
    "k_rstd": 2e-7,
    "beta_eff": 2e-7,
}
# One or two tokens: the scores are six or eighteen dot products, and one may nearly vanish.
FEW_TOKENS = {**LIMITS, "aqk": 2e-2}


def token_major(x):
    return np.ascontiguousarray(np.swapaxes(x, 1, 2))


def arguments(case, layout, fp32):
    """The op's inputs, in `layout`. fp32 names the gates that are passed in float32."""
    place = token_major if layout == "BSND" else np.ascontiguousarray
    out = {name: case.io.array(place(getattr(case, name))) for name in ("q", "k", "v")}
    for name in ("g", "beta"):
        x = place(getattr(case, name))
        out[name] = x.astype(np.float32) if name in fp32 else case.io.array(x)
    out.update(a_log=case.a_log, dt_bias=case.dt_bias)
    return out


def shapes(case, mode, l2norm):
    out = {}
    for name, (dtype, width, modes) in OUTPUTS.items():
        wanted = mode in modes.split() and (l2norm or not name.endswith("_rstd"))
        like = case.q if name.endswith(("_hat", "_rstd")) else case.v
        dims = like.shape[:3] + ((width,) if width else ())
        out[name] = (dims, case.io.dtype if dtype == BF16 else dtype) if wanted else None
    return out


def run(lib, case, layout="BSND", mode="save", fp32=("beta",), **changes):
    l2norm = case.options["use_qk_l2norm_in_kernel"]
    call = dict(
        arguments(case, layout, fp32),
        scale=case.scale,
        layout=layout,
        backward_mode=mode,
        outputs=shapes(case, mode, l2norm),
    )
    call.update(inputs.GATE_OPTIONS["safe"])
    call.update(case.options)
    call.update(changes)
    return lib.call(OP, **call)


def expected(case, **options):
    return reference.fwd_prepare(
        case.q,
        case.k,
        case.v,
        case.g,
        case.beta,
        case.scale,
        a_log=case.a_log,
        dt_bias=case.dt_bias,
        **case.options,
        **options,
    )


def check(got, want, limits=LIMITS, title="", floor=0.0):
    got = {name: got.f32(name) for name in got}
    want = {name: want[name] for name in got}
    comparisons = metrics.check_all(got, want, limits, title=title, floor=floor)
    for c in comparisons:
        print(c)
    return comparisons


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
def test_lengths(lib, tokens, layout):
    case = inputs.make_inputs(inputs.fresh_seed(), batch=2, tokens=tokens, heads=3)
    limits = FEW_TOKENS if tokens <= 2 else LIMITS
    check(run(lib, case, layout), expected(case), limits, case.case)


@pytest.mark.parametrize("gate", inputs.GATES)
@pytest.mark.parametrize("tokens", (1, 2, 16, 65, 80))
def test_diagonal_of_a_short_chunk(lib, gate, tokens):
    """Only its result is rounded, however small an inner product is: in the last chunk here, and in
    every chunk of a gate without a bound."""
    case = inputs.make_inputs(inputs.fresh_seed(), tokens=tokens, heads=8, gate=gate, decay="mixed")
    got, want = run(lib, case, layout="BNSD", fp32=("g", "beta")).f32("aqk"), expected(case)["aqk"]
    rows = np.arange((tokens - 1) // 64 * 64 if gate == "safe" else 0, tokens)
    got, want = got[:, :, rows, rows % 64], want[:, :, rows, rows % 64]
    assert np.all(np.abs(got - want) <= 2**-8 * np.abs(want) + 1e-6 * case.scale)


@pytest.mark.parametrize("decay", tuple(inputs.DECAYS))
@pytest.mark.parametrize("keys", inputs.KEYS)
@pytest.mark.parametrize("beta", ("sigmoid", "unit"))
@pytest.mark.parametrize("l2norm", (True, False))
def test_options(lib, decay, keys, beta, l2norm):
    case = inputs.make_inputs(
        inputs.fresh_seed(), tokens=129, heads=2, decay=decay, keys=keys, beta=beta, l2norm=l2norm
    )
    check(run(lib, case), expected(case), title=case.case)


@pytest.mark.parametrize("decay", ("lasting", "medium", "bound"))
def test_beta_up_to_two_and_parallel_keys(lib, decay):
    case = inputs.make_inputs(5, tokens=100, decay=decay, keys="parallel", beta="two")
    check(run(lib, case), expected(case), title=case.case)


@pytest.mark.parametrize("decay", inputs.DECAYS)
def test_nats(lib, decay):
    """Another unit of gk, and no other result: the stages after this one read it."""
    case = inputs.make_inputs(6, tokens=100, decay=decay, beta="neg_eigval", use_exp2=False)
    got = run(lib, case)
    check(got, expected(case), title=case.case)
    log2 = run(lib, case, use_exp2=True)
    assert metrics.relative_l2(got["gk"] * np.float32(reference.LOG2E), log2["gk"]) < 6e-7
    for name in ("aqk", "akk", "w", "u", "qg", "kg"):
        assert metrics.relative_l2(got.f32(name), log2.f32(name)) < 4e-3, name


@pytest.mark.parametrize("size", (1e-3, 1e3))
@pytest.mark.parametrize("decay", inputs.DECAYS)
def test_large_and_small_keys(lib, decay, size):
    """Without the norm. beta is 1 / |k|^2 at most, or the delta rule diverges."""
    case = inputs.make_inputs(7, tokens=129, decay=decay, beta="unit", l2norm=False)
    case.q, case.k = round_bf16(size * case.q), round_bf16(size * case.k)
    case.beta = (case.beta / size**2).astype(np.float32)
    check(run(lib, case), expected(case), title=case.case)


@pytest.mark.parametrize("fp32", ((), ("g",), ("beta",), ("g", "beta")))
@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
def test_gate_and_beta_dtypes(lib, fp32, layout):
    case = inputs.make_inputs(8, tokens=70, heads=3, beta="unit")
    rng = np.random.default_rng(8)
    case.g = rng.standard_normal(case.g.shape).astype(np.float32)
    for name in ("g", "beta"):
        if name not in fp32:
            setattr(case, name, round_bf16(getattr(case, name)))
    check(run(lib, case, layout, fp32=fp32), expected(case), title=str(fp32))


def test_missing_and_flat_dt_bias(lib):
    case = inputs.make_inputs(9, tokens=40)
    flat = run(lib, case, dt_bias=case.dt_bias.reshape(-1))
    metrics.same_bits(flat, run(lib, case))
    zero = dataclasses.replace(case, dt_bias=np.zeros_like(case.dt_bias))
    check(run(lib, case, dt_bias=None), expected(zero))


@pytest.mark.parametrize("lower_bound", (-5.0, -1.0, -0.1))
def test_lower_bound_and_scale(lib, lower_bound):
    case = inputs.make_inputs(10, tokens=64)
    case.scale = 0.37
    check(run(lib, case, lower_bound=lower_bound), expected(case, lower_bound=lower_bound))


def test_large_raw_gates_saturate(lib):
    case = inputs.make_inputs(11, tokens=64)
    case.g = round_bf16(300 * case.g)
    got = run(lib, case, fp32=("g", "beta"))
    check(got, expected(case))


@pytest.mark.parametrize("mode", ("none", "forward", "recompute", "save"))
@pytest.mark.parametrize("l2norm", (True, False))
def test_modes_select_outputs_only(lib, mode, l2norm):
    case = inputs.make_inputs(12, tokens=65, l2norm=l2norm)
    full, part = run(lib, case), run(lib, case, mode=mode)
    names = [n for n, (_, _, modes) in OUTPUTS.items() if mode in modes.split()]
    assert list(part) == [n for n in names if l2norm or not n.endswith("_rstd")]
    metrics.same_bits(part, {name: full[name] for name in part})


def test_no_tokens(lib):
    case = inputs.make_inputs(13, tokens=64)
    for name in ("q", "k", "v", "g", "beta"):
        setattr(case, name, getattr(case, name)[:, :, :0])
    got = run(lib, case)
    assert all(x.size == 0 for x in got.values())


def test_same_bits_for_any_blocks_and_threads(lib):
    case = inputs.make_inputs(14, batch=3, tokens=200, heads=3)
    with lib.threads(1):
        want = run(lib, case)
        for cores in (1, 3, 20):
            with lib.cores(cores):
                metrics.same_bits(run(lib, case), want)
    with lib.threads(2):
        metrics.same_bits(run(lib, case), want)


@pytest.mark.parametrize("cores", (1, 24))
@pytest.mark.parametrize("name", ("q", "k", "v", "g", "beta", "a_log", "dt_bias"))
def test_nan_stays_in_its_head(lib, name, cores):
    case = inputs.make_inputs(15, batch=2, tokens=100, heads=3)
    with lib.cores(cores):
        clean = run(lib, case)
        bad = getattr(case, name).copy()
        if name in ("a_log", "dt_bias"):
            bad[1] = np.nan
            at = (slice(None), 1)
        else:
            bad[0, 1, 3] = np.nan
            at = (0, 1)
        got = run(lib, dataclasses.replace(case, **{name: bad}))
    touched = 0
    for key in clean:
        a, b = got[key].astype(np.float32), clean[key].astype(np.float32)
        touched += int(np.isnan(a[at]).sum())
        a[at] = b[at]
        assert np.array_equal(a, b), key
    assert touched > 0


def chunk_macs(rows):
    """The formula in the kernel's header."""
    blocks = -(-rows // 16)
    scores = 32 * 16 * 128 * blocks * (blocks + 1) // 2
    return scores + (16 if rows == 1 else rows) * 256 * rows


def test_counters(lib):
    """The instruction counts a chunk-head, with tails and without."""
    for tokens, chunks in ((320, 5), (321, 6)):
        case = inputs.make_inputs(16, batch=1, tokens=tokens, heads=4)
        lib.reset_counters()
        run(lib, case)
        counters = lib.counters()[KERNEL]
        tail = chunk_macs(1) if tokens == 321 else 0
        assert counters["mmad_macs"] == 4 * (5 * chunk_macs(64) + tail)
        solve = counters["regions"]["1"]
        instructions = counters["vector_instructions"] - solve["vector_instructions"]
        repeats = counters["vector_repeats"] - solve["vector_repeats"]
        units = 4 * chunks
        print(
            f"{tokens} tokens, a chunk-head: {counters['mmad_macs'] / units:.0f} MACs, "
            f"{instructions / units:.0f} vector instructions of {repeats / instructions:.1f} "
            f"repeats, solve {solve['vector_instructions'] / units:.0f} of "
            f"{solve['vector_repeats'] / solve['vector_instructions']:.1f}"
        )
        assert repeats / instructions >= 25
        assert instructions / units <= 185 and repeats / units <= 6500
        assert solve["vector_instructions"] / units <= 75
        assert solve["vector_repeats"] / units <= 2500
        assert counters["scalar_reads"] + counters["scalar_writes"] == 0


def test_token_rows_wider_than_a_cube_copy_can_step(lib):
    """With 512 heads a token-major row is 65,536 elements, one more than Nd2Nz can step over."""
    case = inputs.make_inputs(18, tokens=17, heads=512, decay="mixed")
    metrics.same_bits(run(lib, case, "BSND"), run(lib, case, "BNSD"))


@pytest.mark.parametrize(
    "change, message",
    (
        ({"allow_neg_eigval": True, "use_beta_sigmoid_in_kernel": False}, "allow_neg_eigval"),
        ({"layout": "TND"}, "layout"),
        ({"backward_mode": "all"}, "backward_mode"),
        ({"chunk_size": 32}, "chunk_size"),
        ({"lower_bound": -6.0}, "lower_bound"),
        ({"scale": float("nan")}, "scale"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"a_log": None}, "a_log"),
        ({"a_log": None, "safe_gate": False}, "a_log"),
        ({"cu_seqlens": [0, 65]}, "cu_seqlens"),
        ({"dt_bias": np.zeros((2, 64), np.float32)}, "dt_bias"),
        ({"k": np.zeros((1, 64, 2, 128), BF16)}, "k"),
        ({"q": np.zeros((1, 65, 4, 128), BF16), "k": np.zeros((1, 65, 4, 128), BF16)}, "heads"),
    ),
)
def test_refusals(lib, change, message):
    case = inputs.make_inputs(17, tokens=65)
    with pytest.raises(AclnnError, match=message):
        run(lib, case, **change)
    check(run(lib, case), expected(case))  # the next call works


@pytest.mark.parametrize("keep", [False, True])
def test_subnormal_numbers(lib, keep):
    """A key that decayed to below 2**-126 until its chunk's end is right as zero and as it is."""
    case = inputs.make_inputs(9, tokens=130, heads=2, decay="medium")
    with lib.subnormals(keep):
        got = run(lib, case)
    check(got, expected(case))
    kg = np.abs(got["kg"].astype(np.float32))
    assert ((kg > 0) & (kg < 2.0**-126)).any() == keep
