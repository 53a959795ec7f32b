"""Lines of the host function between launches: allocations, copies, fetched scalars, loops and decisions."""

from __future__ import annotations

from cudaperf_agent.codegen.emit import Emitter
from cudaperf_agent.codegen.printer import INDENT, Printer, spelled
from cudaperf_agent.codegen.steps import Fetch, HostBranch, HostLoop
from cudaperf_agent.tasks import ir


def host_statement(emitter: Emitter, node: ir.Stmt, depth: int) -> list[str]:
    """A statement of the host, with allocations and copies as calls on the stream."""
    pad, printer = INDENT * depth, Printer(emitter.plan.symbols)
    if isinstance(node, ir.Declare) and node.dims:
        kind, count = spelled(node.type), " * ".join(f"(long long)({printer.expr(d)})" for d in node.dims)
        lines = [f"{pad}{kind} *{node.name} = scratch.get<{kind}>({count});", *_checked(depth)]
        if node.values is not None:
            lines.append(f"{pad}cudaMemsetAsync({node.name}, 0, ({count}) * sizeof({kind}), stream);")
        return lines
    if isinstance(node, ir.Allocate):
        kind, count = spelled(node.type), printer.expr(node.count)
        declares = f"{kind} *" if node.declares else ""
        lines = [f"{pad}{declares}{node.name} = scratch.get<{kind}>((long long)({count}));", *_checked(depth)]
        if node.zero:
            lines += [
                f"{pad}if ((long long)({count}) > 0)",
                f"{pad}{INDENT}cudaMemsetAsync({node.name}, 0, (size_t)({count}) * sizeof({kind}), stream);",
            ]
        return lines
    if isinstance(node, ir.Release):
        return []
    if isinstance(node, ir.Copy | ir.Fill):
        return _bulk(emitter, node, depth)
    return printer.statement(node, depth)


def _checked(depth: int) -> list[str]:
    pad = INDENT * depth
    return [f"{pad}if (scratch.status != cudaSuccess)", f"{pad}{INDENT}return scratch.status;"]


def _bulk(emitter: Emitter, node: ir.Copy | ir.Fill, depth: int) -> list[str]:
    pad, printer = INDENT * depth, Printer(emitter.plan.symbols)
    size = f"(size_t)({printer.expr(node.count)}) * sizeof({spelled(node.target.type)})"
    target = printer.expr(node.target)
    if isinstance(node, ir.Copy):
        call = f"cudaMemcpyAsync({target}, {printer.expr(node.source)}, {size}, cudaMemcpyDeviceToDevice, stream);"
    else:
        call = f"cudaMemsetAsync({target}, {printer.expr(node.byte)}, {size}, stream);"
    return [f"{pad}if ((long long)({printer.expr(node.count)}) > 0)", f"{pad}{INDENT}{call}"]


def fetch(emitter: Emitter, step: Fetch, depth: int) -> list[str]:
    """The copy of a device scalar into the host's variable of its name, and the wait for it."""
    pad, kind, value = INDENT * depth, spelled(step.type), emitter.value_names[step.name]
    emitter.fetched[step.name] = kind
    return [
        f"{pad}cudaMemcpyAsync(&{step.name}, {value}, sizeof({kind}), cudaMemcpyDeviceToHost, stream);",
        f"{pad}cudaStreamSynchronize(stream);",
    ]


def host_loop(emitter: Emitter, step: HostLoop, depth: int) -> list[str]:
    """A loop that the host runs, with what it tests fetched first."""
    pad, printer, loop = INDENT * depth, Printer(emitter.plan.symbols), step.loop
    inside = emitter.steps(step.steps, depth + 1)
    if any("scratch.get<" in line for line in inside):
        inside.insert(0, f"{pad}{INDENT}Scratch scratch(stream);  // of this turn")
    tests = [line for wanted in step.tests for line in fetch(emitter, wanted, depth + 1)]
    if isinstance(loop, ir.For):
        outer = [line for wanted in step.tests for line in fetch(emitter, wanted, depth)]
        if outer:
            return [
                f"{pad}{{", *(INDENT + line for line in outer), f"{pad}{INDENT}{printer.header(loop)} {{",
                *(INDENT + line for line in inside), f"{pad}{INDENT}}}", f"{pad}}}",
            ]  # fmt: skip
        return [f"{pad}{printer.header(loop)} {{", *inside, f"{pad}}}"]
    stop = [f"{pad}{INDENT}if (!({printer.expr(loop.condition)}))", f"{pad}{INDENT * 2}break;"]
    if loop.test_last:
        return [f"{pad}for (;;) {{", *inside, *tests, *stop, f"{pad}}}"]
    return [f"{pad}for (;;) {{", *tests, *stop, *inside, f"{pad}}}"]


def host_branch(emitter: Emitter, step: HostBranch, depth: int) -> list[str]:
    """A decision that the host takes."""
    pad, printer = INDENT * depth, Printer(emitter.plan.symbols)
    lines = [f"{pad}if ({printer.expr(step.condition)}) {{", *emitter.steps(step.then, depth + 1)]
    if step.otherwise:
        lines += [f"{pad}}} else {{", *emitter.steps(step.otherwise, depth + 1)]
    return [*lines, f"{pad}}}"]
