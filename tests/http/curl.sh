#!/usr/bin/env bash
# The daemon's HTTP with nothing but curl, over real sockets: who is answered, who is not, and what a
# watcher is told that was there before a restart. PLEG is the command to test; if unset, the debug build.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${PLEG:-}" ]; then
    cargo build --quiet
    PLEG=target/debug/pleg
fi
PLEG=$(realpath "$PLEG")
work=$(mktemp -d)
daemon='' runtime='' address=127.0.0.1:0
cleanup() {
    for process in $daemon $runtime; do
        kill -9 "$process" 2>/dev/null || continue
        wait "$process" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap cleanup EXIT
fail() {
    echo "$1" >&2
    tail -n 20 "$work"/*.log >&2
    exit 1
}

# Waits for a command to succeed.
until_true() {
    for _ in $(seq 300); do
        "$@" && return
        sleep 0.1
    done
    fail "waited 30 s for: $*"
}

start_daemon() {
    : >"$work/daemon.log"
    "$PLEG" run --runtime-endpoint "unix://$work/cri.sock" "$@" \
        --http-listen "$address" --grpc-listen "unix://$work/pleg.sock" >>"$work/daemon.log" 2>&1 &
    daemon=$!
    until_true grep -q 'http://127\.0\.0\.1:' "$work/daemon.log"
    address=$(sed -n 's/.*http:\/\/\(127\.0\.0\.1:[0-9]*\).*/\1/p' "$work/daemon.log" | head -n 1)
    until_true curl -sf -o /dev/null "http://$address/readyz"
}

code() {
    curl -s -o "$work/answer" -w '%{http_code}' "$@"
}
expect() {
    local wanted=$1 got
    shift
    got=$(code "$@") || true
    [ "$got" = "$wanted" ] || fail "$got instead of $wanted: curl $* $(cat "$work/answer")"
}

"$PLEG" simulate --listen "unix://$work/cri.sock" --pods 3 --churn 20/s --seed 7 >"$work/runtime.log" 2>&1 &
runtime=$!
until_true test -S "$work/cri.sock"
start_daemon

# Who is answered.
expect 200 "http://$address/livez"
expect 200 "http://$address/readyz?verbose"
grep -q '^\[+\]relist ok$' "$work/answer" || fail "readyz: $(cat "$work/answer")"
expect 200 "http://$address/metrics"
grep -q '^pleg_mode{' "$work/answer" || fail 'no mode among the metrics'
expect 421 -H 'Host: evil.example' "http://$address/api/v1/pods"
expect 405 -X POST -d '' "http://$address/api/v1/pods"
expect 413 -X GET -d '{}' "http://$address/api/v1/pods"
expect 431 -H "X: $(head -c 9000 /dev/zero | tr '\0' x)" "http://$address/api/v1/pods"
expect 404 "http://$address/none"
expect 400 "http://$address/api/v1/pods/x?newerThan=2026-11-30T12:00:00Z"
# Pods come and go under this churn: one of those that are listed is there still.
fresh_pod() {
    for uid in $(curl -s "http://$address/api/v1/pods" | grep -o '"uid":"[^"]*"' | cut -d'"' -f4); do
        [ "$(code "http://$address/api/v1/pods/$uid?newerThan=now")" != 200 ] || return 0
    done
    return 1
}
until_true fresh_pod
grep -q '"observed":"' "$work/answer" || fail "no mark: $(cat "$work/answer")"
echo 'who must be answered is, and who must not is not'

# Listening to everybody takes a word of its own.
if "$PLEG" run --runtime-endpoint "unix://$work/cri.sock" --http-listen 0.0.0.0:0 \
    --grpc-listen "unix://$work/other.sock" >"$work/refused.log" 2>&1; then
    fail 'it listens to everybody without having been told to'
fi
grep -qi 'allow' "$work/refused.log" || fail 'it does not say how to allow it'

# A watcher that comes back within a life of the daemon is told exactly what followed.
follow() {
    curl -sN -m "$1" ${2:+-H "Last-Event-ID: $2"} "http://$address/api/v1/events" || true
}
follow 2 >"$work/first"
grep -q '^event: snapshot-begin' "$work/first" || fail 'no snapshot'
id=$(sed -n 's/^id: //p' "$work/first" | tail -n 1)
[ -n "$id" ] || fail 'no id'
sleep 1
follow 2 "$id" >"$work/second"
if grep -q -e '^event: snapshot-begin' -e '^event: list-again' "$work/second"; then
    fail 'a watcher that could go on had to list'
fi
grep '^data: .*"revision"' "$work/first" "$work/second" -h |
    grep '"initial":false' | grep -o '"revision":[0-9]*' | cut -d: -f2 >"$work/revisions"
[ "$(wc -l <"$work/revisions")" -gt 20 ] || fail 'too little happened'
sort -nu "$work/revisions" | cmp -s - "$work/revisions" || fail 'an event came twice, or out of order'
echo "$(wc -l <"$work/revisions") events over two visits, each once and in order"

# One that was there before a restart is told to list again.
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
id=$(sed -n 's/^id: //p' "$work/second" | tail -n 1)
start_daemon
follow 2 "$id" >"$work/third"
grep -q '^event: list-again' "$work/third" || fail 'a watcher from before the restart was not told'
grep -A1 '^event: list-again' "$work/third" | grep -q '"reason":"OtherEpoch"' || fail 'not with the reason'
grep -q '^event: snapshot-end' "$work/third" || fail 'no snapshot after it'
grep -m 1 -A1 '^event: list-again' "$work/third"

# Its end is soon, with watchers there.
follow 60 >"$work/fourth" &
until_true grep -q '^event: snapshot-end' "$work/fourth"
began=$(date +%s%N)
kill -TERM "$daemon"
wait "$daemon" || fail "it ended with $?"
took=$((($(date +%s%N) - began) / 1000000))
daemon=
[ "$took" -lt 5000 ] || fail "SIGTERM took $took ms"
echo "SIGTERM ended it and its watcher within $took ms"
