#!/usr/bin/env bash
# Runs the guide: every block of docs/*.md and scenarios/README.md that is a command. A block says after its
# language what is to become of it:
#
#     sh run           run here, in a folder with nothing but the scenarios, without a runtime
#     sh run daemon    the same, with a daemon on a simulated node where the guide says that one listens
#     sh node          needs a real node: its commands and flags are checked against --help, and not run
#
# A block of sh, bash or console that says nothing fails. Rust is run as doctests, see src/lib.rs. PLEG is the
# command; if unset, the debug build.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ -z "${PLEG:-}" ]; then
    cargo build --quiet --manifest-path "$root/Cargo.toml"
    PLEG=${CARGO_TARGET_DIR:-$root/target}/debug/pleg
fi
PLEG=$(realpath "$PLEG")
work=$(mktemp -d)
daemon='' address=''
cleanup() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT
mkdir "$work/bin"
ln -s "$PLEG" "$work/bin/pleg"

guide=("$root"/docs/*.md "$root/scenarios/README.md")

# Code that is only indented would go unseen.
if grep -nE '^    (\$ )?(pleg|curl) ' "${guide[@]}"; then
    echo "the guide's commands stand in fenced blocks, with what is to become of them" >&2
    exit 1
fi

# Every link leads somewhere.
for file in "${guide[@]}"; do
    for target in $(grep -oE '\]\([^)# ]+' "$file" | cut -c3- | grep -v '^https\?:' || true); do
        [ -e "$(dirname "$file")/$target" ] || {
            echo "$file links to $target, which is not there" >&2
            exit 1
        }
    done
done

# Writes each block to blocks/FILE:LINE with its marks in the first line; console blocks as the commands typed.
mkdir "$work/blocks"
for file in "${guide[@]}"; do
    name=${file#"$root/"}
    awk -v out="$work/blocks/${name//\//+}" '
        /^```/ && !inside {
            split(substr($0, 4), words, " ")
            language = words[1]
            if (language ~ /^(sh|bash|console|shell)$/) {
                name = out ":" FNR
                print substr($0, 4) > name
                inside = 2
            } else inside = 1
            next
        }
        /^```/ { if (inside == 2) close(name); inside = 0; next }
        inside == 2 && language == "console" { if (sub(/^\$ /, "")) print >> name; next }
        inside == 2 { print >> name }
        END { if (inside) { print "a block does not end: " FILENAME > "/dev/stderr"; exit 1 } }
    ' "$file"
done

start_daemon() {
    [ -z "$daemon" ] || return 0
    "$PLEG" run --simulate --seed 7 --grpc-listen "unix://$work/pleg.sock" --http-listen 127.0.0.1:0 \
        >"$work/daemon.log" 2>&1 &
    daemon=$!
    for _ in $(seq 100); do
        address=$(sed -n 's/.*http:\/\/\(127\.0\.0\.1:[0-9]*\).*/\1/p' "$work/daemon.log" | head -n 1)
        [ -z "$address" ] || ! curl -sf -o /dev/null "http://$address/readyz" || return 0
        sleep 0.1
    done
    cat "$work/daemon.log" >&2
    return 1
}

# What only a real node can do: does every command exist, with every flag?
check_flags() {
    local line words help flag
    while read -r line; do
        line=${line%%#*}
        [[ $line == pleg\ * ]] || { [ -z "$line" ] && continue; echo "not a command of pleg: $line"; return 1; }
        read -ra words <<<"$line"
        help=$("$PLEG" "${words[1]}" --help) || return 1
        for flag in "${words[@]:2}"; do
            [[ $flag != -* ]] || grep -qE -- "(^|[ ,])$flag([ ,<]|$)" <<<"$help" || {
                echo "pleg ${words[1]} has no $flag"
                return 1
            }
        done
    done
}

ran=0 checked=0 failed=0
for block in $(ls "$work/blocks" | sort -V); do
    marks=$(head -n 1 "$work/blocks/$block")
    marks=${marks#* }
    script=$work/script
    tail -n +2 "$work/blocks/$block" >"$script"
    folder=$(mktemp -d -p "$work")
    ln -s "$root/scenarios" "$folder/scenarios"
    began=$EPOCHSECONDS
    outcome=ok
    case $marks in
    run | 'run daemon')
        environment=(PATH="$work/bin:$PATH" HOME="$folder" CRI_CONFIG_FILE=/dev/null)
        if [ "$marks" = 'run daemon' ]; then
            start_daemon
            environment+=(PLEG_DAEMON="unix://$work/pleg.sock")
            sed -i "s|127\.0\.0\.1:9641|$address|g" "$script"
        fi
        (cd "$folder" && env "${environment[@]}" timeout 120 bash -euo pipefail "$script") \
            >"$folder.out" 2>&1 </dev/null || outcome="failed with $?"
        ran=$((ran + 1))
        ;;
    node)
        { bash -n "$script" && check_flags <"$script"; } >"$folder.out" 2>&1 || outcome='does not fit the command'
        checked=$((checked + 1))
        ;;
    *)
        echo "it is not marked with what is to become of it: '$marks'" >"$folder.out"
        outcome='unmarked'
        ;;
    esac
    echo "${block//+//} ($marks): $outcome, $((EPOCHSECONDS - began)) s"
    if [ "$outcome" != ok ]; then
        failed=$((failed + 1))
        cat "$script" "$folder.out" >&2
    fi
done
echo "$ran blocks run, $checked checked, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
