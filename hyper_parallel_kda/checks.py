# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Argument checks of every public function, from the stage table and the table of rules.

A wrong argument raises TypeError or ValueError that names the function, the argument, what was
expected and what came. Everything is checked before anything is sent to the device.
"""

import math
import numbers
from dataclasses import dataclass

import mindspore as ms

from . import loader, rules
from .packing import read_bounds, read_pairs
from .rules import CHUNK_SIZE, HEAD_DIM
from .stage_table import LAYOUTS, RANK3_LAYOUTS, REQUIRED, HostArraySpec, TensorSpec, placed_dims

FLOAT32_MAX = (2 - 2**-23) * 2.0**127
FLOAT32_MIN = 2.0**-126

IO_DTYPES = (ms.bfloat16, ms.float16)
WHY_NOT_FLOAT32 = (
    "float32 tiles of a chunk do not fit the 192 KB of a unified buffer beside their operands, and "
    "float32 products run at a quarter of the cube's rate"
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

    def __init__(self, function, stage):
        self.function = function
        self.stage = stage
        self.sizes = {}
        self.layouts = ""  # in words, where the function has such options
        self.input_layout = ""  # that of the inputs
        self.rank3 = False  # tensors with a token axis have no batch axis
        self.bounds = None  # cu_seqlens
        self.is_stretch = False  # whose two entries may bound any stretch of tokens
        self.io = None  # dtype of q, k, v and the caches, with the argument that set it

    def value_error(self, name, expected, got):
        raise ValueError(f"{self.function}: {name}: expected {expected}, got {got}")

    def type_error(self, name, expected, got):
        raise TypeError(f"{self.function}: {name}: expected {expected}, got {got}")

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
            if not -(2**63) <= value < 2**63:
                self.value_error(name, "a number that int64 can hold", _describe(value))
            value = int(value)
        elif spec.kind == "float":
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                self.type_error(name, "a float", _describe(value))
            # The kernels hold it in float32: neither infinity nor zero may come of it. What is not
            # finite already is for the rules.
            exact = isinstance(value, numbers.Rational)  # of any size
            size = abs(value) if exact or math.isfinite(value) else 0
            if size > FLOAT32_MAX or 0 < size < FLOAT32_MIN:
                self.value_error(name, "a number that float32 can hold", _describe(value))
            value = float(value)
        else:
            if not isinstance(value, str):
                self.type_error(name, f"one of {', '.join(spec.choices)}", _describe(value))
            if value not in spec.choices:
                self.value_error(name, f"one of {', '.join(spec.choices)}", repr(value))
        return value

    def rules(self, stage, values, sizes):
        """The rules about values alone, or those that need the sizes of the tensors."""
        call = {**values, **self.numbers()} if sizes else values
        for rule in rules.of(stage, call):
            if rule.needs_sizes == sizes and not rule.holds(call):
                expected = rule.expected if isinstance(rule.expected, str) else rule.expected(call)
                got = rule.got(call) if rule.got else call[rule.argument]
                self.value_error(rule.argument, expected, got)

    # -- layouts and packed sequences -------------------------------------------------------------

    def rank(self, stage, values):
        """Whether the call has a batch axis: its layout says so, or else its first tensor."""
        layouts = {
            attr.name: f"{attr.name} is {values[attr.name]!r}"
            for attr in stage.attrs
            if attr.choices == LAYOUTS
        }
        self.layouts = " and ".join(layouts.values())
        self.input_layout = layouts.get("layout", layouts.get("input_layout", ""))
        if layouts:
            first, *others = layouts
            self.rank3 = values[first] in RANK3_LAYOUTS
            for name in others:
                if (values[name] in RANK3_LAYOUTS) != self.rank3:
                    expected = f"one of {', '.join(self._layouts())} ({first} is {values[first]!r})"
                    self.value_error(name, expected, repr(values[name]))
        elif "T" in stage.inputs[0].dims and isinstance(values[stage.inputs[0].name], ms.Tensor):
            self.rank3 = len(values[stage.inputs[0].name].shape) == 3
        if self.rank3:
            self.set_size("B", 1, "no batch axis")
            self.set_size("N", 1, "no batch axis and no cu_seqlens")

    def packed(self, stage, values):
        """Replaces cu_seqlens by a list of ints, and derives N and Nc."""
        if values.get("cu_seqlens") is None:
            return
        first_only = stage.name == "pre_process_bwd"
        bounds = read_bounds(self, values["cu_seqlens"], first_only)
        self.bounds = values["cu_seqlens"] = bounds
        self.is_stretch = first_only and len(bounds) == 2
        self.set_size("N", len(bounds) - 1, "the sequences of cu_seqlens")
        self.set_size("Nc", sum(bounds.chunk_counts(CHUNK_SIZE)), "the chunks of cu_seqlens")

    def chunk_indices(self, values):
        """The same for chunk_indices, once the last bound is known to be T: who knows how long the
        list would become before."""
        if self.bounds is not None and "chunk_indices" in values:
            pairs = read_pairs(self, values["chunk_indices"], self.bounds, CHUNK_SIZE)
            values["chunk_indices"] = pairs

    def _packed_tokens(self, tokens, origin):
        last = self.bounds[-1]
        if self.is_stretch and last > tokens:
            self.value_error("cu_seqlens", f"its last entry to be at most T = {tokens}", last)
        if not self.is_stretch and last != tokens:
            self.value_error("cu_seqlens", f"its last entry to be T = {tokens} ({origin})", last)

    # -- tensors ----------------------------------------------------------------------------------

    def tensor(self, spec, value, values):
        name = spec.name
        if value is None and spec.optional:
            return
        if not isinstance(value, ms.Tensor):
            expected = "a mindspore.Tensor" + (" or None" if spec.optional else "")
            self.type_error(name, expected, _describe(value))
        self._dtype(spec, value)
        self._shape(name, placed_dims(spec, values, self.rank3), value.shape, spec.flat)

    def _dtype(self, spec, value):
        name, dtype = spec.name, value.dtype
        if spec.dtype == "fp32":
            if dtype != ms.float32:
                self.type_error(name, "float32", dtype_name(dtype))
            return
        or_float = " or float32" if spec.dtype == "io|fp32" else ""
        if or_float and dtype == ms.float32:
            return
        got = dtype_name(dtype)
        if dtype not in IO_DTYPES:
            of_model = dtype == ms.float32 and name in ("q", "k", "v")
            reason = f"; {WHY_NOT_FLOAT32}" if of_model else ""
            self.type_error(name, "bfloat16 or float16" + or_float, got + reason)
        if self.io is None:
            self.io = (dtype, name)
        elif dtype != self.io[0]:
            self.type_error(name, f"{dtype_name(self.io[0])}{or_float} (as {self.io[1]})", got)

    def _shape(self, name, dims, shape, flat):
        """Messages have the numbers first, as the tiling's have, and in brackets how they came."""
        symbols, shape = "[" + ", ".join(dims) + "]", list(shape)
        parts = [[self.sizes.get(part) for part in dim.split("+")] for dim in dims]
        expected = [None if None in sizes else sum(size.value for size in sizes) for sizes in parts]
        if flat and len(dims) == 2:
            if shape in (expected, [math.prod(expected)]):
                return
            text = f"{expected} or [{math.prod(expected)}]"
            self.value_error(name, f"shape {text} ({symbols}, {self._origin(dims[0])})", shape)
        if len(shape) != len(dims) and None in expected:
            hint = "" if "T" not in dims else f"; {self._which_layouts()}"
            self.value_error(name, f"{len(dims)} dimensions ({symbols}{hint})", f"shape {shape}")
        for i, dim in enumerate(dims[: len(shape)]):
            if expected[i] is None:
                self._new_size(name, dim, shape[i], symbols, shape)
                expected[i] = shape[i]
        if shape != expected:
            same_rank = len(shape) == len(dims)
            wrong = [d for d, e, s in zip(dims, expected, shape) if e != s] if same_rank else []
            where = f" with {self._origin(wrong[0])}" if wrong else ""
            self.value_error(name, f"shape {expected} ({symbols}{where})", shape)

    def _layouts(self):
        return [layout for layout in LAYOUTS if (layout in RANK3_LAYOUTS) == self.rank3]

    def _which_layouts(self):
        others = [layout for layout in LAYOUTS if layout not in self._layouts()]
        axis = "a batch axis" if self.rank3 else "no batch axis"
        words = f"as layouts {' and '.join(self._layouts())}; {' and '.join(others)} have {axis}"
        return words + (f"; {self.layouts}" if self.layouts else "")  # which may be a default

    def _origin(self, dim):
        size = self.sizes[dim.split("+")[0]]
        total = sum(self.size(part) for part in dim.split("+"))
        # Axes in another order than the layout says show up in the next tensor.
        hint = f"; {self.input_layout}" if self.input_layout else ""
        return f"{dim} = {total}, {size.origin}{hint}"

    def _new_size(self, name, dim, got, symbols, shape):
        least = 0 if dim == "T" else 1
        if got < least:
            self.value_error(name, f"shape {symbols} with {dim} >= {least}", shape)
        self.set_size(dim, got, f"as in {name}")
        if dim == "B" and self.bounds is not None:
            self.rules(self.stage, {"cu_seqlens": self.bounds}, sizes=True)  # before N is compared
        elif dim == "B":
            self.set_size("N", got, f"the batch size of {name}")
        if dim == "T" and self.bounds is not None:
            self._packed_tokens(got, self.sizes["T"].origin)
        elif dim == "T":
            chunks = -(-got // CHUNK_SIZE)
            self.set_size("Nc", chunks, f"ceil(T / {CHUNK_SIZE}) with T as in {name}")


def _describe(value):
    if value is None:
        return "None"
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def check_stage(stage, values, function=None):
    """Checks a stage's arguments; returns them with attributes normalised, and the Checker."""
    loader.refuse_forked_child()
    checker = Checker(function or stage.function, stage.name)
    values = dict(values)
    for attr in (*stage.attrs, *stage.python_attrs):
        values[attr.name] = checker.attribute(attr, values[attr.name])
    checker.set_size("C", CHUNK_SIZE, "the chunk size")
    for symbol in ("K", "V"):
        checker.set_size(symbol, HEAD_DIM, "the head width")
    tensors = [spec for spec in stage.inputs if isinstance(spec, TensorSpec)]
    for spec in tensors:
        if not spec.optional and values[spec.name] is None:
            checker.type_error(spec.name, "a mindspore.Tensor", "None")
    checker.rules(stage.name, values, sizes=False)
    checker.rank(stage, values)
    checker.packed(stage, values)
    for spec in tensors:
        checker.tensor(spec, values[spec.name], values)
    checker.chunk_indices(values)
    checker.rules(stage.name, values, sizes=True)
    if stage.in_place is not None and not values[stage.in_place].is_contiguous():
        expected = "a contiguous Tensor, as it is updated in place"
        checker.value_error(stage.in_place, expected, "a view")
    return values, checker


def host_arrays(stage, values):
    """An array of nothing, the chunks of empty sequences, is as good as none."""
    arrays = [values[spec.name] for spec in stage.inputs if isinstance(spec, HostArraySpec)]
    return [array or None for array in arrays]
