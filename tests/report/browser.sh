#!/usr/bin/env bash
# A report of a busy node in a real browser: it has its lanes, its filter works, and it complains of nothing.
# Installs Debian's Chromium where it is missing. PLEG is the command to test; if unset, the debug build.
# SCREENSHOT=FILE.png keeps a picture; COLOURS=dark takes it in the dark.
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v chromium >/dev/null ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null
if [ -z "${PLEG:-}" ]; then
    cargo build --quiet
    PLEG=target/debug/pleg
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

browse() {
    timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
        --user-data-dir="$work/profile" --enable-logging=stderr --virtual-time-budget=2000 "$@" 2>"$work/log"
}

# What a page logs comes as "CONSOLE"; a page that fails must be seen to, or the check is none.
echo '<script>throw new Error("on purpose")</script>' >"$work/failing.html"
browse --dump-dom "file://$work/failing.html" >/dev/null
grep -q 'CONSOLE.*on purpose' "$work/log" || { echo "an error of a page is not seen" >&2; exit 1; }

"$PLEG" replay tests/report/busy-node.yaml --report "$work/report.html"
if grep -nE '(https?:)?//[a-z0-9]+\.[a-z]|@import|url\(' "$work/report.html"; then
    echo "the report names an outside address" >&2
    exit 1
fi

look() {
    browse --dump-dom "file://$work/report.html$1" >"$work/dom.html"
    if grep 'CONSOLE' "$work/log"; then
        echo "the page complains, at '$1'" >&2
        exit 1
    fi
    python3 - "$work/dom.html" "${@:2}" <<'PYTHON'
import sys
from html.parser import HTMLParser

class Page(HTMLParser):
    shown, hidden, marks, count, stack = [], [], 0, "", None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = (attributes.get("class") or "").split()
        if "lane" in classes:
            name = attributes["data-pod"].split()[0]
            (self.hidden if "hidden" in attributes else self.shown).append(name)
        if tag == "use" and "mark" in classes:
            self.marks += 1
        self.stack = attributes.get("id")

    def handle_data(self, data):
        if self.stack == "count":
            self.count += data.strip()

page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
expected = sorted(sys.argv[3:])
assert page.count == sys.argv[2], f"the page counts {page.count!r}, not {sys.argv[2]!r}"
assert sorted(page.shown) == expected, f"shown: {sorted(page.shown)}, expected: {expected}"
assert len(page.shown) + len(page.hidden) == 12, f"{len(page.shown)} and {len(page.hidden)} lanes"
assert page.marks > 80, f"only {page.marks} marks"
print(f"{page.count}: {len(page.shown)} lanes shown, {len(page.hidden)} hidden, {page.marks} marks")
PYTHON
}

look '' '12 pods' api-1 api-2 crashy db job log-agent web-0 web-1 web-2 web-3 web-4 web-5
look '#pod=crashy' '1 of 12 pods' crashy
look '#pod=API-' '2 of 12 pods' api-1 api-2
look '#pod=%3Cnobody%3E' '0 of 12 pods'
look '#pod=%' '0 of 12 pods'

# A click on a mark, and on a band, tells what hovering over it tells.
clicked() {
    sed "s|</body>|<script>document.querySelector('$1').dispatchEvent(new MouseEvent('click', {bubbles: true}))</script></body>|" \
        "$work/report.html" >"$work/clicked.html"
    browse --dump-dom "file://$work/clicked.html" | tr '\n' ' ' | grep -qE "<pre id=\"details\"[^>]*>[^<]*$2" ||
        { echo "a click on $1 does not tell '$2'" >&2; exit 1; }
    echo "a click on $1 tells '$2'"
}
clicked '.lane .mark' 'Started'
clicked '.band.polling rect' 'Polling'

if [ -n "${SCREENSHOT:-}" ]; then
    scheme=()
    [ "${COLOURS:-light}" = dark ] && scheme=(--blink-settings=preferredColorScheme=0)
    browse "${scheme[@]}" --screenshot="$SCREENSHOT" --window-size=1400,900 "file://$work/report.html"
fi
