"""The daemon's page in a real browser, in front of a simulated runtime.

Usage: page.py PLEG [DIRECTORY]: the command to test, and where to keep pictures, if anywhere.
"""

import os
import sys
import time

from chromium import Browser
from node import Node, wait_for

PODS = "document.querySelectorAll('#pods tbody tr').length"
MODE = "document.getElementById('mode').textContent"
LINK = "document.getElementById('link').dataset.state"
FEED = "document.querySelectorAll('#feed tbody tr').length"


def said(text):
    print(text, flush=True)


class Test:
    def __init__(self, pleg, pictures):
        self.pleg, self.pictures = pleg, pictures
        self.browser = Browser()
        self.node = None

    def close(self):
        self.browser.close()
        if self.node:
            self.node.close()

    def picture(self, page, name):
        if self.pictures:
            page.picture(os.path.join(self.pictures, f"{name}.png"))

    def quiet(self, page, expected=()):
        """The page complained of nothing, but of what was done to it."""
        for complaint in page.complaints:
            # A pod that was told of may be gone when it is asked for.
            is_gone = "404 (Not Found)" in complaint and "/api/v1/pods/" in complaint
            # And interfaces of the machine come and go, which Chromium takes to heart.
            is_gone = is_gone or "ERR_NETWORK_CHANGED" in complaint
            if not is_gone and not any(part in complaint for part in expected):
                raise AssertionError(f"the page complains: {complaint}")
        page.complaints.clear()

    def an_error_of_a_page_is_seen(self):
        page = self.browser.page()
        page.open("data:text/html,<script>throw new Error('on purpose')</script>")
        page.until("document.readyState === 'complete'")
        assert any("on purpose" in complaint for complaint in page.complaints), page.complaints

    def what_the_daemon_says_is_shown(self, page):
        page.open(self.node.url)
        page.until(f"{LINK} === 'live'")
        page.until(f"{MODE} === 'Evented'", why="the stream proves itself")
        page.until(f"{PODS} >= 8")
        words = page.ask("document.getElementById('words').textContent")
        assert words.startswith("Events, audited every "), words
        status = self.node.get("/api/v1/status")
        runtime = page.ask("document.getElementById('facts').innerText")
        assert status["runtime"]["version"] in runtime, runtime
        said(f"shown: {words}")

    def pods_are_those_of_the_api(self, page):
        def same():
            listed = {pod["name"]: phases(pod) for pod in self.node.get("/api/v1/pods")["items"]}
            shown = page.ask("""Object.fromEntries([...document.querySelectorAll('#pods tbody tr')].map((row) =>
                [row.querySelector('bdi').textContent, [...row.querySelectorAll('.phases li')].map((item) =>
                  item.textContent.replace(/exited .*/, 'exited')).sort()]))""")
            return listed == shown

        wait_for(same, "the page and the API to say the same of every pod", 60)
        said(f"{page.ask(PODS)} pods, each with its containers' phases as in the API")

    def events_appear(self, page):
        before = page.ask("told")
        self.node.burst()
        took = page.until(f"told >= {before} + 20", why="a burst of 20 ends and starts")
        page.until(f"{FEED} >= 20 && document.getElementById('no-feed').hidden")
        first = page.ask("document.querySelector('#feed tbody tr').innerText")
        assert any(word in first for word in ("Started", "Died", "Removed")), first
        said(f"a burst is in the feed within {took:.1f} s")

    def why_a_node_polls_is_said(self, page, name, break_it, mend_it, expected):
        break_it()
        took = page.until(f"{MODE}.startsWith('Polling')", 60, "the mode to change")
        page.until("!document.getElementById('why').hidden")
        mode, why = page.ask(MODE), page.ask("document.getElementById('why').innerText")
        for part in ("Why", "What it means", "What to look at"):
            assert part in why, why
        assert mode == f"Polling: {expected}", mode
        assert mode.split(": ")[1] in page.ask("document.title")
        page.until("[...document.querySelectorAll('#feed .note')].some((cell) => cell.textContent === 'Mode')")
        self.picture(page, f"polling-{name}")
        if name == "unresponsive":
            # Nothing moves now, after much that did: the page must have it all as the API has.
            self.pods_are_those_of_the_api(page)
        mend_it()
        back = page.until(f"{MODE} === 'Evented'", 90, "events to drive again")
        said(f"{mode}: shown with its reason {took:.1f} s after; events again {back:.1f} s after it was mended")

    def the_page_finds_its_way_back(self, page):
        epoch = self.node.get("/api/v1/status")["epoch"]
        # Whatever is in the feed by now is from before.
        page.ask("document.querySelectorAll('#feed .note').forEach((cell) => cell.parentNode.remove())")
        self.node.kill_daemon()
        page.until(f"{LINK} === 'lost'", why="the page to see that the daemon is gone")
        page.until(f"{MODE} === 'Daemon unreachable'")
        self.picture(page, "unreachable")
        assert page.ask(PODS) >= 1, "what was known stays to be read"
        self.node.start_daemon()
        assert self.node.get("/api/v1/status")["epoch"] != epoch
        took = page.until(f"{LINK} === 'live'", 60, "the page to come back")
        page.until("[...document.querySelectorAll('#feed tr')].some((row) => row.innerText.includes('List again'))",
                   why="it to be told to list again")
        page.until(f"{MODE} === 'Evented'", 60)
        before = page.ask("told")
        self.node.burst()
        page.until(f"told > {before}", why="events to go on")
        said(f"back {took:.1f} s after the daemon, told to list again, and events go on")

    def a_keyboard_is_enough(self, page):
        page.ask("document.activeElement.blur(); scrollTo(0, 0)")
        stops = []
        for _ in range(12):
            page.tab()
            stops.append(page.ask("""(() => { const at = document.activeElement, style = getComputedStyle(at);
                return at === document.body ? '' : (at.id || at.className || at.tagName) +
                  (style.outlineStyle === 'none' ? ' (unseen)' : ''); })()"""))
        for stop in ("skip", "trouble", "filter", "scroll", "pause"):
            assert stop in stops, f"{stop} cannot be reached: {stops}"
        assert not any("unseen" in stop for stop in stops), stops
        page.ask("document.getElementById('filter').focus()")
        name = page.ask("document.querySelector('#pods bdi').textContent")
        page.type(name)
        page.until("[...document.querySelectorAll('#pods tbody tr')].filter((row) => !row.hidden).length >= 1")
        shown = page.ask("document.getElementById('pods-count').textContent")
        assert " of " in shown, shown
        page.type(" nobody")
        page.until("!document.getElementById('no-pods').hidden")
        page.ask("(() => { const box = document.getElementById('filter'); box.value = ''; box.dispatchEvent(new Event('input')); })()")
        page.ask("document.getElementById('pause').focus()")
        page.press("Enter", "\r")
        assert page.ask("document.getElementById('pause').getAttribute('aria-pressed')") == "true"
        page.press("Enter", "\r")
        assert page.ask("document.getElementById('pause').getAttribute('aria-pressed')") == "false"
        said("a keyboard reaches everything, and sees where it is")

    def a_screen_reader_finds_its_way(self, page):
        nodes = page.call("Accessibility.getFullAXTree")["nodes"]
        found = {}
        for node in nodes:
            role = node.get("role", {}).get("value")
            name = node.get("name", {}).get("value", "")
            if not node.get("ignored"):
                found.setdefault(role, []).append(name)
        for role in ("main", "banner", "heading", "table", "columnheader", "rowheader", "searchbox",
                     "checkbox", "button", "status", "region"):
            assert found.get(role), f"there is no {role}: {sorted(key or '' for key in found)}"
        for role in ("table", "searchbox", "checkbox", "button", "region", "heading"):
            assert all(found[role]), f"a {role} has no name: {found[role]}"
        said(f"a screen reader finds {', '.join(f'{len(found[role])} {role}' for role in ('heading', 'region', 'table', 'status'))}")

    def nothing_is_asked_of_others(self, page):
        for url in page.requests:
            assert url.startswith((self.node.url, "data:")), url
        refused = page.ask(f"fetch('http://localhost:1/').then(() => 'sent', (error) => error.name)")
        assert refused == "TypeError"
        page.until("true")
        blocked = [one for one in page.complaints if "Content Security Policy" in one]
        assert blocked, "its policy should have refused that"
        page.complaints = [one for one in page.complaints
                           if "Content Security Policy" not in one and "localhost:1" not in one]
        said(f"{len(page.requests)} requests, all to the daemon; its policy refuses others")

    def contrast_is_enough(self, page):
        for scheme in ("light", "dark"):
            page.colours(scheme)
            page.until("true")
            poor = page.ask(CONTRAST)
            assert not poor, f"{scheme}: {poor}"
            self.picture(page, scheme)
        page.colours("light")
        said("text has a contrast of 4.5 or more, light and dark")

    def five_hundred_pods_are_fine(self):
        self.node.close()
        self.node = Node(self.pleg, pods=500, churn="50/s")
        page = self.browser.page()
        page.call("Performance.enable")
        began = time.monotonic()
        page.open(self.node.url)
        page.until(f"{PODS} >= 480", 60)
        listed = time.monotonic() - began
        page.until("told > 100", 60)
        cpu = [spent(page)]
        requests = len(page.requests)
        time.sleep(10)
        cpu.append(spent(page))
        busy = (cpu[1] - cpu[0]) / 10
        asked = (len(page.requests) - requests) / 10
        self.picture(page, "five-hundred")
        frame = page.ask("""new Promise((done) => { const began = performance.now();
            requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began))); })""")
        # A hundred events a second are told; they must not become as many requests, or as much work.
        assert asked < 12, f"{asked} requests a second"
        assert busy < 0.9, f"{busy:.0%} of a core"
        self.quiet(page)
        said(f"500 pods are listed {listed:.1f} s after opening; under churn the page takes {busy:.0%} of a core, "
             f"{asked:.1f} requests a second, a frame in {frame:.0f} ms")

    def run(self):
        self.an_error_of_a_page_is_seen()
        self.node = Node(self.pleg)
        page = self.browser.page()
        self.what_the_daemon_says_is_shown(page)
        self.events_appear(page)
        self.a_screen_reader_finds_its_way(page)
        self.a_keyboard_is_enough(page)
        self.contrast_is_enough(page)
        self.nothing_is_asked_of_others(page)
        self.quiet(page)
        self.why_a_node_polls_is_said(
            page, "unresponsive", lambda: self.node.freeze(), lambda: self.node.freeze(False),
            "Unresponsive")
        self.why_a_node_polls_is_said(
            page, "broken", self.node.kill_runtime, self.node.start_runtime, "StreamBroken")
        self.quiet(page)
        self.the_page_finds_its_way_back(page)
        self.quiet(page, expected=("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE",
                                   "ERR_CONNECTION_RESET", "ERR_SOCKET_NOT_CONNECTED"))
        self.node.close()
        self.node = Node(self.pleg, churn="0/s")
        page.open(self.node.url)
        page.until(f"{LINK} === 'live' && {PODS} >= 8")
        self.pods_are_those_of_the_api(page)
        self.node.burst()
        self.pods_are_those_of_the_api(page)
        self.five_hundred_pods_are_fine()


def phases(pod):
    """What the page must show of a pod, from what the API says of it."""
    is_up = any(one["state"] == "Running" for one in pod["sandboxes"])
    shown = [] if is_up else ["sandbox not ready"]
    by_name = {}
    for one in pod["containers"]:
        held = by_name.get(one["name"])
        if held is None or one["attempt"] > held["attempt"]:
            by_name[one["name"]] = one
    return sorted(shown + [f"{one['name']} {one['state'].lower()}" for one in by_name.values()])


def spent(page):
    metrics = page.call("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "ThreadTime")


# Each text's colour against the first background behind it that is not transparent, by WCAG 2.
CONTRAST = """(() => {
  const channel = (value) => { value /= 255; return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const poor = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length || element.closest('.unseen, .skip, .changed, script, style')) continue;
    let behind = element, back = [255, 255, 255];
    for (; behind; behind = behind.parentElement) {
      const colour = parse(getComputedStyle(behind).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) { back = colour; break; }
    }
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(element.tagName + '.' + element.className + ' ' + element.textContent.slice(0, 20) + ' ' + ratio.toFixed(2));
  }
  return [...new Set(poor)].slice(0, 10).join('; ');
})()"""


def main():
    pleg = os.path.abspath(sys.argv[1])
    pictures = sys.argv[2] if len(sys.argv) > 2 else None
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    test = Test(pleg, pictures)
    began = time.monotonic()
    try:
        test.run()
    finally:
        test.close()
    said(f"the page passed in {time.monotonic() - began:.0f} s")


main()
