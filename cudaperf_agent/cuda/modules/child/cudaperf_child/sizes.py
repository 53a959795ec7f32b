"""Which dimensions of a module's inputs can change, found out by calling it on inputs of other shapes."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from .contents import inputs_of
from .user_module import accepts


def draw(
    specs: list[dict[str, Any]], shapes: list[list[int]], dtype: str, contents: str, seed: int, name: str = "probe"
) -> list[Any]:
    return inputs_of({"name": name, "dtype": dtype, "shapes": shapes, "contents": contents}, specs, seed)


def own_type(specs: list[dict[str, Any]]) -> str:
    return next((s["dtype"] for s in specs if s.get("floating")), "f32")


Places = list[tuple[int, int]]


class Sizes:
    """Which dimensions of the inputs can change, and how small they must be for a run that takes few operations.

    Equal sizes may mean one thing or several: each is first changed alone, and what is refused alone, together.

    Args:
        model: Asked by calls.
        specs: Of the inputs.
        request: With the numbers.
    """

    def __init__(self, model: torch.nn.Module, specs: list[dict[str, Any]], request: dict[str, Any]) -> None:
        self._model = model
        self._specs = specs
        self._request = request
        self.shapes = [list(s.get("shape", [])) for s in specs]
        self._groups: dict[int, Places] = {}
        for which, shape in enumerate(self.shapes):
            for dimension, size in enumerate(shape):
                self._groups.setdefault(size, []).append((which, dimension))

    def found(self) -> dict[str, Any]:
        """What can change, its least and its largest values, and shapes that take few operations."""
        # First all that can shrink does, the largest first, so that what is asked afterwards is asked at small sizes.
        for size, places in sorted(self._groups.items(), reverse=True):
            if not self._shrink(size, places):
                for place in places:
                    self._shrink(size, [place])
        free: list[dict[str, Any]] = []
        for size, places in self._groups.items():
            alone = [place for place in places if self._can_grow([place])]
            together = [place for place in places if place not in alone]
            for some in [*([place] for place in alone), together]:
                if some and ((len(some) == 1 and some[0] in alone) or self._can_grow(some)):
                    free.append({"size": size, "places": [list(p) for p in some], "least": self._least(some)})
        return {"dimensions": free, "reduced": self._reduce(free)}

    def _taken(self, shapes: list[list[int]]) -> bool:
        arguments = draw(self._specs, shapes, own_type(self._specs), "normal", self._request["seed"])
        return accepts(self._model, arguments) is not None

    def _changed(self, places: Places, size: int) -> list[list[int]]:
        copied = [list(s) for s in self.shapes]
        for which, dimension in places:
            copied[which][dimension] = size
        return copied

    def _shrink(self, size: int, places: Places) -> bool:
        small = self._request["probe"]
        while small < size:
            changed = self._changed(places, small)
            if self._taken(changed):
                self.shapes = changed
                return True
            small *= 2
        return False

    def _can_grow(self, places: Places) -> bool:
        # Never down to 1, which may broadcast without being a size of its own.
        was = self.shapes[places[0][0]][places[0][1]]
        return all(self._taken(self._changed(places, was + more)) for more in (1, 2))

    def _least(self, places: Places) -> int:
        was = self.shapes[places[0][0]][places[0][1]]
        return next(n for n in range(1, was + 1) if n == was or self._taken(self._changed(places, n)))

    def _reduce(self, free: list[dict[str, Any]]) -> int:
        """The largest value of what can change at which all of it is within the budgets; sets the shapes to it."""
        reduced, before = int(self._request["largest"]), self.shapes
        while True:
            shapes = [list(s) for s in before]
            for one in free:
                for which, place in one["places"]:
                    shapes[which][place] = max(one["least"], min(one["size"], reduced))
            small = sum(_count(s) for s in shapes) <= self._request["elements"]
            if reduced <= 1 or (small and self._operations(shapes) <= self._request["operations"]):
                break
            reduced = max(1, reduced * 3 // 4)
        self.shapes = shapes if self._taken(shapes) else before
        return reduced

    def _operations(self, shapes: list[list[int]]) -> int:
        """Multiplications of matrix products and convolutions, plus elements of the outputs."""
        arguments = draw(self._specs, shapes, own_type(self._specs), "normal", self._request["seed"])
        with FlopCounterMode(display=False) as counter:
            result = accepts(self._model, arguments)
        outputs = sum(int(t.numel()) for _, t in result or [])
        return int(counter.get_total_flops()) // 2 + outputs


def _count(shape: list[int]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
