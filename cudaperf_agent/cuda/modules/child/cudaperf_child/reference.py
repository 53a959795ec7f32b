"""The module to translate, run in a process of its own: what it takes, and what it gives for the inputs of a case.

``python -I -c BOOTSTRAP reference FOLDER``: reads ``request.json``, writes ``response.json`` and files of tensors. An
error that the user can mend is ``{"refused": sentence, "kind": of `REMEDIES`, "line": n}``.
"""

from __future__ import annotations

from pathlib import Path

from .describe import describe
from .expect import expect
from .user_module import Refused
from .wire import read_json, write_json


def main(folder: Path) -> None:
    """Answer the request of a folder."""
    request = read_json(folder / "request.json")
    answer = {"describe": describe, "expect": expect}[request["do"]]
    try:
        response = answer(request, folder)
    except Refused as error:
        response = {"refused": str(error), "kind": error.kind, "line": error.line}
    write_json(folder / "response.json", response)
