"""Kernels over rows: a thread, a warp or a block each, and blocks for chunks of long rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudaperf_agent.codegen.modules.evaluate import INDENT, Scope, literal, value_type
from cudaperf_agent.codegen.modules.kernels import PartialKernel, RowKernel
from cudaperf_agent.codegen.modules.sizes import Atom, Expr, Var, as_expr, flattened, product, substituted, unflattened
from cudaperf_agent.codegen.modules.tensors import Index, Reduce, is_float

if TYPE_CHECKING:
    from cudaperf_agent.codegen.modules.emit import KernelWriter

LANES = 32
SUMMED = 32  # elements of a part of a sum that one thread makes alone
OPERATORS = {"sum": "Sum", "prod": "Product", "max": "Larger", "min": "Smaller"}


def write_thread_rows(writer: KernelWriter, kernel: RowKernel) -> None:
    """A thread per row."""
    evaluator, count = writer.evaluator, product(kernel.shape)
    scope = Scope()
    row = evaluator.reserve("row")
    writer.thread_index(scope, row, count)
    by = _row_coordinates(writer, kernel, row, count, scope)
    for level in kernel.levels:
        names = [_accumulator(writer, r, scope) for r, _ in level]
        parts = {n: evaluator.fresh(f"{n}_part") for (r, _), n in zip(level, names, strict=True) if _is_long_sum(r)}
        for part in parts.values():
            scope.add(f"float {part} = 0.0f;")
        body = _loops(writer, kernel.inner, scope)
        for (reduce, at), name in zip(level, names, strict=True):
            place = tuple(substituted(e, by) for e in (*at, *kernel.inner))
            value = evaluator.value(reduce.source, place, body)
            position = flattened(kernel.inner, kernel.reduced)
            _accumulate(writer, reduce, parts.get(name, name), value, position, body)
        last = next((e for e in reversed(kernel.inner) if e.variables), None)
        if parts and last is not None:
            body.add(f"if ({evaluator.text(last)} % {SUMMED} == {SUMMED - 1}) {{")
            for name, part in parts.items():
                body.add(f"{INDENT}{name} += {part};")
                body.add(f"{INDENT}{part} = 0.0f;")
            body.add("}")
        _close(writer, body, scope)
        for name, part in parts.items():
            scope.add(f"{name} += {part};")
        for (reduce, at), name in zip(level, names, strict=True):
            _ready(writer, reduce, tuple(substituted(e, by) for e in at), name)
    for sink in kernel.row_sinks:
        writer.store(sink, tuple(substituted(e, by) for e in sink.index), scope)
    if kernel.full_sinks:
        body = _loops(writer, kernel.inner, scope)
        for sink in kernel.full_sinks:
            writer.store(sink, tuple(substituted(e, by) for e in sink.index), body)
        _close(writer, body, scope)
    writer.finish(scope, f"blocks_for({writer.host(count)}, {writer.style.block})", str(writer.style.block))


def _is_long_sum(reduce: Reduce) -> bool:
    """Whether one float would lose too much: then parts of the sum are summed up first."""
    length = reduce.length.constant
    return reduce.kind == "sum" and is_float(reduce.dtype) and (length is None or length > 2 * SUMMED)


def _loops(writer: KernelWriter, inner: Index, scope: Scope) -> Scope:
    """The innermost body of one loop per reduced dimension; `_close` puts it where it belongs."""
    variables = [v for e in inner for v in sorted(e.variables, key=lambda v: v.name)]
    if not variables:
        return Scope(scope, guarded=True, depth=scope.depth + 1)
    for variable in variables:
        scope = Scope(scope, variables=frozenset({variable}), depth=scope.depth + 1)
    return scope


def _close(writer: KernelWriter, inner: Scope, outer: Scope) -> None:
    """Loops around statements, inside out: what moved out of a loop stands before it."""
    while inner is not outer:
        assert inner.parent is not None
        head = "{"
        for variable in inner.variables:
            if variable.name.startswith("r") and variable.name[1:].isdigit():
                limit = writer.evaluator.text(variable.extent)
                head = f"for (long long {variable.name} = 0; {variable.name} < {limit}; {variable.name}++) {{"
        inner.parent.add(head)
        inner.parent.lines += inner.lines
        inner.parent.add("}")
        inner = inner.parent


def _row_coordinates(writer: KernelWriter, kernel: RowKernel, row: str, count: Expr, scope: Scope) -> dict[Atom, Expr]:
    """The rows' variables in terms of the row's number."""
    scope.variables |= {Var(row, count)}
    place = unflattened(as_expr(Var(row, count)), kernel.shape)
    return {v: p for e, p in zip(kernel.rows, place, strict=True) for v in e.variables}


def write_shared_rows(writer: KernelWriter, kernel: RowKernel) -> None:
    """A warp or a block per row."""
    evaluator, count = writer.evaluator, product(kernel.shape)
    scope = Scope()
    warp = kernel.worker == "warp"
    block = kernel.threads
    row, lane = evaluator.reserve("row"), evaluator.reserve("lane" if warp else "thread")
    if warp:
        scope.add(f"const long long {row} = (long long)blockIdx.x * {block // LANES} + threadIdx.x / {LANES};")
        scope.add(f"const int {lane} = threadIdx.x % {LANES};")
        scope.add(f"if ({row} >= {evaluator.text(count)})")
        scope.add(f"{INDENT}return;")
    else:
        scope.add(f"const long long {row} = blockIdx.x;")
        scope.add(f"const int {lane} = threadIdx.x;")
    by = _row_coordinates(writer, kernel, row, count, scope)
    length = product(kernel.reduced)
    at = Var("r", length)
    evaluator.reserve("r")
    inside = unflattened(as_expr(at), kernel.reduced)
    by |= {v: p for e, p in zip(kernel.inner, inside, strict=True) for v in e.variables}
    step = LANES if warp else block
    head = f"for (long long r = {lane}; r < {evaluator.text(length)}; r += {step}) {{"
    for level in kernel.levels:
        names = [_accumulator(writer, r, scope) for r, _ in level]
        body = Scope(scope, variables=frozenset({at}), depth=2)
        for (reduce, place), name in zip(level, names, strict=True):
            index = tuple(substituted(e, by) for e in (*place, *kernel.inner))
            value = evaluator.value(reduce.source, index, body)
            _accumulate(writer, reduce, name, value, as_expr(at), body)
        scope.add(head)
        scope.lines += body.lines
        scope.add("}")
        for (reduce, place), name in zip(level, names, strict=True):
            _across(writer, reduce, name, kernel.worker, scope)
            _ready(writer, reduce, tuple(substituted(e, by) for e in place), name)
    if kernel.row_sinks:
        values = [
            evaluator.value(s.tensor, tuple(substituted(e, by) for e in s.index), scope) for s in kernel.row_sinks
        ]
        body = Scope(scope, guarded=True, depth=2)
        for sink, value in zip(kernel.row_sinks, values, strict=True):
            index = tuple(substituted(e, by) for e in sink.index)
            writer.put(sink.buffer, flattened(index, sink.buffer.shape), value, body)
        scope.add(f"if ({lane} == 0) {{")
        scope.lines += body.lines
        scope.add("}")
    if kernel.full_sinks:
        body = Scope(scope, variables=frozenset({at}), depth=2)
        for sink in kernel.full_sinks:
            writer.store(sink, tuple(substituted(e, by) for e in sink.index), body)
        scope.add(head)
        scope.lines += body.lines
        scope.add("}")
    grid = f"blocks_for({writer.host(count)}, {block // LANES})" if warp else writer.host(count)
    writer.finish(scope, grid, str(block))


def write_parts(writer: KernelWriter, kernel: PartialKernel) -> None:
    """A block for each chunk of each row."""
    reduce, evaluator = kernel.reduce, writer.evaluator
    shape = (*reduce.shape, kernel.chunks)
    count, length = product(shape), reduce.length
    scope = Scope()
    evaluator.reserve("chunk")
    scope.add("const long long chunk = blockIdx.x;")
    whole = Var("chunk", count)
    scope.variables = frozenset({whole})
    place = unflattened(as_expr(whole), shape)
    total, chunks = evaluator.text(length), evaluator.text(kernel.chunks)
    scope.add(f"const long long size = ({total} + {chunks} - 1) / {chunks};")
    scope.add(f"const long long first = {evaluator.text(place[-1], inside=True)} * size;")
    scope.add(f"const long long last = first + size < {total} ? first + size : {total};")
    for taken in ("size", "first", "last", "r"):
        evaluator.reserve(taken)
    name = _accumulator(writer, reduce, scope)
    at = Var("r", length)
    body = Scope(scope, variables=frozenset({at}), depth=2)
    index = (*place[:-1], *unflattened(as_expr(at), reduce.reduced))
    _accumulate(writer, reduce, name, evaluator.value(reduce.source, index, body), as_expr(at), body)
    scope.add(f"for (long long r = first + threadIdx.x; r < last; r += {writer.style.block}) {{")
    scope.lines += body.lines
    scope.add("}")
    _across(writer, reduce, name, "block", scope)
    inside = Scope(scope, guarded=True, depth=2)
    address = as_expr(whole)
    if kernel.places is not None:
        writer.put(kernel.values, address, f"{name}.value", inside)
        writer.put(kernel.places, address, f"{name}.at", inside)
    else:
        writer.put(kernel.values, address, name, inside)
    scope.add("if (threadIdx.x == 0) {")
    scope.lines += inside.lines
    scope.add("}")
    writer.finish(scope, writer.host(count), str(writer.style.block))


def _accumulator(writer: KernelWriter, reduce: Reduce, scope: Scope) -> str:
    name = writer.evaluator.fresh(reduce.label)
    if reduce.kind.startswith("arg"):
        kind = value_type(reduce.source.dtype)
        start = neutral(reduce.kind[3:], reduce.source.dtype)
        scope.add(f"Best<{kind}> {name} = {{{start}, FURTHEST}};")
    else:
        scope.add(f"{value_type(reduce.dtype)} {name} = {neutral(reduce.kind, reduce.dtype)};")
    return name


def _accumulate(writer: KernelWriter, reduce: Reduce, name: str, value: str, position: Expr, scope: Scope) -> None:
    if reduce.kind.startswith("arg"):
        order = "Larger" if reduce.kind == "argmax" else "Smaller"
        kind = value_type(reduce.source.dtype)
        at = writer.evaluator.text(position)
        scope.add(f"{name} = First<{order}>::of({name}, Best<{kind}>{{{value}, {at}}});")
    elif reduce.kind in ("sum", "prod"):
        scope.add(f"{name} {'+' if reduce.kind == 'sum' else '*'}= {value};")
    else:
        function = "larger" if reduce.kind == "max" else "smaller"
        scope.add(f"{name} = {function}({name}, {value});")


def _across(writer: KernelWriter, reduce: Reduce, name: str, worker: str, scope: Scope) -> None:
    if reduce.kind.startswith("arg"):
        operator = f"First<{'Larger' if reduce.kind == 'argmax' else 'Smaller'}>"
    else:
        operator = OPERATORS[reduce.kind]
    scope.add(f"{name} = across_{worker}<{operator}>({name});")


def _ready(writer: KernelWriter, reduce: Reduce, at: Index, name: str) -> None:
    text = f"{name}.at" if reduce.kind.startswith("arg") else name
    writer.evaluator.ready[(id(reduce), at)] = text


def neutral(kind: str, dtype: str) -> str:
    """What a reduction starts from."""
    if kind in ("sum", "prod"):
        return literal(0 if kind == "sum" else 1, dtype)
    if is_float(dtype):
        return literal(float("-inf") if kind == "max" else float("inf"), dtype)
    if dtype == "bool":
        return "false" if kind == "max" else "true"
    bits = 63 if dtype == "int64" else 31
    least = f"(-{(1 << bits) - 1}{'LL' if bits == 63 else ''} - 1)"
    return least if kind == "max" else literal((1 << bits) - 1, dtype)
