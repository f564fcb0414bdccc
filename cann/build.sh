#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    cat <<'TEXT'
usage: cann/build.sh [--stage-only] [COMPUTE_UNIT]

Builds the op package with the CANN toolkit at ASCEND_HOME_PATH and puts it where the Python
package looks for it (hyper_parallel_kda/op_package). COMPUTE_UNIT: ascend910b (default) or
ascend910_93. --stage-only makes the project folder and stops. KDA_JOBS: compile jobs (default: all
hardware threads); KDA_CANN_BUILD_DIR: where project folders go (default build/cann).
TEXT
}

die() { printf 'cann/build.sh: %s\n' "$*" >&2; exit 1; }

stage_only=
unit=ascend910b
for argument in "$@"; do
    case $argument in
        --stage-only) stage_only=1 ;;
        ascend910b | ascend910_93) unit=$argument ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; die "unknown argument $argument" ;;
    esac
done

[ -n "${ASCEND_HOME_PATH:-}" ] || die "ASCEND_HOME_PATH is not set: source the toolkit's set_env.sh"
template=$ASCEND_HOME_PATH/tools/op_project_templates/ascendc/customize
[ -d "$template/cmake" ] || die "no op project template in $template (CANN 8.1 or later is needed)"

# CANN's functions take everything from one folder, so the project is assembled there.
project=${KDA_CANN_BUILD_DIR:-$root/build/cann}/$unit
rm -rf "$project"
mkdir -p "$project"
cp -r "$template/cmake" "$template/scripts" "$project/"
cp "$root"/cann/CMakeLists.txt "$root"/cann/CMakePresets.json "$root"/cann/ops.cmake "$project/"
cp -r "$root/op_host" "$root/op_kernel" "$project/"
cp "$root/cann/op_host/CMakeLists.txt" "$project/op_host/"
cp "$root/cann/op_kernel/CMakeLists.txt" "$project/op_kernel/"
echo "project in $project"
[ -z "$stage_only" ] || exit 0

jobs=${KDA_JOBS:-$(nproc)}
cd "$project"
cmake --preset "$unit"
cmake --build build_out --target binary -j"$jobs"
cmake --build build_out --target package -j"$jobs"

# The package installs into vendors/<vendor>; the Python package wants that folder's content.
installer=$(find build_out -maxdepth 1 -name 'hyper_parallel_kda_opp_*.run' | head -n 1)
[ -n "$installer" ] || die "the build made no hyper_parallel_kda_opp_*.run in $project/build_out"
bash "$installer" --quiet --install-path="$project/installed"
rm -rf "$root/hyper_parallel_kda/op_package"
cp -r "$project/installed/vendors/hyper_parallel_kda" "$root/hyper_parallel_kda/op_package"
echo "op package in $root/hyper_parallel_kda/op_package; before a run:"
package=$root/hyper_parallel_kda/op_package
echo "export ASCEND_CUSTOM_OPP_PATH=$package\${ASCEND_CUSTOM_OPP_PATH:+:\$ASCEND_CUSTOM_OPP_PATH}"
