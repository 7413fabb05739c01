#!/usr/bin/env bash
# Runs every command of README.md that a stranger would type, in its order, from what the file says now.
#
#   tests/readme.sh        after `cargo build --release`; wants no root and no runtime
#
# Lines with `$` are run. Those that serve go on in the background until their block ends. Left to other tests:
# `cargo test` itself, and the package (tests/deb/run.sh), to which the lines with `#`, for root, belong too.
set -euo pipefail
cd "$(dirname "$0")/.."
export NO_COLOR=1

commands=0
servers=()
finished() {
    [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null || true
    wait
    servers=()
}
trap finished EXIT

run() {
    case $1 in
        "cargo test"* | "cargo install "* | deploy/deb/*) return 0 ;;
    esac
    commands=$((commands + 1))
    echo "\$ $1"
    case $1 in
        *"pleg run "* | *"pleg simulate "*)
            # `exec`, so that what is ended is the command and no shell around it.
            bash -c "exec $1" >/dev/null 2>&1 </dev/null &
            servers+=($!)
            sleep 2
            ;;
        *) bash -c "$1" >"$output" </dev/null || { cat "$output" >&2; echo "README: this failed: $1" >&2; exit 1; } ;;
    esac
    [ ! -s "$output" ] || head -3 "$output" | cut -c1-100
    : >"$output"
}

output=$(mktemp)
inside=
while IFS= read -r line; do
    case $line in
        '```console') inside=yes ;;
        '```') [ -z "$inside" ] || finished; inside= ;;
        '$ '*) [ -z "$inside" ] || run "${line#\$ }" ;;
    esac
done <README.md
rm -f "$output" /tmp/node.jsonl.zst /tmp/report.html
[ "$commands" -ge 10 ] || { echo "README: only $commands commands were found" >&2; exit 1; }
echo "README: $commands commands ran"
