"""Keeps the model libraries' progress bars and remarks off stderr: they say nothing to a user. Errors still come."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from functools import partialmethod


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Within it, transformers, peft and bitsandbytes draw no bars; their remarks stay off afterwards too."""
    from tqdm.auto import tqdm
    from transformers.utils import logging as hf

    # Older releases know no other name for the arguments that newer ones warn about, at every answer.
    warnings.filterwarnings("ignore", message=".*past_key_values", category=FutureWarning)
    warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
    hf.set_verbosity_error()
    # peft imports bitsandbytes where it is installed, which misses kernels that nothing here uses.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    bars = hf.is_progress_bar_enabled()
    hf.disable_progress_bar()
    # The reader of GGUF files draws its own bar and asks nobody.
    drawn = tqdm.__init__
    tqdm.__init__ = partialmethod(drawn, disable=True)
    try:
        yield
    finally:
        tqdm.__init__ = drawn
        if bars:
            hf.enable_progress_bar()
