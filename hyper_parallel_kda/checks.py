# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Argument checks of every public function, from the stage table.

A wrong argument raises TypeError or ValueError that names the function, the argument, what was
expected and what came. What is specified but not implemented yet raises NotImplementedError that
names the option. Everything is checked before anything is sent to the device.
"""

import math
import numbers
from dataclasses import dataclass

import mindspore as ms

from .stage_table import REQUIRED, HostArraySpec, TensorSpec, ordered_dims

HEAD_DIM = 128
CHUNK_SIZE = 64
FLOAT32_MAX = (2 - 2**-23) * 2.0**127
FLOAT32_MIN = 2.0**-126

FULL_CALL = (
    "npu_chunk_kda(q, k, v, g, beta, scale, layout='BSND' or 'BNSD', safe_gate=True, "
    "use_gate_in_kernel=True, a_log=a_log, dt_bias=dt_bias)"
)

_DTYPE_NAMES = {ms.bfloat16: "bfloat16", ms.float16: "float16", ms.float32: "float32"}


def dtype_name(dtype):
    return _DTYPE_NAMES.get(dtype, str(dtype).lower())


@dataclass
class _Size:
    value: int
    origin: str


class Checker:
    """Collects the sizes of one call's dimensions and reports what does not fit."""

    def __init__(self, function):
        self.function = function
        self.sizes = {}
        self.layout = None  # of the inputs, where the function has such an option
        self.io = None  # dtype of q, k, v and the caches, with the argument that set it

    def value_error(self, name, expected, got):
        raise ValueError(f"{self.function}: {name}: expected {expected}, got {got}")

    def type_error(self, name, expected, got):
        raise TypeError(f"{self.function}: {name}: expected {expected}, got {got}")

    def later(self, option, instead):
        raise NotImplementedError(
            f"{self.function}: {option} is not implemented yet; use {instead}"
        )

    def set_size(self, symbol, value, origin):
        self.sizes[symbol] = _Size(value, origin)

    def size(self, symbol):
        return self.sizes[symbol].value

    def numbers(self):
        return {symbol: size.value for symbol, size in self.sizes.items()}

    # -- attributes -------------------------------------------------------------------------------

    def attribute(self, spec, value):
        """The value of an attribute in the Python type that its C counterpart takes."""
        name = spec.name
        if value is REQUIRED or value is None:
            self.type_error(name, f"a value of type {spec.kind}", None)
        if spec.kind == "bool":
            if not isinstance(value, bool):
                self.type_error(name, "a bool", _describe(value))
        elif spec.kind == "int":
            if isinstance(value, bool) or not isinstance(value, numbers.Integral):
                self.type_error(name, "an int", _describe(value))
            value = int(value)
        elif spec.kind == "float":
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                self.type_error(name, "a float", _describe(value))
            if not isinstance(value, numbers.Integral) and not math.isfinite(value):
                self.value_error(name, "a finite number", value)
            # The kernels hold it in float32: neither infinity nor zero may come of it.
            if not -FLOAT32_MAX <= value <= FLOAT32_MAX or 0 < abs(value) < FLOAT32_MIN:
                self.value_error(name, "a number that float32 can hold", _describe(value))
            value = float(value)
        else:
            if not isinstance(value, str):
                self.type_error(name, f"one of {', '.join(spec.choices)}", _describe(value))
            if value not in spec.choices:
                self.value_error(name, f"one of {', '.join(spec.choices)}", repr(value))
        return value

    def options(self, values):
        """Rules that tie options to each other, and options that come later."""
        get = values.get
        if get("chunk_size", CHUNK_SIZE) != CHUNK_SIZE:
            self.value_error("chunk_size", CHUNK_SIZE, get("chunk_size"))
        if get("epsilon", 1.0) < 0:
            self.value_error("epsilon", "a number >= 0", get("epsilon"))
        if get("safe_gate") and not -5.0 <= get("lower_bound", -5.0) < 0.0:
            self.value_error("lower_bound", "a number in [-5, 0)", get("lower_bound"))
        if get("allow_neg_eigval"):
            if not get("use_beta_sigmoid_in_kernel"):
                self.value_error(
                    "allow_neg_eigval", "False unless use_beta_sigmoid_in_kernel is True", True
                )
            self.later("allow_neg_eigval=True", "allow_neg_eigval=False")
        for name in ("layout", "output_layout", "input_layout"):
            if get(name) in ("NTD", "TND"):
                self.later(f"{name}={get(name)!r}", "'BNSD' or 'BSND'")
        for name in ("cu_seqlens", "chunk_indices"):
            if get(name) is not None:
                self.later(f"{name} (packed sequences)", f"dense input and {name}=None")
        if get("use_gate_in_kernel") is False:
            self.later("use_gate_in_kernel=False", f"the raw gate: {FULL_CALL}")
        if get("safe_gate") is False:
            self.later("safe_gate=False", f"the safe gate: {FULL_CALL}")
        # The scans and the other users of h have both; fwd_prepare and bwd_finalize come later.
        short = self.function.removeprefix("npu_chunk_kda").lstrip("_")
        if get("use_exp2") is False and short in ("", "fwd_prepare", "bwd_finalize"):
            self.later("use_exp2=False", "use_exp2=True")
        if get("state_v_first") and short in ("", "bwd_finalize"):
            self.later("state_v_first=True", "state_v_first=False")
        if get("use_gate_in_kernel") and "a_log" in values and values["a_log"] is None:
            self.value_error("a_log", "a float32 Tensor [Hv], as use_gate_in_kernel=True", None)

    # -- tensors ----------------------------------------------------------------------------------

    def tensor(self, spec, value, values):
        name = spec.name
        if value is None and spec.optional:
            return
        if not isinstance(value, ms.Tensor):
            expected = "a mindspore.Tensor" + (" or None" if spec.optional else "")
            self.type_error(name, expected, _describe(value))
        self._dtype(spec, value)
        layout = values[spec.layout] if spec.layout else "BNSD"
        v_first = spec.state and values.get("state_v_first", False)
        self._shape(name, ordered_dims(spec.dims, layout, v_first), value.shape, spec.flat)

    def _dtype(self, spec, value):
        name, dtype = spec.name, value.dtype
        if spec.dtype == "fp32":
            if dtype != ms.float32:
                self.type_error(name, "float32", dtype_name(dtype))
            return
        if spec.dtype == "io|fp32" and dtype == ms.float32:
            return
        suffix = " or float32" if spec.dtype == "io|fp32" else ""
        if dtype != ms.bfloat16:
            if dtype in (ms.float16, ms.float32):
                self.later(f"{name} of dtype {dtype_name(dtype)}", f"bfloat16{suffix}")
            self.type_error(name, f"bfloat16{suffix}", dtype_name(dtype))
        if self.io is None:
            self.io = (dtype, name)
        elif dtype != self.io[0]:
            expected = f"{dtype_name(self.io[0])} as {self.io[1]}{suffix}"
            self.type_error(name, expected, dtype_name(dtype))

    def _shape(self, name, dims, shape, flat):
        text = "[" + ", ".join(dims) + "]"
        if flat and len(shape) == 1 and len(dims) == 2:
            total = self.size(dims[0]) * self.size(dims[1])
            if shape[0] != total:
                self.value_error(name, f"shape {text} or [{total}]", list(shape))
            return
        if len(shape) != len(dims):
            self.value_error(name, f"shape {text}", list(shape))
        for dim, got in zip(dims, shape, strict=True):
            parts = [self.sizes.get(part) for part in dim.split("+")]
            if None not in parts:
                expected = sum(part.value for part in parts)
                if got != expected:
                    origin = parts[0].origin
                    # Axes in another order than `layout` says show up in the next tensor.
                    hint = f"; layout is {self.layout!r}" if self.layout else ""
                    self.value_error(
                        name, f"shape {text} with {dim} = {expected} ({origin}){hint}", list(shape)
                    )
            elif len(parts) == 1:
                self._new_size(name, dim, got, text, shape)

    def _new_size(self, name, dim, got, text, shape):
        if dim in ("K", "V") and got != HEAD_DIM:
            self.value_error(name, f"shape {text} with {dim} = {HEAD_DIM}", list(shape))
        if dim == "C" and got != CHUNK_SIZE:
            self.value_error(name, f"shape {text} with {dim} = {CHUNK_SIZE}", list(shape))
        least = 0 if dim == "T" else 1
        if got < least:
            self.value_error(name, f"shape {text} with {dim} >= {least}", list(shape))
        self.set_size(dim, got, f"as in {name}")
        if dim == "B":
            self.set_size("N", got, f"the batch size of {name}")
        if dim == "T":
            chunks = -(-got // CHUNK_SIZE)
            self.set_size("Nc", chunks, f"ceil(T / {CHUNK_SIZE}) with T as in {name}")

    def heads(self, grouped):
        """Hv is a multiple of Hk, and the same unless the stage takes `grouped` heads; both are
        known when this is called."""
        if "Hk" not in self.sizes or "Hv" not in self.sizes:
            return
        hk, hv = self.size("Hk"), self.size("Hv")
        if hk > hv or hv % hk:
            raise ValueError(
                f"{self.function}: heads: expected Hv to be a multiple of Hk, got "
                f"Hk = {hk} ({self.sizes['Hk'].origin}), Hv = {hv} ({self.sizes['Hv'].origin})"
            )
        if hk != hv and not grouped:
            self.later(
                f"grouped heads (Hk = {hk} < Hv = {hv})", "equal numbers of heads in q, k and v"
            )


def _describe(value):
    if value is None:
        return "None"
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def check_stage(stage, values, function=None):
    """Checks a stage's arguments; returns them with attributes normalised, and the Checker."""
    checker = Checker(function or stage.function)
    values = dict(values)
    for attr in stage.attrs:
        values[attr.name] = checker.attribute(attr, values[attr.name])
    checker.layout = values.get("layout", values.get("input_layout"))
    checker.set_size("C", CHUNK_SIZE, "the chunk size")
    tensors = [spec for spec in stage.inputs if isinstance(spec, TensorSpec)]
    for spec in tensors:
        if not spec.optional and values[spec.name] is None:
            checker.type_error(spec.name, "a mindspore.Tensor", "None")
    checker.options(values)
    for spec in tensors:
        checker.tensor(spec, values[spec.name], values)
    checker.heads(grouped=stage.name == "bwd_finalize")
    if stage.name == "pre_process_bwd" and checker.size("B") != 1:
        checker.value_error("B", "1 (the summary has no batch axis)", checker.size("B"))
    if stage.name == "merge_fwd_bwd":
        _check_merge(checker, values)
    return values, checker


def _check_merge(checker, values):
    ranks, count, rank = checker.size("R"), values["pre_or_post_num_ranks"], values["rank"]
    if not 0 <= rank < ranks:
        checker.value_error("rank", f"0 <= rank < {ranks} (summaries has {ranks} ranks)", rank)
    limit = rank if values["forward"] else ranks - 1 - rank
    if not 0 <= count <= limit:
        side = "before" if values["forward"] else "after"
        checker.value_error(
            "pre_or_post_num_ranks", f"0 to {limit} ({limit} ranks are {side} {rank})", count
        )
    if not values["state"].is_contiguous():
        checker.value_error("state", "a contiguous Tensor, as it is updated in place", "a view")


def host_arrays(stage, values):
    return [values[spec.name] for spec in stage.inputs if isinstance(spec, HostArraySpec)]
