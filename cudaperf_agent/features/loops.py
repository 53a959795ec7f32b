"""Loops: which variables move by the same step each round, which only vary, and what they may depend on."""

from __future__ import annotations

from cudaperf_agent.features.calls import CallEvaluator
from cudaperf_agent.features.clang_cuda import Node
from cudaperf_agent.features.cursor_kinds import K
from cudaperf_agent.features.functions import Assignment, assignments
from cudaperf_agent.features.lanes import same_trips
from cudaperf_agent.features.symbolic import ANY_THREAD, ONE, Poly
from cudaperf_agent.features.values import Alias, Binding, Other, Pointer, Stored, Value, mask_of

FALLS = ""
RETURNS = "return"
LEAVES = "break"
_STEPS = frozenset({"+=", "-=", "++", "--", "="})
_TAINT_ROUNDS = 4


class LoopWalker(CallEvaluator):
    """Walks loops."""

    def statement(self, node: Node, *, whole: bool = False) -> str:
        """Walk one statement (defined by the statement walker)."""
        raise NotImplementedError

    def merge_into(self, branch: dict[int, Binding], mask: int) -> None:
        """Merge the variables of a branch into the present ones (defined by the statement walker)."""
        raise NotImplementedError

    def for_loop(self, node: Node) -> str:
        initial, test, step = _for_parts(node)
        if initial is not None:
            self._control(initial)
        return self.loop(node, test, step, node.children[-1])

    def while_loop(self, node: Node) -> str:
        if len(node.children) < 2:
            return FALLS
        if node.kind == K.DO:
            body, test = node.children[0], node.children[-1]
            constant = test.integer() if test.kind in (K.INTEGER, K.BOOL, K.UNEXPOSED) else None
            if constant == 0:
                outcome = self.statement(body)
                return outcome if outcome == RETURNS else FALLS
            return self.loop(node, test, None, body, tested_last=True)
        test, body = node.children[-2], node.children[-1]
        return self.loop(node, test, None, body)

    def _control(self, node: Node) -> Value:
        self.steering += 1
        found: Value = Other()
        if node.kind >= K.FIRST_STMT:
            self.statement(node)
        else:
            found = self.value(node)
        self.steering -= 1
        return found

    def loop(
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
        moving = self._carry(changes, entry, node)
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
        if mask_of(condition) or any(n.kind == K.BREAK for n in body.walk()):
            moving = frozenset()
        self.merge_into({k: v for k, v in after.items() if k in entry and k not in moving}, mask_of(condition))
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

    def _carry(self, changes: list[Assignment], entry: dict[int, Binding], node: Node) -> frozenset[int]:
        """Give every variable that the loop changes its value in some round; tell which move by a step per round."""
        moving: set[int] = set()
        by_key: dict[int, list[Assignment]] = {}
        for change in changes:
            if change.key in entry:
                by_key.setdefault(change.key, []).append(change)
        masks = self._taint(by_key, entry)
        rounds: Poly | None = None
        for key, own in by_key.items():
            old = entry[key]
            if isinstance(old, Stored):
                continue
            if isinstance(old, Alias):
                key = self.resolve(key)
                old = self.held(key)
            stride = self._stride_of(own, by_key, key) if isinstance(old, Poly | Pointer) else None
            if stride is not None:
                if rounds is None:
                    rounds = self.space.fresh(f"round@{node.place().line}", "loop", 0, low=0)
                moved = stride.times(rounds)
                if moved is not None:
                    moving.add(key)
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
        return frozenset(moving)

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

    def _taint(self, by_key: dict[int, list[Assignment]], entry: dict[int, Binding]) -> dict[int, int]:
        masks = {k: ANY_THREAD if isinstance(entry[k], Alias | Stored) else mask_of(self.held(k)) for k in by_key}
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
                held = self.held(self.resolve(key))
                mask |= masks[key] if key in masks else mask_of(held)
                if isinstance(held, Pointer):
                    mask |= self.contents.get(held.root, 0)
            elif part.kind == K.CALL and part.spelling.startswith(("__shfl", "atomic", "thread_rank")):
                mask |= ANY_THREAD
        return mask


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
