"""The counters of a loop: atoms that stand for them in its body, the one that ends it, and their values afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cudaperf_agent.tasks.accesses import Loop, Value
from cudaperf_agent.tasks.algebra import Condition
from cudaperf_agent.tasks.evaluate import ONE, Evaluator
from cudaperf_agent.tasks.loop_changes import Change, exits
from cudaperf_agent.tasks.poly import Poly, non_negative
from cudaperf_agent.tasks.syntax import Stmt


class Counters:
    """Works on the environment and the facts of an evaluator, around the walk of each loop's body."""

    def __init__(self, state: Evaluator) -> None:
        self.state = state

    def resolve(self, changes: Mapping[int, Change]) -> None:
        """Evaluate the steps, where the loop does not change what they are made of."""
        for change in changes.values():
            for step in change.written:
                names = {e.key for e in step.by.walk() if e.kind == "name"} if step.by is not None else set()
                value = self.state.value(step.by).poly if step.by is not None else ONE
                if value is None or names & set(changes):
                    change.constant = change.regular = False
                    break
                change.steps.append(value.scaled(step.sign))

    def stand_ins(self, changes: Mapping[int, Change]) -> dict[int, str]:
        """Put an atom for every variable that the loop counts up or down, and forget the others that it changes."""
        atoms: dict[int, str] = {}
        for key, change in changes.items():
            value = self.state.env.get(key)
            if value is None:
                continue
            origin = value.pointer.offset if value.pointer is not None else value.poly
            if not change.constant or origin is None:
                if change.constant and value.pointer is None and value.poly is None:
                    continue
                self.state.forget({key})
                continue
            lows = [origin] if all(non_negative(s) for s in change.steps) else []
            highs = [origin] if all(non_negative(s.scaled(-1)) for s in change.steps) else []
            atom = self.state.facts.new("i", lows=lows, highs=highs)
            atoms[key] = atom
            if value.pointer is not None:
                self.state.env[key] = replace(value, pointer=replace(value.pointer, offset=Poly.atom(atom)))
            else:
                self.state.env[key] = Value(Poly.atom(atom), taint=value.taint)
        return atoms

    def control(
        self,
        node: Stmt,
        changes: Mapping[int, Change],
        atoms: Mapping[int, str],
        condition: Condition,
        start: Mapping[int, Value],
    ) -> Loop:
        """Find the variable that ends the loop, note its bounds, and express the other counters by it."""
        chosen: tuple[int, str] | None = None
        for key, atom in atoms.items():
            bounds = self.state.facts.known[atom]
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
            if found and chosen is None and changes[key].regular and constant in (1, -1):
                chosen = key, atom
        if chosen is None:
            return Loop()
        key, atom = chosen
        bounds, step = self.state.facts.known[atom], changes[key].steps[0].constant or 0
        if not bounds.lows or not bounds.highs:
            return Loop()
        low, high = (bounds.lows[0], bounds.highs[-1]) if step > 0 else (bounds.lows[-1], bounds.highs[0])
        self._express(atoms, changes, start, key, Poly.atom(atom) - low if step > 0 else high - Poly.atom(atom))
        complete = condition.single and not any(exits(b) for b in node.body)
        return Loop(atom, low, high, complete and node.kind != "do")

    def _express(
        self,
        atoms: Mapping[int, str],
        changes: Mapping[int, Change],
        start: Mapping[int, Value],
        control: int,
        passed: Poly,
    ) -> None:
        """Counters that step once per iteration are their first value plus the iterations passed times their step."""
        for key, atom in atoms.items():
            if key == control or not changes[key].regular:
                continue
            value, now = start[key], self.state.env[key]
            origin = value.pointer.offset if value.pointer is not None else value.poly
            if origin is None:
                continue
            exact = origin + passed * changes[key].steps[0]
            if now.pointer is not None and now.pointer.offset is not None:
                offset = now.pointer.offset.substitute(atom, exact)
                self.state.env[key] = replace(now, pointer=replace(now.pointer, offset=offset))
            elif now.poly is not None:
                self.state.env[key] = replace(now, poly=now.poly.substitute(atom, exact))

    def leave(
        self, loop: Loop, changes: Mapping[int, Change], atoms: Mapping[int, str], start: Mapping[int, Value]
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
                    self.state.env[key] = replace(before, pointer=replace(before.pointer, offset=final))
                else:
                    self.state.env[key] = Value(final, taint=before.taint)
            elif key in atoms and before.pointer is None and all(s.constant is not None for s in change.steps):
                bounds = self.state.facts.known[atoms[key]]
                step = max((abs(s.constant or 0) for s in change.steps), default=0)
                lows = [b.plus(-step) if b != origin else b for b in bounds.lows]
                highs = [b.plus(step) if b != origin else b for b in bounds.highs]
                self.state.env[key] = Value(
                    Poly.atom(self.state.facts.new("after", lows=lows, highs=highs)), taint=before.taint
                )
            else:
                self.state.forget({key})
