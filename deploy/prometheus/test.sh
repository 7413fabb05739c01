#!/usr/bin/env bash
# The rules and alerts under promtool: they are well-formed, each alert fires in a test and stays quiet in
# another, and what the daemon serves is what Prometheus' own linter wants.
#
# Takes promtool from the path, or unpacks Debian's prometheus package. PLEG is the command to scrape; if
# unset, the debug build. SCRAPE=FILE takes a scrape that is there already instead.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
daemon=
cleanup() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

promtool=$(command -v promtool || true)
if [ -z "$promtool" ]; then
    (
        cd "$work"
        apt-get download -q prometheus >/dev/null 2>&1 ||
            { apt-get update -qq && apt-get download -q prometheus; } >/dev/null
        dpkg -x prometheus_*.deb prometheus
    )
    promtool=$work/prometheus/usr/bin/promtool
fi

rules=deploy/prometheus
"$promtool" check rules "$rules/rules.yaml" "$rules/alerts.yaml"
"$promtool" test rules "$rules/rules_test.yaml"

# An alert that no test has seen fire and none has seen quiet is an alert that nobody tested.
for alert in $(sed -n 's/^ *- alert: *//p' "$rules/alerts.yaml"); do
    fires=$(grep -c "labels: 'ALERTS{alertname=\"$alert\"" "$rules/rules_test.yaml" || true)
    quiet=$(grep -c "{expr: 'ALERTS{alertname=\"$alert\"" "$rules/rules_test.yaml" || true)
    [ "$fires" -gt 0 ] && [ "$quiet" -gt 0 ] ||
        { echo "$alert: seen to fire in $fires tests, and to be quiet in $quiet" >&2; exit 1; }
    grep -A12 -E "^ *- alert: $alert\$" "$rules/alerts.yaml" | grep -q 'runbook: |' ||
        { echo "$alert has no runbook" >&2; exit 1; }
done
# And the tests must be able to fail: with a bound moved out of reach, one does.
sed 's/pleg_healthy == 0/pleg_healthy == 7/' "$rules/alerts.yaml" >"$work/alerts.yaml"
cp "$rules/rules.yaml" "$rules/rules_test.yaml" "$work/"
if "$promtool" test rules "$work/rules_test.yaml" >/dev/null 2>&1; then
    echo "a rule that never fires passed its test" >&2
    exit 1
fi

if [ -z "${SCRAPE:-}" ]; then
    if [ -z "${PLEG:-}" ]; then
        cargo build --quiet
        PLEG=target/debug/pleg
    fi
    SCRAPE=$work/scrape
    "$PLEG" run --simulate --http-listen 127.0.0.1:0 --grpc-listen "unix://$work/pleg.sock" 2>"$work/log" &
    daemon=$!
    for _ in $(seq 100); do
        address=$(sed -n 's/.*http:\/\/\(127\.0\.0\.1:[1-9][0-9]*\).*/\1/p' "$work/log" | head -n 1)
        [ -n "$address" ] && curl -sf "http://$address/readyz" >/dev/null && break
        sleep 0.1
    done
    [ -n "$address" ] || { cat "$work/log" >&2; exit 1; }
    curl -sf "http://$address/metrics" >"$SCRAPE"
fi
"$promtool" check metrics <"$SCRAPE"
echo "$(grep -c '^# TYPE' "$SCRAPE") families, $(grep -vc '^#' "$SCRAPE") samples: promtool has no complaint"
