# SPDX-License-Identifier: Apache-2.0
"""Coltrain from Python: serve neural networks on a device and train them in its idle cycles.

    import coltrain

    with coltrain.open("emu:") as device:
        c = device.matmul(a, b)

Arrays are NumPy's, or any that DLPack can read; what is FP32 in C order is used where it lies. Sizes count elements unless they are
called bytes, timeouts are seconds, times of a device are cycles of its clock. What the library refuses is raised as an
:class:`Error` with its sentence. docs/python.md is a tour; the modules mirror coltrain/coltrain.h and coltrain/graph.h, which
have the whole contract.
"""

import importlib.util
import typing

from ._abi import VERSION as __version__

if not typing.TYPE_CHECKING and importlib.util.find_spec("numpy") is None:
    # The verbs of the command are in this package, too, and say by themselves what they need.
    def __getattr__(name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModuleNotFoundError(f"coltrain.{name} needs NumPy: install Debian's package python3-numpy, or numpy by pip")

else:
    from ._abi import (
        Batching,
        ErrorCode,
        EventKind,
        Format,
        Gradients,
        Initial,
        LogLevel,
        Masks,
        MemberState,
        Met,
        Optimiser,
        Policy,
        Queue,
        Role,
        Rounding,
        ScheduleKind,
        Sharing,
    )
    from ._arrays import Array as ArrayLike
    from ._arrays import SupportsDLPack
    from ._lib import lib, text_of
    from .array import Array, ArrayInfo, Member, MemberInfo, MemberRun
    from .compiled import Compiled, CompiledInfo, Frame, Kept, Stage, has_kernel
    from .data import Dataset, load_dataset
    from .device import Device, Entry, Feature, Info, Register, Timing, counter_texts, devices, open, policy_name, registers, scan
    from .errors import (
        AbiError,
        ArgumentError,
        BusyError,
        CancelledError,
        ClosedError,
        DeviceError,
        Error,
        FileError,
        FormatError,
        FullError,
        InternalError,
        JobError,
        NoSpaceError,
        NotFoundError,
        OutOfMemoryError,
        PermissionDeniedError,
        TimeoutError,
        UnsupportedError,
    )
    from .events import Event, Future, code_name, code_text
    from .graph import Graph, GraphInfo, Node, Schedule, Tensor, TensorInfo, Update, operator_attributes, operators
    from .model import Answers, Batch, Layer, LayerGradients, Model, ModelInfo, Rates, Rows, Weights, WeightsInfo, clip_scale
    from .network import Network, load_arrays, save_arrays
    from .program import Buffer, Program, disassemble, pack, pack_mxint8, pack_row, unpack, unpack_mxint8
    from .server import Server, ServerInfo, batching_name


    def library_version() -> str:
        """The version of the C library that runs, such as "0.1.0"."""
        return text_of(lib.ct_version()) or ""


__all__ = [
    "AbiError",
    "Answers",
    "ArgumentError",
    "Array",
    "ArrayInfo",
    "ArrayLike",
    "Batch",
    "Batching",
    "Buffer",
    "BusyError",
    "CancelledError",
    "ClosedError",
    "Compiled",
    "CompiledInfo",
    "Dataset",
    "Device",
    "DeviceError",
    "Entry",
    "Error",
    "ErrorCode",
    "Event",
    "EventKind",
    "Feature",
    "FileError",
    "Format",
    "FormatError",
    "Frame",
    "FullError",
    "Future",
    "Gradients",
    "Graph",
    "GraphInfo",
    "Info",
    "Initial",
    "InternalError",
    "JobError",
    "Layer",
    "LayerGradients",
    "Kept",
    "LogLevel",
    "Masks",
    "Member",
    "MemberInfo",
    "MemberRun",
    "MemberState",
    "Met",
    "Model",
    "ModelInfo",
    "Network",
    "NoSpaceError",
    "Node",
    "NotFoundError",
    "Optimiser",
    "OutOfMemoryError",
    "PermissionDeniedError",
    "Policy",
    "Program",
    "Queue",
    "Rates",
    "Register",
    "Role",
    "Rounding",
    "Rows",
    "Schedule",
    "ScheduleKind",
    "Server",
    "ServerInfo",
    "Sharing",
    "Stage",
    "SupportsDLPack",
    "Tensor",
    "TensorInfo",
    "TimeoutError",
    "Timing",
    "UnsupportedError",
    "Update",
    "Weights",
    "WeightsInfo",
    "__version__",
    "batching_name",
    "clip_scale",
    "code_name",
    "code_text",
    "counter_texts",
    "devices",
    "disassemble",
    "has_kernel",
    "library_version",
    "load_arrays",
    "load_dataset",
    "open",
    "operator_attributes",
    "operators",
    "pack",
    "pack_mxint8",
    "pack_row",
    "policy_name",
    "registers",
    "save_arrays",
    "scan",
    "unpack",
    "unpack_mxint8",
]
