"""The report page in a browser: on a desk and on a phone, light and dark. Skipped where no Chromium is installed."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DESK, PHONE = 1280, 390  # CSS pixels
LEAST_CONTRAST = 4.5  # WCAG 2.1, success criterion 1.4.3

# Run in the page: it tells the page around what was drawn.
PROBE = """
const number = text => text.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => {
  const linear = [r, g, b].map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const background = element => {
  for (let one = element; one; one = one.parentElement) {
    const colour = number(getComputedStyle(one).backgroundColor);
    if (colour.length === 3) return colour;  // a fourth number: transparent
  }
  return [255, 255, 255];
};
const contrast = element => {
  const both = [number(getComputedStyle(element).color), background(element)].map(luminance);
  const [dark, light] = both.sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};
const hasText = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
addEventListener("load", () => parent.postMessage(JSON.stringify({
  width: innerWidth,
  needed: document.scrollingElement.scrollWidth,
  isDark: matchMedia("(prefers-color-scheme: dark)").matches,
  background: luminance(background(document.body)),
  contrast: Math.min(...[...document.querySelectorAll("body *")].filter(hasText).map(contrast)),
  broken: [...document.images].filter(image => !image.naturalWidth).length,
  images: document.images.length,
  loaded: performance.getEntriesByType("resource").map(entry => entry.name),
}), "*"));
"""
# A frame, since the browser makes no window as narrow as a phone.
AROUND = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<script>addEventListener("message", event => document.title = event.data)</script>
<iframe src="page.html" style="border: 0; width: {width}px; height: 800px"></iframe>"""


def draw(browser: str, folder: Path, page: str, width: int, is_dark: bool) -> dict[str, Any]:
    """Draw the page and return what the probe tells."""
    script = f"<script>{PROBE}</script>"
    scripted, n_changed = re.subn('<meta http-equiv="Content-Security-Policy"[^>]*>', lambda _: script, page)
    assert n_changed == 1  # the page forbids scripts: only without that line can the probe run
    (folder / "page.html").write_text(scripted, "utf-8")
    (folder / "around.html").write_text(AROUND.format(width=width), "utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--window-size={DESK + 100},900",
            f"--blink-settings=preferredColorScheme={0 if is_dark else 1}",
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=60000",
            "--dump-dom",
            (folder / "around.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    title = re.search("<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(unescape(title[1]))
    return told


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE], ids=["desk", "phone"])
def test_the_page_fits_and_can_be_read(width: int, is_dark: bool, project_root: Path, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    told = draw(browser, tmp_path, (project_root / "results" / "report.html").read_text("utf-8"), width, is_dark)
    assert told["width"] == width
    assert told["needed"] <= width, "the page scrolls sideways: only its tables may"
    assert told["isDark"] == is_dark
    assert (told["background"] < 0.05) == is_dark
    assert told["contrast"] >= LEAST_CONTRAST
    assert told["images"] > 0
    assert told["broken"] == 0
    assert told["loaded"] == [], "the page must load nothing"
