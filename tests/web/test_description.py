"""The description at /api/openapi.json is true: whatever is asked by it, the answer is as described."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from orchestra.app.orchestra import Orchestra
from orchestra.ports.store import Store
from tests.unit.cli.recording import AUDIT, FORK, REVIEW
from tests.web.support import TOKEN, Visitor, served

pytestmark = pytest.mark.anyio
BEARER = {"Authorization": f"Bearer {TOKEN}"}
EXAMPLES = 25
WITHOUT_END = "/api/events"
LANGUAGES = {"path", "expr", "values", "from", "to"}
"""Parameters in a language that no schema can tell: paths and values are JSON, conditions are expressions."""
BY_CONTRACT_500 = "/api/tasks/{id}/restore"


@pytest.fixture
async def visitor(recorded: Store, tmp_path: Path) -> AsyncIterator[Visitor]:
    async with Orchestra(recorded, project=tmp_path) as orchestra, served(recorded, orchestra) as made:
        yield made


async def test_it_is_openapi_3_1_and_names_every_route(visitor: Visitor) -> None:
    found = await visitor.get("/openapi.json")
    assert found["openapi"].startswith("3.1")
    assert len(found["paths"]) > 30
    for path, operations in found["paths"].items():
        assert path.startswith("/api/")
        for operation in operations.values():
            assert {"200", "403", "422"} <= set(operation["responses"])
            assert operation["description"]


async def test_no_page_of_others_is_served(visitor: Visitor) -> None:
    for path in ("/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"):
        assert (await visitor.client.get(path)).status_code == 404


async def test_whatever_is_asked_is_answered_as_described(visitor: Visitor) -> None:
    address = visitor.site.door.address
    found = await anyio.to_thread.run_sync(lambda: sorted(_failures(address)))
    assert not found, "\n\n".join(found)


def _failures(address: str) -> set[str]:
    schema = schemathesis.openapi.from_url(f"{address}/api/openapi.json", headers=BEARER)
    failures: set[str] = set()
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation: Any = result.ok()
        if operation.path not in (WITHOUT_END, BY_CONTRACT_500):
            _try(operation, failures)
    return failures


def _try(operation: Any, failures: set[str]) -> None:
    spoken = {parameter.name for parameter in operation.query} & LANGUAGES
    takes_values = operation.path.endswith(("/fork", "/answer"))
    excluded = [positive_data_acceptance] if spoken or takes_values else []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        if "run" in case.path_parameters and len(str(case.path_parameters["run"])) % 3:
            case.path_parameters["run"] = (REVIEW, FORK, AUDIT)[len(str(case.body)) % 3]
        case.call_and_validate(headers=BEARER, excluded_checks=excluded)

    try:
        ask()
    except FailureGroup as group:
        failures.update(f"{operation.label}: {failure}" for failure in group.exceptions)


async def test_a_restore_that_fails_is_described_too(visitor: Visitor) -> None:
    found = await visitor.get("/openapi.json")
    responses = found["paths"][BY_CONTRACT_500]["post"]["responses"]
    assert responses["500"]["content"]["application/json"]["schema"]["$ref"].endswith("NotRestoredOut")
    for body in (b"", b"{}", b'{"checkpointId": null}', b"[]", b"\xff"):
        async with httpx.AsyncClient(base_url=visitor.site.door.address) as client:
            headers = BEARER | {"Content-Type": "application/json"}
            done = await client.post(f"/api/tasks/{REVIEW}/restore", content=body, headers=headers)
        assert done.status_code in (400, 422)
