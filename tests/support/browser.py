# SPDX-License-Identifier: Apache-2.0
"""A page in headless Chromium, at any width and in either theme.

Chromium makes no window narrower than 500 pixels, so a page is shown in a frame; a script around it tells its sizes.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from numpy.typing import NDArray

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_NARROWEST_WINDOW = 500
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
_FRAME = """<!doctype html>
<meta name="color-scheme" content="light dark">
<style>body {{ margin: 0 }} iframe {{ border: 0; display: block; width: {width}px; height: {height}px }}</style>
<iframe srcdoc="{page}"></iframe>
<pre></pre>
<script>
onload = () => {{
  const inner = document.querySelector("iframe").contentDocument, root = inner.documentElement
  const wide = [...inner.body.querySelectorAll("*")].filter(one => one.getBoundingClientRect().right > {width} + 0.5)
  document.querySelector("pre").textContent = JSON.stringify({{
    width: inner.defaultView.innerWidth,
    scrollWidth: root.scrollWidth,
    height: root.scrollHeight,
    overflowing: wide.map(one => one.outerHTML.slice(0, 80)),
    background: inner.defaultView.getComputedStyle(inner.body).backgroundColor,
    requests: inner.defaultView.performance.getEntriesByType("resource").map(one => one.name),
    images: [...inner.images].map(one => ({{ natural: one.naturalWidth, chosen: one.currentSrc.length }})),
  }})
}}
</script>
"""


@dataclass(frozen=True)
class Shown:
    """A page as it was shown.

    Attributes:
        measured: sizes, what overflows, and what was loaded, as the script above has them.
        pixels: [height, width, 3] 0 to 1, the whole page.
    """

    measured: dict[str, Any]
    pixels: NDArray[np.float32]


def found() -> str:
    """The browser; a test fails without one."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    pytest.fail("no Chromium on PATH; install one (Debian: apt-get install chromium)")


def rgb(colour: str) -> tuple[int, ...]:
    """A colour, written ``#rrggbb``, as the browser tells it: red, green and blue, 0 to 255."""
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))


def show(page: str, width: int, dark: bool, folder: Path) -> Shown:
    """Shows a page twice: to measure it, and then as high as it is.

    Args:
        page: HTML that needs nothing else.
        width: in CSS pixels.
        dark: what the page hears that its reader prefers.
        folder: an empty one, for the browser; the image is left there as ``page.png``.
    """
    measured = measure(page, width, dark, folder)
    _ask(page, width, measured["height"], dark, folder)
    pixels = matplotlib.image.imread(folder / "page.png")[: measured["height"], :width, :3]
    matplotlib.image.imsave(folder / "page.png", pixels)
    return Shown(measured, pixels)


def measure(page: str, width: int, dark: bool, folder: Path) -> dict[str, Any]:
    """What `Shown` says of a page without its image; takes what `show` takes."""
    return _ask(page, width, 1000, dark, folder)


def _ask(page: str, width: int, height: int, dark: bool, folder: Path) -> dict[str, Any]:
    frame = folder / "frame.html"
    frame.write_text(_FRAME.format(width=width, height=height, page=html.escape(page)), encoding="utf-8")
    command = [
        found(),
        *_FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--window-size={max(width, _NARROWEST_WINDOW)},{height}",
        f"--screenshot={folder / 'page.png'}",
        "--dump-dom",
        frame.as_uri(),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told = re.search(r"<pre>(\{.*\})</pre>", ran.stdout, re.DOTALL)
    assert told, f"{ran.stdout[-500:]}\n{ran.stderr[-2000:]}"
    measured: dict[str, Any] = json.loads(html.unescape(told[1]))
    return measured
