#!/usr/bin/env python3
"""Drives the live page in headless Chromium: teaches two classes by dropping files, sees the answer.

    browser.py DPCL [FOLDER]      DPCL is the program, screenshots go to FOLDER

Needs chromium and chromedriver (Debian: chromium, chromium-driver) and nothing else; listens on loopback only.
"""

import base64, json, os, re, shutil, socket, struct, subprocess, sys, tempfile, time, urllib.request, zlib

PROGRAM = sys.argv[1]
SHOTS = sys.argv[2] if len(sys.argv) > 2 else tempfile.gettempdir()
STRANGE = "<img src=x onerror=alert(1)>"


def png(path, base, number):
    side = 24
    rows = b"".join(
        b"\0" + bytes((base + (7 * x + 3 * y * number + number) % 23) & 255 for x in range(side) for _ in "rgb")
        for y in range(side)
    )
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return path


def until(what, found):
    for _ in range(600):
        value = found()
        if value:
            return value
        time.sleep(0.1)
    raise SystemExit("error: waited in vain until " + what)


class Browser:
    """The few words of WebDriver that are needed."""

    def __init__(self, port, profile):
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--force-device-scale-factor=1", f"--user-data-dir={profile}"]
        wishes = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
                  "goog:loggingPrefs": {"browser": "ALL"}}
        until("chromedriver is ready", lambda: self.ready())
        self.session = self.say("POST", "/session", {"capabilities": {"alwaysMatch": wishes}})["sessionId"]

    def ready(self):
        try:
            return self.say("GET", "/status", None)["ready"]
        except OSError:
            return False

    def say(self, method, path, body):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise SystemExit("error: " + error.read().decode()[:600])

    def do(self, path, body=None, method="POST"):
        return self.say(method, f"/session/{self.session}{path}", {} if body is None and method == "POST" else body)

    def run(self, script, *arguments):
        return self.do("/execute/sync", {"script": script, "args": list(arguments)})

    def cdp(self, command, **parameters):
        return self.do("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def text(self, element):
        return self.run("return document.getElementById(arguments[0]).textContent", element)

    def drop(self, files):
        box = self.run("document.getElementById('drop').scrollIntoView({block: 'center'});"
                       "const box = document.getElementById('drop').getBoundingClientRect(); return [box.x + 20, box.y + 20]")
        data = {"items": [], "files": files, "dragOperationsMask": 1}
        for kind in ["dragEnter", "dragOver", "drop"]:
            self.cdp("Input.dispatchDragEvent", type=kind, x=box[0], y=box[1], data=data)

    def keys(self, *keys):
        presses = [{"type": kind, "value": key} for key in keys for kind in ["keyDown", "keyUp"]]
        self.do("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": presses}]})

    def shot(self, name):
        height = self.run("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": self.run("return innerWidth"), "height": height, "scale": 1}
        data = self.cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(os.path.join(SHOTS, name), "wb") as file:
            file.write(base64.b64decode(data))


def check(browser, address, folder):
    browser.cdp("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
    browser.do("/url", {"url": f"http://{address}/"})
    until("the page shows that nothing is learned", lambda: "version 0" in browser.text("state"))

    # Two classes by dropping files.
    for label, base in [("night", 20), ("day", 210)]:
        files = [png(f"{folder}/{label}-{number}.png", base, number) for number in range(24)]
        browser.drop(files)
        until("the files are taken", lambda: browser.text("chosen") == "24 images")
        browser.run("document.getElementById('label').value = arguments[0]; document.getElementById('teach').click()", label)
        until(f"{label} is taught", lambda: browser.text("said") == f"Taught 24 of 24 as {label}.")
    until("all is learned", lambda: "version 48" in browser.text("state"))

    # The answer for an image of each that it never saw.
    for label, base in [("night", 23), ("day", 207)]:
        browser.drop([png(f"{folder}/new.png", base, 40)])
        until(f"the answer is {label}", lambda: browser.text("said").startswith(f"{label}, "))

    # By keyboard alone: from the field with Enter; a name that is markup stays text.
    browser.run("document.getElementById('label').focus(); document.getElementById('label').value = ''")
    browser.keys(*STRANGE, "\ue007")
    until("the keyboard teaches", lambda: browser.text("said") == f"Taught 1 of 1 as {STRANGE}.")
    until("the name is shown", lambda: STRANGE in browser.text("classes"))
    assert browser.run("return document.querySelectorAll('img[src=x]').length") == 0, "a name became markup"
    stops = []
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    for _ in range(8):
        browser.keys("\ue004")
        stops.append(browser.run("return document.activeElement.id || document.activeElement.tagName"))
    for stop in ["file", "ask", "label", "teach"]:
        assert stop in stops, f"Tab does not lead to {stop}: {stops}"

    # What is shown.
    until("the memory is shown", lambda: browser.run("return document.querySelectorAll('#memory img').length") >= 2)
    loaded = "return [...document.querySelectorAll('#memory img')].every((image) => image.complete && image.naturalWidth > 0)"
    until("its pictures are there", lambda: browser.run(loaded))
    for place in ["accuracy", "loss", "rate", "disagreement"]:
        assert browser.run("return document.querySelectorAll('#' + arguments[0] + ' svg').length", place) == 1, place
    for name, width, scheme in [("wide-light", 1200, "light"), ("wide-dark", 1200, "dark"), ("phone-light", 375, "light"),
                                ("phone-dark", 375, "dark")]:
        browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        time.sleep(1.5)
        wide = browser.run("return document.documentElement.scrollWidth")
        assert wide <= width, f"{name}: the page is {wide} wide"
        targets = browser.run("return [...document.querySelectorAll('button:not(:disabled), #label')].map((one) => "
                              "one.getBoundingClientRect()).filter((box) => box.width > 0).map((box) => box.height)")
        assert all(height >= 40 for height in targets), f"{name}: too small to press: {targets}"
        browser.shot(f"serve-{name}.png")
    complaints = browser.do("/se/log", {"type": "browser"})
    complaints = [one["message"] for one in complaints if one["level"] != "INFO" and "favicon" not in one["message"]]
    assert not complaints, complaints


def main():
    with tempfile.TemporaryDirectory() as folder:
        keys = ["method=er", "width=4", "size=16", "memory=40", "batch=8", "updates=1", "lr=0.002", "autoaugment=none"]
        command = [PROGRAM, "serve", "--dir", f"{folder}/served", "--listen", "127.0.0.1:0"]
        for key in keys:
            command += ["--set", key]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            lines = (json.loads(line) for line in server.stderr if line.startswith("{"))
            address = next(line["address"] for line in lines if line["event"] == "listening")
            import threading
            threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
            browser = Browser(port, f"{folder}/profile")
            try:
                check(browser, address, folder)
            finally:
                browser.do("", None, "DELETE")
        finally:
            driver.terminate()
            server.terminate()
            driver.wait()
            server.wait()
    print(f"the live page taught two classes and answered; screenshots are in {SHOTS}")


if __name__ == "__main__":
    main()
