"""Settings: typed models, and the layers they are read from (flag > environment > project file > user file > default).

`load_settings` is the whole interface. A setting is named by its dotted key (``translate.turns``), in the environment
by ``CUDAPERF_TRANSLATE__TURNS``, in a file by ``turns = 3`` under ``[translate]``.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from cudaperf_agent.errors import ConfigError, UsageError
from cudaperf_agent.execution.paths import config_dir
from cudaperf_agent.settings_model import Settings

PROJECT_FILE = "cudaperf.toml"
USER_FILE = "config.toml"
PREFIX = "CUDAPERF_"
SEPARATOR = "__"

READ_ELSEWHERE = {
    "CUDAPERF_DATA_DIR": "Folder of the store, the checkpoints and crash.log.",
    "CUDAPERF_CACHE_DIR": "Folder of what can be made again: compiled runners, converted weights.",
    "CUDAPERF_CONFIG_DIR": "Folder of the user file, config.toml.",
    "CUDAPERF_NVCC": "The nvcc to use, where the one that is found is not the one that is wanted.",
    "CUDAPERF_GPU": "The one GPU that candidates run on: number (`0` is the first) or UUID as in "
    "CUDA_VISIBLE_DEVICES; else the first of CUDA_VISIBLE_DEVICES, or of all. `off`, `no` or `false` hides it: "
    "candidates run on the emulator.",
    "CUDAPERF_KERNELS": "Folder of kernels that are compiled already, for a written model_new.py; named by digest.",
    "CUDAPERF_EMULATOR_SUPPRESS": "Set for a candidate's process alone: the kernel that is left out.",
}
"""Variables about the machine, which the parts that need them read themselves, before there are any settings."""


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a value came from.

    Attributes:
        layer: ``flag``, ``environment``, ``project file``, ``user file`` or ``default``.
        place: The flag, the variable or ``file:line``; empty for a default.
    """

    layer: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.layer} ({self.place})" if self.place else self.layer


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings and, by dotted key, where each one came from."""

    settings: Settings
    origins: Mapping[str, SettingOrigin]

    def shown(self) -> dict[str, dict[str, Any]]:
        """``{key: {value, layer, place}}`` of every setting, secrets masked."""
        return {
            key: {"value": _plain(value), "layer": self.origins[key].layer, "place": self.origins[key].place}
            for key, value in _leaves(self.settings)
        }


def setting_keys() -> dict[str, str]:
    """Every dotted key with its documentation."""
    return {key: field.description or "" for key, field in _fields(Settings)}


def environment_name(key: str) -> str:
    """The environment variable of a dotted key."""
    return PREFIX + key.upper().replace(".", SEPARATOR)


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    files: bool = True,
) -> LoadedSettings:
    """Read every layer, refuse what is unknown or illegal, and remember where each value came from.

    Args:
        flags: Values by dotted key, as given on the command line; `None` values count as not given.
        cwd: Folder in which the search for ``cudaperf.toml`` starts; it goes on in the parents.
        environ: Environment; the process's own by default.
        files: Whether the project file and the user file are read.

    Raises:
        ConfigError: A file or a variable is wrong; names ``file:line`` or the variable.
        UsageError: A flag is wrong.
    """
    known = dict(_fields(Settings))
    values: dict[str, Any] = {}
    origins = {key: SettingOrigin("default") for key in known}
    layers = [
        _file_layer(config_dir() / USER_FILE if files else None, "user file", known),
        _file_layer(_project_file(cwd or Path.cwd()) if files else None, "project file", known),
        _environment_layer(os.environ if environ is None else environ, known),
        _flag_layer(flags or {}),
    ]
    for layer in layers:
        for key, (value, origin) in layer.items():
            values[key], origins[key] = value, origin
    _protect_key(values, origins)
    _protect_trust(values, origins)
    try:
        settings = Settings.model_validate(_nested(values))
    except ValidationError as error:
        raise _invalid(error, origins) from None
    return LoadedSettings(settings, origins)


_Layer = dict[str, tuple[Any, SettingOrigin]]


def _flag_layer(flags: Mapping[str, Any]) -> _Layer:
    return {
        key: (value, SettingOrigin("flag", "--" + key.rpartition(".")[2].replace("_", "-")))
        for key, value in flags.items()
        if value is not None
    }


def _environment_layer(environ: Mapping[str, str], known: Mapping[str, Any]) -> _Layer:
    names = {environment_name(key): key for key in known}
    layer: _Layer = {}
    for name, value in environ.items():
        # An empty variable is the shell's way of not setting one.
        if not name.startswith(PREFIX) or name in READ_ELSEWHERE or not value:
            continue
        if name not in names:
            raise ConfigError(
                f"the environment variable {name} is no setting", where=name, hint=_closest(name, names, "unset it")
            )
        layer[names[name]] = (value, SettingOrigin("environment", name))
    return layer


def _project_file(cwd: Path) -> Path | None:
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    return None


def _file_layer(path: Path | None, layer: str, known: Mapping[str, Any]) -> _Layer:
    if path is None or not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        place = f"{path}:{found.group(1)}" if found else str(path)
        raise ConfigError(f"not valid TOML: {error}", where=place, hint="mend or delete that line") from None
    except UnicodeDecodeError:
        raise ConfigError("not UTF-8 text", where=str(path), hint="save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path), hint="check its permissions") from None
    result: _Layer = {}
    for key, value in _flatten(table):
        place = f"{path}:{_line_of(text, key)}"
        if value == {} and any(name.startswith(f"{key}.") for name in known):
            continue
        if key not in known:
            raise ConfigError(f"`{key}` is no setting", where=place, hint=_closest(key, known, "delete the line"))
        result[key] = (value, SettingOrigin(layer, place))
    return result


def _protect_key(values: Mapping[str, Any], origins: Mapping[str, SettingOrigin]) -> None:
    """A project file comes with a stranger's checkout: it must not send the user's own key to its own address."""
    url, key = origins["endpoint.url"], origins["endpoint.api_key"]
    if url.layer == "project file" and values.get("endpoint.api_key") and key.layer != "project file":
        raise ConfigError(
            f"the project file would send the API key of the {key} to {values['endpoint.url']}",
            where=url.place,
            hint=f"if you trust that address, say so yourself: {environment_name('endpoint.url')}="
            f"{values['endpoint.url']}",
        )


def _protect_trust(values: Mapping[str, Any], origins: Mapping[str, SettingOrigin]) -> None:
    """Nor must it say that the stranger's own candidates are to be believed."""
    trust = origins["verify.trust"]
    if trust.layer == "project file" and values["verify.trust"] != "suspicious":
        raise ConfigError(
            "a project file cannot say that candidates are to be believed",
            where=trust.place,
            hint="if you trust them, say so yourself: --trust own",
        )


def _closest(name: str, known: Mapping[str, Any], otherwise: str) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean `{near[0]}`?" if near else f"{otherwise}; `cudaperf config show` lists all settings"


def _invalid(error: ValidationError, origins: Mapping[str, SettingOrigin]) -> ConfigError | UsageError:
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    origin = origins.get(key, SettingOrigin("default"))
    kind = UsageError if origin.layer == "flag" else ConfigError
    message = f"`{key}` {first['msg'][0].lower()}{first['msg'][1:]}"
    return kind(message, where=origin.place or key, hint=setting_keys().get(key) or None)


def _line_of(text: str, key: str) -> int:
    """1-based line on which a dotted key is set; 1 if it is written in a way that this search does not know."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if header:
            table = header.group(1).replace('"', "").replace(" ", "")
            if table == key or (key.startswith(table + ".") and key.count(".") > table.count(".") + 1):
                return number
            continue
        name = re.match(r"\s*([\w.\-\"' ]+?)\s*=", line)
        if name:
            written = name.group(1).replace('"', "").replace("'", "").replace(" ", "")
            full = f"{table}.{written}" if table else written
            if full == key or key.startswith(full + "."):
                return number
    return 1


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        node = tree
        for section in sections:
            node = node.setdefault(section, {})
        node[name] = value
    return tree


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def _leaves(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _plain(value: Any) -> Any:
    return "**********" if isinstance(value, SecretStr) else value
