"""A client of pleg.v1 that shares no code with pleg: Python's gRPC, with stubs made from proto/pleg/v1.

It lists, watches from the list's position, resumes after an event it has had, asks for a pod newer than now,
asks for a relist, reads the status, and is told to list again for a position of another life.

usage: client.py SOCKET STUBS [--during COMMAND]     COMMAND makes events while the client watches
"""

import subprocess
import sys

sys.path.insert(0, sys.argv[2])

import grpc  # noqa: E402

from pleg.v1 import pleg_pb2 as pb  # noqa: E402
from pleg.v1 import pleg_pb2_grpc  # noqa: E402


def after(position):
    # `from` is a word of Python's, so it goes in by name.
    return pb.WatchRequest(
        position=position, client="python", **{"from": pb.WATCH_FROM_POSITION}
    )


def events(stream, count):
    """The next so many events of a stream, with the position after each."""
    found = []
    for answer in stream:
        if answer.WhichOneof("told") == "event":
            found.append((answer.event, answer.position))
            if len(found) == count:
                break
    return found


def refused(stream):
    """The status that a stream ends with at once."""
    try:
        next(iter(stream))
    except grpc.RpcError as error:
        return error
    raise AssertionError("the stream was not refused")


def main():
    # gRPC's C core names a unix socket's path as the host, which servers in Rust refuse as no host.
    channel = grpc.insecure_channel(sys.argv[1], [("grpc.default_authority", "localhost")])
    pleg = pleg_pb2_grpc.PlegStub(channel)

    listed = pleg.ListPods(pb.ListPodsRequest(), timeout=10)
    assert listed.items, "no pods"
    uid = listed.items[0].pod.uid

    # A snapshot ends, and its end has a position.
    snapshot = pleg.Watch(pb.WatchRequest(client="python"), timeout=10)
    initial = 0
    for answer in snapshot:
        if answer.WhichOneof("told") == "snapshot_end":
            assert answer.position
            break
        assert answer.event.initial
        initial += 1
    snapshot.cancel()
    assert initial >= len(listed.items), (initial, len(listed.items))

    resumed = 0
    if "--during" in sys.argv:
        command = sys.argv[sys.argv.index("--during") + 1]
        stream = pleg.Watch(after(listed.position), timeout=60)
        if command:
            subprocess.run(command, shell=True, check=True)
        seen = events(stream, 4)
        stream.cancel()
        stream = pleg.Watch(after(seen[1][1]), timeout=60)
        rest = events(stream, 2)
        stream.cancel()
        assert [it[0].revision for it in rest] == [it[0].revision for it in seen[2:4]]
        resumed = len(rest)

    mark = pleg.TakeMark(pb.TakeMarkRequest(), timeout=10).mark
    for newer_than in ["", "now", mark]:
        got = pleg.GetPod(pb.GetPodRequest(uid=uid, newer_than=newer_than), timeout=30)
        assert newer_than == "" or got.observed, newer_than
    pleg.RequestRelist(pb.RequestRelistRequest(), timeout=10)
    status = pleg.GetStatus(pb.GetStatusRequest(), timeout=10)
    assert status.words and status.verdict == pb.VERDICT_HEALTHY, status

    error = refused(pleg.Watch(after("0123456789abcdef-1"), timeout=10))
    assert error.code() == grpc.StatusCode.OUT_OF_RANGE, error
    trailers = dict(error.trailing_metadata())
    assert trailers["pleg-list-again"] == "OtherEpoch", trailers

    error = refused(pleg.Watch(after("2026-11-30T10:00:00Z"), timeout=10))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error

    print(
        f"a client in Python: {len(listed.items)} pods listed, {initial} events in the snapshot, "
        f"{resumed} after resuming, told to list again: {trailers['pleg-list-again']}; {status.words}"
    )


if __name__ == "__main__":
    main()
