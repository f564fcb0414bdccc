# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Chunk Kimi Delta Attention for MindSpore."""

__version__ = "0.1.0"
