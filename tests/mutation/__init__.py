# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Mutants of the project's own kernels: what happens when one flag, barrier, hand-over, clear,
buffer or offset is wrong? README.md has the commands and the kinds."""
