"""The bundle as a file: one run with the page that shows it, which needs no server and no network.

The data is JSON, deflated and written as base64, so that no text of a run can end the element it stands in.
The file allows itself only its own scripts and style, named by their digests: it can neither load nor send.
"""

import base64
import hashlib
import html
import json
import zlib
from typing import Final

import attrs

from orchestra.history.archive import Archive
from orchestra.ids import RunId
from orchestra.limits import BUNDLE_FILE_BYTES, BUNDLE_STATE_BYTES
from orchestra.web.bundle.data import gather_run
from orchestra.web.bundle.script import one_script, one_style, page_text
from orchestra.web.errors import BundleTooLarge

_SHELL: Final = """<!doctype html>
<html lang="en" data-bundle="1">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<style>{style}</style>
<script>{theme}</script>
</head>
<body>
<a class="skip" href="#main">Skip to the run</a>
<main id="main" tabindex="-1"><p class="loading" role="status">Opening…</p></main>
<div id="announcer" class="offscreen" role="status" aria-live="polite"></div>
<noscript><p class="trouble">Scripts show the run in this file. It loads and sends nothing.</p></noscript>
<script type="application/json" id="orchestra-bundle">
{data}
</script>
<script type="module">{script}</script>
</body>
</html>
"""


@attrs.frozen(kw_only=True)
class Bundle:
    """A bundle, ready to be written."""

    run: RunId
    snapshots: int
    content: bytes


def make_bundle(
    archive: Archive,
    run: RunId,
    *,
    file_bytes: int = BUNDLE_FILE_BYTES,
    state_bytes: int = BUNDLE_STATE_BYTES,
) -> Bundle:
    """One file with a run and the page; raises `BundleTooLarge`, `UnknownRun`."""
    data = gather_run(archive, run, state_bytes)
    script, theme, style = one_script("bundled.js", page_text), page_text("theme.js"), one_style(page_text)
    packed = zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode(), 9)
    policy = (
        f"default-src 'none'; script-src {_digest(script)} {_digest(theme)}; style-src {_digest(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    content = _SHELL.format(
        policy=html.escape(policy),
        title=html.escape(f"{run} · orchestra"),
        style=style,
        theme=theme,
        data=base64.b64encode(packed).decode(),
        script=script,
    ).encode()
    if len(content) > file_bytes:
        raise BundleTooLarge(run=run, size=len(content), limit=file_bytes)
    return Bundle(run=run, snapshots=len(data["headlines"]), content=content)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
