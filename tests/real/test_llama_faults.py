"""What llama.cpp cannot do is the request's fault, not the server's."""

from __future__ import annotations

from tests.real.servers.llama import LlamaServer
from tests.support.live import Gateway
from tests.support.live_catalog import backend, publish
from tests.support.metrics import metrics

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def test_pictures_for_a_text_model_put_no_backend_out(gateway: Gateway, llama: LlamaServer) -> None:
    pair = [backend(gateway, base_url=llama.base_url, first_byte_seconds=30) for _ in range(2)]
    model = publish(gateway, *pair).identifier
    body = {"model": model, "messages": [{"role": "user", "content": [PICTURE]}]}

    answers = [gateway.post(body) for _ in range(12)]

    assert [answer.status_code for answer in answers] == [400] * 12
    assert gateway.chat("hello", model, max_tokens=2).status_code == 200
    seen = metrics(gateway)
    for each in pair:
        assert seen.sum("svc_backend_ejections_total", backend=each.name) == 0
        assert seen.sum("svc_backend_ejected", backend=each.name) == 0
