# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Chunk Kimi Delta Attention for MindSpore.

``npu_chunk_kda`` is the differentiable op; the nine ``npu_chunk_kda_<stage>`` functions are its
stages, without differentiation and without communication. Importing the package loads neither a
device nor an op library nor MindSpore itself: that happens on first use.
"""

import importlib

__version__ = "0.1.0"

_STAGE_FUNCTIONS = (
    "npu_chunk_kda_fwd_prepare",
    "npu_chunk_kda_pre_process_fwd",
    "npu_chunk_kda_fwd_h",
    "npu_chunk_kda_fwd_finalize",
    "npu_chunk_kda_bwd_prepare",
    "npu_chunk_kda_pre_process_bwd",
    "npu_chunk_kda_bwd_dhu",
    "npu_chunk_kda_bwd_finalize",
    "npu_chunk_kda_merge_fwd_bwd",
)
_MODULE_OF = {
    "npu_chunk_kda": ".chunk_kda",
    **dict.fromkeys(_STAGE_FUNCTIONS[:4], ".forward_stages"),
    **dict.fromkeys(_STAGE_FUNCTIONS[4:], ".backward_stages"),
}

__all__ = ["npu_chunk_kda", *_STAGE_FUNCTIONS]


def __getattr__(name):
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
