#!/usr/bin/env bash
# The image as a pod under real containerd 1.7 and 2.1, watching the very runtime that runs it, started with
# what deploy/kubernetes/pleg.yaml asks for; then a client of pleg.v1 in Python, and curl across a restart.
#
#   tests/deploy/run.sh [VERSION …]
#
# Needs root on amd64 Debian, as tests/testbed.sh does, and Python with pip.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=target/deploy
mkdir -p "$tools/stubs"
if ! "$tools/venv/bin/python" -c 'import grpc_tools, yaml' 2>/dev/null; then
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check grpcio grpcio-tools pyyaml
fi
python=$tools/venv/bin/python
"$python" -m grpc_tools.protoc -I tests/deploy --python_out="$tools/stubs" --grpc_python_out="$tools/stubs" cri.proto
"$python" -m grpc_tools.protoc -I proto --python_out="$tools/stubs" --grpc_python_out="$tools/stubs" pleg/v1/pleg.proto

[ -n "${PLEG_IMAGE:-}" ] || { deploy/image/build.sh "$tools/pleg.oci.tar"; PLEG_IMAGE=$tools/pleg.oci.tar; }

versions=("$@")
[ ${#versions[@]} -gt 0 ] || versions=(1.7 2.1)
tests/testbed.sh install "${versions[@]}"
for version in "${versions[@]}"; do
    directory=$(mktemp -d /tmp/pleg-deploy.XXXXXX)
    # Whatever ends this script ends the daemon too.
    exec {guard}> >(exec tests/testbed.sh guard "$directory" >/dev/null)
    tests/testbed.sh start "$version" "$directory" >/dev/null
    tests/testbed.sh image "$directory"
    "$directory/ctr" -n k8s.io images import "$PLEG_IMAGE" >/dev/null
    "$python" tests/deploy/in_a_pod.py "$directory" "$version" "$PWD/$tools/stubs"
    tests/testbed.sh stop "$directory"
    exec {guard}>&-
done

# The same client where much happens: it resumes after an event that it has had.
socket=$(mktemp -u /tmp/pleg-deploy.XXXXXX.sock)
target/x86_64-unknown-linux-gnu/release/pleg run --simulate --grpc-listen "unix://$socket" --http-listen off 2>/dev/null &
sleep 2
"$python" tests/deploy/client.py "unix://$socket" "$tools/stubs" --during ""
kill $! && wait $!
