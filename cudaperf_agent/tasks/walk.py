"""The walk over a function's body: statements, loops, and calls, with helpers followed into.

Each loop's body is walked once, with its variables standing for any iteration. What a loop changes in a way that is not
understood is forgotten, so that bounds stay bounds; accesses whose element is unknown are still recorded as accesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cudaperf_agent.tasks.accesses import UNKNOWN, Findings, Guard, Loop, Pointer, Value
from cudaperf_agent.tasks.algebra import Condition
from cudaperf_agent.tasks.c_types import is_pointer
from cudaperf_agent.tasks.counters import Counters
from cudaperf_agent.tasks.evaluate import Evaluator
from cudaperf_agent.tasks.library import COPIES, FILLS, READERS
from cudaperf_agent.tasks.loop_changes import Change, changes_of, jumps, leaves, pointer_sources
from cudaperf_agent.tasks.poly import Poly
from cudaperf_agent.tasks.syntax import CFile, Expr, Function, Stmt, Variable, is_integer

MAX_CALL_DEPTH = 24
"""Helpers nested deeper than this are treated as unknown."""

MAX_CALLS = 2000
"""So many calls of helpers are followed; further ones are treated as unknown."""


@dataclass(slots=True)
class _Returned:
    condition: Condition | None
    value: Value


@dataclass(slots=True)
class _Frame:
    """One call being walked: the values it returns, and whether any return is inside a loop."""

    depth: int
    tests: int
    returns: list[_Returned] = field(default_factory=list)
    unclear: bool = False


class Walker(Evaluator):
    """Walks one entry; `run` gives the findings."""

    def __init__(self, file: CFile, ranges: Mapping[str, tuple[Poly | None, Poly | None]]) -> None:
        super().__init__(file, ranges)
        self.frames: list[_Frame] = []
        self.stack: list[str] = []
        self.tests: list[Condition] = []
        self.cases: list[set[int]] = []
        self.calls = 0
        self.counters = Counters(self)

    def run(self, entry: Function) -> Findings:
        """Walk `entry` with its own parameters as unknowns."""
        arguments = [self._parameter(p) for p in entry.parameters]
        self._enter(entry, arguments)
        return self.findings

    def _parameter(self, variable: Variable) -> Value:
        if is_pointer(variable.ctype):
            return Value(pointer=Pointer(frozenset({variable.name}), Poly()))
        return Value(Poly.atom(variable.name)) if is_integer(variable.ctype.get_canonical()) else UNKNOWN

    # --- calls

    def _enter(self, function: Function, arguments: Sequence[Value]) -> Value:
        for variable, argument in zip(function.parameters, arguments, strict=False):
            self.env[variable.key] = self._shaped(variable, argument)
        marks = len(self.guards), len(self.loops)
        self.frames.append(_Frame(len(self.loops), len(self.tests)))
        self.stack.append(function.name)
        # A jump back makes a loop that is not seen as one: then every access counts, but none has a known element.
        blind = any(s.kind == "goto" for s in function.body.walk())
        self.blind += blind
        self.statement(function.body)
        self.blind -= blind
        self.stack.pop()
        frame = self.frames.pop()
        del self.guards[marks[0] :]
        return self._result(frame)

    def _shaped(self, variable: Variable, argument: Value) -> Value:
        """An address as this parameter sees it: with its element size and array dimensions."""
        if argument.pointer is None or not is_pointer(variable.ctype):
            return argument
        ctype = variable.ctype.get_canonical()
        below = ctype.get_pointee() if ctype.kind.name == "POINTER" else ctype.get_array_element_type()
        sizes = list(variable.dims[1:] if ctype.kind.name != "POINTER" else variable.dims)
        dims: list[Poly | None] = []
        below = below.get_canonical()
        while below.kind.name.endswith("ARRAY"):
            size = sizes.pop(0) if sizes else None
            known = below.element_count if below.kind.name == "CONSTANTARRAY" else None
            dims.append(Poly.number(known) if known is not None else self.value(size).poly if size else None)
            below = below.get_array_element_type().get_canonical()
        pointer = argument.pointer
        width = max(below.get_size(), 0)
        moved = pointer.size not in (0, width) and below.kind.name != "VOID"
        return replace(
            argument, pointer=replace(pointer, dims=tuple(dims), size=width, offset=None if moved else pointer.offset)
        )

    def _result(self, frame: _Frame) -> Value:
        if not frame.returns:
            return UNKNOWN
        taint = frozenset().union(*(r.value.taint for r in frame.returns))
        if frame.unclear or any(r.condition is None for r in frame.returns[:-1]):
            pointers = [r.value.pointer for r in frame.returns if r.value.pointer is not None]
            if pointers:
                return Value(pointer=Pointer(frozenset().union(*(p.bases for p in pointers))), taint=taint)
            return Value(taint=taint)
        result = frame.returns[-1].value
        for earlier in reversed(frame.returns[:-1]):
            assert earlier.condition is not None
            result = self.algebra.select(earlier.condition, earlier.value, result)
        return result

    def call(self, node: Expr, arguments: Sequence[Value]) -> Value:
        function = self.file.functions.get(node.name)
        self.calls += 1
        followed = len(self.stack) < MAX_CALL_DEPTH and self.calls < MAX_CALLS
        if function is not None and function.name not in self.stack and followed:
            result = self._enter(function, arguments)
            return result if result.poly is None or is_integer(node.ctype) else Value(taint=result.taint)
        taint = frozenset().union(*(a.taint for a in arguments))
        if node.name in COPIES and len(arguments) >= 3:
            self._block(arguments[1].pointer, arguments[2], False, node.line)
            self._block(arguments[0].pointer, arguments[2], True, node.line)
            return arguments[0]
        if node.name in FILLS and len(arguments) >= 3:
            self._block(arguments[0].pointer, arguments[2], True, node.line)
            return arguments[0]
        for argument, expr in zip(arguments, node.args[1:], strict=False):
            if argument.pointer is not None:
                self._anything(argument.pointer, self._writable(node, expr), node.line)
        if node.ctype.kind.name == "POINTER":
            return Value(pointer=Pointer())
        return replace(self.unknown_int(node, taint), taint=taint)

    def _writable(self, node: Expr, argument: Expr) -> bool:
        if node.name in READERS:
            return False
        ctype = argument.ctype
        return ctype.kind.name != "POINTER" or not ctype.get_pointee().is_const_qualified()

    def _anything(self, pointer: Pointer, write: bool, line: int) -> None:
        self.record(pointer, False, line, None)
        if write:
            self.record(pointer, True, line, None)

    def _block(self, pointer: Pointer | None, size: Value, write: bool, line: int) -> None:
        """A run of bytes from `pointer` on, as if by a loop over its elements."""
        if pointer is None or not pointer.bases:
            return
        count = size.poly.divided(Poly.number(pointer.size)) if size.poly is not None and pointer.size else None
        if count is None or pointer.offset is None or pointer.member:
            self.record(pointer, write, line, None)
            return
        atom = self.facts.new("byte", lows=[Poly()], highs=[count.plus(-1)])
        self.loops.append(Loop(atom, Poly(), count.plus(-1), True))
        self.record(pointer, write, line, pointer.offset + Poly.atom(atom))
        self.loops.pop()

    # --- statements

    def statement(self, node: Stmt) -> None:
        """Walk one statement."""
        if node.kind == "decl":
            for variable in node.variables:
                self._declare(variable)
        elif node.kind == "if":
            self._if(node)
        elif node.kind in ("for", "while", "do"):
            self._loop(node)
        elif node.kind == "return":
            value = self.value(node.cond) if node.cond else UNKNOWN
            frame = self.frames[-1]
            frame.unclear = frame.unclear or len(self.loops) > frame.depth
            frame.returns.append(_Returned(self.tests[-1] if len(self.tests) - frame.tests == 1 else None, value))
        elif node.kind == "switch":
            self._switch(node)
        else:
            if node.kind == "case" and self.cases:
                self.forget(self.cases[-1])
            if node.cond is not None:
                self.value(node.cond)
            for statement in node.body:
                self.statement(statement)

    def _declare(self, variable: Variable) -> None:
        ctype = variable.ctype.get_canonical()
        if ctype.kind.name.endswith("ARRAY"):
            for dim in variable.dims:
                if dim is not None:
                    self.value(dim)
            if variable.init is not None:
                self.value(variable.init)
            self.env[variable.key] = Value(pointer=Pointer(table=variable.name))
            return
        value = self.value(variable.init) if variable.init is not None else UNKNOWN
        if variable.static and not ctype.is_const_qualified():
            value = UNKNOWN
        self.env[variable.key] = self._shaped(variable, value) if value.pointer is not None else value

    def _if(self, node: Stmt) -> None:
        assert node.cond is not None
        condition = self.condition(node.cond)
        before = dict(self.env)
        self.tests.append(condition)
        with self.guarded(Guard(condition.true, condition.sure_true)):
            self.statement(node.body[0])
        self.tests.pop()
        after_yes, self.env = self.env, before
        negated = Condition(condition.false, condition.true, condition.sure_false, condition.sure_true)
        if len(node.body) > 1:
            self.tests.append(negated)
            with self.guarded(Guard(condition.false, condition.sure_false)):
                self.statement(node.body[1])
            self.tests.pop()
        leaves_yes = leaves(node.body[0])
        leaves_no = len(node.body) > 1 and leaves(node.body[1])
        if leaves_yes and not leaves_no:
            self.guards.append(Guard(condition.false, condition.sure_false))
        elif leaves_no and not leaves_yes:
            self.env = after_yes
            self.guards.append(Guard(condition.true, condition.sure_true))
        else:
            self.merge(condition, after_yes, self.env)
            if any(jumps(b) for b in node.body):
                self.guards.append(Guard())

    def _switch(self, node: Stmt) -> None:
        assert node.cond is not None
        self.value(node.cond)
        # A case may be entered with the values from before, or from any case above it.
        changed = set(changes_of(node))
        self._spread_bases(node, {key: Change(constant=False) for key in changed})
        self.cases.append(changed)
        self.forget(changed)
        mark = len(self.guards)
        self.guards.append(Guard())
        self.tests += [Condition(), Condition()]
        for statement in node.body:
            self.statement(statement)
        del self.tests[-2:]
        del self.guards[mark:]
        self.forget(self.cases.pop())
        if any(jumps(b, loop_level=False) for b in node.body):
            self.guards.append(Guard())

    # --- loops

    def _loop(self, node: Stmt) -> None:
        if node.init is not None:
            self.statement(node.init)
        changes = changes_of(node)
        start = dict(self.env)
        self._spread_bases(node, changes)
        self.counters.resolve(changes)
        atoms = self.counters.stand_ins(changes)
        mark = len(self.guards)
        condition = Condition()
        if node.kind != "do" and node.cond is not None:
            condition = self.condition(node.cond)
        elif node.kind == "do" and node.cond is not None:
            condition = self._foreseen(node.cond)
        loop = self.counters.control(node, changes, atoms, condition, start)
        self.loops.append(loop)
        self.guards.append(Guard(condition.true, certain=True))
        self.tests += [Condition(), Condition()]
        for statement in node.body:
            self.statement(statement)
        if node.kind == "do" and node.cond is not None:
            self.condition(node.cond)
        if node.step is not None:
            del self.guards[mark + 1 :]
            self.value(node.step)
        del self.tests[-2:]
        del self.guards[mark:]
        self.loops.pop()
        self.counters.leave(loop, changes, atoms, start)
        if any(jumps(b, loop_level=False) for b in node.body):
            self.guards.append(Guard())

    def _foreseen(self, cond: Expr) -> Condition:
        """The condition at the end of a ``do`` body, taken as if it held at its start; its effects are not kept."""
        env, count = dict(self.env), len(self.findings.accesses)
        condition = self.condition(cond)
        self.env = env
        del self.findings.accesses[count:]
        return condition

    def _spread_bases(self, node: Stmt, changes: Mapping[int, Change]) -> None:
        """Pointers that a loop assigns from one another may each point wherever any of them did."""
        moved = {k for k, c in changes.items() if not c.constant}
        mentioned = pointer_sources(node) | moved if moved else set()
        values = [v for k in mentioned if (v := self.env.get(k)) is not None and v.pointer is not None]
        bases = frozenset().union(*(v.pointer.bases for v in values if v.pointer is not None))
        for key in moved:
            value = self.env.get(key)
            if value is not None and value.pointer is not None:
                self.env[key] = replace(value, pointer=replace(value.pointer, bases=bases, offset=None))
