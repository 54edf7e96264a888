"""A headless Chromium for tests of pages, and pictures of pages for docs.

``python tests/pages/browser.py PAGE.html docs/images/report 1000`` writes the top 1000 pixels at
each width and in each colour scheme: ``docs/images/report-1400-light.png`` and the like.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDTHS = (1400, 420)
SCHEMES = ("light", "dark")
MISSING = "no chromium and chromedriver here: apt-get install chromium chromium-driver"


def found() -> bool:
    """True if there is a browser to drive."""
    return all(shutil.which(name) for name in ("chromium", "chromedriver"))


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a selenium driver that logs everything its pages say and ask for."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars",
                 "disable-dev-shm-usage", "lang=en-US", "force-device-scale-factor=1"):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    driver.set_script_timeout(120)  # axe on a large page, on a busy machine
    try:
        yield driver
    finally:
        driver.quit()


def show(driver: Any, page: Path, width: int = 1400, scheme: str = "light") -> None:
    """Open a page at a width in CSS pixels, as somebody with light or dark screens sees it."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    driver.get(page.resolve().as_uri())


def picture(driver: Any, page: Path, to: Path, width: int, scheme: str, height: int = 0) -> None:
    """Write a PNG of a page, of its top ``height`` pixels if not 0."""
    import base64

    show(driver, page, width, scheme)
    whole = driver.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": min(height or whole, whole), "scale": 1}
    shot = driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
    )
    to.write_bytes(base64.b64decode(shot["data"]))


def main(page: str, prefix: str, height: str = "0") -> None:
    """Write a picture, in 192 colours, for every width and colour scheme."""
    from PIL import Image

    with browser() as driver:
        for width in WIDTHS:
            for scheme in SCHEMES:
                to = Path(f"{prefix}-{width}-{scheme}.png")
                picture(driver, Path(page), to, width, scheme, int(height))
                Image.open(to).convert("RGB").quantize(192, dither=Image.Dither.NONE).save(
                    to, optimize=True
                )
                print(to)


if __name__ == "__main__":
    main(*sys.argv[1:])
