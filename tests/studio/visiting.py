"""A visit to a studio with a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.studio.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LAPTOP, PHONE = (1400, 900), (390, 844)


class Visit:
    """A page of the studio; requests to other hosts are refused and recorded, and console errors recorded."""

    def __init__(
        self,
        browser: Browser,
        served: Served,
        size: tuple[int, int] = LAPTOP,
        address: str | None = None,
    ) -> None:
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.complaints: list[str] = []
        own = f"http://127.0.0.1:{served.port}/"
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route(lambda url: not url.startswith((own, "data:", "blob:", "about:")), lambda route: route.abort())
        self.page.goto(address or served.address)

    def view(self, name: str) -> Page:
        """Go to a view by its link."""
        self.page.get_by_role("link", name=name, exact=True).click()
        return self.page
