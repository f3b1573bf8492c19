# SPDX-License-Identifier: Apache-2.0
"""`coltrain import` and `coltrain export`: models of ONNX in and out."""

from __future__ import annotations

from pathlib import Path

from coltrain import device
from coltrain._abi import Role
from coltrain.cli import Failure, Parser, check_writable, count
from coltrain.errors import Error
from coltrain.network import Network
from coltrain.onnx import load, save

BUILTIN = ("lenet5", "resnet8", "resnet20", "vgg")
_MOST_BATCH = 65536
_DEVICE = "emu:"
_ANSWER = "logits"
"""Of networks that `coltrain train` makes."""


def described(network: Network) -> str:
    """What a network takes and gives, for people."""
    info = network.graph.info
    lines = [f"{info.nodes} nodes, {info.weights:,} weights, {info.macs:,} products for a batch"]
    for role, what in (("input", "takes"), ("output", "gives")):
        for name, tensor in network.graph.by_role(role).items():
            order = ", NHWC" if len(tensor.shape) == 4 else ""
            lines.append(f"  {what} {name}: {'x'.join(map(str, tensor.shape))}{order}")
    moves = [n.name for n in network.graph.nodes if n.op == "transpose"]
    if moves:
        lines.append(f"  {len(moves)} transpositions move numbers: {', '.join(moves[:5])}{' ...' if len(moves) > 5 else ''}")
    return "\n".join(lines)


def write(network: Network, path: str) -> None:
    """As a file of a network on a device (format 2) if it is called .ctm, else of one that knows no device."""
    if Path(path).suffix != ".ctm":
        network.save(path)
        return
    with device.open(_DEVICE) as emulator, emulator.compile(network) as compiled:
        compiled.save(path)


def is_of_device(path: str) -> bool:
    """Whether a file begins as `coltrain train` writes it; what else is wrong with it is said by who reads it."""
    try:
        with open(path, "rb") as file:
            return file.read(8) == b"COLTRAIN"
    except OSError:
        return False


def read_trained(path: str, batch: int) -> Network:
    """What answers of a network that `coltrain train` has written."""
    with device.open(_DEVICE) as emulator, emulator.load_network(path) as compiled:
        graph, values = compiled.graph, compiled.values()
        if graph.by_role(Role.LABEL):
            if _ANSWER not in graph:
                raise Failure(f"{path}: no tensor is called {_ANSWER}: which is the answer is not known")
            graph = graph.answers(_ANSWER, batch)
        return Network(graph, {name: values[name] for name in graph.by_role(Role.WEIGHT, Role.STATE) if name in values})


def run_import(args: list[str]) -> int:
    """The verb `coltrain import`."""
    p = Parser(
        prog="coltrain import",
        description="Reads a model of ONNX (opset 7 to 17) and writes it as a network of Coltrain.\n"
        "A model that cannot be had is refused with all of its nodes that are to blame.",
        epilog="A FILE.ctm is for coltrain explain, infer and serve-bench.\n\nExample:\n  coltrain import model.onnx -o model.npz",
    )
    p.add_argument("model", metavar="MODEL.onnx", help="the model")
    p.add_argument("-o", "--output", metavar="FILE", help="the network: FILE.npz, or FILE.ctm as coltrain train writes them; MODEL.npz if it is not given")
    p.add_argument("--batch", type=count(1, _MOST_BATCH), metavar="N", help="rows of inputs whose first dimension is open (1)")
    o = p.parse(args)
    output = o.output or str(Path(o.model).with_suffix(".npz"))
    check_writable("--output", output)
    try:
        network = load(o.model, o.batch)
        write(network, output)
    except Error as error:
        raise Failure(str(error)) from error
    print(f"{output}: {described(network)}")
    return 0


def run_export(args: list[str]) -> int:
    """The verb `coltrain export`."""
    p = Parser(
        prog="coltrain export",
        description="Writes a network of Coltrain as a model of ONNX, opset 17. Images are NCHW there.",
        epilog="Example:\n  coltrain export model.npz -o model.onnx",
    )
    p.add_argument("network", metavar="FILE.npz", help=f"what coltrain import or train --model wrote, or {', '.join(BUILTIN)} with initial weights")
    p.add_argument("-o", "--output", metavar="MODEL.onnx", help="the model; FILE.onnx if it is not given")
    p.add_argument("--batch", type=count(1, _MOST_BATCH), metavar="N", help="rows of a network by name, or of one that was trained (1)")
    o = p.parse(args)
    builtin = o.network in BUILTIN
    trained = not builtin and is_of_device(o.network)
    if o.batch and not builtin and not trained:
        raise Failure(f"--batch is for {', '.join(BUILTIN)} and what was trained: this file says by itself how many rows its network takes")
    output = o.output or (f"{o.network}.onnx" if builtin else str(Path(o.network).with_suffix(".onnx")))
    check_writable("--output", output)
    try:
        if builtin:
            network = Network.builtin(o.network, o.batch or 1)
        else:
            network = read_trained(o.network, o.batch or 1) if trained else Network.load(o.network)
        save(network, output)
    except Error as error:
        raise Failure(str(error)) from error
    print(f"{output}: {described(network)}")
    return 0
