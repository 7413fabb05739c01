"""A headless Chromium, spoken to over a pipe: the DevTools protocol, with nothing but Python."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    """One browser with a profile of its own."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="page-test-")
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        # It reads the protocol from descriptor 3 and writes it to descriptor 4.
        command = [
            "sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh",
            shutil.which("chromium") or "chromium", "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
            f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank",
        ]
        self.log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(
            command, pass_fds=(to_browser, from_browser), stdout=self.log, stderr=self.log)
        os.close(to_browser)
        os.close(from_browser)
        self.unread = b""
        self.next_id = 0
        self.pages = {}

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def page(self, width=1400, height=900):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self.pages[session] = page
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride",
                  width=width, height=height, deviceScaleFactor=1, mobile=False)
        return page

    def call(self, method, session=None, **parameters):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        wanted = self.next_id
        deadline = time.monotonic() + 60
        while True:
            answer = self.receive(deadline - time.monotonic())
            if answer is None:
                raise TimeoutError(f"the browser does not answer {method}")
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def receive(self, timeout):
        """The next message; what happens on a page is kept there."""
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.into], [], [], max(0, timeout))
            if not ready:
                return None
            read = os.read(self.into, 1 << 20)
            if not read:
                raise RuntimeError("the browser has ended")
            self.unread += read
        message, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(message)
        page = self.pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.happened(message["method"], message["params"])
        return message


class Page:
    """One page, and what it complained of and asked for."""

    def __init__(self, browser, session):
        self.browser = browser
        self.session = session
        self.complaints = []
        self.requests = []

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def happened(self, method, what):
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            said = details.get("exception", {}).get("description") or details["text"]
            self.complaints.append(f"exception: {said}")
        elif method == "Runtime.consoleAPICalled":
            said = " ".join(str(one.get("value", one.get("description"))) for one in what["args"])
            self.complaints.append(f"console.{what['type']}: {said}")
        elif method == "Log.entryAdded":
            entry = what["entry"]
            self.complaints.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def ask(self, expression):
        """What JavaScript makes of an expression."""
        result = self.call("Runtime.evaluate", expression=expression,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression, seconds=30, why=None):
        """Waits until an expression is true, and gives how long that took."""
        began = time.monotonic()
        while not self.ask(expression):
            if time.monotonic() - began > seconds:
                shown = self.ask("document.body ? document.body.innerText.slice(0, 1500) : ''")
                raise AssertionError(f"not within {seconds} s: {why or expression}\n{shown}\n"
                                     + "\n".join(self.complaints[-10:]))
            self.browser.receive(0.05)
        return time.monotonic() - began

    def press(self, key, text=None):
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def tab(self):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                      windowsVirtualKeyCode=9)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        shot = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
