"""What is counted: routes and not addresses, so that no caller can make labels without end."""

import pytest
from prometheus_client import generate_latest

from server.gatehouse import Metrics
from tests.api import Api
from tests.builders import a_contract


@pytest.mark.parametrize(
    ("method", "label"), [("GET", "GET"), ("DELETE", "DELETE"), ("BREW", "other"), ("get", "other")]
)
def test_a_method_that_is_none_has_no_label_of_its_own(method: str, label: str):
    metrics = Metrics()
    metrics.count({"type": "http", "method": method}, 404, 0.1)
    text = generate_latest(metrics.registry).decode()
    assert f'answers_total{{method="{label}",route="none",status="404"}} 1.0' in text


async def test_answers_are_counted_by_route_and_status(api: Api):
    effect = (await api.plan(await api.publish(a_contract()))).body
    await api.show(effect)
    await api.ask("GET", "/v1/effects/nothing")
    await api.http.get("/v1/whoami", headers={"Authorization": "Bearer nobody"})
    text = (await api.http.get("/metrics")).text
    shown = 'tallystick_http_answers_total{method="GET",route="/v1/effects/{effect_id}",status='
    assert f'{shown}"200"}} 1.0' in text
    assert f'{shown}"404"}} 1.0' in text
    assert 'answers_total{method="GET",route="none",status="401"} 1.0' in text
    assert effect["effect_id"] not in text
    assert "nothing" not in text
