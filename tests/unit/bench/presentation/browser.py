"""What tests do with a browser, and ask of a page in it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

# As WebDriver writes them (W3C WebDriver, "Keyboard actions").
KEYS = {
    "tab": "\ue004",
    "enter": "\ue007",
    "space": "\ue00d",
    "left": "\ue012",
    "up": "\ue013",
    "right": "\ue014",
    "down": "\ue015",
    "page up": "\ue00e",
    "page down": "\ue00f",
    "end": "\ue010",
    "home": "\ue011",
}


class Browser:
    """One that shows a page at a time."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1400, dark: bool = False, scripts: bool = True) -> None:
        """Show a page of this many CSS pixels' width, and wait until its chart is drawn."""
        self.media(screen=True, dark=dark)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", size)
        self.command("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        self.log("browser")
        self.log("performance")
        self.driver.get(page.as_uri())
        if scripts:
            self.wait("!document.getElementById('chart') || document.getElementById('chart').dataset.ready")

    def command(self, name: str, options: dict[str, Any]) -> Any:
        """Give one of the Chrome DevTools Protocol's commands."""
        return self.driver.execute_cdp_cmd(name, options)

    def media(self, screen: bool, dark: bool = False) -> None:
        """Choose between screen and paper, light and dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        kind = "screen" if screen else "print"
        self.command("Emulation.setEmulatedMedia", {"media": kind, "features": [scheme]})

    def ask(self, expression: str, *arguments: Any) -> Any:
        """Return the value of an expression of JavaScript."""
        return self.driver.execute_script(f"return {expression}", *arguments)

    def wait(self, expression: str) -> None:
        """Wait until an expression is true; at most 10 s."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, 10, poll_frequency=0.02).until(lambda _: self.ask(expression))

    def text(self, part: str) -> str:
        """Return what a part of the chart says."""
        return str(self.ask(f"document.querySelector('[data-part={part}]').textContent"))

    def box(self, selector: str) -> dict[str, float]:
        """Return where an element is in the window: left, top, right, bottom, width, height."""
        found: dict[str, float] = self.ask(
            "document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", selector
        )
        return found

    def mouse(self, kind: str, x: float, y: float, pressed: bool = False) -> None:
        """Move the mouse, press or release its button, at a place in the window."""
        button = "left" if pressed or kind != "mouseMoved" else "none"
        event = {"type": kind, "x": x, "y": y, "button": button, "buttons": int(pressed), "clickCount": 1}
        self.command("Input.dispatchMouseEvent", event)

    def press(self, *keys: str) -> None:
        """Press keys, one after another, by name or as characters."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*(KEYS.get(key, key) for key in keys)).perform()

    def focused(self) -> str:
        """Say what has the focus: its part of the chart, in brackets, or the text that says what it is."""
        return str(
            self.driver.execute_script(
                """const it = document.activeElement, label = it.labels && it.labels[0];
                return it.dataset.part ? `[${it.dataset.part}]`
                    : (label || it).innerText.trim().split("\\n")[0];"""
            )
        )

    def tab_to(self, wanted: str) -> None:
        """Press tab until something has the focus. Raises LookupError if nothing like it ever has."""
        for _ in range(200):
            if self.focused() == wanted:
                return
            self.press("tab")
        raise LookupError(f"tab never gets to {wanted!r}")

    def log(self, kind: str) -> list[dict[str, Any]]:
        """Return what was logged since this was asked before, as ``browser`` and ``performance``."""
        entries: list[dict[str, Any]] = self.driver.get_log(kind)
        return entries

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since this was asked before."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def pdf(self, dark: bool = False) -> bytes:
        """Return the page as it is printed, by who reads light or dark pages."""
        self.media(screen=False, dark=dark)
        return base64.b64decode(self.command("Page.printToPDF", {})["data"])

    def serious(self) -> list[str]:
        """Return what axe finds that is serious or worse, each with the elements that have it."""
        from axe_selenium_python import Axe

        axe = Axe(self.driver)
        axe.inject()
        return [
            f"{found['id']}: {[node['html'][:200] for node in found['nodes'][:3]]}"
            for found in axe.run()["violations"]
            if found["impact"] in ("serious", "critical")
        ]
