"""Walks statements in order: declarations and branches; keeps the environment and drops what is unreachable."""

from __future__ import annotations

from cudaperf_agent.features.clang_cuda import Node
from cudaperf_agent.features.cursor_kinds import K
from cudaperf_agent.features.functions import LOOPS, Definition
from cudaperf_agent.features.loops import FALLS, LEAVES, RETURNS, LoopWalker
from cudaperf_agent.features.symbolic import ZERO, Poly
from cudaperf_agent.features.values import (
    Alias,
    Binding,
    Function,
    Memory,
    Other,
    Pointer,
    Record,
    Stored,
    Value,
    Variable,
    join,
    mask_of,
)

_SELECT_NODES = 24


class Walker(LoopWalker):
    """Walks bodies. A statement's outcome is `FALLS`, `RETURNS` or `LEAVES` (break, continue, goto)."""

    def walk_body(self, definition: Definition) -> Value:
        """Walk an inlined body and give what it returns."""
        outer, self.returned = self.returned, []
        self.statement(definition.body, whole=False)
        found, self.returned = self.returned, outer
        if not found:
            return Other()
        result = found[0]
        for other in found[1:]:
            result = self._merge(result, other, 0)
        return result

    def kernel(self, definition: Definition) -> None:
        """Walk a kernel's body, in which a bounds guard around everything is no divergence."""
        self.frames.append(definition)
        self.this.append(Other())
        self.statement(definition.body, whole=True)
        self.frames.pop()
        self.this.pop()

    def statement(self, node: Node, *, whole: bool = False) -> str:
        """Walk one statement.

        Args:
            node: The statement.
            whole: Whether nothing but this statement, declarations and guards makes up the kernel so far.
        """
        kind = node.kind
        if kind == K.COMPOUND:
            return self._block(node, whole)
        if kind == K.DECL_STMT:
            for child in node.children:
                self._declare(child)
            return FALLS
        if kind == K.IF:
            return self._if(node, whole)
        if kind == K.FOR:
            return self.for_loop(node)
        if kind in (K.WHILE, K.DO):
            return self.while_loop(node)
        if kind == K.FOR_RANGE:
            return self.loop(node, None, None, node.children[-1], known_range=True)
        if kind == K.SWITCH:
            return self._switch(node)
        if kind in (K.CASE, K.DEFAULT):
            return self.statement(node.children[-1]) if node.children else FALLS
        if kind == K.RETURN:
            for child in node.children:
                self.returned.append(self.value(child))
            return RETURNS
        if kind in (K.BREAK, K.CONTINUE, K.GOTO):
            return LEAVES
        if kind in (K.NULL_STMT, K.ASM):
            return FALLS
        if kind >= K.FIRST_STMT:
            outcome = FALLS
            for child in node.children:
                outcome = self.statement(child, whole=whole) or outcome
            return outcome
        self.value(node)
        return FALLS

    def _block(self, node: Node, whole: bool) -> str:
        last = node.children[-1] if node.children else None
        for child in node.children:
            alone = whole and (child is last or _is_early_exit(child))
            outcome = self.statement(child, whole=alone)
            if outcome:
                return outcome
            if child.kind not in (K.DECL_STMT, K.NULL_STMT) and not alone:
                whole = False
        return FALLS

    def _declare(self, node: Node) -> None:
        if node.kind != K.VAR:
            return
        key, kind = node.key, node.type()
        attributes = {c.kind for c in node.children}
        first = [c for c in node.children if K.UNEXPOSED <= c.kind < K.FIRST_STMT]
        if kind.sort == "array" or K.SHARED_ATTR in attributes:
            space = "shared" if K.SHARED_ATTR in attributes else "local" if self.on_device else "host"
            mask = 0
            for child in first:
                if child.kind == K.INIT_LIST:
                    mask |= mask_of(self.value(child))
            pointer = Pointer(space, node.spelling, ZERO)
            self.variables[key] = pointer if kind.sort == "array" else Stored(pointer)
            if space == "local":
                self.contents[node.spelling] = mask
            return
        initial = first[-1] if first else None
        if initial is None:
            self.variables[key] = Other() if kind.sort != "pointer" else self._of_type(kind, node.spelling, 0)
            return
        if node.is_reference():
            where = self.place(initial)
            if isinstance(where, Memory):
                self.variables[key] = Stored(where.pointer)
                return
            if isinstance(where, Variable) and not where.member:
                self.variables[key] = Alias(where.key)
                return
        quiet = int(kind.sort == "pointer" or bool(self.frames and key in self.frames[-1].index))
        self.uncounted += quiet
        found = self.value(initial)
        self.uncounted -= quiet
        if kind.sort == "int" and not isinstance(found, Poly):
            found = self.space.fresh(node.spelling, "load" if _data(found) else "unknown", mask_of(found))
        elif kind.sort == "float" and isinstance(found, Poly):
            found = Other(found.mask, _data(found))
        self.variables[key] = found

    def _if(self, node: Node, whole: bool) -> str:
        parts = list(node.children)
        while parts and parts[0].kind in (K.DECL_STMT, K.VAR):
            first = parts.pop(0)
            self._declare(first) if first.kind == K.VAR else self.statement(first)
        if len(parts) < 2:
            return FALLS
        test = self.condition(parts[0])
        yes, no = parts[1], parts[2] if len(parts) > 2 else None
        if isinstance(test, Poly) and test.constant is not None:
            if test.constant:
                return self.statement(yes, whole=whole)
            return self.statement(no, whole=whole) if no is not None else FALLS
        guard = whole and no is None and isinstance(test, Poly) and _is_bound(test)
        if not guard:
            short = all(_is_select(side) for side in (yes, no) if side is not None)
            self.branch(node, test, "a short branch" if short else "a branch")
        before = dict(self.variables)
        outcome = self.statement(yes, whole=guard and not _is_exit(yes))
        after_yes, self.variables = self.variables, before
        other = self.statement(no) if no is not None else FALLS
        if outcome and other:
            return outcome if outcome == other else LEAVES
        if outcome:
            return FALLS
        if other:
            self.variables = after_yes
            return FALLS
        self.merge_into(after_yes, mask_of(test))
        return FALLS

    def merge_into(self, branch: dict[int, Binding], mask: int) -> None:
        for key, theirs in branch.items():
            ours = self.variables.get(key)
            if ours is None or isinstance(ours, Alias | Stored) or isinstance(theirs, Alias | Stored):
                self.variables[key] = theirs
            elif ours is not theirs:
                self.variables[key] = self._merge(ours, theirs, mask)

    def _merge(self, left: Value, right: Value, mask: int) -> Value:
        if isinstance(left, Poly) and isinstance(right, Poly):
            if left.same(right):
                return left
            both = join(left, right, mask)
            return self.space.fresh("?", "load" if both.data else "unknown", both.mask)
        if isinstance(left, Pointer) and isinstance(right, Pointer) and left.space == right.space:
            offset = self._merge(left.offset, right.offset, mask)
            return Pointer(left.space, left.root, offset if isinstance(offset, Poly) else left.offset)
        if isinstance(left, Record) and isinstance(right, Record):
            names = left.members.keys() & right.members.keys()
            return Record(
                {n: self._merge(left.members[n], right.members[n], mask) for n in names}, join(left, right, mask)
            )
        if isinstance(left, Function) and isinstance(right, Function) and left.node is right.node:
            return left
        return join(left, right, mask)

    def _switch(self, node: Node) -> str:
        if len(node.children) < 2:
            return FALLS
        test = self.condition(node.children[0])
        self.branch(node, test, "a switch")
        body = node.children[-1]
        before = dict(self.variables)
        for child in body.children:
            self.statement(child)
        after, self.variables = self.variables, before
        self.merge_into(after, mask_of(test))
        return FALLS


def _data(value: Value) -> bool:
    return (isinstance(value, Other) and value.data) or (
        isinstance(value, Poly) and any(a.sort == "load" for a in value.atoms())
    )


def _is_select(node: Node) -> bool:
    """Whether a side of a branch only assigns variables, so that a compiler makes a select of it."""
    parts = list(node.walk())
    busy = (K.CALL, K.SUBSCRIPT, K.RETURN, K.BREAK, K.CONTINUE, *LOOPS)
    return len(parts) <= _SELECT_NODES and not any(p.kind in busy for p in parts)


def _is_exit(node: Node) -> bool:
    if node.kind == K.RETURN:
        return True
    return node.kind == K.COMPOUND and len(node.children) == 1 and node.children[0].kind == K.RETURN


def _is_early_exit(node: Node) -> bool:
    return node.kind == K.IF and len(node.children) == 2 and _is_exit(node.children[1])


def _is_bound(condition: Poly) -> bool:
    """Whether a condition compares indices with bounds only: nothing loaded takes part."""
    return not any(a.sort in ("load", "unknown") and a.mask for a in condition.atoms())
