"""browser.py - a small WebDriver client: Debian's chromium through its chromedriver, with the standard library only."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-default-apps", "--disable-extensions",
         "--metrics-recording-only", "--disable-domain-reliability", "--force-color-profile=srgb", "--hide-scrollbars"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing():
    """The sentence that says why there can be no browser, or None."""
    for name in ("chromium", "chromedriver"):
        if not shutil.which(name):
            return f"there is no {name}; on Debian, install chromium and chromium-driver"
    return None


class Browser:
    def __init__(self, wide=1360, high=900):
        self.profile = tempfile.mkdtemp(prefix="rws-browser-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0", "--log-level=SEVERE"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        port = None
        for line in self.driver.stdout:
            if "successfully on port" in line:
                port = int(line.rstrip(". \n").split()[-1])
                break
        self.base = f"http://127.0.0.1:{port}"
        options = {"args": FLAGS + [f"--user-data-dir={self.profile}", f"--window-size={wide},{high}"],
                   "perfLoggingPrefs": {"enableNetwork": True}}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = "/session/" + answer["sessionId"]

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].split("\n")[0]) from None

    def close(self):
        try:
            self._send("DELETE", self.session)
        except Exception:
            pass
        self.driver.terminate()
        self.driver.wait(10)
        shutil.rmtree(self.profile, ignore_errors=True)

    def go(self, url):
        self._send("POST", self.session + "/url", {"url": url})

    def js(self, script, *arguments):
        return self._send("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def js_async(self, script, seconds=60):
        """Runs the script, which calls done(value) at last, and returns the value."""
        self._send("POST", self.session + "/timeouts", {"script": 1000 * seconds})
        return self._send("POST", self.session + "/execute/async", {"script": "const done = arguments[0];" + script, "args": []})

    def wait(self, script, seconds=15, what=None):
        """Waits until the expression is true, and returns it."""
        until = time.time() + seconds
        while True:
            value = self.js("return " + script)
            if value:
                return value
            if time.time() > until:
                raise AssertionError(f"{what or script} did not come true in {seconds} s")
            time.sleep(0.1)

    def size(self, wide, high):
        self.cdp("Emulation.setDeviceMetricsOverride", width=wide, height=high, deviceScaleFactor=1, mobile=wide < 600)

    def theme(self, scheme):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def cdp(self, command, **parameters):
        return self._send("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def find(self, css):
        return self._send("POST", self.session + "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self._send("POST", f"{self.session}/element/{self.find(css)}/click", {})

    def type(self, css, text, clear=True):
        element = self.find(css)
        if clear:
            self._send("POST", f"{self.session}/element/{element}/clear", {})
        self._send("POST", f"{self.session}/element/{element}/value", {"text": text})

    def keys(self, text):
        actions = [a for c in text for a in ({"type": "keyDown", "value": c}, {"type": "keyUp", "value": c})]
        self._send("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def drag(self, points, pause=15):
        """Presses the button at the first point (pixels of the window), moves through the others, lets go."""
        move = [{"type": "pointerMove", "duration": pause, "x": int(x), "y": int(y)} for x, y in points]
        actions = [move[0], {"type": "pointerDown", "button": 0}] + move[1:] + [{"type": "pointerUp", "button": 0}]
        self._send("POST", self.session + "/actions",
                   {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}]})

    def hover(self, x, y):
        self._send("POST", self.session + "/actions",
                   {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                                 "actions": [{"type": "pointerMove", "duration": 30, "x": int(x), "y": int(y)}]}]})

    def double_click(self, x, y):
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self._send("POST", self.session + "/actions",
                   {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                                 "actions": [{"type": "pointerMove", "duration": 0, "x": int(x), "y": int(y)}] + press + press}]})

    def box(self, css):
        return self.js("const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                       "return [b.left, b.top, b.width, b.height]", css)

    def screenshot(self, path, whole=False):
        if whole:
            high = self.js("return document.documentElement.scrollHeight")
            wide = self.js("return innerWidth")
            data = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": wide, "height": high, "scale": 1})["data"]
        else:
            data = self.cdp("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def logs(self):
        """Console messages since the last call."""
        return self._send("POST", self.session + "/se/log", {"type": "browser"})

    def addresses(self):
        """The addresses of all requests since the last call."""
        urls = []
        for entry in self._send("POST", self.session + "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                params = message["params"]
                urls.append(params["request"]["url"] if "request" in params else params["url"])
        return urls
