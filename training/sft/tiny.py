"""A random model of some thousand weights with a tokenizer of bytes: for tests and dry runs, where no weights are."""

from __future__ import annotations

from pathlib import Path

NAME = "tiny"

_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_model(folder: Path, *, context: int = 8192, seed: int = 0) -> Path:
    """Write the model and its tokenizer to `folder`, unless they are there; gives the folder."""
    if (folder / "model.safetensors").exists():
        return folder
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    special = ["<|im_start|>", "<|im_end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backing = Tokenizer(models.BPE({c: i for i, c in enumerate([*alphabet, *special])}, []))
    backing.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backing.decoder = decoders.ByteLevel()
    backing.add_special_tokens([AddedToken(token, special=True) for token in special])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backing, eos_token="<|im_end|>", pad_token="<|im_end|>")
    tokenizer.chat_template = _TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(alphabet) + len(special),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
