# SPDX-License-Identifier: Apache-2.0
"""One headless Chromium for all tests of a process, spoken to over two pipes (its DevTools protocol: JSON, each message ended by a zero
byte). A start of the browser takes seconds of a core, and a page takes as long to load; another width or colour scheme takes neither."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

PATIENCE_S = 300
# The browser reads from descriptor 3 and writes to 4.
START = "import os, sys; r, w = map(int, sys.argv[1:3]); os.dup2(r, 3); os.dup2(w, 4); os.execvp(sys.argv[3], sys.argv[3:])"
COMMAND = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe"]
SAID = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")

# What is wrong with the charts of a page, and what the page has.
LOOK = """
(() => {
  const found = [], wide = innerWidth, page = document.documentElement.scrollWidth;
  if (page > wide) found.push("the page is " + page + " wide, the screen " + wide);
  let texts = 0, charts = 0;
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    const box = svg.getBoundingClientRect();
    if (!box.width) continue;
    ++charts;
    const before = [];
    for (const text of svg.querySelectorAll("text")) {
      const r = text.getBoundingClientRect();
      for (const [other, o] of before) {
        const w = Math.min(r.right, o.right) - Math.max(r.left, o.left), h = Math.min(r.bottom, o.bottom) - Math.max(r.top, o.top);
        const both = "'" + text.textContent + "' lies on '" + other.textContent + "'";
        if (w > 2 && h > 5) found.push(both + " in " + svg.getAttribute("aria-label"));
      }
      before.push([text, r]);
      ++texts;
      if (r.left < box.left - 3 || r.right > box.right + 3 || r.top < box.top - 3 || r.bottom > box.bottom + 3)
        found.push("'" + text.textContent + "' is clipped in " + svg.getAttribute("aria-label"));
    }
  }
  return {found, texts, charts, colour: getComputedStyle(document.body).backgroundColor};
})()
"""


class Browser:
    def __init__(self, profile: Path) -> None:
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # Above 10, so that neither is 3 or 4.
        given = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_read, to_write)]
        self._log = (profile / "log").open("wb")
        command = [sys.executable, "-ISc", START, *map(str, given), *COMMAND, f"--user-data-dir={profile}/profile"]
        self._process = subprocess.Popen(command, pass_fds=given, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        for fd in (to_read, to_write, *given):
            os.close(fd)
        self._buffer, self._number, self._session = b"", 0, ""
        self._events: list[Json] = []
        self._shown: tuple[Path, int] | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        self._session = ""
        try:
            self._call("Browser.close")
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._to)
            os.close(self._from)
            self._log.close()

    def show(self, page: Path, width: int, height: int, dark: bool) -> None:
        """The page in a window of this size. Pages have no script (read_page()), so that one is loaded only once."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        shown = page, page.stat().st_mtime_ns
        if shown != self._shown:
            self._events.clear()
            self._shown = shown
            self._call("Page.navigate", url=f"file://{page}")
            self._wait(lambda m: m.get("method") == "Page.loadEventFired")
        # Two frames later the window has its size.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
        assert self.evaluate("innerWidth") == width

    def said(self) -> str:
        """What the console says since the page was loaded: nothing, for a good page."""
        return "\n".join(json.dumps(m["params"]) for m in self._events if m["method"] in SAID)

    def evaluate(self, script: str) -> Any:
        found = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def _call(self, method: str, **params: Any) -> Json:
        self._number += 1
        number = self._number
        message: Json = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        answer = self._wait(lambda m: m.get("id") == number)
        assert "error" not in answer, (method, answer)
        result: Json = answer["result"]
        return result

    def _wait(self, wanted: Any) -> Json:
        """The next message that is wanted; events before it, and itself if it is one, are kept."""
        end = time.monotonic() + PATIENCE_S
        while True:
            while b"\0" not in self._buffer:
                ready, _, _ = select.select([self._from], [], [], max(0, end - time.monotonic()))
                more = os.read(self._from, 1 << 20) if ready else b""
                assert more, f"the browser says nothing; its log is {self._log.name}"
                self._buffer += more
            text, self._buffer = self._buffer.split(b"\0", 1)
            message: Json = json.loads(text)
            if "method" in message:
                self._events.append(message)
            if wanted(message):
                return message


def look_at(browser: Browser, page: Path, width: int, dark: bool) -> Json:
    """What LOOK says of a page. The test fails unless it is a picture that is not blank, with its own colour, no text clipped or on
    another, and no word in the console."""
    import matplotlib.image

    browser.show(page, width, 2000, dark)
    assert browser.said() == ""
    seen: Json = browser.evaluate(LOOK)
    assert seen["found"] == []
    assert seen["colour"] == ("rgb(15, 19, 24)" if dark else "rgb(255, 255, 255)")
    browser.picture(page.with_suffix(".png"))
    picture = matplotlib.image.imread(page.with_suffix(".png"))
    assert picture.shape[:2] == (2000, width)
    assert picture[..., :3].std() > 0.03, "the picture is blank"
    return seen
