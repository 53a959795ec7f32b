"""Walks statements in order: declarations, branches, loops; keeps the environment and drops what is unreachable."""

from __future__ import annotations

from cudaperf_agent.features.calls import CallEvaluator
from cudaperf_agent.features.clang_cuda import K, Node
from cudaperf_agent.features.functions import Assignment, Definition, assignments
from cudaperf_agent.features.lanes import same_trips
from cudaperf_agent.features.symbolic import ANY_THREAD, ONE, ZERO, Poly
from cudaperf_agent.features.values import Alias, Function, Other, Pointer, Record, Value, join, mask_of

FALLS = ""
RETURNS = "return"
LEAVES = "break"
_STEPS = frozenset({"+=", "-=", "++", "--", "="})
_TAINT_ROUNDS = 4


class Walker(CallEvaluator):
    """Walks bodies. A statement's outcome is `FALLS`, `RETURNS` or `LEAVES` (break, continue, goto)."""

    def walk_body(self, definition: Definition) -> Value:
        """Walk an inlined body and give what it returns."""
        self._returned: list[Value]
        outer = getattr(self, "_returned", [])
        self._returned = []
        self.statement(definition.body, whole=False)
        found = self._returned
        self._returned = outer
        if not found:
            return Other()
        result = found[0]
        for other in found[1:]:
            result = self._merge(result, other, 0)
        return result

    def kernel(self, definition: Definition) -> None:
        """Walk a kernel's body, in which a bounds guard around everything is no divergence."""
        self._returned = []
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
            return self._for(node)
        if kind in (K.WHILE, K.DO):
            return self._while(node)
        if kind == K.FOR_RANGE:
            return self._loop(node, None, None, node.children[-1], known_range=True)
        if kind == K.SWITCH:
            return self._switch(node)
        if kind in (K.CASE, K.DEFAULT):
            return self.statement(node.children[-1]) if node.children else FALLS
        if kind == K.RETURN:
            for child in node.children:
                self._returned.append(self.value(child))
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
            prefix = "" if kind.sort == "array" else "*"
            self.variables[key] = Pointer(space, prefix + node.spelling, ZERO)
            if space == "local":
                self.contents[node.spelling] = mask
            return
        initial = first[-1] if first else None
        if initial is None:
            self.variables[key] = Other() if kind.sort != "pointer" else self._of_type(kind, node.spelling, 0)
            return
        if node.is_reference():
            where = self.place(initial)
            from_memory = getattr(where, "pointer", None)
            if isinstance(from_memory, Pointer):
                self.variables[key] = Pointer(from_memory.space, "*" + from_memory.root, from_memory.offset)
                return
            if getattr(where, "key", None) is not None and not getattr(where, "member", ""):
                self.variables[key] = Alias(where.key)  # type: ignore[union-attr]
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
            self.branch(node, test, "a branch")
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
        self._merge_into(after_yes, mask_of(test))
        return FALLS

    def _merge_into(self, branch: dict[int, Value | Alias], mask: int) -> None:
        for key, theirs in branch.items():
            ours = self.variables.get(key)
            if ours is None or isinstance(ours, Alias) or isinstance(theirs, Alias):
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
        self._merge_into(after, mask_of(test))
        return FALLS

    # Loops

    def _for(self, node: Node) -> str:
        initial, test, step = _for_parts(node)
        if initial is not None:
            self._control(initial)
        return self._loop(node, test, step, node.children[-1])

    def _while(self, node: Node) -> str:
        if len(node.children) < 2:
            return FALLS
        if node.kind == K.DO:
            body, test = node.children[0], node.children[-1]
            constant = test.integer() if test.kind in (K.INTEGER, K.BOOL, K.UNEXPOSED) else None
            if constant == 0:
                outcome = self.statement(body)
                return outcome if outcome == RETURNS else FALLS
            return self._loop(node, test, None, body, tested_last=True)
        test, body = node.children[-2], node.children[-1]
        return self._loop(node, test, None, body)

    def _control(self, node: Node) -> Value:
        self.steering += 1
        found: Value = Other()
        if node.kind >= K.FIRST_STMT:
            self.statement(node)
        else:
            found = self.value(node)
        self.steering -= 1
        return found

    def _loop(
        self,
        node: Node,
        test: Node | None,
        step: Node | None,
        body: Node,
        *,
        tested_last: bool = False,
        known_range: bool = False,
    ) -> str:
        if test is not None and not tested_last and self._never_entered(test):
            return FALLS
        changes = assignments(body) + (assignments(step) if step is not None else [])
        if test is not None:
            changes += assignments(test)
        entry = {c.key: self.variables[c.key] for c in changes if c.key in self.variables}
        self._carry(changes, entry, node)
        self.depth += 1
        condition: Value = Other()
        if test is not None and not tested_last:
            condition = self._control(test)
        before = dict(self.variables)
        outcome = self.statement(body)
        if step is not None:
            self._control(step)
        if test is not None and tested_last:
            condition = self._control(test)
        if not (isinstance(condition, Poly) and same_trips(condition)):
            self.branch(node, condition, "a loop whose length differs between threads")
        self.depth -= 1
        after, self.variables = self.variables, before
        self._merge_into({k: v for k, v in after.items() if k in entry}, mask_of(condition))
        endless = test is None and not known_range and outcome == RETURNS
        return RETURNS if endless else FALLS

    def _never_entered(self, test: Node) -> bool:
        """Whether the condition is false from the start, judged without noting anything."""
        if any(n.kind in (K.CALL, K.UNARY, K.COMPOUND_ASSIGN, K.SUBSCRIPT) for n in test.walk()):
            return False
        self.uncounted += 1
        found = self.value(test)
        self.uncounted -= 1
        return isinstance(found, Poly) and found.constant == 0

    def _carry(self, changes: list[Assignment], entry: dict[int, Value | Alias], node: Node) -> None:
        """Give every variable that the loop changes its value in some later round."""
        by_key: dict[int, list[Assignment]] = {}
        for change in changes:
            if change.key in entry:
                by_key.setdefault(change.key, []).append(change)
        masks = self._taint(by_key, entry)
        rounds: Poly | None = None
        for key, own in by_key.items():
            old = entry[key]
            if isinstance(old, Alias):
                old = self.variables.get(self.resolve(key), Other())  # type: ignore[assignment]
                key = self.resolve(key)
            stride = self._stride_of(own, by_key, key) if isinstance(old, Poly | Pointer) else None
            if stride is not None:
                if rounds is None:
                    rounds = self.space.fresh(f"round@{node.place().line}", "loop", 0, low=0)
                moved = stride.times(rounds)
                if moved is not None:
                    if isinstance(old, Poly):
                        self.variables[key] = old + moved
                    elif isinstance(old, Pointer):
                        self.variables[key] = Pointer(old.space, old.root, old.offset + moved)
                    continue
            mask = masks.get(key, ANY_THREAD)
            if isinstance(old, Poly):
                data = any(a.sort == "load" for a in old.atoms())
                self.variables[key] = self.space.fresh("varies", "load" if data else "unknown", mask)
            elif isinstance(old, Pointer):
                self.variables[key] = Pointer(old.space, old.root, self.space.fresh("varies", "unknown", mask))
            else:
                self.variables[key] = Other(mask, True)

    def _stride_of(self, own: list[Assignment], by_key: dict[int, list[Assignment]], key: int) -> Poly | None:
        """What one round adds to a variable, if that is the same in every round."""
        if len(own) != 1 or own[0].nested or own[0].operator not in _STEPS:
            return None
        change = own[0]
        pointee = 1
        held = self.variables.get(key)
        if change.operator in ("++", "--"):
            amount: Poly | None = ONE
        else:
            right, sign = change.right, change.operator
            if sign == "=" and right is not None:
                right, sign = _increment_of(right, key)
            if right is None:
                return None
            if any(n.kind == K.DECL_REF and n.target_key in by_key for n in right.walk()):
                return None
            if any(n.kind in (K.CALL, K.SUBSCRIPT) for n in right.walk()):
                return None
            self.uncounted += 1
            found = self.value(right)
            self.uncounted -= 1
            amount = found if isinstance(found, Poly) else None
            if amount is not None and sign.startswith("-"):
                amount = -amount
        if amount is None:
            return None
        if change.operator == "--":
            amount = -amount
        if isinstance(held, Pointer):
            pointee = change.step_size
        return amount.scaled(pointee)

    def _taint(self, by_key: dict[int, list[Assignment]], entry: dict[int, Value | Alias]) -> dict[int, int]:
        masks = {k: mask_of(v) if not isinstance(v, Alias) else ANY_THREAD for k, v in entry.items() if k in by_key}
        for _ in range(_TAINT_ROUNDS):
            changed = False
            for key, own in by_key.items():
                mask = masks[key]
                for change in own:
                    for part in (change.right, *change.conditions):
                        if part is not None:
                            mask |= self._depends(part, masks)
                    if change.operator == "?" and change.right is None:
                        mask = ANY_THREAD
                if mask != masks[key]:
                    masks[key] = mask
                    changed = True
            if not changed:
                break
        return masks

    def _depends(self, node: Node, masks: dict[int, int]) -> int:
        """Thread dimensions that an expression may depend on, from its text alone."""
        mask = 0
        for part in node.walk():
            if part.kind == K.DECL_REF:
                name = part.spelling
                if name == "threadIdx":
                    mask |= ANY_THREAD
                    continue
                key = part.target_key
                held = self.variables.get(key)
                if key in masks:
                    mask |= masks[key]
                elif held is not None and not isinstance(held, Alias):
                    mask |= mask_of(held)
                    if isinstance(held, Pointer):
                        mask |= self.contents.get(held.root, 0)
            elif part.kind == K.CALL and part.spelling.startswith(("__shfl", "atomic", "thread_rank")):
                mask |= ANY_THREAD
        return mask


def _data(value: Value) -> bool:
    return (
        (isinstance(value, Other)
        and value.data)
        or (isinstance(value, Poly)
        and any(a.sort == "load" for a in value.atoms()))
    )


def _is_exit(node: Node) -> bool:
    if node.kind == K.RETURN:
        return True
    return node.kind == K.COMPOUND and len(node.children) == 1 and node.children[0].kind == K.RETURN


def _is_early_exit(node: Node) -> bool:
    return node.kind == K.IF and len(node.children) == 2 and _is_exit(node.children[1])


def _is_bound(condition: Poly) -> bool:
    """Whether a condition compares indices with bounds only: nothing loaded takes part."""
    return not any(a.sort in ("load", "unknown") and a.mask for a in condition.atoms())


def _increment_of(right: Node, key: int) -> tuple[Node | None, str]:
    """For ``v = v + e`` or ``v = e + v`` the ``e`` and ``+``; for ``v = v - e`` the ``e`` and ``-``."""
    while right.kind in (K.UNEXPOSED, K.PAREN) and right.children:
        right = right.children[-1]
    if right.kind != K.BINARY or right.operator not in ("+", "-") or len(right.children) != 2:
        return None, "="
    sides = []
    for child in right.children:
        inner = child
        while inner.kind in (K.UNEXPOSED, K.PAREN) and inner.children:
            inner = inner.children[-1]
        sides.append(inner.kind == K.DECL_REF and inner.target_key == key)
    if sides[0]:
        return right.children[1], right.operator
    if sides[1] and right.operator == "+":
        return right.children[0], "+"
    return None, "="


def _for_parts(node: Node) -> tuple[Node | None, Node | None, Node | None]:
    """Start, condition and step of a ``for``: libclang leaves out those that are absent, the semicolons tell which."""
    parts = node.children[:-1]
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    start, _ = node.unit.span(node.cursor)
    end, _ = node.unit.span(node.children[-1].cursor)
    text = node.unit.text(start, end)
    semicolons, depth = [], 0
    for at, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == ";" and depth == 1:
            semicolons.append(start + at)
    found: list[Node | None] = [None, None, None]
    for part in parts:
        begin, _ = node.unit.span(part.cursor)
        slot = sum(begin > s for s in semicolons[:2])
        found[min(slot, 2)] = part
    return found[0], found[1], found[2]
