"""langchain's OpenAI chat model, with the token ids that a vLLM server adds to its answers kept."""

from __future__ import annotations

from typing import Any

from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI


class TokenChat(ChatOpenAI):
    """Keeps ``token_ids`` of each choice and ``prompt_token_ids`` of the answer in the generation's information."""

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        plain = response if isinstance(response, dict) else response.model_dump(warnings=False)
        for generation, choice in zip(result.generations, plain["choices"], strict=False):
            # The base class shares one dictionary between all choices.
            generation.generation_info = dict(generation.generation_info or {})
            generation.generation_info["finish_reason"] = choice.get("finish_reason")
            generation.generation_info["logprobs"] = choice.get("logprobs")
            _keep_ids(generation.generation_info, plain, choice)
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        choices = chunk.get("choices") or []
        if converted is not None and choices:
            info = dict(converted.generation_info or {})
            _keep_ids(info, chunk, choices[0])
            converted.generation_info = info or None
        return converted


def _keep_ids(info: dict[str, Any], answer: dict[str, Any], choice: dict[str, Any]) -> None:
    for name, found in (
        ("token_ids", choice.get("token_ids")),
        ("prompt_token_ids", answer.get("prompt_token_ids") or choice.get("prompt_token_ids")),
    ):
        if found:
            info[name] = found
