# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
# The operators of the package: one op_host and one op_kernel file of this name each.
set(KDA_OPS
  chunk_kda_bwd_dhu
  chunk_kda_bwd_finalize
  chunk_kda_bwd_prepare
  chunk_kda_fwd_finalize
  chunk_kda_fwd_h
  chunk_kda_fwd_prepare
  chunk_kda_merge_fwd_bwd
  chunk_kda_pre_process_bwd
  chunk_kda_pre_process_fwd)
