"""The walk over a function's body: statements, loops, and calls, with helpers followed into.

Each loop's body is walked once, with its variables standing for any iteration. What a loop changes in a way that is not
understood is forgotten, so that bounds stay bounds; accesses whose element is unknown are still recorded as accesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cudaperf_agent.tasks.accesses import UNKNOWN, Findings, Guard, Loop, Pointer, Value
from cudaperf_agent.tasks.c_types import is_pointer
from cudaperf_agent.tasks.evaluate import ONE, Condition, Evaluator
from cudaperf_agent.tasks.library import COPIES, FILLS, READERS
from cudaperf_agent.tasks.poly import Poly, non_negative
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


@dataclass(slots=True)
class _Change:
    """How a loop changes a variable: by an unchanging step, in so many places, always or only sometimes."""

    written: list[_Step] = field(default_factory=list)
    steps: list[Poly] = field(default_factory=list)
    regular: bool = True
    constant: bool = True


@dataclass(frozen=True, slots=True)
class _Step:
    """``±1``, or ``±`` the value of an expression."""

    sign: int
    by: Expr | None = None


class Walker(Evaluator):
    """Walks one entry; `run` gives the findings."""

    def __init__(self, file: CFile, ranges: Mapping[str, tuple[Poly | None, Poly | None]]) -> None:
        super().__init__(file, ranges)
        self.frames: list[_Frame] = []
        self.stack: list[str] = []
        self.tests: list[Condition] = []
        self.cases: list[set[int]] = []
        self.calls = 0

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
        jumps = any(s.kind == "goto" for s in function.body.walk())
        self.blind += jumps
        self.statement(function.body)
        self.blind -= jumps
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
            result = self.select(earlier.condition, earlier.value, result)
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
                self._forget(self.cases[-1])
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
        leaves_yes = _leaves(node.body[0])
        leaves_no = len(node.body) > 1 and _leaves(node.body[1])
        if leaves_yes and not leaves_no:
            self.guards.append(Guard(condition.false, condition.sure_false))
        elif leaves_no and not leaves_yes:
            self.env = after_yes
            self.guards.append(Guard(condition.true, condition.sure_true))
        else:
            self.merge(condition, after_yes, self.env)
            if any(_jumps(b) for b in node.body):
                self.guards.append(Guard())

    def _switch(self, node: Stmt) -> None:
        assert node.cond is not None
        self.value(node.cond)
        # A case may be entered with the values from before, or from any case above it.
        changed = set(_changes(node))
        self._spread_bases(node, {key: _Change(constant=False) for key in changed})
        self.cases.append(changed)
        self._forget(changed)
        mark = len(self.guards)
        self.guards.append(Guard())
        self.tests += [Condition(), Condition()]
        for statement in node.body:
            self.statement(statement)
        del self.tests[-2:]
        del self.guards[mark:]
        self._forget(self.cases.pop())
        if any(_jumps(b, loop_level=False) for b in node.body):
            self.guards.append(Guard())

    def _forget(self, keys: set[int]) -> None:
        bases = frozenset().union(
            *(v.pointer.bases for k in keys if (v := self.env.get(k)) is not None and v.pointer is not None)
        )
        for key in keys:
            value = self.env.get(key, UNKNOWN)
            if value.pointer is not None:
                self.env[key] = replace(value, pointer=replace(value.pointer, bases=bases, offset=None))
            elif value.poly is not None or value.taint:
                atom = self.facts.new("any", taint=value.taint | self._taint(value))
                self.env[key] = Value(Poly.atom(atom), taint=value.taint)

    def _taint(self, value: Value) -> frozenset[str]:
        return self.facts.taint(value.poly) if value.poly is not None else frozenset()

    # --- loops

    def _loop(self, node: Stmt) -> None:
        if node.init is not None:
            self.statement(node.init)
        changes = _changes(node)
        start = dict(self.env)
        self._spread_bases(node, changes)
        self._resolve(changes)
        atoms = self._stand_ins(changes)
        mark = len(self.guards)
        condition = Condition()
        if node.kind != "do" and node.cond is not None:
            condition = self.condition(node.cond)
        elif node.kind == "do" and node.cond is not None:
            condition = self._foreseen(node.cond)
        loop = self._control(node, changes, atoms, condition, start)
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
        self._leave(loop, changes, atoms, start)
        if any(_jumps(b, loop_level=False) for b in node.body):
            self.guards.append(Guard())

    def _foreseen(self, cond: Expr) -> Condition:
        """The condition at the end of a ``do`` body, taken as if it held at its start; its effects are not kept."""
        env, count = dict(self.env), len(self.findings.accesses)
        condition = self.condition(cond)
        self.env = env
        del self.findings.accesses[count:]
        return condition

    def _spread_bases(self, node: Stmt, changes: Mapping[int, _Change]) -> None:
        """Pointers that a loop assigns from one another may each point wherever any of them did."""
        moved = {k for k, c in changes.items() if not c.constant}
        mentioned = _pointer_sources(node) | moved if moved else set()
        values = [v for k in mentioned if (v := self.env.get(k)) is not None and v.pointer is not None]
        bases = frozenset().union(*(v.pointer.bases for v in values if v.pointer is not None))
        for key in moved:
            value = self.env.get(key)
            if value is not None and value.pointer is not None:
                self.env[key] = replace(value, pointer=replace(value.pointer, bases=bases, offset=None))

    def _resolve(self, changes: Mapping[int, _Change]) -> None:
        """Evaluate the steps, where the loop does not change what they are made of."""
        for change in changes.values():
            for step in change.written:
                names = {e.key for e in step.by.walk() if e.kind == "name"} if step.by is not None else set()
                value = self.value(step.by).poly if step.by is not None else ONE
                if value is None or names & set(changes):
                    change.constant = change.regular = False
                    break
                change.steps.append(value.scaled(step.sign))

    def _stand_ins(self, changes: Mapping[int, _Change]) -> dict[int, str]:
        """Put an atom for every variable that the loop counts up or down, and forget the others that it changes."""
        atoms: dict[int, str] = {}
        for key, change in changes.items():
            value = self.env.get(key)
            if value is None:
                continue
            origin = value.pointer.offset if value.pointer is not None else value.poly
            if not change.constant or origin is None:
                if change.constant and value.pointer is None and value.poly is None:
                    continue
                self._forget({key})
                continue
            lows = [origin] if all(non_negative(s) for s in change.steps) else []
            highs = [origin] if all(non_negative(s.scaled(-1)) for s in change.steps) else []
            atom = self.facts.new("i", lows=lows, highs=highs)
            atoms[key] = atom
            if value.pointer is not None:
                self.env[key] = replace(value, pointer=replace(value.pointer, offset=Poly.atom(atom)))
            else:
                self.env[key] = Value(Poly.atom(atom), taint=value.taint)
        return atoms

    def _control(
        self,
        node: Stmt,
        changes: Mapping[int, _Change],
        atoms: Mapping[int, str],
        condition: Condition,
        start: Mapping[int, Value],
    ) -> Loop:
        """Find the variable that ends the loop, note its bounds, and express the other counters by it."""
        control: tuple[int, str] | None = None
        for key, atom in atoms.items():
            bounds = self.facts.known[atom]
            constant = changes[key].steps[0].constant
            # Only the direction of a step that is a parameter is known: forward.
            step = constant if constant is not None else 1
            slacks = list(condition.true)
            for difference in condition.differs:
                # A counter that steps by one cannot pass the value that it is compared with.
                toward = (
                    difference.scaled(-1) if (difference.coefficient(atom).constant or 0) * step > 0 else difference
                )
                slacks.append(toward.plus(-1))
            found = False
            for slack in slacks:
                factor = slack.coefficient(atom).constant if slack.degree(atom) == 1 else None
                rest = slack.without(atom)
                if factor not in (1, -1) or rest.atoms & set(atoms.values()):
                    continue
                (bounds.highs if factor < 0 else bounds.lows).append(rest if factor < 0 else rest.scaled(-1))
                found = found or (factor < 0) == (step > 0)
            if found and control is None and changes[key].regular and constant in (1, -1):
                control = key, atom
        if control is None:
            return Loop()
        key, atom = control
        bounds, step = self.facts.known[atom], changes[key].steps[0].constant or 0
        if not bounds.lows or not bounds.highs:
            return Loop()
        low, high = (bounds.lows[0], bounds.highs[-1]) if step > 0 else (bounds.lows[-1], bounds.highs[0])
        self._express(atoms, changes, start, key, Poly.atom(atom) - low if step > 0 else high - Poly.atom(atom))
        complete = condition.single and not any(_exits(b) for b in node.body)
        return Loop(atom, low, high, complete and node.kind != "do")

    def _express(
        self,
        atoms: Mapping[int, str],
        changes: Mapping[int, _Change],
        start: Mapping[int, Value],
        control: int,
        passed: Poly,
    ) -> None:
        """Counters that step once per iteration are their first value plus the iterations passed times their step."""
        for key, atom in atoms.items():
            if key == control or not changes[key].regular:
                continue
            value, now = start[key], self.env[key]
            origin = value.pointer.offset if value.pointer is not None else value.poly
            if origin is None:
                continue
            exact = origin + passed * changes[key].steps[0]
            if now.pointer is not None and now.pointer.offset is not None:
                offset = now.pointer.offset.substitute(atom, exact)
                self.env[key] = replace(now, pointer=replace(now.pointer, offset=offset))
            elif now.poly is not None:
                self.env[key] = replace(now, poly=now.poly.substitute(atom, exact))

    def _leave(
        self, loop: Loop, changes: Mapping[int, _Change], atoms: Mapping[int, str], start: Mapping[int, Value]
    ) -> None:
        """The values after the loop: counters have made every step, the rest is forgotten."""
        trips = (loop.high - loop.low).plus(1) if loop.high is not None and loop.low is not None else None
        for key, change in changes.items():
            before = start.get(key)
            if before is None:
                continue
            origin = before.pointer.offset if before.pointer is not None else before.poly
            if loop.complete and key in atoms and change.regular and trips is not None and origin is not None:
                final = origin + trips * change.steps[0]
                if before.pointer is not None:
                    self.env[key] = replace(before, pointer=replace(before.pointer, offset=final))
                else:
                    self.env[key] = Value(final, taint=before.taint)
            elif key in atoms and before.pointer is None and all(s.constant is not None for s in change.steps):
                bounds = self.facts.known[atoms[key]]
                step = max((abs(s.constant or 0) for s in change.steps), default=0)
                lows = [b.plus(-step) if b != origin else b for b in bounds.lows]
                highs = [b.plus(step) if b != origin else b for b in bounds.highs]
                self.env[key] = Value(Poly.atom(self.facts.new("after", lows=lows, highs=highs)), taint=before.taint)
            else:
                self._forget({key})


# --- what a statement does, without walking it


def _pointer_sources(node: Stmt) -> set[int]:
    """Names in the values that a loop assigns to pointers."""
    sources: list[Expr] = []
    for statement in node.walk():
        sources += [v.init for v in statement.variables if v.init is not None and is_pointer(v.ctype)]
    for top in node.expressions():
        sources += [e.args[1] for e in top.walk() if e.kind == "assign" and e.ctype.kind.name == "POINTER"]
    return {e.key for s in sources for e in s.walk() if e.kind == "name"}


def _leaves(node: Stmt) -> bool:
    """Whether control never goes on after it."""
    if node.kind in ("return", "break", "continue", "goto"):
        return True
    if node.kind == "block":
        return any(_leaves(s) for s in node.body)
    return node.kind == "if" and len(node.body) == 2 and all(_leaves(b) for b in node.body)


def _jumps(node: Stmt, loop_level: bool = True) -> bool:
    """Whether it may leave the enclosing statement by a jump; without `loop_level` only by one that leaves loops."""
    if node.kind in ("return", "goto"):
        return True
    if node.kind in ("break", "continue"):
        return loop_level
    inner = loop_level and node.kind not in ("for", "while", "do")
    return any(_jumps(s, inner) for s in node.body)


def _exits(node: Stmt) -> bool:
    """Whether a loop body can end its loop early."""
    if node.kind in ("return", "goto", "break"):
        return True
    if node.kind in ("for", "while", "do", "switch"):
        return any(s.kind in ("return", "goto") for s in node.walk())
    return any(_exits(s) for s in node.body)


def _changes(node: Stmt) -> dict[int, _Change]:
    """The variables that a loop (its condition, body and step) changes."""
    changes: dict[int, _Change] = {}
    for top in [e for e in (node.cond, node.step) if e is not None]:
        _note_changes(top, changes, always=True)
    may_skip = node.kind != "for" and any(_continues(b) for b in node.body)
    for statement in node.body:
        _scan(statement, changes, always=not may_skip)
    for change in changes.values():
        change.regular = change.regular and change.constant and len(change.written) == 1
    return changes


def _continues(node: Stmt) -> bool:
    if node.kind == "continue":
        return True
    return node.kind not in ("for", "while", "do") and any(_continues(s) for s in node.body)


def _scan(node: Stmt, changes: dict[int, _Change], always: bool) -> None:
    here = always and node.kind in ("block", "expr", "decl")
    for variable in node.variables:
        changes.setdefault(variable.key, _Change()).constant = False
        if variable.init is not None:
            _note_changes(variable.init, changes, here)
    for top in (node.cond, node.step):
        if top is not None:
            _note_changes(top, changes, here)
    for statement in (*([node.init] if node.init else []), *node.body):
        _scan(statement, changes, here)


def _note_changes(node: Expr, changes: dict[int, _Change], always: bool) -> None:
    step: _Step | None = None
    target: Expr | None = None
    if node.kind == "unary" and node.op in ("p++", "p--", "++", "--"):
        target, step = node.args[0], _Step(1 if "+" in node.op else -1)
    elif node.kind == "assign":
        target, step = node.args[0], _constant_step(node)
    elif node.kind == "unary" and node.op == "&":
        target = node.args[0]
    if target is not None and target.kind == "name":
        change = changes.setdefault(target.key, _Change())
        if step is None:
            change.constant = False
        else:
            change.written.append(step)
            change.regular = change.regular and always
    if node.kind == "ternary" or (node.kind == "binary" and node.op in ("&&", "||")):
        _note_changes(node.args[0], changes, always)
        for argument in node.args[1:]:
            _note_changes(argument, changes, False)
        return
    for argument in node.args:
        _note_changes(argument, changes, always)


def _constant_step(node: Expr) -> _Step | None:
    target, source = node.args
    if node.op in ("+=", "-=") and _plain(source):
        return _Step(1 if node.op == "+=" else -1, source)
    if node.op == "=" and source.kind == "binary" and source.op in ("+", "-") and target.kind == "name":
        left, right = source.args
        if left.kind == "name" and left.key == target.key and _plain(right):
            return _Step(1 if source.op == "+" else -1, right)
        if source.op == "+" and right.kind == "name" and right.key == target.key and _plain(left):
            return _Step(1, left)
    return None


def _plain(node: Expr) -> bool:
    """Whether evaluating it touches no memory and changes nothing."""
    return all(e.kind in ("name", "const", "cast", "binary") and is_integer(e.ctype) for e in node.walk())
