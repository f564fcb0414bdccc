# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Two-phase calls: operands, attributes, presence, strides, and what each failure says."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.support.aclnn import INVALID, NULLPTR, RUNTIME, TILING, AclnnError
from tests.support.bfloat16 import to_bf16

RNG = np.random.default_rng(7)


def rows(count=5, columns=48):
    return RNG.standard_normal((count, columns)).astype(np.float32)


def expected(state, x, scale, bias=0.0, offset=0.0):
    return np.float32(scale) * state + x.astype(np.float32) + bias + np.float32(offset)


def update(lib, state, x, **arguments):
    outputs = arguments.pop("outputs", {"state_copy": None})
    return lib.call("SimTestRowUpdate", state=state, x=x, outputs=outputs, **arguments)


def test_ref_operand_is_updated_and_optional_operands_may_be_absent(test_ops):
    state, x = rows(), rows()
    before = state.copy()
    out = update(test_ops, state, x, A_scale=0.5)
    np.testing.assert_allclose(out["state"], expected(state, x, 0.5, offset=3), rtol=1e-6)
    np.testing.assert_array_equal(state, before)
    update(test_ops, state, x, A_scale=0.5, in_place=True)
    np.testing.assert_array_equal(state, out["state"])


def test_optional_input_and_output_present(test_ops):
    state, x, bias = rows(), rows(), rows(1)[0]
    out = update(test_ops, state, x, bias=bias, A_scale=2.0, outputs={"state_copy": state.shape})
    want = expected(state, x, 2.0, bias, 3)
    np.testing.assert_allclose(out["state_copy"], want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(out["state"], out["state_copy"])


def test_inferred_outputs(test_ops):
    state, x = rows(), rows()
    inferred = test_ops.infer("SimTestRowUpdate", state=state, x=x, A_scale=1.0)
    assert inferred["state_copy"] == (state.shape, np.dtype(np.float32))
    out = test_ops.call("SimTestRowUpdate", state=state, x=x, A_scale=1.0)
    np.testing.assert_array_equal(out["state"], out["state_copy"])


def test_every_attribute_kind_and_the_value_depend_array(test_ops):
    state, x = rows(), rows()
    out = update(
        test_ops, state, x, A_scale=0.25, repeat=2, negate=True, shifts=[5, -1], row_counts=[10, 20]
    )
    want = expected(state, x, -0.25, offset=(5 - 1 + 30) * 2)
    np.testing.assert_allclose(out["state"], want, rtol=1e-6)
    out = update(test_ops, state, x, A_scale=0.25, mode="plain", row_counts=[10])
    np.testing.assert_allclose(out["state"], expected(state, x, 0.25), rtol=1e-6, atol=1e-6)
    out = update(test_ops, state, x, A_scale=0.0, shifts=[], row_counts=[])
    np.testing.assert_allclose(out["state"], x, rtol=1e-6)


def test_second_data_type_column(test_ops):
    state, x = rows(), to_bf16(rows())
    out = update(test_ops, state, x, A_scale=1.0, shifts=[])
    np.testing.assert_allclose(out["state"], expected(state, x, 1.0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cores", [1, 3, 24])
def test_core_count_does_not_change_bits(test_ops, cores):
    state, x = np.arange(40 * 16, dtype=np.float32).reshape(40, 16), np.ones((40, 16), np.float32)
    with test_ops.cores(cores):
        out = update(test_ops, state, x, A_scale=0.125)
    np.testing.assert_array_equal(out["state"], expected(state, x, 0.125, offset=3))


def test_mixed_kernel_with_one_output(test_ops):
    x, y = to_bf16(RNG.standard_normal((7, 64, 64))), to_bf16(RNG.standard_normal((7, 64, 64)))
    want = 1 + np.einsum("tik,tjk->tij", x.astype(np.float64), y.astype(np.float64))
    for cores in (1, 3, 24):
        with test_ops.cores(cores):
            out = test_ops.call("SimTestMatmul", x=x, y=y, outputs={"product": x.shape})
        np.testing.assert_allclose(out["product"], want, rtol=1e-5, atol=1e-4)


def test_strided_operands_are_made_contiguous_and_written_back(test_ops):
    state, x = rows(6, 96), rows(96, 6)
    view, turned = state[::2, ::2], x.T[::2, ::2]
    want = expected(view, turned, 0.5, offset=3)
    rest = state.copy()
    copy = np.zeros((48, 3), np.float32).T
    out = update(test_ops, view, turned, A_scale=0.5, in_place=True, outputs={"state_copy": copy})
    np.testing.assert_allclose(view, want, rtol=1e-6)
    np.testing.assert_allclose(out["state_copy"], want, rtol=1e-6)
    rest[::2, ::2] = state[::2, ::2]
    np.testing.assert_array_equal(state, rest)


def test_strided_operand_without_auto_contiguous_is_refused(test_ops):
    x = to_bf16(RNG.standard_normal((1, 64, 64)))
    with pytest.raises(AclnnError, match="x is not contiguous.*AutoContiguous") as error:
        test_ops.call("SimTestMatmul", x=x.transpose(0, 2, 1), y=x, outputs={"product": x.shape})
    assert error.value.status == INVALID


def test_empty_tensor_runs_the_tiling(test_ops):
    state = np.zeros((0, 16), np.float32)
    out = update(test_ops, state, state, A_scale=1.0, outputs={"state_copy": (0, 16)})
    assert out["state_copy"].shape == (0, 16)


FAILURES = {
    "required tensor": (dict(x=None), NULLPTR, "x is null but required"),
    "data type": (dict(x=np.zeros((5, 48), np.int32)), INVALID, "x has data type INT32, expected"),
    "state type": (
        dict(state=to_bf16(np.zeros((5, 48)))), INVALID,
        "stateRef has data type BF16, expected FLOAT",
    ),
    "rank": (dict(state=np.zeros((5, 4, 3), np.float32)), TILING, "state has rank 3, expected 2"),
    "mode": (dict(mode="other"), TILING, 'mode is "other", expected plain or shifted'),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES)
def test_bad_calls_name_the_argument_and_leave_the_process_usable(test_ops, case):
    change, status, text = FAILURES[case]
    arguments = {"state": rows(), "x": rows(), "A_scale": 1.0} | change
    with pytest.raises(AclnnError) as error:
        test_ops.call("SimTestRowUpdate", outputs={"state_copy": None}, **arguments)
    assert error.value.status == status
    assert text in error.value.message
    assert error.value.message.startswith("aclnnSimTestRowUpdateGetWorkspaceSize: ")
    state, x = rows(), rows()
    out = update(test_ops, state, x, A_scale=1.0, shifts=[])
    np.testing.assert_allclose(out["state"], state + x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("fault", "text"),
    [(2, "block dim 0"), (3, "asks for 0 bytes of workspace, expected at least")],
)
def test_tiling_results_are_checked(test_ops, fault, text):
    x = to_bf16(np.zeros((2, 64, 64)))
    with pytest.raises(AclnnError, match=text) as error:
        test_ops.call("SimTestMatmul", x=x, y=x, fault=fault, outputs={"product": x.shape})
    assert error.value.status == TILING


def test_a_rule_broken_in_the_kernel_fails_the_call_only(test_ops):
    x = to_bf16(np.zeros((2, 64, 64)))
    with pytest.raises(AclnnError, match="sim_test_matmul") as error:
        test_ops.call("SimTestMatmul", x=x, y=x, fault=1, outputs={"product": x.shape})
    assert error.value.status == RUNTIME
    assert "DataCopy" in error.value.message
    out = test_ops.call("SimTestMatmul", x=x, y=x, outputs={"product": x.shape})
    np.testing.assert_array_equal(out["product"], np.ones(x.shape))


def prepared(lib):
    state = rows()
    return lib.prepare(
        "SimTestRowUpdate", state=state, x=state, A_scale=1.0, outputs={"state_copy": None}
    )


def test_executor_runs_once(test_ops):
    call = prepared(test_ops)
    call.run()
    with pytest.raises(AclnnError, match="executor is not alive: it was already run") as error:
        call.run()
    assert error.value.status == INVALID
    call.close()


def test_executor_misuse(test_ops):
    call = prepared(test_ops)
    null, size = ctypes.c_void_p(None), ctypes.c_uint64(0)
    run = test_ops.function("aclnnSimTestRowUpdate")
    assert run(null, size, null, null) == NULLPTR
    assert "executor is null but required" in test_ops.last_error()
    assert run(null, size, ctypes.c_void_p(0x1234), null) == INVALID
    other = test_ops.function("aclnnSimTestMatmul")
    assert other(null, size, call.executor, null) == INVALID
    assert "executor belongs to aclnnSimTestRowUpdate" in test_ops.last_error()
    call.run()  # still good: the other function did not take it
    destroy = test_ops.function("aclDestroyAclOpExecutor")
    assert destroy(call.executor) == INVALID
    fresh = prepared(test_ops)
    assert destroy(fresh.executor) == 0
    assert destroy(fresh.executor) == INVALID
    assert destroy(null) == NULLPTR


def test_workspace_must_be_what_was_asked_for(test_ops):
    call = prepared(test_ops)
    assert call.workspace_size > 0
    with pytest.raises(AclnnError, match=f"expected at least {call.workspace_size}") as error:
        call.run(workspace_size=call.workspace_size - 1)
    assert error.value.status == INVALID
    call = prepared(test_ops)
    with pytest.raises(AclnnError, match="workspace is null") as error:
        call.run(workspace=np.empty(0, np.uint8))
    assert error.value.status == NULLPTR


def test_the_array_may_be_destroyed_between_the_phases(test_ops):
    state, x = rows(), rows()
    call = test_ops.prepare(
        "SimTestRowUpdate", state=state, x=x, A_scale=1.0, shifts=[7], row_counts=[100],
        outputs={"state_copy": None},
    )  # fmt: skip
    call.close()  # destroys tensors and arrays; the memory behind the tensors lives on
    out = call.run()
    np.testing.assert_allclose(out["state"], expected(state, x, 1.0, offset=107), rtol=1e-6)


def test_null_result_pointers(test_ops):
    phase = test_ops.function("aclnnSimTestMatmulGetWorkspaceSize")
    null = ctypes.c_void_p(None)
    assert phase(null, null, ctypes.c_int64(0), null, null, null) == NULLPTR
    assert "workspaceSize is null but required" in test_ops.last_error()


def test_calls_from_several_threads(test_ops):
    """Two phases on each of four threads at once: results and error texts stay apart."""

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(5):
            state = rng.standard_normal((3, 16)).astype(np.float32)
            out = update(test_ops, state, state, A_scale=float(seed), shifts=[])
            np.testing.assert_allclose(out["state"], (1 + seed) * state, rtol=1e-5, atol=1e-6)
            with pytest.raises(AclnnError, match=f'mode is "m{seed}"'):
                update(test_ops, state, state, A_scale=1.0, mode=f"m{seed}")
        return seed

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0, 1, 2, 3]
