"""Model servers that keep failing, and requests that make them fail, as clients see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference.models import Backend
from tests.support.live import Gateway
from tests.support.live_catalog import backend, publish
from tests.support.metrics import metrics
from tests.support.model_servers.dialects import Dialect, running
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.until import until

GatewayWith = Callable[..., Gateway]
AFTER_ONE = {"SVC_BACKEND_EJECT_AFTER": "1", "SVC_BACKEND_EJECT_SECONDS": "0.5"}
AFTER_TWO = {"SVC_BACKEND_EJECT_AFTER": "2", "SVC_BACKEND_EJECT_SECONDS": "60"}


@pytest.fixture
def proxy(gateway: Gateway) -> Iterator[FaultProxy]:
    with FaultProxy(gateway.simulator.port) as proxy:
        yield proxy


def statuses(gateway: Gateway, model: str, count: int) -> list[int]:
    return [gateway.chat(f"say: {number}", model).status_code for number in range(count)]


def ejected(gateway: Gateway, which: Backend) -> bool:
    return metrics(gateway).sum("svc_backend_ejected", backend=which.name) == 1


def test_a_backend_that_keeps_failing_gets_no_requests_while_another_can_take_them(
    gateway_with: GatewayWith, proxy: FaultProxy
) -> None:
    gateway = gateway_with(**AFTER_TWO)
    sick, sound = backend(gateway, base_url=f"http://127.0.0.1:{proxy.port}/v1"), backend(gateway)
    model = publish(gateway, sick, sound).identifier
    proxy.hang_up()

    first = statuses(gateway, model, 4)
    after = statuses(gateway, model, 12)

    assert sorted(first) == [200, 200, 500, 500]
    assert after == [200] * 12
    assert proxy.struck == 2
    assert ejected(gateway, sick)
    assert not ejected(gateway, sound)


def test_a_request_that_crashes_servers_is_refused_before_it_reaches_the_next(
    gateway_with: GatewayWith,
) -> None:
    gateway = gateway_with(**AFTER_TWO)
    with FaultProxy(gateway.simulator.port) as one, FaultProxy(gateway.simulator.port) as other:
        doors = [f"http://127.0.0.1:{each.port}/v1" for each in (one, other)]
        model = publish(gateway, *(backend(gateway, base_url=each) for each in doors)).identifier
        one.hang_up()
        other.hang_up()
        before = metrics(gateway).sum("svc_poison_refusals_total")
        deaths = [gateway.chat("deadly", model) for _ in range(2)]
        one.heal()
        other.heal()

        refused = gateway.chat("deadly", model)

        assert [answer.json()["error"]["code"] for answer in deaths] == ["backend_unavailable"] * 2
        assert refused.status_code == 500
        assert refused.json()["error"]["code"] == "backend_error"
        assert "repeatedly crashed the model servers" in refused.json()["error"]["message"]
        assert refused.headers["x-should-retry"] == "false"
        assert len(gateway.rows_when(2)) == 2, "it was not admitted"
        assert gateway.chat("say: something else", model).status_code == 200
        assert metrics(gateway).sum("svc_poison_refusals_total") == before + 1
        another = gateway.post(
            {"model": model, "messages": [{"role": "user", "content": "deadly"}]},
            headers={"authorization": f"Bearer {gateway.mint()}"},
        )
        assert another.status_code == 200, "nobody's request taints another's"


def test_a_recovered_backend_is_probed_by_one_request_and_readmitted(
    gateway_with: GatewayWith, proxy: FaultProxy
) -> None:
    gateway = gateway_with(**AFTER_ONE)
    sick = backend(gateway, base_url=f"http://127.0.0.1:{proxy.port}/v1")
    model = publish(gateway, sick, backend(gateway)).identifier
    proxy.hang_up()
    until(lambda: 500 in statuses(gateway, model, 1))

    # Its ejection is over: of many requests at once only one probes it.
    lost = proxy.struck
    until(lambda: 500 in statuses(gateway, model, 1))
    with ThreadPoolExecutor(8) as threads:
        together = list(
            threads.map(lambda number: gateway.chat(f"say: {number}", model).status_code, range(8))
        )
    assert together.count(500) <= 1
    assert proxy.struck <= lost + 2

    proxy.heal()
    until(lambda: statuses(gateway, model, 1) == [200] and not ejected(gateway, sick))
    assert statuses(gateway, model, 6) == [200] * 6


@pytest.mark.parametrize("fault", ["status@400", "status@401", "status@429", "status@503"])
def test_refusals_and_overload_do_not_count_as_failures(
    gateway_with: GatewayWith, fault: str
) -> None:
    gateway = gateway_with(**AFTER_ONE)
    busy = [backend(gateway), backend(gateway)]
    model = publish(gateway, *busy).identifier

    for _ in range(4):
        assert gateway.chat(f"[[sim fault={fault}]]", model).status_code >= 400

    seen = metrics(gateway)
    assert [seen.sum("svc_backend_ejections_total", backend=each.name) for each in busy] == [0, 0]


@pytest.mark.parametrize("fault", ["redirect", "cut@3", "hang"])
def test_failures_of_the_backend_count(gateway_with: GatewayWith, fault: str) -> None:
    gateway = gateway_with(**AFTER_ONE)
    hasty = [backend(gateway, first_byte_seconds=0.3, idle_seconds=0.3) for _ in range(2)]
    model = publish(gateway, *hasty).identifier

    gateway.chat(f"[[sim tokens=9 fault={fault}]]", model, stream=True)

    seen = metrics(gateway)
    assert sum(seen.sum("svc_backend_ejections_total", backend=one.name) for one in hasty) == 1


def test_with_health_checks_no_request_has_to_probe(
    gateway_with: GatewayWith, proxy: FaultProxy
) -> None:
    gateway = gateway_with(
        SVC_BACKEND_EJECT_AFTER="1",
        SVC_BACKEND_EJECT_SECONDS="0.1",
        SVC_BACKEND_CHECK_SECONDS="0.2",
    )
    sick = backend(gateway, base_url=f"http://127.0.0.1:{proxy.port}/v1")
    model = publish(gateway, sick, backend(gateway)).identifier
    proxy.hang_up()
    until(lambda: 500 in statuses(gateway, model, 1))
    checks = proxy.struck
    until(lambda: proxy.struck >= checks + 3)

    assert statuses(gateway, model, 6) == [200] * 6
    assert ejected(gateway, sick)

    proxy.heal()
    until(lambda: not ejected(gateway, sick))


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def show_pictures(gateway: Gateway, model: str, count: int) -> list[int]:
    """Send ``count`` different requests with a picture; return their statuses."""
    found = []
    for number in range(count):
        parts = [{"type": "text", "text": f"What is this? ({number})"}, PICTURE]
        body = {"model": model, "messages": [{"role": "user", "content": parts}]}
        found.append(gateway.post(body).status_code)
    return found


def test_a_callers_own_bad_requests_eject_no_backend(gateway: Gateway) -> None:
    text_only = Dialect(fails_on="image_url")
    with running(text_only) as one, running(text_only) as other:
        pair = [backend(gateway, base_url=f"{each.root}/v1") for each in (one, other)]
        model = publish(gateway, *pair).identifier

        assert show_pictures(gateway, model, 12) == [500] * 12

        until(lambda: all("GET /v1/models" in server.paths for server in (one, other)))
        assert statuses(gateway, model, 4) == [200] * 4
    seen = metrics(gateway)
    assert [seen.sum("svc_backend_ejections_total", backend=each.name) for each in pair] == [0, 0]
    assert [ejected(gateway, each) for each in pair] == [False, False]
