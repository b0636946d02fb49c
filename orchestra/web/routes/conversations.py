"""Routes that read conversations of agents with language models, at any snapshot."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra import limits
from orchestra.web.parameters import NUMBER, At, RunName, Version
from orchestra.web.shapes import KNOWN, ConversationOut, TalksOut
from orchestra.web.site import answer_tagged

router = APIRouter(prefix="/api/runs/{run}/snapshots/{at}", tags=["conversations"])


@router.get("/conversations", response_model=TalksOut, responses=KNOWN)
async def conversations(request: Request, run: RunName, at: At, v: Version = None) -> Response:
    """The agents that have a conversation with a language model, and what it took."""
    return await answer_tagged(request, run, at, v, lambda site, row: site.conversations.list_at(row))


@router.get("/conversation", response_model=ConversationOut, responses=KNOWN)
async def conversation(
    request: Request,
    run: RunName,
    at: At,
    who: Annotated[
        str,
        Query(min_length=1, max_length=limits.NAME_CHARS, description="An agent, or an assignment of one."),
    ],
    first: Annotated[
        int | None, Query(ge=0, le=NUMBER, description="Its first message; without it, the newest are sent.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=limits.WEB_MESSAGES_MAX)] = limits.WEB_MESSAGES,
    v: Version = None,
) -> Response:
    """Messages with their tool calls, what each answer used, and the snapshot that each can be forked from.

    Texts and values that are long are cut; the whole of them stands at their path in the state.
    """
    return await answer_tagged(
        request, run, at, v, lambda site, row: site.conversations.one_at(row, who, first, limit)
    )
