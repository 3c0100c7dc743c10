"""A real browser for the tests: Debian's chromium, headless, driven over its own debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")


def available() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page. `evaluate` runs JavaScript in it; `key` presses a key as a person would."""

    def __init__(self, width: int = 1200, height: int = 900) -> None:
        self.profile = tempfile.TemporaryDirectory()
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        command = [
            *(str(available()), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}"),
            *("--no-first-run", "--disable-extensions", "--disable-background-networking", "about:blank"),
        ]

        def pipes() -> None:  # chromium reads commands from 3 and writes answers to 4
            os.dup2(theirs_in, 63)
            os.dup2(theirs_out, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            command, preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.reading, self.writing = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.number, self.session, self.errors = 0, "", []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.requests: list[str] = []
        self.size(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.reading.close()
        self.writing.close()
        self.profile.cleanup()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.writing.write(json.dumps(message).encode() + b"\0")
        self.writing.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self.reading.read(1)) != b"\0":
            assert byte, "the browser ended"
            message += byte
        answer = json.loads(message)
        parameters = answer.get("params", {})
        if answer.get("method") == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"])
        if answer.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"])
        if answer.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        return answer

    def open(self, address: str) -> None:
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, expression: str) -> Any:
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression: str, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.05)

    def key(self, name: str, text: str = "", code: int = 0) -> None:
        common = {
            "key": name,
            "code": name,
            "windowsVirtualKeyCode": code or (ord(name.upper()) if len(name) == 1 else 0),
        }
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def size(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
