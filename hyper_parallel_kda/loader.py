# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Which op library a call uses, and the bridge to it. Nothing is loaded before the first call."""

import importlib
import json
import os
from pathlib import Path

OPAPI_VARIABLE = "HYPER_PARALLEL_KDA_OPAPI"
CUSTOM_OPP_VARIABLE = "ASCEND_CUSTOM_OPP_PATH"
PACKAGE = Path(__file__).resolve().parent
SIMULATOR_LIBRARY = PACKAGE / "lib" / "libkda_opapi_sim.so"
ASCEND_PACKAGE = PACKAGE / "op_package"  # cann/build.sh puts CANN's vendor folder here
ASCEND_LIBRARY = ASCEND_PACKAGE / "op_api" / "lib" / "libcust_opapi.so"
BUILD_INFO = PACKAGE / "_build_info.json"

_REBUILD = "Build it with ./build.sh build, or install the package again with pip."

_bridge = None
_bridge_pid = None  # the process whose MindSpore the bridge calls


def is_ascend():
    """True when MindSpore's current device target is an Ascend NPU."""
    import mindspore

    return mindspore.get_current_device().device_target == "Ascend"


def op_library_path():
    """Absolute path of the op library for the next call; RuntimeError when there is none."""
    return _library_for(is_ascend())


def choose_library():
    """The op library for the next call and whether that call runs on an NPU.

    Both are decided anew for each call, so correcting the environment variable is enough after an
    error.
    """
    on_ascend = is_ascend()
    path = _library_for(on_ascend)
    if on_ascend and bridge().has_symbol(path, "ascendSimSetThreads"):
        # The simulator works on host memory: an NPU's pointers would crash the process in it.
        raise RuntimeError(
            f"{path} is the CPU simulator, but MindSpore's device target is Ascend. Unset "
            f"{OPAPI_VARIABLE}, or call mindspore.set_device('CPU')."
        )
    return path, on_ascend


def _library_for(on_ascend):
    explicit = os.environ.get(OPAPI_VARIABLE)
    if explicit:
        path = Path(explicit).expanduser().absolute()
        if not path.is_file():
            problem = "this is not a file" if path.exists() else "there is no such file"
            raise RuntimeError(
                f"{OPAPI_VARIABLE}={explicit}: {problem}. Let it name an op library, "
                "or unset it to use the library that belongs to the package."
            )
        return str(path)
    if on_ascend:
        if not ASCEND_LIBRARY.is_file():
            raise RuntimeError(
                f"no op package for Ascend at {ASCEND_LIBRARY}. Build it with cann/build.sh and a "
                f"CANN toolkit, or let {OPAPI_VARIABLE} name its libcust_opapi.so."
            )
        _announce_op_package()
        return str(ASCEND_LIBRARY)
    if not SIMULATOR_LIBRARY.is_file():
        raise RuntimeError(f"the simulator library {SIMULATOR_LIBRARY} is missing. {_REBUILD}")
    return str(SIMULATOR_LIBRARY)


def _announce_op_package():
    """CANN finds the kernel binaries and tilings of an op package through this variable."""
    known = os.environ.get(CUSTOM_OPP_VARIABLE, "").split(":")
    if str(ASCEND_PACKAGE) not in known:
        paths = [str(ASCEND_PACKAGE), *filter(None, known)]
        os.environ[CUSTOM_OPP_VARIABLE] = ":".join(paths)


def _check_version():
    import mindspore

    try:
        built_for = json.loads(BUILD_INFO.read_text())["mindspore"]
    except (OSError, ValueError, KeyError) as error:
        raise RuntimeError(
            f"{BUILD_INFO} is missing or damaged, so the bridge is not built. {_REBUILD}"
        ) from error
    if mindspore.__version__ != built_for:
        raise RuntimeError(
            f"the bridge of hyper_parallel_kda was built for MindSpore {built_for}, but this "
            f"process runs MindSpore {mindspore.__version__}, and MindSpore's C++ interface "
            f"changes between versions. {_REBUILD}"
        )


def refuse_forked_child():
    """fork copies none of MindSpore's threads: a child would wait for them for ever, if only for a
    tensor's dtype. So this comes before all checks."""
    if _bridge_pid not in (None, os.getpid()):
        raise RuntimeError(
            f"process {os.getpid()} was forked from process {_bridge_pid} after the first call of "
            "hyper_parallel_kda, and MindSpore does not run in such a child. Start processes with "
            "multiprocessing.get_context('spawn'), or fork before MindSpore has run anything."
        )


def bridge():
    """The extension module, after a check of the MindSpore version it was built for."""
    global _bridge, _bridge_pid
    if _bridge is None:
        _check_version()
        try:
            _bridge = importlib.import_module("._bridge", __package__)
        except ImportError as error:
            raise RuntimeError(
                f"the bridge of hyper_parallel_kda cannot be loaded: {error}. {_REBUILD}"
            ) from error
        _bridge_pid = os.getpid()
    refuse_forked_child()
    return _bridge
