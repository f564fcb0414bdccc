# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The public Python API on MindSpore tensors, fed from and read back as head-major NumPy arrays."""

import mindspore as ms
import numpy as np
from mindspore import Tensor

import hyper_parallel_kda as kda
from hyper_parallel_kda.stage_table import RANK3_LAYOUTS
from tests.support import reference

GRADS = ("dq", "dk", "dv", "dg", "dbeta", "da_log", "ddt_bias", "dh0")
TENSORS = ("q", "k", "v", "g", "beta", "a_log", "dt_bias", "initial_state")
PER_TOKEN = ("q", "k", "v", "g", "beta")


def tensor(x, dtype=None):
    """A MindSpore tensor; bf16 goes through float32 because NumPy has no bf16 of its own."""
    if x is None:
        return None
    out = Tensor(np.ascontiguousarray(x, np.float32))
    return out if dtype is None else out.astype(dtype)


def array(x):
    """A float64 NumPy array of a MindSpore tensor of any float dtype."""
    return None if x is None else x.astype(ms.float32).asnumpy().astype(np.float64)


def gate_options():
    """The gate that the kernels have: the raw safe gate, activated in the kernel."""
    return {"safe_gate": True, "use_gate_in_kernel": True, "lower_bound": -5.0}


def output_layout(layout):
    """Of the output, for any layout of the inputs."""
    return "TND" if layout in RANK3_LAYOUTS else "BSND"


def tensors(x, layout="BSND", gate_dtype=None, beta_dtype=None):
    """The input tensors of an inputs.Inputs by name: in its io type, unless the gate or beta has
    another. beta that the io type cannot hold stays fp32."""
    raw_beta = bool(x.options.get("use_beta_sigmoid_in_kernel"))
    io = getattr(ms, x.io.name)
    beta_dtype = beta_dtype or (io if raw_beta else ms.float32)
    dtypes = dict(q=io, k=io, v=io, g=gate_dtype or io, beta=beta_dtype)
    out = {}
    for name in TENSORS:
        value = getattr(x, name)
        if name in PER_TOKEN:
            value = reference.from_head_major(value, layout)
        out[name] = tensor(value, dtypes.get(name))
    return out


def call(x, named, layout="BSND", **overrides):
    """npu_chunk_kda on the named tensors."""
    options = {
        "cu_seqlens": x.cu_seqlens,
        "output_final_state": True,
        **gate_options(),
        **x.options,
        **overrides,
    }
    return kda.npu_chunk_kda(
        named["q"],
        named["k"],
        named["v"],
        named["g"],
        named["beta"],
        x.scale,
        layout=layout,
        a_log=named["a_log"],
        dt_bias=named["dt_bias"],
        initial_state=named["initial_state"],
        **options,
    )


def forward(x, layout="BSND", **overrides):
    """output (head-major) and final_state as arrays."""
    output, state = call(x, tensors(x, layout), layout, **overrides)
    return reference.to_head_major(array(output), output_layout(layout)), array(state)


def results(x, layout="BSND", **overrides):
    """output, final_state and every gradient of an inputs.Inputs by name."""
    named = tensors(
        x, layout, **{k: overrides.pop(k) for k in ("gate_dtype", "beta_dtype") if k in overrides}
    )
    names = [n for n in TENSORS if named[n] is not None]
    d_o = None
    if x.d_o is not None:
        d_o = tensor(reference.from_head_major(x.d_o, output_layout(layout)))
    dht = tensor(x.dht)

    def loss(*values):
        output, state = call(
            x, {**named, **dict(zip(names, values, strict=True))}, layout, **overrides
        )
        total = 0.0
        if d_o is not None:
            total = total + (output.astype(ms.float32) * d_o).sum()
        if dht is not None:
            total = total + (state * dht).sum()
        return total, output, state

    run = ms.value_and_grad(loss, grad_position=tuple(range(len(names))), has_aux=True)
    (_, output, state), grads = run(*[named[n] for n in names])
    by_name = dict(zip(names, grads, strict=True))
    output = reference.to_head_major(array(output), output_layout(layout))
    out = {"output": output, "final_state": array(state)}
    for name, grad in zip(TENSORS, GRADS, strict=True):
        value = by_name.get(name)
        if value is not None and value.dtype != named[name].dtype:
            raise AssertionError(f"{grad}: dtype {value.dtype}, expected {named[name].dtype}")
        value = array(value)
        if value is not None and name in PER_TOKEN:
            value = reference.to_head_major(value, layout)
        out[grad] = value
    return out
