"""Load generators that are too large for the suite: guidellm brings PyTorch, aiperf a gigabyte.

Collected only when it is named, with both programs on the path::

    PATH=$PATH:~/guidellm/bin:~/aiperf/bin .venv/bin/python -m pytest tests/clients/load_generators.py

Each runs unmodified; its token counts must be those of the ledger.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.support.live import Gateway

pytestmark = pytest.mark.timeout(900)

REQUESTS = 40


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """Make a directory in the Hub's form with a tokenizer of single bytes, for generated prompts."""
    directory = tmp_path / "tokenizer"
    directory.mkdir()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE({letter: at for at, letter in enumerate(alphabet)}, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    bytewise.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 32768})
    )
    return directory


def run(name: str, arguments: Sequence[str | Path], directory: Path) -> None:
    program = shutil.which(name)
    assert program is not None, f"{name} is not on the path"
    finished = subprocess.run(
        [program, *arguments],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    print(finished.stdout)  # for -rP
    assert finished.returncode == 0, finished.stdout


def ledger(gateway: Gateway) -> dict[str, int]:
    rows = gateway.rows()
    assert {row.outcome for row in rows} == {"success"}
    return {
        "requests": len(rows),
        "input": sum(row.backend_reported_input_tokens for row in rows),
        "output": sum(row.backend_reported_output_tokens for row in rows),
    }


def test_guidellm_counts_the_tokens_of_the_ledger(
    gateway: Gateway, tokenizer: Path, tmp_path: Path
) -> None:
    backend = f"target={gateway.url},api_key={gateway.key},model={gateway.models['running']}"
    arguments = (
        *("run", "--backend", f"kind=openai_http,{backend}", "--disable-console-interactive"),
        *("--profile", "kind=concurrent,streams=4"),
        *("--constraint", f"kind=max_requests,count={REQUESTS}"),
        *("--tokenizer", f"kind=huggingface_auto,model={tokenizer}"),
        *("--data", "kind=synthetic_text,prompt_tokens=64,output_tokens=32"),
    )

    run("guidellm", arguments, tmp_path)

    (benchmark,) = json.loads((tmp_path / "benchmarks.json").read_text())["benchmarks"]
    metrics = benchmark["metrics"]
    assert {
        "requests": metrics["request_totals"]["successful"],
        # Its sums are means times counts, in floating point.
        "input": round(metrics["prompt_token_count"]["successful"]["total_sum"], 6),
        "output": round(metrics["output_token_count"]["successful"]["total_sum"], 6),
    } == ledger(gateway)


def test_aiperf_counts_the_tokens_of_the_ledger(
    gateway: Gateway, tokenizer: Path, tmp_path: Path
) -> None:
    arguments = (
        *("profile", "--model", gateway.models["running"], "--url", gateway.url),
        *("--endpoint-type", "chat", "--streaming", "--api-key", gateway.key, "--ui", "none"),
        *("--tokenizer", tokenizer, "--use-server-token-count"),
        *("--concurrency", "4", "--request-count", str(REQUESTS), "--isl", "64", "--osl", "32"),
    )

    run("aiperf", arguments, tmp_path)

    (exported,) = tmp_path.rglob("profile_export_aiperf.json")
    told = json.loads(exported.read_text())
    assert {
        "requests": told["request_count"]["avg"],
        "input": told["total_usage_prompt_tokens"]["avg"],
        "output": told["total_usage_completion_tokens"]["avg"],
    } == ledger(gateway)
