#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

root=$PWD
venv=${KDA_VENV:-$root/.venv}
cmake_dir=$root/build/cmake

usage() {
    cat <<'TEXT'
usage: ./build.sh COMMAND [ARGUMENTS]

  demo         build, then train a small KDA language model and print what it learned
  test         lint, then all tests (arguments go to pytest)
  build        create .venv, install the pinned dependencies, build and install the package
  lint         ruff and clang-format
  check-cann   type-check kernels and host files against the toolkit at ASCEND_HOME_PATH
  clean        remove what build and demo made (.venv stays; clean --all removes it too)
  help         this text

Environment: PYTHON a Python 3.11 to use, KDA_VENV where the virtual environment lives (default
.venv), KDA_JOBS compile jobs (default: all hardware threads), CXX the C++17 compiler.
TEXT
}

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() { printf 'build.sh: %s\n' "$*" >&2; exit 1; }

# Only where it can work without asking anybody anything: as root on a system that has apt.
apt_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "apt-get install $*"
    DEBIAN_FRONTEND=noninteractive apt-get update -q >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get install -qy "$@" >/dev/null
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.11 python3 python; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

hash_of() { cat "$@" | cksum; }

is_stamped() { [ -f "$venv/$1" ] && [ "$(cat "$venv/$1")" = "$2" ]; }

ensure_venv() {
    if [ ! -x "$venv/bin/python" ]; then
        local python
        python=$(find_python) ||
            die "Python 3.11 is needed (MindSpore 2.10): install it or set PYTHON=/path/to/python3.11"
        say "virtual environment in $venv with $python"
        "$python" -m venv "$venv" 2>/dev/null || {
            rm -rf "$venv"
            apt_install python3.11-venv && "$python" -m venv "$venv" ||
                die "$python cannot create a virtual environment: install its venv module" \
                    "(Debian, Ubuntu: apt-get install python3.11-venv)"
        }
    fi
    export PATH="$venv/bin:$PATH"
    unset PYTHONHOME
    local stamp
    stamp="$root $(hash_of requirements.txt)"
    if ! is_stamped kda-requirements "$stamp"; then
        say "installing the pinned dependencies"
        "$venv/bin/python" -m pip install --disable-pip-version-check -q -r requirements.txt ||
            die "pip could not install requirements.txt (is a package index reachable?)"
        echo "$stamp" >"$venv/kda-requirements"
    fi
}

ensure_compiler() {
    command -v "${CXX:-c++}" >/dev/null || command -v g++ >/dev/null ||
        die "a C++17 compiler is needed: install g++, or set CXX"
    local header
    header=$("$venv/bin/python" -c \
        'import sysconfig; print(sysconfig.get_path("include") + "/Python.h")')
    [ -f "$header" ] || apt_install python3.11-dev ||
        die "$header is missing: install the development files of this Python" \
            "(Debian, Ubuntu: apt-get install python3.11-dev)"
}

build() {
    ensure_venv
    ensure_compiler
    say "building"
    export KDA_CMAKE_BUILD_DIR=$cmake_dir
    # A tree configured for another environment holds another MindSpore's headers.
    grep -qsF "Python_EXECUTABLE:UNINITIALIZED=$venv/bin/python" "$cmake_dir/CMakeCache.txt" ||
        grep -qsF "Python_EXECUTABLE:FILEPATH=$venv/bin/python" "$cmake_dir/CMakeCache.txt" ||
        rm -rf "$cmake_dir"
    if [ ! -f "$cmake_dir/build.ninja" ]; then
        cmake -S . -B "$cmake_dir" -G Ninja -DKDA_BUILD_BRIDGE=ON \
            -DPython_EXECUTABLE="$venv/bin/python" >"$root/build/configure.log" 2>&1 ||
            { cat "$root/build/configure.log" >&2; die "cmake could not configure"; }
    fi
    cmake --build "$cmake_dir" --parallel "${KDA_JOBS:-$(nproc)}"
    cmake --install "$cmake_dir" --prefix "$root" --component python >/dev/null
    local stamp
    # compat: a path and not an import hook. A script beside the clone would find the clone's folder
    # before a hook, as a package of nothing.
    stamp="$root compat $(hash_of pyproject.toml setup.py)"
    if ! is_stamped kda-package "$stamp"; then
        say "installing the package"
        "$venv/bin/python" -m pip install --disable-pip-version-check -q --no-build-isolation \
            --no-deps --config-settings editable_mode=compat -e .
        echo "$stamp" >"$venv/kda-package"
    fi
}

cpp_files() {
    git ls-files '*.cpp' '*.h' 2>/dev/null || find . -path ./build -prune -o \
        \( -name '*.cpp' -o -name '*.h' \) -print
}

lint() {
    ensure_venv
    say "lint"
    "$venv/bin/ruff" check .
    "$venv/bin/ruff" format --check .
    cpp_files | xargs -r "$venv/bin/clang-format" --dry-run --Werror
}

command=${1:-help}
[ $# -gt 0 ] && shift
mkdir -p "$root/build"
case $command in
    build) build ;;
    lint) lint ;;
    test)
        lint
        build
        say "tests"
        exec "$venv/bin/python" -m pytest "$@"
        ;;
    demo)
        build
        say "demo"
        exec "$venv/bin/python" examples/01_train_char_lm/train.py "$@"
        ;;
    check-cann)
        ensure_venv
        exec "$venv/bin/python" tools/check_cann.py "$@"
        ;;
    clean)
        rm -rf build out dist ./*.egg-info hyper_parallel_kda/_bridge*.so hyper_parallel_kda/lib \
            hyper_parallel_kda/_build_info.json .pytest_cache .ruff_cache .hypothesis
        find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
        [ "${1:-}" != --all ] || rm -rf "$venv"
        ;;
    help | -h | --help) usage ;;
    *)
        usage >&2
        die "unknown command: $command"
        ;;
esac
