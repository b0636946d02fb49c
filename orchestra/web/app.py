"""The application: all routes behind the guard. Its description is at /api/openapi.json."""

from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from orchestra.errors import OrchestraError
from orchestra.ports.activity import ACTIVITY
from orchestra.version import VERSION
from orchestra.web.answers import encode, error_answer
from orchestra.web.errors import BadRequest, NotFound
from orchestra.web.guard import Guard
from orchestra.web.routes import actions, files, live, page, plans, runs, search, snapshots, states
from orchestra.web.shapes.common import PROBLEMS
from orchestra.web.site import Site


def make_app(site: Site) -> Guard:
    """The application for a site, guarded."""
    app = FastAPI(
        title="orchestra",
        version=VERSION,
        summary="Runs, their snapshots, and what can be done with them.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
        dependencies=[Depends(_name_activity)],
    )
    app.state.site = site
    for group in (runs, snapshots, states, search, files, live, plans, actions, page):
        app.include_router(group.router, responses=PROBLEMS)
    app.add_exception_handler(OrchestraError, _orchestra_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    return Guard(app, site.door)


async def _name_activity(request: Request) -> None:
    """Tell whoever keeps a record the route; it says less than the address that was asked for."""
    ACTIVITY.set(f"{request.method} {request.scope['route'].path}")


async def _orchestra_error(_request: Request, error: Any) -> Response:
    return error_answer(error)


async def _validation_error(_request: Request, error: Any) -> Response:
    wrong = error.errors()
    where = wrong[0]["loc"][1:2]
    said = dict.fromkeys(each["msg"] for each in wrong if each["loc"][1:2] == where)
    problem = error_answer(BadRequest(reason=": ".join([*map(str, where), " or ".join(said)])))
    problem.status_code = 422
    return problem


async def _http_error(request: Request, error: Any) -> Response:
    if error.status_code == 404:
        return error_answer(NotFound(path=request.url.path[:200]))
    body = encode({"error": "BadRequest", "message": f"{error.detail}. See /api/openapi.json."})
    headers = {**(error.headers or {}), "Cache-Control": "no-store"}
    return Response(body, error.status_code, headers=headers, media_type="application/json")
