# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""fwd_prepare with precise_relay: kg and k_hat as pairs of bf16 numbers, u in fp32."""

import numpy as np
import pytest

from hyper_parallel_kda import stage_table as table
from tests.stages import stage_runs, test_fwd_prepare, test_packed
from tests.support import inputs
from tests.support.aclnn import BF16, AclnnError
from tests.support.metrics import relative_l2, same_bits

PAIR = 2e-5  # relative L2 of what a pair holds
CHANGED = ("w", "u")  # the only ones of the thirteen outputs with other bits


def shapes(case, mode, l2norm):
    out = test_fwd_prepare.shapes(case, mode, l2norm)
    out["u"] = (out["u"][0], np.float32)
    out["kg_low"] = out["kg"]
    out["k_hat_low"] = out["k_hat"] if l2norm else None
    return out


def run(lib, case, layout="BSND", mode="save", **changes):
    outputs = shapes(case, mode, case.options["use_qk_l2norm_in_kernel"])
    changes = {"outputs": outputs, "precise_relay": True, **changes}
    return test_fwd_prepare.run(lib, case, layout, mode, **changes)


def pair(got, name):
    return got.f32(name).astype(float) + got.f32(name + "_low")


@pytest.mark.parametrize("tokens", test_fwd_prepare.TOKENS)
@pytest.mark.parametrize("l2norm", [True, False])
@pytest.mark.parametrize("layout", ["BSND", "BNSD"])
def test_against_float64(lib, tokens, l2norm, layout):
    seed = inputs.fresh_seed()
    case = inputs.make_inputs(seed, batch=2, tokens=tokens, heads=3, l2norm=l2norm)
    got, want = run(lib, case, layout), test_fwd_prepare.expected(case)
    assert relative_l2(pair(got, "kg"), want["kg"]) < PAIR
    if l2norm:
        assert relative_l2(pair(got, "k_hat"), want["k_hat"]) < PAIR
    limits = test_fwd_prepare.FEW_TOKENS if tokens <= 2 else test_fwd_prepare.LIMITS
    plain = {name: got[name] for name in got if not name.endswith("_low")}
    test_fwd_prepare.check(type(got)(plain), want, limits, case.case)


@pytest.mark.parametrize("tokens", [1, 17, 65, 200])
def test_u_where_the_scores_hardly_matter(lib, tokens):
    """Otherwise its error is that of the scores' operands, which are plain bf16."""
    case = inputs.make_inputs(tokens, tokens=tokens, heads=2, decay="bound")
    want = test_fwd_prepare.expected(case)["u"]
    assert relative_l2(run(lib, case)["u"], want) < 5e-5
    plain = test_fwd_prepare.run(lib, case)
    assert relative_l2(plain.f32("u"), want) > 5e-4


GATES = [(gate, decay) for gate in ("safe", "softplus") for decay in inputs.GATES[gate]]


@pytest.mark.parametrize("gate, decay", GATES)
def test_everything_else_has_the_bits_without_it(lib, gate, decay):
    case = inputs.make_inputs(3, tokens=130, heads=2, decay=decay, gate=gate)
    got, plain = run(lib, case), test_fwd_prepare.run(lib, case)
    for name in plain:
        if name not in CHANGED:
            assert got[name].tobytes() == plain[name].tobytes(), name
    want = test_fwd_prepare.expected(case)
    assert relative_l2(pair(got, "kg"), want["kg"]) < PAIR


@pytest.mark.parametrize("mode", ["none", "forward", "recompute", "save"])
@pytest.mark.parametrize("l2norm", [True, False])
def test_modes_select_outputs_only(lib, mode, l2norm):
    case = inputs.make_inputs(12, tokens=65, l2norm=l2norm)
    full, part = run(lib, case), run(lib, case, mode=mode)
    names = [name for name, shape in shapes(case, mode, l2norm).items() if shape]
    assert list(part) == names and ("k_hat_low" in names) == (l2norm and "k_hat" in names)
    same_bits(part, {name: full[name] for name in part})


def test_packed_sequences(lib):
    stage = table.FWD_PREPARE
    for case in ("tails and empty ones", "640 and 783"):
        cu_seqlens = inputs.packed(test_packed.LENGTHS[case])
        test_packed.assert_as_dense(lib, stage, cu_seqlens, pairs=True, value_heads=4)


def test_same_bits_on_any_machine(lib):
    case = inputs.make_inputs(14, batch=3, tokens=200, heads=3)
    want = run(lib, case)
    for cores in stage_runs.CORES:
        with lib.cores(cores):
            same_bits(run(lib, case), want)


def test_counters(lib):
    """One product more a unit, and no scalar loops."""
    case = inputs.make_inputs(16, tokens=321, heads=4)
    lib.reset_counters()
    run(lib, case)
    counters = lib.counters()[test_fwd_prepare.KERNEL]
    macs = sum(
        test_fwd_prepare.chunk_macs(rows) + max(rows, 16) * 256 * rows
        for rows in (64, 64, 64, 64, 64, 1)
    )
    assert counters["mmad_macs"] == 4 * macs
    assert counters["scalar_reads"] + counters["scalar_writes"] == 0
    assert stage_runs.mean_repeats(counters) >= 20


def test_refusals(lib):
    case = inputs.make_inputs(17, tokens=65)
    good = shapes(case, "save", True)
    dims = good["kg"][0]
    for outputs, changes, message in [
        ({**good, "kg_low": None}, {}, "kg_low is required"),
        ({**good, "k_hat_low": None}, {}, "k_hat_low is required"),
        ({**good, "u": (dims, BF16)}, {}, "u: expected float32, got bfloat16"),
        (good, {"precise_relay": False}, "u: expected bfloat16, got float32"),
        (
            {**good, "u": (dims, BF16)},
            {"precise_relay": False},
            "output kg_low: expected none",
        ),
    ]:
        with pytest.raises(AclnnError) as failure:
            run(lib, case, outputs=outputs, **changes)
        assert message in failure.value.message
    run(lib, case)
