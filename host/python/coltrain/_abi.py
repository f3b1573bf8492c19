# SPDX-License-Identifier: Apache-2.0
# Made by scripts/python-abi from the headers in host/include/coltrain: change those, then run `make api`.
# ruff: noqa
"""The C interface: constants, structures and functions of the headers in include/coltrain, whose comments say what they mean."""
from __future__ import annotations

import ctypes
import enum
from typing import Any, Callable

VERSION = "0.1.0"
CT_VERSION_MAJOR = 0
CT_VERSION_MINOR = 1
CT_VERSION_PATCH = 0
CT_FEATURE_HBFP8 = 1
CT_FEATURE_TRAINING = 2
CT_FEATURE_FUNCTIONS = 4
CT_FEATURE_PARITY = 8
CT_FEATURE_REQUESTS = 16
CT_FEATURE_CONVOLUTION = 32
CT_FEATURE_COMPRESSION = 64
CT_NO_CYCLE = 18446744073709551615
CT_MAX_LAYERS = 16
CT_NO_WAIT = 0
CT_FOREVER = -1
CT_MAX_ARGS = 24
CT_JOB_OVERLAP = 1
CT_MAX_COUNTERS = 32
CT_GRAPH_DIMS = 4
CT_GRAPH_MOST_DIM = 16777216
CT_GRAPH_MOST_ELEMENTS = 17179869184
CT_GRAPH_MOST_NODES = 65536
CT_MOST_ACCUMULATED = 65536
CT_REFERENCE_MOST_DOUBLES = 268435456
CT_REFERENCE_MOST_MACS = 68719476736


class ErrorCode(enum.IntEnum):
    """enum ct_error."""

    OK = 0
    ARG = -1
    MEMORY = -2
    DEVICE = -3
    NOT_FOUND = -4
    PERMISSION = -5
    IO = -6
    ABI = -7
    TIMEOUT = -8
    FULL = -9
    NO_SPACE = -10
    UNSUPPORTED = -11
    JOB = -12
    CANCELLED = -13
    FORMAT = -14
    INTERNAL = -15
    CLOSED = -16
    BUSY = -17


class LogLevel(enum.IntEnum):
    """enum ct_log_level."""

    ERROR = 0
    WARNING = 1
    INFO = 2
    DEBUG = 3


class Queue(enum.IntEnum):
    """enum ct_queue."""

    INFERENCE = 0
    TRAINING = 1


class Gradients(enum.IntEnum):
    """enum ct_gradients."""

    NONE = 0
    SET = 1
    ADD = 2


class EventKind(enum.IntEnum):
    """enum ct_event_kind."""

    JOB = 0
    STEP = 1
    PUBLISH = 2
    ANSWER = 3
    REQUEST = 4
    APPLY = 5
    RUN = 6


class Met(enum.IntEnum):
    """enum ct_met."""

    NO = 0
    YES = 1
    UNKNOWN = 2


class Batching(enum.IntEnum):
    """enum ct_batching."""

    NONE = 0
    FIXED = 1
    ADAPTIVE = 2


class Sharing(enum.IntEnum):
    """enum ct_sharing."""

    ROW = 0
    SQUARE = 1


class Rounding(enum.IntEnum):
    """enum ct_rounding."""

    EXACT = 0
    NEAREST = 1


class Policy(enum.IntEnum):
    """enum ct_policy."""

    PRIORITY = 0
    FCFS = 1
    ROUND_ROBIN = 2
    WHOLE_JOB = 3
    SLACK = 4


class Format(enum.IntEnum):
    """enum ct_format."""

    FP32 = 0
    HBFP8 = 1
    HBFP6 = 2
    HBFP4 = 3
    RECOMPUTE = 4
    COMPRESSED = 5


class Role(enum.IntEnum):
    """enum ct_role."""

    INPUT = 0
    LABEL = 1
    WEIGHT = 2
    STATE = 3
    ACTIVATION = 4
    GRADIENT = 5
    OUTPUT = 6


class Initial(enum.IntEnum):
    """enum ct_initial."""

    ZEROS = 0
    ONES = 1
    HE = 2


class ScheduleKind(enum.IntEnum):
    """enum ct_schedule_kind."""

    CONSTANT = 0
    STEP = 1
    COSINE = 2


class Optimiser(enum.IntEnum):
    """enum ct_optimiser."""

    SGD = 0
    ADAM = 1
    ADAMW = 2


class Masks(enum.IntEnum):
    """enum ct_masks."""

    DEFAULT = 0
    ON = 1
    OFF = 2
    STORED = 3


class MemberState(enum.IntEnum):
    """enum ct_member_state."""

    READY = 0
    DIVERGED = 1
    FAILED = 2


CT_LOG_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


CT_LINE_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


CT_FEED_FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)


CT_WATCH_FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class ct_options(ctypes.Structure):
    """struct ct_options."""

    log: Any
    log_arg: int | None
    why: int | None
    why_size: int
    log_level: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("log", CT_LOG_FN),
        ("log_arg", ctypes.c_void_p),
        ("why", ctypes.c_void_p),
        ("why_size", ctypes.c_size_t),
        ("log_level", ctypes.c_int),
        ("reserved", ctypes.c_size_t * 8),
    ]


class ct_info(ctypes.Structure):
    """struct ct_info."""

    uri: bytes
    abi: int
    array_rows: int
    array_cols: int
    vpu_lanes: int
    block: int
    macs_per_cycle: int
    spm_words: int
    spm_bytes: int
    dram_bytes: int
    clock_hz: int
    features: int
    has_clock: bool
    has_schedule: bool
    memory: bytes
    line_rate: int
    reserved: ctypes.Array[ctypes.c_uint32]

    _fields_ = [
        ("uri", ctypes.c_char * 256),
        ("abi", ctypes.c_uint32),
        ("array_rows", ctypes.c_uint32),
        ("array_cols", ctypes.c_uint32),
        ("vpu_lanes", ctypes.c_uint32),
        ("block", ctypes.c_uint32),
        ("macs_per_cycle", ctypes.c_uint32),
        ("spm_words", ctypes.c_uint32),
        ("spm_bytes", ctypes.c_uint64),
        ("dram_bytes", ctypes.c_uint64),
        ("clock_hz", ctypes.c_uint64),
        ("features", ctypes.c_uint32),
        ("has_clock", ctypes.c_bool),
        ("has_schedule", ctypes.c_bool),
        ("memory", ctypes.c_char * 40),
        ("line_rate", ctypes.c_uint64),
        ("reserved", ctypes.c_uint32 * 4),
    ]


class ct_timing(ctypes.Structure):
    """struct ct_timing."""

    cycles: int
    macs: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("cycles", ctypes.c_uint64),
        ("macs", ctypes.c_uint64),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_entry(ctypes.Structure):
    """struct ct_entry."""

    uri: bytes
    text: bytes
    error: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("uri", ctypes.c_char * 256),
        ("text", ctypes.c_char * 256),
        ("error", ctypes.c_int),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_register(ctypes.Structure):
    """struct ct_register."""

    name: bytes
    field: int | None
    value: int
    offset: int
    msb: int
    lsb: int
    text: int | None
    called: bytes
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("name", ctypes.c_char * 24),
        ("field", ctypes.c_void_p),
        ("value", ctypes.c_uint64),
        ("offset", ctypes.c_uint32),
        ("msb", ctypes.c_uint32),
        ("lsb", ctypes.c_uint32),
        ("text", ctypes.c_void_p),
        ("called", ctypes.c_char * 16),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_rates(ctypes.Structure):
    """struct ct_rates."""

    lr: float
    momentum: float
    weight_decay: float
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("lr", ctypes.c_float),
        ("momentum", ctypes.c_float),
        ("weight_decay", ctypes.c_float),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_weights_info(ctypes.Structure):
    """struct ct_weights_info."""

    version: int
    error: int
    steps: int
    bytes: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("version", ctypes.c_uint32),
        ("error", ctypes.c_int),
        ("steps", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("reserved", ctypes.c_size_t * 8),
    ]


class ct_event(ctypes.Structure):
    """struct ct_event."""

    tag: int
    kind: int
    queue: int
    error: int
    code: int
    address: int
    version: int
    rows: int
    jobs: int
    scheduled: int
    arrive: int
    start: int
    end: int
    user: int | None
    server: int | None
    batch: int
    met: int
    deadline: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("tag", ctypes.c_uint64),
        ("kind", ctypes.c_int),
        ("queue", ctypes.c_int),
        ("error", ctypes.c_int),
        ("code", ctypes.c_uint32),
        ("address", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("rows", ctypes.c_uint32),
        ("jobs", ctypes.c_uint32),
        ("scheduled", ctypes.c_uint64),
        ("arrive", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("user", ctypes.c_void_p),
        ("server", ctypes.c_void_p),
        ("batch", ctypes.c_uint32),
        ("met", ctypes.c_int),
        ("deadline", ctypes.c_uint64),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_request(ctypes.Structure):
    """struct ct_request."""

    rows: int | None
    answers: int | None
    row: int
    answer: int
    cycle: int
    user: int | None
    weights: int | None
    count: int
    queue: int
    deadline: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("rows", ctypes.c_void_p),
        ("answers", ctypes.c_void_p),
        ("row", ctypes.c_size_t),
        ("answer", ctypes.c_size_t),
        ("cycle", ctypes.c_uint64),
        ("user", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
        ("queue", ctypes.c_int),
        ("deadline", ctypes.c_uint32),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_serving(ctypes.Structure):
    """struct ct_serving."""

    batching: int
    max_batch: int
    max_wait: int
    margin: int
    watchdog: int
    service: ctypes.Array[ctypes.c_uint32]
    deadline: int
    stream: bool
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("batching", ctypes.c_int),
        ("max_batch", ctypes.c_uint32),
        ("max_wait", ctypes.c_uint32),
        ("margin", ctypes.c_uint32),
        ("watchdog", ctypes.c_uint32),
        ("service", ctypes.c_uint32 * 16),
        ("deadline", ctypes.c_uint32),
        ("stream", ctypes.c_bool),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_job(ctypes.Structure):
    """struct ct_job."""

    program: int | None
    args: ctypes.Array[ctypes.c_uint32]
    version: int
    watchdog: int
    user: int | None
    flags: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("program", ctypes.c_void_p),
        ("args", ctypes.c_uint32 * 24),
        ("version", ctypes.c_uint32),
        ("watchdog", ctypes.c_uint32),
        ("user", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_size_t * 3),
    ]


class ct_shape(ctypes.Structure):
    """struct ct_shape."""

    dims: int
    dim: ctypes.Array[ctypes.c_uint32]

    _fields_ = [
        ("dims", ctypes.c_uint32),
        ("dim", ctypes.c_uint32 * 4),
    ]


class ct_attr(ctypes.Structure):
    """struct ct_attr."""

    name: int | None
    count: int
    value: ctypes.Array[ctypes.c_double]

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
        ("value", ctypes.c_double * 4),
    ]


class ct_node_info(ctypes.Structure):
    """struct ct_node_info."""

    op: int | None
    name: int | None
    inputs: ctypes._Pointer[ctypes.c_int]
    outputs: ctypes._Pointer[ctypes.c_int]
    input_count: int
    output_count: int
    macs: int
    backward: bool
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("op", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("inputs", ctypes.POINTER(ctypes.c_int)),
        ("outputs", ctypes.POINTER(ctypes.c_int)),
        ("input_count", ctypes.c_uint32),
        ("output_count", ctypes.c_uint32),
        ("macs", ctypes.c_uint64),
        ("backward", ctypes.c_bool),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_graph_info(ctypes.Structure):
    """struct ct_graph_info."""

    nodes: int
    tensors: int
    weights: int
    states: int
    macs: int
    checked: bool
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("nodes", ctypes.c_size_t),
        ("tensors", ctypes.c_size_t),
        ("weights", ctypes.c_uint64),
        ("states", ctypes.c_uint64),
        ("macs", ctypes.c_uint64),
        ("checked", ctypes.c_bool),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_schedule(ctypes.Structure):
    """struct ct_schedule."""

    rate: float
    kind: int
    warmup: int
    period: int
    factor: float
    floor: float

    _fields_ = [
        ("rate", ctypes.c_double),
        ("kind", ctypes.c_int),
        ("warmup", ctypes.c_uint32),
        ("period", ctypes.c_uint32),
        ("factor", ctypes.c_double),
        ("floor", ctypes.c_double),
    ]


class ct_value(ctypes.Structure):
    """struct ct_value."""

    tensor: int
    data: ctypes._Pointer[ctypes.c_double]
    count: int

    _fields_ = [
        ("tensor", ctypes.c_int),
        ("data", ctypes.POINTER(ctypes.c_double)),
        ("count", ctypes.c_size_t),
    ]


class ct_network_options(ctypes.Structure):
    """struct ct_network_options."""

    expect: bool
    kernels: bool
    mantissa: int
    seed: int
    like: int | None
    members: int
    shared: bool
    masks: int
    bits: int
    refresh: int
    error: float
    weights_of: int | None
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("expect", ctypes.c_bool),
        ("kernels", ctypes.c_bool),
        ("mantissa", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("like", ctypes.c_void_p),
        ("members", ctypes.c_uint32),
        ("shared", ctypes.c_bool),
        ("masks", ctypes.c_int),
        ("bits", ctypes.c_uint32),
        ("refresh", ctypes.c_uint32),
        ("error", ctypes.c_double),
        ("weights_of", ctypes.c_void_p),
        ("reserved", ctypes.c_size_t * 1),
    ]


class ct_run(ctypes.Structure):
    """struct ct_run."""

    frame: int | None
    weights: int | None
    queue: int
    step: int
    cycle: int
    user: int | None
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("frame", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("queue", ctypes.c_int),
        ("step", ctypes.c_uint64),
        ("cycle", ctypes.c_uint64),
        ("user", ctypes.c_void_p),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_network_info(ctypes.Structure):
    """struct ct_network_info."""

    seed: int
    steps: int
    epochs: int
    weights_bytes: int
    mantissa: int
    jobs: int
    changes: bool
    accumulate: int
    inputs: int
    classes: int
    run_bytes: int
    together: int
    members: int
    frame_bytes: int
    pages: int
    pages_most: int
    error: float
    refresh: int
    bits: int
    masks: int
    continued: bool
    pressed: int

    _fields_ = [
        ("seed", ctypes.c_uint64),
        ("steps", ctypes.c_uint64),
        ("epochs", ctypes.c_uint64),
        ("weights_bytes", ctypes.c_uint64),
        ("mantissa", ctypes.c_uint32),
        ("jobs", ctypes.c_uint32),
        ("changes", ctypes.c_bool),
        ("accumulate", ctypes.c_uint32),
        ("inputs", ctypes.c_uint32),
        ("classes", ctypes.c_uint32),
        ("run_bytes", ctypes.c_uint64),
        ("together", ctypes.c_uint32),
        ("members", ctypes.c_uint32),
        ("frame_bytes", ctypes.c_uint64),
        ("pages", ctypes.c_uint64),
        ("pages_most", ctypes.c_uint64),
        ("error", ctypes.c_double),
        ("refresh", ctypes.c_uint32),
        ("bits", ctypes.c_uint32),
        ("masks", ctypes.c_int),
        ("continued", ctypes.c_bool),
        ("pressed", ctypes.c_uint64),
    ]


class ct_network_stage(ctypes.Structure):
    """struct ct_network_stage."""

    node: int | None
    op: int | None
    backward: bool
    once: bool
    jobs: int
    macs: int
    read: int
    written: int
    rows: int
    cycles: int
    expected: int
    bound: int | None
    commands: int
    runs: int
    beside: int
    round: int
    busy: int
    unit: int | None
    all_expected: int
    all_busy: int
    all_bound: int | None
    all_unit: int | None

    _fields_ = [
        ("node", ctypes.c_void_p),
        ("op", ctypes.c_void_p),
        ("backward", ctypes.c_bool),
        ("once", ctypes.c_bool),
        ("jobs", ctypes.c_uint32),
        ("macs", ctypes.c_uint64),
        ("read", ctypes.c_uint64),
        ("written", ctypes.c_uint64),
        ("rows", ctypes.c_uint64),
        ("cycles", ctypes.c_uint64),
        ("expected", ctypes.c_uint64),
        ("bound", ctypes.c_void_p),
        ("commands", ctypes.c_uint64),
        ("runs", ctypes.c_uint32),
        ("beside", ctypes.c_uint64),
        ("round", ctypes.c_uint32),
        ("busy", ctypes.c_uint64),
        ("unit", ctypes.c_void_p),
        ("all_expected", ctypes.c_uint64),
        ("all_busy", ctypes.c_uint64),
        ("all_bound", ctypes.c_void_p),
        ("all_unit", ctypes.c_void_p),
    ]


class ct_network_kept(ctypes.Structure):
    """struct ct_network_kept."""

    tensor: int | None
    values: int
    bytes: int
    bound: int
    exact: bool
    beside: bool
    padded: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("tensor", ctypes.c_void_p),
        ("values", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("bound", ctypes.c_uint32),
        ("exact", ctypes.c_bool),
        ("beside", ctypes.c_bool),
        ("padded", ctypes.c_uint64),
        ("reserved", ctypes.c_size_t * 3),
    ]


class ct_array_options(ctypes.Structure):
    """struct ct_array_options."""

    ahead: int
    look: int
    apart: bool
    both: bool
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("ahead", ctypes.c_uint32),
        ("look", ctypes.c_uint32),
        ("apart", ctypes.c_bool),
        ("both", ctypes.c_bool),
        ("reserved", ctypes.c_size_t * 5),
    ]


class ct_feed(ctypes.Structure):
    """struct ct_feed."""

    write: Any
    arg: int | None

    _fields_ = [
        ("write", CT_FEED_FN),
        ("arg", ctypes.c_void_p),
    ]


class ct_member_info(ctypes.Structure):
    """struct ct_member_info."""

    number: int
    state: int
    error: int
    runs: int
    ended_by: int
    loss: float
    together: int
    bytes: int
    cycles: int
    user: int | None
    beside: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("number", ctypes.c_uint32),
        ("state", ctypes.c_int),
        ("error", ctypes.c_int),
        ("runs", ctypes.c_uint64),
        ("ended_by", ctypes.c_uint64),
        ("loss", ctypes.c_float),
        ("together", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
        ("cycles", ctypes.c_uint64),
        ("user", ctypes.c_void_p),
        ("beside", ctypes.c_uint64),
        ("reserved", ctypes.c_size_t * 3),
    ]


class ct_member_run(ctypes.Structure):
    """struct ct_member_run."""

    number: int
    run: int
    error: int
    loss: float
    start: int
    end: int
    state: int

    _fields_ = [
        ("number", ctypes.c_uint32),
        ("run", ctypes.c_uint64),
        ("error", ctypes.c_int),
        ("loss", ctypes.c_float),
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("state", ctypes.c_int),
    ]


class ct_watch(ctypes.Structure):
    """struct ct_watch."""

    ended: Any
    arg: int | None

    _fields_ = [
        ("ended", CT_WATCH_FN),
        ("arg", ctypes.c_void_p),
    ]


class ct_array_info(ctypes.Structure):
    """struct ct_array_info."""

    members: int
    ready: int
    programs: int
    batches: int
    runs: int
    bytes: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("members", ctypes.c_size_t),
        ("ready", ctypes.c_size_t),
        ("programs", ctypes.c_size_t),
        ("batches", ctypes.c_uint64),
        ("runs", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_training(ctypes.Structure):
    """struct ct_training."""

    batch: int
    rates: ct_rates
    gradients: bool
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("batch", ctypes.c_uint32),
        ("rates", ct_rates),
        ("gradients", ctypes.c_bool),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_apply(ctypes.Structure):
    """struct ct_apply."""

    rates: ctypes._Pointer[ct_rates]
    scale: float
    user: int | None
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("rates", ctypes.POINTER(ct_rates)),
        ("scale", ctypes.c_float),
        ("user", ctypes.c_void_p),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_step(ctypes.Structure):
    """struct ct_step."""

    batch: int | None
    rates: ctypes._Pointer[ct_rates]
    user: int | None
    gradients: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("batch", ctypes.c_void_p),
        ("rates", ctypes.POINTER(ct_rates)),
        ("user", ctypes.c_void_p),
        ("gradients", ctypes.c_int),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_server_info(ctypes.Structure):
    """struct ct_server_info."""

    serving: ct_serving
    version: int
    pinned_words: int
    waiting: int
    margin: int
    service: ctypes.Array[ctypes.c_uint32]
    least_deadline: int
    safe_deadline: int
    reserved: ctypes.Array[ctypes.c_uint32]

    _fields_ = [
        ("serving", ct_serving),
        ("version", ctypes.c_uint32),
        ("pinned_words", ctypes.c_uint32),
        ("waiting", ctypes.c_size_t),
        ("margin", ctypes.c_uint32),
        ("service", ctypes.c_uint32 * 16),
        ("least_deadline", ctypes.c_uint32),
        ("safe_deadline", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 16),
    ]


class ct_new_tensor(ctypes.Structure):
    """struct ct_new_tensor."""

    name: int | None
    shape: ct_shape
    format: int
    role: int
    initial: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("shape", ct_shape),
        ("format", ctypes.c_int),
        ("role", ctypes.c_int),
        ("initial", ctypes.c_int),
        ("reserved", ctypes.c_size_t * 2),
    ]


class ct_tensor_info(ctypes.Structure):
    """struct ct_tensor_info."""

    name: int | None
    shape: ct_shape
    format: int
    role: int
    initial: int
    node: int
    gradient: int
    becomes: int
    elements: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("shape", ct_shape),
        ("format", ctypes.c_int),
        ("role", ctypes.c_int),
        ("initial", ctypes.c_int),
        ("node", ctypes.c_int),
        ("gradient", ctypes.c_int),
        ("becomes", ctypes.c_int),
        ("elements", ctypes.c_uint64),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_new_node(ctypes.Structure):
    """struct ct_new_node."""

    op: int | None
    name: int | None
    inputs: ctypes._Pointer[ctypes.c_int]
    input_count: int
    outputs: ctypes._Pointer[ctypes.c_int]
    attrs: ctypes._Pointer[ct_attr]
    attr_count: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("op", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("inputs", ctypes.POINTER(ctypes.c_int)),
        ("input_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(ctypes.c_int)),
        ("attrs", ctypes.POINTER(ct_attr)),
        ("attr_count", ctypes.c_size_t),
        ("reserved", ctypes.c_size_t * 2),
    ]


class ct_optimise(ctypes.Structure):
    """struct ct_optimise."""

    optimiser: int
    schedule: ct_schedule
    momentum: float
    weight_decay: float
    beta1: float
    beta2: float
    epsilon: float
    clip: float
    accumulate: int
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("optimiser", ctypes.c_int),
        ("schedule", ct_schedule),
        ("momentum", ctypes.c_double),
        ("weight_decay", ctypes.c_double),
        ("beta1", ctypes.c_double),
        ("beta2", ctypes.c_double),
        ("epsilon", ctypes.c_double),
        ("clip", ctypes.c_double),
        ("accumulate", ctypes.c_uint32),
        ("reserved", ctypes.c_size_t * 3),
    ]


class ct_reference(ctypes.Structure):
    """struct ct_reference."""

    values: ctypes._Pointer[ct_value]
    value_count: int
    seed: int
    step: int
    update: bool
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("values", ctypes.POINTER(ct_value)),
        ("value_count", ctypes.c_size_t),
        ("seed", ctypes.c_uint64),
        ("step", ctypes.c_uint64),
        ("update", ctypes.c_bool),
        ("reserved", ctypes.c_size_t * 4),
    ]


class ct_model_info(ctypes.Structure):
    """struct ct_model_info."""

    layers: int
    widths: ctypes._Pointer[ctypes.c_uint32]
    seed: int
    steps: int
    epochs: int
    macs_per_row: int
    training: ct_training
    prepared: bool
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("layers", ctypes.c_size_t),
        ("widths", ctypes.POINTER(ctypes.c_uint32)),
        ("seed", ctypes.c_uint64),
        ("steps", ctypes.c_uint64),
        ("epochs", ctypes.c_uint64),
        ("macs_per_row", ctypes.c_uint64),
        ("training", ct_training),
        ("prepared", ctypes.c_bool),
        ("reserved", ctypes.c_size_t * 8),
    ]


class ct_members(ctypes.Structure):
    """struct ct_members."""

    first: int
    count: int
    queue: int
    step: int
    steps: ctypes._Pointer[ctypes.c_uint64]
    schedules: ctypes._Pointer[ct_schedule]
    cycle: int
    user: int | None
    updates: ctypes._Pointer[ct_optimise]
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("first", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("queue", ctypes.c_int),
        ("step", ctypes.c_uint64),
        ("steps", ctypes.POINTER(ctypes.c_uint64)),
        ("schedules", ctypes.POINTER(ct_schedule)),
        ("cycle", ctypes.c_uint64),
        ("user", ctypes.c_void_p),
        ("updates", ctypes.POINTER(ct_optimise)),
        ("reserved", ctypes.c_size_t * 3),
    ]


class ct_member(ctypes.Structure):
    """struct ct_member."""

    graph: int | None
    optimise: ctypes._Pointer[ct_optimise]
    file: int | None
    loss: int | None
    feed: ct_feed
    seed: int
    masks: int
    mantissa: int
    user: int | None
    reserved: ctypes.Array[ctypes.c_size_t]

    _fields_ = [
        ("graph", ctypes.c_void_p),
        ("optimise", ctypes.POINTER(ct_optimise)),
        ("file", ctypes.c_void_p),
        ("loss", ctypes.c_void_p),
        ("feed", ct_feed),
        ("seed", ctypes.c_uint64),
        ("masks", ctypes.c_uint64),
        ("mantissa", ctypes.c_uint32),
        ("user", ctypes.c_void_p),
        ("reserved", ctypes.c_size_t * 4),
    ]


class Library:
    """The functions, each with its types; a call lets other Python threads run."""

    ct_version: Callable[..., bytes | None]
    ct_version_number: Callable[..., int]
    ct_strerror: Callable[..., bytes | None]
    ct_last_error: Callable[..., bytes | None]
    ct_open: Callable[..., int]
    ct_open_with: Callable[..., int]
    ct_close: Callable[..., None]
    ct_info: Callable[..., int]
    ct_matmul: Callable[..., int]
    ct_list: Callable[..., int]
    ct_list_free: Callable[..., None]
    ct_scan: Callable[..., int]
    ct_registers: Callable[..., int]
    ct_registers_free: Callable[..., None]
    ct_model_create: Callable[..., int]
    ct_model_free: Callable[..., None]
    ct_rates_check: Callable[..., int]
    ct_model_training: Callable[..., int]
    ct_model_set_rates: Callable[..., int]
    ct_model_step: Callable[..., int]
    ct_model_infer: Callable[..., int]
    ct_model_evaluate: Callable[..., int]
    ct_model_publish: Callable[..., int]
    ct_model_weights: Callable[..., int | None]
    ct_weights_info: Callable[..., int]
    ct_weights_read: Callable[..., int]
    ct_weights_load: Callable[..., int]
    ct_weights_free: Callable[..., None]
    ct_model_info: Callable[..., int]
    ct_model_set_epochs: Callable[..., None]
    ct_model_save: Callable[..., int]
    ct_model_load: Callable[..., int]
    ct_model_get: Callable[..., int]
    ct_model_set: Callable[..., int]
    ct_model_apply: Callable[..., int]
    ct_model_apply_submit: Callable[..., int]
    ct_model_get_gradients: Callable[..., int]
    ct_model_set_gradients: Callable[..., int]
    ct_model_gradient_norm: Callable[..., int]
    ct_clip_scale: Callable[..., int]
    ct_set_timeout: Callable[..., int]
    ct_reap: Callable[..., int]
    ct_wait: Callable[..., int]
    ct_cancel: Callable[..., int]
    ct_reset: Callable[..., int]
    ct_poll_fd: Callable[..., int]
    ct_outstanding: Callable[..., int]
    ct_batch_create: Callable[..., int]
    ct_batch_free: Callable[..., None]
    ct_batch_write: Callable[..., int]
    ct_batch_loss: Callable[..., int]
    ct_model_step_submit: Callable[..., int]
    ct_model_publish_submit: Callable[..., int]
    ct_rows_create: Callable[..., int]
    ct_answers_create: Callable[..., int]
    ct_rows_free: Callable[..., None]
    ct_answers_free: Callable[..., None]
    ct_rows_write: Callable[..., int]
    ct_answers_read: Callable[..., int]
    ct_model_infer_submit: Callable[..., int]
    ct_batching_name: Callable[..., bytes | None]
    ct_batching_by_name: Callable[..., int]
    ct_server_create: Callable[..., int]
    ct_server_free: Callable[..., None]
    ct_server_info: Callable[..., int]
    ct_server_set_weights: Callable[..., int]
    ct_server_push: Callable[..., int]
    ct_mem_alloc: Callable[..., int]
    ct_mem_free: Callable[..., int]
    ct_mem_write: Callable[..., int]
    ct_mem_read: Callable[..., int]
    ct_pack_size: Callable[..., int]
    ct_pack: Callable[..., int]
    ct_pack_transposed: Callable[..., int]
    ct_unpack: Callable[..., int]
    ct_pack_mxint8: Callable[..., int]
    ct_unpack_mxint8: Callable[..., int]
    ct_pack_row_size: Callable[..., int]
    ct_pack_row: Callable[..., int]
    ct_weights_address: Callable[..., int]
    ct_program_load: Callable[..., int]
    ct_program_free: Callable[..., None]
    ct_disassemble: Callable[..., int]
    ct_submit: Callable[..., int]
    ct_submit_at: Callable[..., int]
    ct_reap_until: Callable[..., int]
    ct_code_name: Callable[..., bytes | None]
    ct_code_text: Callable[..., bytes | None]
    ct_now: Callable[..., int]
    ct_policy_name: Callable[..., bytes | None]
    ct_policy_by_name: Callable[..., int]
    ct_set_policy: Callable[..., int]
    ct_counters: Callable[..., int]
    ct_counter_name: Callable[..., bytes | None]
    ct_counter_text: Callable[..., bytes | None]
    ct_graph_create: Callable[..., int]
    ct_graph_free: Callable[..., None]
    ct_graph_error: Callable[..., bytes | None]
    ct_graph_tensor: Callable[..., int]
    ct_graph_result: Callable[..., int]
    ct_graph_set_format: Callable[..., int]
    ct_graph_keep: Callable[..., int]
    ct_graph_becomes: Callable[..., int]
    ct_graph_find: Callable[..., int]
    ct_graph_tensor_info: Callable[..., int]
    ct_graph_add: Callable[..., int]
    ct_graph_reads: Callable[..., int]
    ct_graph_op_name: Callable[..., bytes | None]
    ct_graph_op_attr: Callable[..., bytes | None]
    ct_graph_node_info: Callable[..., int]
    ct_graph_node_attr: Callable[..., int]
    ct_graph_info: Callable[..., int]
    ct_graph_macs: Callable[..., int]
    ct_graph_check: Callable[..., int]
    ct_graph_order: Callable[..., int]
    ct_graph_gradients: Callable[..., int]
    ct_graph_gradient: Callable[..., int]
    ct_graph_fold: Callable[..., int]
    ct_schedule_rate: Callable[..., float]
    ct_graph_optimise: Callable[..., int]
    ct_graph_answers: Callable[..., int]
    ct_graph_builtin: Callable[..., int]
    ct_graph_mlp: Callable[..., int]
    ct_graph_pack: Callable[..., int]
    ct_graph_free_bytes: Callable[..., None]
    ct_graph_unpack: Callable[..., int]
    ct_graph_run_reference: Callable[..., int]
    ct_network_has: Callable[..., int]
    ct_network_create: Callable[..., int]
    ct_network_free: Callable[..., None]
    ct_network_graph: Callable[..., int | None]
    ct_network_draw: Callable[..., int]
    ct_network_write: Callable[..., int]
    ct_network_read: Callable[..., int]
    ct_network_run: Callable[..., int]
    ct_frame_create: Callable[..., int]
    ct_frame_free: Callable[..., None]
    ct_frame_network: Callable[..., int | None]
    ct_frame_write: Callable[..., int]
    ct_frame_read: Callable[..., int]
    ct_network_submit: Callable[..., int]
    ct_network_select: Callable[..., int]
    ct_network_run_members: Callable[..., int]
    ct_network_submit_members: Callable[..., int]
    ct_network_publish_submit: Callable[..., int]
    ct_network_load_weights: Callable[..., int]
    ct_network_server_create: Callable[..., int]
    ct_network_rows_create: Callable[..., int]
    ct_network_answers_create: Callable[..., int]
    ct_network_save: Callable[..., int]
    ct_network_load: Callable[..., int]
    ct_network_restore: Callable[..., int]
    ct_network_info: Callable[..., int]
    ct_network_set_epochs: Callable[..., None]
    ct_network_stages: Callable[..., int]
    ct_network_stage: Callable[..., int]
    ct_network_kept: Callable[..., int]
    ct_network_keep_within: Callable[..., int]
    ct_array_create: Callable[..., int]
    ct_array_free: Callable[..., None]
    ct_array_join: Callable[..., int]
    ct_array_leave: Callable[..., int]
    ct_array_network: Callable[..., int | None]
    ct_array_limit: Callable[..., int]
    ct_array_members: Callable[..., int]
    ct_array_member: Callable[..., int]
    ct_array_run: Callable[..., int]
    ct_array_info: Callable[..., int]

    def __init__(self, library: ctypes.CDLL) -> None:
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)


FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "ct_version": (ctypes.c_char_p, []),
    "ct_version_number": (ctypes.c_uint32, []),
    "ct_strerror": (ctypes.c_char_p, [ctypes.c_int]),
    "ct_last_error": (ctypes.c_char_p, [ctypes.c_void_p]),
    "ct_open": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_open_with": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ct_options), ctypes.POINTER(ctypes.c_void_p)]),
    "ct_close": (None, [ctypes.c_void_p]),
    "ct_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_info)]),
    "ct_matmul": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ct_timing)]),
    "ct_list": (ctypes.c_int, [ctypes.POINTER(ctypes.POINTER(ct_entry)), ctypes.c_void_p]),
    "ct_list_free": (None, [ctypes.POINTER(ct_entry)]),
    "ct_scan": (ctypes.c_int, [ctypes.POINTER(ctypes.POINTER(ct_entry)), ctypes.c_void_p]),
    "ct_registers": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ct_options), ctypes.POINTER(ctypes.POINTER(ct_register)), ctypes.c_void_p]),
    "ct_registers_free": (None, [ctypes.POINTER(ct_register)]),
    "ct_model_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_model_free": (None, [ctypes.c_void_p]),
    "ct_rates_check": (ctypes.c_int, [ctypes.POINTER(ct_rates)]),
    "ct_model_training": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_training)]),
    "ct_model_set_rates": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_rates)]),
    "ct_model_step": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
    "ct_model_infer": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]),
    "ct_model_evaluate": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]),
    "ct_model_publish": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_model_weights": (ctypes.c_void_p, [ctypes.c_void_p]),
    "ct_weights_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_weights_info)]),
    "ct_weights_read": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_weights_load": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_weights_free": (None, [ctypes.c_void_p]),
    "ct_model_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_model_info)]),
    "ct_model_set_epochs": (None, [ctypes.c_void_p, ctypes.c_uint64]),
    "ct_model_save": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "ct_model_load": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_model_get": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
    "ct_model_set": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
    "ct_model_apply": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_apply)]),
    "ct_model_apply_submit": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_apply), ctypes.c_void_p]),
    "ct_model_get_gradients": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]),
    "ct_model_set_gradients": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]),
    "ct_model_gradient_norm": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "ct_clip_scale": (ctypes.c_int, [ctypes.c_float, ctypes.c_float, ctypes.c_float, ctypes.c_void_p]),
    "ct_set_timeout": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "ct_reap": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_event), ctypes.c_int]),
    "ct_wait": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ct_event), ctypes.c_int]),
    "ct_cancel": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64]),
    "ct_reset": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "ct_poll_fd": (ctypes.c_int, [ctypes.c_void_p]),
    "ct_outstanding": (ctypes.c_size_t, [ctypes.c_void_p, ctypes.c_int]),
    "ct_batch_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_batch_free": (None, [ctypes.c_void_p]),
    "ct_batch_write": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
    "ct_batch_loss": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "ct_model_step_submit": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_step), ctypes.c_void_p]),
    "ct_model_publish_submit": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p]),
    "ct_rows_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_answers_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_rows_free": (None, [ctypes.c_void_p]),
    "ct_answers_free": (None, [ctypes.c_void_p]),
    "ct_rows_write": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]),
    "ct_answers_read": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]),
    "ct_model_infer_submit": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_request), ctypes.c_void_p]),
    "ct_batching_name": (ctypes.c_char_p, [ctypes.c_int]),
    "ct_batching_by_name": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_void_p]),
    "ct_server_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ct_serving), ctypes.POINTER(ctypes.c_void_p)]),
    "ct_server_free": (None, [ctypes.c_void_p]),
    "ct_server_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_server_info)]),
    "ct_server_set_weights": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "ct_server_push": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_request), ctypes.c_void_p]),
    "ct_mem_alloc": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]),
    "ct_mem_free": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64]),
    "ct_mem_write": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_mem_read": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_pack_size": (ctypes.c_size_t, [ctypes.c_size_t, ctypes.c_size_t]),
    "ct_pack": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]),
    "ct_pack_transposed": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]),
    "ct_unpack": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]),
    "ct_pack_mxint8": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]),
    "ct_unpack_mxint8": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]),
    "ct_pack_row_size": (ctypes.c_size_t, [ctypes.c_size_t]),
    "ct_pack_row": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]),
    "ct_weights_address": (ctypes.c_uint64, [ctypes.c_void_p]),
    "ct_program_load": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_program_free": (None, [ctypes.c_void_p]),
    "ct_disassemble": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, CT_LINE_FN, ctypes.c_void_p]),
    "ct_submit": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ct_job), ctypes.c_void_p]),
    "ct_submit_at": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ct_job), ctypes.c_uint64, ctypes.c_void_p]),
    "ct_reap_until": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_event), ctypes.c_uint64, ctypes.c_int]),
    "ct_code_name": (ctypes.c_char_p, [ctypes.c_uint32]),
    "ct_code_text": (ctypes.c_char_p, [ctypes.c_uint32]),
    "ct_now": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "ct_policy_name": (ctypes.c_char_p, [ctypes.c_int]),
    "ct_policy_by_name": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_void_p]),
    "ct_set_policy": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "ct_counters": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_counter_name": (ctypes.c_char_p, [ctypes.c_size_t]),
    "ct_counter_text": (ctypes.c_char_p, [ctypes.c_size_t]),
    "ct_graph_create": (ctypes.c_int, [ctypes.POINTER(ctypes.c_void_p)]),
    "ct_graph_free": (None, [ctypes.c_void_p]),
    "ct_graph_error": (ctypes.c_char_p, [ctypes.c_void_p]),
    "ct_graph_tensor": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_new_tensor)]),
    "ct_graph_result": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "ct_graph_set_format": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
    "ct_graph_keep": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
    "ct_graph_becomes": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
    "ct_graph_find": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "ct_graph_tensor_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ct_tensor_info)]),
    "ct_graph_add": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_new_node)]),
    "ct_graph_reads": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]),
    "ct_graph_op_name": (ctypes.c_char_p, [ctypes.c_size_t]),
    "ct_graph_op_attr": (ctypes.c_char_p, [ctypes.c_char_p, ctypes.c_size_t]),
    "ct_graph_node_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ct_node_info)]),
    "ct_graph_node_attr": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.POINTER(ct_attr)]),
    "ct_graph_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_graph_info)]),
    "ct_graph_macs": (ctypes.c_uint64, [ctypes.c_void_p]),
    "ct_graph_check": (ctypes.c_int, [ctypes.c_void_p]),
    "ct_graph_order": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_graph_gradients": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_graph_gradient": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "ct_graph_fold": (ctypes.c_int, [ctypes.c_void_p]),
    "ct_schedule_rate": (ctypes.c_double, [ctypes.POINTER(ct_schedule), ctypes.c_uint64]),
    "ct_graph_optimise": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ct_optimise)]),
    "ct_graph_answers": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]),
    "ct_graph_builtin": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_bool]),
    "ct_graph_mlp": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_bool]),
    "ct_graph_pack": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint8)), ctypes.c_void_p]),
    "ct_graph_free_bytes": (None, [ctypes.c_void_p]),
    "ct_graph_unpack": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_graph_run_reference": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_reference)]),
    "ct_network_has": (ctypes.c_bool, [ctypes.c_char_p]),
    "ct_network_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ct_network_options), ctypes.POINTER(ctypes.c_void_p)]),
    "ct_network_free": (None, [ctypes.c_void_p]),
    "ct_network_graph": (ctypes.c_void_p, [ctypes.c_void_p]),
    "ct_network_draw": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64]),
    "ct_network_write": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_network_read": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_network_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]),
    "ct_frame_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_frame_free": (None, [ctypes.c_void_p]),
    "ct_frame_network": (ctypes.c_void_p, [ctypes.c_void_p]),
    "ct_frame_write": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_frame_read": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]),
    "ct_network_submit": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_run), ctypes.c_void_p]),
    "ct_network_select": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint32]),
    "ct_network_run_members": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_members)]),
    "ct_network_submit_members": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_members), ctypes.c_void_p]),
    "ct_network_publish_submit": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p]),
    "ct_network_load_weights": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_network_server_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ct_serving), ctypes.POINTER(ctypes.c_void_p)]),
    "ct_network_rows_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_network_answers_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "ct_network_save": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "ct_network_load": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ct_network_options), ctypes.POINTER(ctypes.c_void_p)]),
    "ct_network_restore": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "ct_network_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_network_info)]),
    "ct_network_set_epochs": (None, [ctypes.c_void_p, ctypes.c_uint64]),
    "ct_network_stages": (ctypes.c_size_t, [ctypes.c_void_p]),
    "ct_network_stage": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ct_network_stage)]),
    "ct_network_kept": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ct_network_kept)]),
    "ct_network_keep_within": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32]),
    "ct_array_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_array_options), ctypes.POINTER(ctypes.c_void_p)]),
    "ct_array_free": (None, [ctypes.c_void_p]),
    "ct_array_join": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_member), ctypes.c_void_p]),
    "ct_array_leave": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint32]),
    "ct_array_network": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_uint32]),
    "ct_array_limit": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64]),
    "ct_array_members": (ctypes.c_size_t, [ctypes.c_void_p, ctypes.POINTER(ct_member_info), ctypes.c_size_t]),
    "ct_array_member": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ct_member_info)]),
    "ct_array_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ct_watch)]),
    "ct_array_info": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ct_array_info)]),
}
