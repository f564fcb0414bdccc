# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Calls the ACLNN C functions of an op library with NumPy arrays.

    lib = Library.kda()                       # the build tree's library, checked
    out = lib.call("SomeOp", q=q, k=k, scale=0.5, layout="BNSD",
                   outputs={"o": (2, 64, 128), "state": None})
    out["o"]                                  # float32 copy for bf16 outputs: out.f32("o")

* Inputs and attributes are keywords by their names in the op definition. An OPTIONAL input that is
  not given (or None) is absent; an attribute that is not given takes its default. ValueDepend
  inputs take a sequence of ints. bf16 arrays are `ml_dtypes.bfloat16` (support/bfloat16.py);
  strided arrays are passed as strided tensors.
* `outputs` maps a name to a shape, to (shape, dtype), to an array that receives the result, or to
  None for an absent OPTIONAL output. Where the definition allows several dtypes, an output that is
  given as a shape has that of the first input with the same choice. Outputs that are not mentioned
  get the shape and dtype of the operator's own inference. `outputs=None` infers all.
* A Ref operand is an input that is updated: the given array stays untouched, the result holds the
  updated copy (`in_place=True` updates the given array itself).
* Every fresh output is filled with 0xFF bytes (NaN) and lies between guard bytes that are checked;
  the workspace has exactly the size asked for and is filled with 0xFF as well.
* A failure raises AclnnError with `.status` and `.message` (aclGetRecentErrMsg).
* `lib.counters()` is the simulator's instruction counters, `lib.reset_counters()`,
  `lib.set_cores(n)`, `lib.set_threads(n)`; `with lib.cores(3): ...` restores the old value.
"""

import contextlib
import ctypes
import json
import os
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.support import build_tree

BF16 = np.dtype(ml_dtypes.bfloat16)
GUARD = 64

NULLPTR = 161001
INVALID = 161002
TILING = 561002
RUNTIME = 361001
INNER = 561000

_DTYPES = {
    "FLOAT": (0, np.dtype(np.float32)),
    "FLOAT16": (1, np.dtype(np.float16)),
    "INT8": (2, np.dtype(np.int8)),
    "INT32": (3, np.dtype(np.int32)),
    "UINT8": (4, np.dtype(np.uint8)),
    "INT16": (6, np.dtype(np.int16)),
    "UINT16": (7, np.dtype(np.uint16)),
    "UINT32": (8, np.dtype(np.uint32)),
    "INT64": (9, np.dtype(np.int64)),
    "UINT64": (10, np.dtype(np.uint64)),
    "DOUBLE": (11, np.dtype(np.float64)),
    "BOOL": (12, np.dtype(np.bool_)),
    "BF16": (27, BF16),
}
_ACL_TYPE = {dtype: number for number, dtype in _DTYPES.values()}
_C_TYPES = {"double": ctypes.c_double, "int64_t": ctypes.c_int64, "bool": ctypes.c_bool}
_ND = 2


def _environment(name, otherwise):
    """The library itself refuses what is not a number."""
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else otherwise


class AclnnError(RuntimeError):
    """A status other than 0, with the text that the library gave for it."""

    def __init__(self, function, status, message):
        super().__init__(f"{function} returned {status}: {message}")
        self.function = function
        self.status = status
        self.message = message


class Results(dict):
    """Output arrays by name; f32 gives one as float32."""

    def f32(self, name):
        return np.asarray(self[name]).astype(np.float32)


class Library:
    """One op library, loaded on its own (RTLD_LOCAL)."""

    def __init__(self, path):
        self.path = Path(path)
        self.dll = ctypes.CDLL(str(self.path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        self.dll.aclGetRecentErrMsg.restype = ctypes.c_char_p
        self.dll.ascendSimDescribeOps.restype = ctypes.c_char_p
        for name in ("aclCreateTensor", "aclCreateIntArray", "aclCreateFloatArray"):
            getattr(self.dll, name).restype = ctypes.c_void_p
        self.dll.aclCreateBoolArray.restype = ctypes.c_void_p
        self.dll.ascendSimReadCounters.restype = ctypes.c_size_t
        self.dll.ascendSimReadCounters.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        described = self.dll.ascendSimDescribeOps()
        if not described:
            raise RuntimeError(f"{path}: {self.last_error()}")
        self.ops = {op["type"]: op for op in json.loads(described)}
        self._cores = _environment("ASCEND_SIM_CORES", 24)
        self._threads = _environment("ASCEND_SIM_THREADS", os.cpu_count())
        self._seed = _environment("ASCEND_SIM_SCHEDULE", 0)

    @classmethod
    def kda(cls):
        explicit = os.environ.get("HYPER_PARALLEL_KDA_OPAPI")
        return cls(explicit or build_tree.library(build_tree.tested("kda_opapi_sim")))

    # --- control interface ---------------------------------------------------------------------

    def last_error(self):
        text = self.dll.aclGetRecentErrMsg()
        return text.decode() if text else ""

    def set_cores(self, cores):
        if self.dll.ascendSimSetCores(ctypes.c_int(cores)) != 0:
            raise ValueError(f"ascendSimSetCores({cores}) failed")
        self._cores = cores

    def set_threads(self, threads):
        if self.dll.ascendSimSetThreads(ctypes.c_int(threads)) != 0:
            raise ValueError(f"ascendSimSetThreads({threads}) failed")
        self._threads = threads

    def set_schedule(self, seed):
        """0: the plain order of cores; else one made from the seed."""
        if self.dll.ascendSimSetSchedule(ctypes.c_uint64(seed)) != 0:
            raise ValueError(f"ascendSimSetSchedule({seed}) failed")
        self._seed = seed

    @contextlib.contextmanager
    def subnormals(self, keep):
        """Whether subnormal floats are computed with or count as zero, the default."""
        if self.dll.ascendSimSetSubnormals(int(keep)) != 0:
            raise ValueError(f"ascendSimSetSubnormals({keep}) failed")
        try:
            yield self
        finally:
            self.dll.ascendSimSetSubnormals(0)

    @contextlib.contextmanager
    def cores(self, cores):
        before = self._cores
        self.set_cores(cores)
        try:
            yield self
        finally:
            self.set_cores(before)

    @contextlib.contextmanager
    def threads(self, threads):
        before = self._threads
        self.set_threads(threads)
        try:
            yield self
        finally:
            self.set_threads(before)

    @contextlib.contextmanager
    def schedule(self, seed):
        before = self._seed
        self.set_schedule(seed)
        try:
            yield self
        finally:
            self.set_schedule(before)

    def reset_counters(self):
        self.dll.ascendSimResetCounters()

    def counters(self):
        needed = self.dll.ascendSimReadCounters(None, 0)
        buffer = ctypes.create_string_buffer(needed + 1)
        self.dll.ascendSimReadCounters(buffer, needed + 1)
        return json.loads(buffer.value.decode() or "{}")

    # --- calls ---------------------------------------------------------------------------------

    def call(self, op_type, *, outputs=None, in_place=False, **arguments):
        """Runs one operator; see the module's text."""
        call = self.prepare(op_type, outputs=outputs, in_place=in_place, **arguments)
        try:
            return call.run()
        finally:
            call.close()

    def prepare(self, op_type, *, outputs=None, in_place=False, **arguments):
        """The first phase only: a PreparedCall with workspace_size and executor."""
        return PreparedCall(self, self._op(op_type), arguments, dict(outputs or {}), in_place)

    def infer(self, op_type, absent=(), **arguments):
        """{output: (shape, dtype)} by the operator's own InferShape and InferDataType. The OPTIONAL
        outputs named in `absent` are left out of the call."""
        op = self._op(op_type)
        with contextlib.ExitStack() as stack:
            pointers = []
            for param in op["c_params"]:
                if param["role"] == "output":
                    name = op["outputs"][param["index"]]["name"]
                    pointers.append(ctypes.c_void_p(None if name in absent else 1))
                    continue
                value = self._argument(op, param, arguments, stack)
                if isinstance(value, ctypes._SimpleCData) and not isinstance(
                    value, ctypes.c_void_p | ctypes.c_char_p
                ):
                    pointers.append(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p))
                    stack.callback(lambda keep: None, value)
                else:
                    pointers.append(ctypes.cast(value, ctypes.c_void_p))
            array = (ctypes.c_void_p * len(pointers))(*pointers)
            needed = ctypes.c_size_t()
            buffer = ctypes.create_string_buffer(8192)
            status = self.dll.ascendSimInfer(
                op_type.encode(), array, ctypes.c_size_t(len(pointers)), buffer,
                ctypes.c_size_t(len(buffer)), ctypes.byref(needed),
            )  # fmt: skip
            self.check("ascendSimInfer", status)
        inferred = json.loads(buffer.value.decode())
        return {o["name"]: (tuple(o["shape"]), _DTYPES[o["dtype"]][1]) for o in inferred}

    def check(self, function, status):
        if status != 0:
            raise AclnnError(function, status, self.last_error())

    def tensor(self, array, dtype=None):
        """An aclTensor over an array's memory, strided when the array is. Destroy it yourself."""
        dtype = np.dtype(dtype or array.dtype)
        if dtype not in _ACL_TYPE:
            raise TypeError(f"no aclDataType for {dtype}")
        size = array.itemsize
        dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // size for s in array.strides))
        steps = [s // size for s in array.strides]
        reach = 1 + sum((d - 1) * s for d, s in zip(array.shape, steps, strict=True))
        storage = (ctypes.c_int64 * 1)(max(reach, 0) if array.size else 0)
        created = self.dll.aclCreateTensor(
            dims, ctypes.c_uint64(array.ndim), ctypes.c_int(_ACL_TYPE[dtype]), strides,
            ctypes.c_int64(0), ctypes.c_int(_ND), storage, ctypes.c_uint64(1),
            ctypes.c_void_p(array.ctypes.data),
        )  # fmt: skip
        if not created:
            raise AclnnError("aclCreateTensor", INVALID, self.last_error())
        return ctypes.c_void_p(created)

    def function(self, name):
        return getattr(self.dll, name)

    def _op(self, op_type):
        if op_type not in self.ops:
            raise KeyError(f"{self.path} has no operator {op_type}; it has {sorted(self.ops)}")
        return self.ops[op_type]

    def _argument(self, op, param, arguments, stack):
        """The ctypes value of an input or attribute; objects are destroyed by `stack`."""
        definition = op["attrs" if param["role"] == "attr" else "inputs"][param["index"]]
        value = arguments.get(definition["name"])
        if param["role"] == "attr" and value is None:
            value = definition["default"]
            if value is None and definition["required"] and param["type"] in _C_TYPES:
                raise TypeError(f"{op['type']}: attribute {definition['name']} is required")
        if param["type"] in _C_TYPES:
            return _C_TYPES[param["type"]](value)
        if value is None:
            return ctypes.c_void_p(None)
        if param["type"] == "char *":
            return ctypes.c_char_p(value.encode())
        if param["type"].endswith("Array *"):
            return self._array(param["type"], value, stack)
        if isinstance(value, ctypes.c_void_p):
            return value
        tensor = self.tensor(value)
        stack.callback(self.dll.aclDestroyTensor, tensor)
        return tensor

    def _array(self, c_type, value, stack):
        kind, element = {
            "const aclIntArray *": ("Int", ctypes.c_int64),
            "const aclFloatArray *": ("Float", ctypes.c_float),
            "const aclBoolArray *": ("Bool", ctypes.c_bool),
        }[c_type]
        values = [v.item() if hasattr(v, "item") else v for v in value]
        data = (element * max(len(values), 1))(*values)
        create = getattr(self.dll, f"aclCreate{kind}Array")
        array = ctypes.c_void_p(create(data, ctypes.c_uint64(len(values))))
        stack.callback(getattr(self.dll, f"aclDestroy{kind}Array"), array)
        return array


class PreparedCall:
    """Between the two phases. run() may be called once; close() releases everything."""

    def __init__(self, library, op, arguments, outputs, in_place):
        self.library = library
        self.op = op
        self.function = f"aclnn{op['type']}"
        self.stack = contextlib.ExitStack()
        self.results = Results()
        self.guards = []
        self.executor = ctypes.c_void_p()
        self.workspace_size = 0
        known = {d["name"] for group in ("inputs", "attrs") for d in op[group]}
        unknown = (set(arguments) - known) | (set(outputs) - {o["name"] for o in op["outputs"]})
        if unknown:
            raise TypeError(f"{op['type']} has no operand or attribute {sorted(unknown)}")
        try:
            self._prepare(dict(arguments), outputs, in_place)
        except BaseException:
            self.stack.close()
            raise

    def run(self, workspace=None, workspace_size=None):
        if workspace is None:
            workspace = np.full(self.workspace_size, 0xFF, np.uint8)
        size = self.workspace_size if workspace_size is None else workspace_size
        status = self.library.function(self.function)(
            ctypes.c_void_p(workspace.ctypes.data if workspace.size else None),
            ctypes.c_uint64(size), self.executor, ctypes.c_void_p(None),
        )  # fmt: skip
        self.library.check(self.function, status)
        for name, raw in self.guards:
            if not ((raw[:GUARD] == 0xA5).all() and (raw[-GUARD:] == 0xA5).all()):
                raise AssertionError(f"{self.function} wrote outside its output {name}")
        return self.results

    def close(self):
        self.stack.close()

    def _prepare(self, arguments, outputs, in_place):
        self._copy_refs(arguments, in_place)

        inferred = None
        values = []
        for param in self.op["c_params"]:
            if param["role"] != "output":
                values.append(self.library._argument(self.op, param, arguments, self.stack))
                continue
            definition = self.op["outputs"][param["index"]]
            name = definition["name"]
            if name not in outputs and inferred is None:
                inferred = self.library.infer(self.op["type"], **arguments)
            wanted = outputs[name] if name in outputs else inferred[name]
            if self._is_shape(wanted):
                wanted = (wanted, self._dtype_of(definition, arguments))
            values.append(self._output(definition, wanted))
        size = ctypes.c_uint64()
        phase = self.function + "GetWorkspaceSize"
        status = self.library.function(phase)(
            *values, ctypes.byref(size), ctypes.byref(self.executor)
        )
        self.library.check(phase, status)
        self.workspace_size = size.value

    def _copy_refs(self, arguments, in_place):
        for param in self.op["c_params"]:
            if param["role"] != "ref":
                continue
            name = self.op["inputs"][param["index"]]["name"]
            if isinstance(arguments.get(name), np.ndarray):
                if not in_place:
                    arguments[name] = arguments[name].copy()
                self.results[name] = arguments[name]

    def _output(self, definition, wanted):
        if wanted is None:
            return ctypes.c_void_p(None)
        if isinstance(wanted, ctypes.c_void_p):
            return wanted
        if not isinstance(wanted, np.ndarray):
            wanted = self._fresh(definition, wanted)
        self.results[definition["name"]] = wanted
        tensor = self.library.tensor(wanted)
        self.stack.callback(self.library.dll.aclDestroyTensor, tensor)
        return tensor

    @staticmethod
    def _is_shape(wanted):
        return isinstance(wanted, tuple | list) and not (
            len(wanted) == 2 and isinstance(wanted[0], tuple | list)
        )

    def _dtype_of(self, definition, arguments):
        def choice(operand):
            return operand["dtypes"] + operand["dtype_list"]

        names = set(choice(definition))
        if len(names) == 1:
            return _DTYPES[names.pop()][1]
        for operand in self.op["inputs"]:
            value = arguments.get(operand["name"])
            if choice(operand) == choice(definition) and isinstance(value, np.ndarray):
                return value.dtype
        raise TypeError(f"output {definition['name']} may be {names}: give (shape, dtype)")

    def _fresh(self, definition, wanted):
        shape, dtype = tuple(wanted[0]), np.dtype(wanted[1])
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        raw = np.full(size + 2 * GUARD, 0xFF, np.uint8)
        raw[:GUARD] = 0xA5
        raw[GUARD + size :] = 0xA5
        self.guards.append((definition["name"], raw))
        return raw[GUARD : GUARD + size].view(dtype).reshape(shape)


class ShapesOnly:
    """Tensors of any size without memory behind them (an address that nobody may use): for the
    first phase of a call alone."""

    def __init__(self, library):
        self.library = library
        self.tensors = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for tensor in self.tensors:
            self.library.dll.aclDestroyTensor(tensor)

    def tensor(self, shape, dtype):
        dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        made = self.library.dll.aclCreateTensor(
            dims, ctypes.c_uint64(len(shape)), ctypes.c_int(_ACL_TYPE[np.dtype(dtype)]),
            ctypes.c_void_p(None), ctypes.c_int64(0), ctypes.c_int(_ND), dims,
            ctypes.c_uint64(len(shape)), ctypes.c_void_p(512),
        )  # fmt: skip
        if not made:
            raise AclnnError("aclCreateTensor", INVALID, self.library.last_error())
        self.tensors.append(ctypes.c_void_p(made))
        return self.tensors[-1]

    def workspace_size(self, op_type, outputs, **arguments):
        """Of a call whose tensors are given as (shape, dtype)."""

        def made(value):
            is_tensor = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple)
            return self.tensor(*value) if is_tensor else value

        arguments, outputs = (
            {name: made(value) for name, value in group.items()} for group in (arguments, outputs)
        )
        call = self.library.prepare(op_type, outputs=outputs, **arguments)
        try:
            return call.workspace_size
        finally:
            destroyed = self.library.function("aclDestroyAclOpExecutor")(call.executor)
            self.library.check("aclDestroyAclOpExecutor", destroyed)
            call.close()
