# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
