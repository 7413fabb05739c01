"""A simulated runtime and the daemon that follows it, as processes that can be stopped and killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request


class Node:
    """A runtime on a socket of its own, and `pleg run` in front of it."""

    def __init__(self, pleg, pods=8, churn="6/s"):
        self.pleg = pleg
        self.pods, self.churn = pods, churn
        self.work = tempfile.mkdtemp(prefix="page-node-")
        self.socket = os.path.join(self.work, "cri.sock")
        self.address = "127.0.0.1:0"
        self.runtime = self.daemon = None
        self.start_runtime()
        self.start_daemon()

    def start_runtime(self, *more):
        if os.path.exists(self.socket):
            os.remove(self.socket)
        log = open(os.path.join(self.work, "runtime.log"), "ab")
        # The same seed makes the same pods: a runtime that comes back has them still.
        self.runtime = subprocess.Popen(
            [self.pleg, "simulate", "--listen", f"unix://{self.socket}", "--pods", str(self.pods),
             "--churn", self.churn, "--seed", "7", "--burst", "20", *more],
            stdout=log, stderr=log)
        wait_for(lambda: os.path.exists(self.socket), "the runtime's socket")

    def start_daemon(self):
        path = os.path.join(self.work, "daemon.log")
        begun = os.path.getsize(path) if os.path.exists(path) else 0
        log = open(path, "ab")
        # Not the file of this machine, if it has one.
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("PLEG_")}
        self.daemon = subprocess.Popen(
            [self.pleg, "run", "--runtime-endpoint", f"unix://{self.socket}",
             "--http-listen", self.address, "--grpc-listen", f"unix://{self.work}/pleg.sock"],
            stdout=log, stderr=log, env=environment, cwd=self.work)

        def listens():
            with open(path, encoding="utf-8", errors="replace") as told:
                told.seek(begun)
                found = re.search(r"127\.0\.0\.1:[1-9][0-9]*", told.read())
            if found:
                # It comes back to the same place.
                self.address = found.group()
            return found

        wait_for(listens, "the daemon to say where it listens")
        wait_for(lambda: self.get("/livez", "text") == "ok", "the daemon to live")

    @property
    def url(self):
        return f"http://{self.address}/"

    def get(self, path, what="json"):
        try:
            with urllib.request.urlopen(self.url + path.lstrip("/"), timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return None
        return json.loads(text) if what == "json" else text

    def burst(self):
        self.runtime.send_signal(signal.SIGUSR1)

    def freeze(self, frozen=True):
        self.runtime.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def kill_runtime(self):
        self.runtime.kill()
        self.runtime.wait()

    def kill_daemon(self):
        self.daemon.kill()
        self.daemon.wait()

    def close(self):
        for process in (self.daemon, self.runtime):
            if process and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def wait_for(holds, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.05)
