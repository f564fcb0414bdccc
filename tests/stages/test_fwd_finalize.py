# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""fwd_finalize on the simulator against the float64 reference."""

import numpy as np
import pytest

from tests.stages import stage_runs
from tests.support import metrics, reference
from tests.support.aclnn import AclnnError
from tests.support.bfloat16 import BF16
from tests.support.io_types import BFLOAT16

OP = "ChunkKdaFwdFinalize"
KERNEL = "chunk_kda_fwd_finalize"
TOKENS = (1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 200)
LIMITS = {"o": 4e-3}  # one rounding to bf16; twice what was measured


def make(tokens, batch=2, heads=3, seed=None, io=BFLOAT16):
    rng = np.random.default_rng(seed)
    chunks = -(-tokens // 64)
    aqk = rng.standard_normal((batch, heads, tokens, 64))
    for start in range(0, tokens, 64):
        aqk[:, :, start : start + 64] = np.tril(aqk[:, :, start : start + 64])
    return {
        "qg_scaled": io.array(rng.standard_normal((batch, heads, tokens, 128))),
        "aqk": io.array(aqk),
        "v_new": io.array(rng.standard_normal((batch, heads, tokens, 128))),
        "h": io.array(rng.standard_normal((batch, chunks, heads, 128, 128))),
    }


def run(lib, case, layout="BSND", **changes):
    batch, heads, tokens, width = case["v_new"].shape
    shape = (batch, tokens, heads, width) if layout == "BSND" else case["v_new"].shape
    call = {**case, "output_layout": layout, "outputs": {"o": shape}, **changes}
    o = lib.call(OP, **call).f32("o")
    return np.swapaxes(o, 1, 2) if layout == "BSND" else o


def expected(case):
    return reference.fwd_finalize(**{name: x.astype(np.float64) for name, x in case.items()})


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("layout", ("BSND", "BNSD"))
@stage_runs.IO
def test_lengths(lib, tokens, layout, io):
    case = make(tokens, io=io)
    limits = stage_runs.limits(LIMITS, io)
    for result in metrics.check_all({"o": run(lib, case, layout)}, {"o": expected(case)}, limits):
        print(result)


def test_no_tokens(lib):
    assert run(lib, make(0)).shape == (2, 3, 0, 128)


def test_same_bits_for_any_blocks_and_threads(lib):
    case = make(200, seed=1)
    with lib.threads(1):
        want = run(lib, case)
        for cores in (1, 3, 20):
            with lib.cores(cores):
                assert np.array_equal(run(lib, case), want)
    with lib.threads(2):
        assert np.array_equal(run(lib, case), want)


@pytest.mark.parametrize("cores", (1, 24))
@pytest.mark.parametrize("name", ("qg_scaled", "aqk", "v_new", "h"))
def test_nan_stays_in_its_head(lib, name, cores):
    case = make(100, seed=2)
    with lib.cores(cores):
        clean = run(lib, case)
        bad = case[name].copy()
        bad[(0, 0, 1, 5) if name == "h" else (0, 1, 3)] = np.nan
        got = run(lib, {**case, name: bad})
    assert np.isnan(got[0, 1]).any()
    got[0, 1] = clean[0, 1]
    assert np.array_equal(got, clean)


def test_counters(lib):
    lib.reset_counters()
    run(lib, make(129, batch=1, heads=4))
    counters = lib.counters()[KERNEL]
    print(counters)
    assert counters["mmad_macs"] == 4 * 128 * (2 * 64 * (128 + 64) + 16 * (128 + 1))
    assert counters["vector_instructions"] == 0
    assert counters["scalar_reads"] + counters["scalar_writes"] == 0


@pytest.mark.parametrize(
    "change, message",
    (
        ({"output_layout": "TND"}, "qg_scaled: expected 3 dimensions .as layouts NTD and TND"),
        ({"cu_seqlens": [0, 65]}, "cu_seqlens"),
        ({"h": np.zeros((2, 1, 3, 128, 128), BF16)}, "h"),
        ({"h": np.zeros((2, 2, 3, 128, 128), np.float16)}, "no supported combination"),
        ({"aqk": np.zeros((2, 3, 65, 32), BF16)}, "aqk"),
    ),
)
def test_refusals(lib, change, message):
    case = make(65)
    with pytest.raises(AclnnError, match=message):
        run(lib, case, **change)
    assert metrics.compare("o", run(lib, case), expected(case), LIMITS["o"]).passed
