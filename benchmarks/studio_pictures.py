"""The README's pictures of the studio, and the animation of the draw view while the slider moves.

Start `relive studio --demo --no-open` in another terminal; then, with the address that it prints:
python -m benchmarks.studio_pictures 'http://127.0.0.1:…/#token=…'
"""

from __future__ import annotations

import io
import math
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
FRAME = 80  # milliseconds
HOLD = 23  # frames that the slider stays at each task


def main(address: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport={"width": 1200, "height": 640})
        page.goto(address)
        page.get_by_role("heading", name="Forgetting, side by side").wait_for()
        page.wait_for_timeout(500)
        page.screenshot(path=FOLDER / "studio-live.png")
        page.get_by_role("link", name="Dreams", exact=True).click()
        page.locator(".pictures canvas").first.wait_for()
        page.get_by_role("slider").fill("3")
        page.get_by_role("heading", name="after task 3").wait_for()
        page.set_viewport_size({"width": 1200, "height": 900})
        page.wait_for_timeout(500)
        page.screenshot(path=FOLDER / "studio-dreams.png")
        page.set_viewport_size({"width": 1000, "height": 880})
        page.get_by_role("link", name="Draw", exact=True).click()
        _animate(page)
        browser.close()


def _animate(page: Page) -> None:
    """Draw a 0, and move the slider from the first task to the last and back."""
    frames: list[Image.Image] = []

    def shoot() -> None:
        shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        frames.append(shot.crop((0, 220, 1000, 860)).resize((750, 480), Image.Resampling.LANCZOS))

    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("slider").fill("1")
    box = page.locator(".pad").bounding_box()
    assert box is not None
    turns = [2 * math.pi * i / 30 for i in range(31)]
    at = [
        (box["x"] + (0.5 + 0.2 * math.sin(t)) * box["width"], box["y"] + (0.5 - 0.34 * math.cos(t)) * box["height"])
        for t in turns
    ]
    page.mouse.move(*at[0])
    page.mouse.down()
    for place in at:
        page.mouse.move(*place)
        shoot()
    page.mouse.up()
    page.locator(".answer").nth(1).wait_for()
    page.wait_for_timeout(500)
    for task in (1, 2, 3, 4, 5, 4, 3, 2, 1):
        page.get_by_role("slider").fill(str(task))
        page.wait_for_timeout(50)
        shoot()
        frames.extend([frames[-1]] * HOLD)
    options = {"save_all": True, "append_images": frames[1:], "duration": FRAME, "loop": 0, "quality": 60, "method": 4}
    frames[0].save(FOLDER / "studio-draw.webp", **options)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1])
