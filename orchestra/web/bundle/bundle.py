"""The bundle: one run with the page that shows it, in a single file that needs no server and no network.

The data is JSON, deflated and written as base64, so that no text of a run can end the element it stands in.
The file forbids itself everything but its own script and styles, which it names by their digests: it can
neither load nor send.
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
from orchestra.web.bundle.page import one_script, page_text
from orchestra.web.errors import BundleTooLarge

SHEETS: Final = ("page.css", "run.css", "pages.css")
ENTRY: Final = "bundled.js"
_LEVEL: Final = 9
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
    script, theme, style = (
        one_script(ENTRY, page_text),
        page_text("theme.js"),
        "\n".join(map(page_text, SHEETS)),
    )
    packed = base64.b64encode(zlib.compress(_json(data), _LEVEL)).decode()
    content = _SHELL.format(
        policy=html.escape(_policy([script, theme], [style])),
        title=html.escape(f"{run} · orchestra"),
        style=style,
        theme=theme,
        data=packed,
        script=script,
    ).encode()
    if len(content) > file_bytes:
        raise BundleTooLarge(run=run, size=len(content), limit=file_bytes)
    return Bundle(run=run, snapshots=len(data["headlines"]), content=content)


def _json(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()


def _policy(scripts: list[str], styles: list[str]) -> str:
    own = " ".join(map(_digest, scripts))
    looks = " ".join(map(_digest, styles))
    return (
        f"default-src 'none'; script-src {own}; style-src {looks}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
