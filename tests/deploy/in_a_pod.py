"""Runs the image as a pod under the very containerd that it watches, as deploy/kubernetes/pleg.yaml asks.

The manifest is the only source of the container's settings: they are translated to CRI as the kubelet does.
From outside the pod it then reads metrics, status and pods over HTTP, follows the event stream while another
pod comes and goes, and is a gRPC client of pleg.v1, made from the project's proto and nothing else.

usage: in_a_pod.py DIRECTORY VERSION STUBS     DIRECTORY: of a daemon that tests/testbed.sh has started
"""

import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

directory, version, stubs = sys.argv[1:4]
sys.path.insert(0, stubs)

import grpc  # noqa: E402
import yaml  # noqa: E402

import cri_pb2 as cri  # noqa: E402
import cri_pb2_grpc  # noqa: E402

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
PORT = 9641
channel = grpc.insecure_channel(f"unix://{directory}/containerd.sock")
runtime = cri_pb2_grpc.RuntimeServiceStub(channel)


def daemon_set():
    with open(os.path.join(ROOT, "deploy/kubernetes/pleg.yaml")) as file:
        return next(it for it in yaml.safe_load_all(file) if it["kind"] == "DaemonSet")


def quantity(text):
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
    return int(text[:-2]) * units[text[-2:]] if text[-2:] in units else int(text)


def sandbox_config(name, uid, namespace, logs):
    labels = {
        "io.kubernetes.pod.name": name,
        "io.kubernetes.pod.namespace": namespace,
        "io.kubernetes.pod.uid": uid,
    }
    own = cri.NamespaceOption(pid=cri.CONTAINER)
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name=name, uid=uid, namespace=namespace),
        hostname=name,
        log_directory=logs,
        labels=labels,
        linux=cri.LinuxPodSandboxConfig(
            security_context=cri.LinuxSandboxSecurityContext(namespace_options=own)
        ),
    )


def container_config(sandbox, name, image, **more):
    labels = dict(sandbox.labels, **{"io.kubernetes.container.name": name})
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=name),
        image=cri.ImageSpec(image=image),
        labels=labels,
        log_path=f"{name}.log",
        **more,
    )


def pleg_container(sandbox, host_paths):
    """The manifest's container, as the kubelet would ask for it."""
    pod = daemon_set()["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    security = container["securityContext"]
    resources = container["resources"]
    assert "cpu" not in resources["limits"], "a CPU limit would freeze the node"
    volumes = {it["name"]: it["hostPath"]["path"] for it in pod["volumes"]}
    mounts = [
        cri.Mount(
            container_path=it["mountPath"],
            host_path=host_paths[volumes[it["name"]]],
            readonly=it.get("readOnly", False),
        )
        for it in container["volumeMounts"]
    ]
    millicores = int(resources["requests"]["cpu"].removesuffix("m"))
    assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    linux = cri.LinuxContainerConfig(
        resources=cri.LinuxContainerResources(
            cpu_shares=max(2, millicores * 1024 // 1000),
            memory_limit_in_bytes=quantity(resources["limits"]["memory"]),
        ),
        security_context=cri.LinuxContainerSecurityContext(
            capabilities=cri.Capability(drop_capabilities=security["capabilities"]["drop"]),
            namespace_options=cri.NamespaceOption(pid=cri.CONTAINER),
            run_as_user=cri.Int64Value(value=security["runAsUser"]),
            readonly_rootfs=security["readOnlyRootFilesystem"],
            no_new_privs=not security["allowPrivilegeEscalation"],
            seccomp=cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault),
        ),
    )
    envs = [cri.KeyValue(key=it["name"], value=it["value"]) for it in container["env"]]
    return container_config(
        sandbox, container["name"], container["image"],
        args=container["args"], envs=envs, mounts=mounts, linux=linux,
    )  # fmt: skip


# A proxy of the environment has no way to a pod.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(address, path, timeout=10):
    return direct.open(f"http://{address}:{PORT}{path}", timeout=timeout)


def until(what, seconds, check):
    """Waits for something to become true; its last failure says why it did not."""
    failure = None
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            found = check()
            if found:
                return found
        except urllib.error.HTTPError as error:
            failure = f"{error.url}: {error.code} {error.read()[:300]!r}"
        except (OSError, AssertionError, KeyError) as error:
            failure = error
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds} s ({failure})")


def metrics(address):
    values = {}
    for line in get(address, "/metrics").read().decode().splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    return values


def follow(address, sandbox_id, change):
    """Reads the event stream while `change` runs: the types told of a sandbox and of its container."""
    stream = get(address, "/api/v1/events", timeout=20)
    change()
    told = []
    try:
        for line in stream:
            if line.startswith(b"data:"):
                event = json.loads(line[5:])
                if (event.get("pod") or {}).get("name") == "guest":
                    told.append(event["type"])
                    if told.count("ContainerRemoved") == 2:
                        return told
    except TimeoutError:
        pass
    raise AssertionError(f"the stream told only {told}")


def main():
    logs = os.path.join(directory, "pod-logs")
    shared = os.path.join(directory, "run-pleg")
    os.makedirs(logs, exist_ok=True)
    os.makedirs(shared, exist_ok=True)
    # The test bed's daemon has its socket in a directory of its own.
    host_paths = {"/run/containerd": directory, "/run/pleg": shared}

    config = sandbox_config("pleg", "pleg-uid", "pleg", logs)
    pod = runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id
    request = cri.CreateContainerRequest(
        pod_sandbox_id=pod, config=pleg_container(config, host_paths), sandbox_config=config
    )
    container = runtime.CreateContainer(request).container_id
    runtime.StartContainer(cri.ContainerRequest(container_id=container))
    status = runtime.PodSandboxStatus(cri.PodSandboxRequest(pod_sandbox_id=pod)).status
    address = status.network.ip
    assert address, "the pod has no address"
    # The test bed's bridge gives the node no address among the pods; a node's kubelet has one.
    bridge = "tb" + hashlib.sha256(directory.encode()).hexdigest()[:8]
    gateway = address.rsplit(".", 1)[0] + ".1/24"
    subprocess.run(["ip", "address", "add", gateway, "dev", bridge], check=True)
    # Left alone, a bridge changes its MAC with the pods that come and go, and neighbours are lost.
    mac = open(f"/sys/class/net/{bridge}/address").read().strip()
    subprocess.run(["ip", "link", "set", "dev", bridge, "address", mac], check=True)
    try:
        until("ready", 30, lambda: get(address, "/readyz").status == 200)
        assert get(address, "/livez").status == 200

        # It watches the runtime that runs it, and so finds itself.
        pods = json.load(get(address, "/api/v1/pods"))["items"]
        assert [it["name"] for it in pods] == ["pleg"], pods
        state = json.load(get(address, "/api/v1/status"))
        print(f"{version}: {state.get('words') or state}")

        def guest():
            sandbox = sandbox_config("guest", "guest-uid", "default", logs)
            made = cri.RunPodSandboxRequest(config=sandbox)
            guest_pod = runtime.RunPodSandbox(made).pod_sandbox_id
            work = container_config(
                sandbox, "work", "testbed.local/busybox:1", command=["sh", "-c", "exit 7"]
            )
            wanted = cri.CreateContainerRequest(
                pod_sandbox_id=guest_pod, config=work, sandbox_config=sandbox
            )
            made = runtime.CreateContainer(wanted).container_id
            runtime.StartContainer(cri.ContainerRequest(container_id=made))
            exited = cri.ContainerRequest(container_id=made)
            until("the exit", 20, lambda: runtime.ContainerStatus(exited).status.state == cri.CONTAINER_EXITED)
            time.sleep(1.5)
            runtime.RemoveContainer(exited)
            runtime.StopPodSandbox(cri.PodSandboxRequest(pod_sandbox_id=guest_pod))
            runtime.RemovePodSandbox(cri.PodSandboxRequest(pod_sandbox_id=guest_pod))

        told = follow(address, pod, guest)
        assert sorted(told) == sorted(
            ["ContainerStarted", "ContainerDied", "ContainerRemoved"] * 2
        ), told
        values = metrics(address)
        assert values, "no metrics"
        print(f"{version}: {len(told)} events followed, {len(values)} series scraped")

        sys.argv = ["client.py", f"unix://{shared}/pleg.sock", stubs]
        import client

        client.main()
    except BaseException:
        with open(os.path.join(logs, "pleg.log")) as log:
            sys.stderr.write(log.read()[-4000:])
        raise
    finally:
        runtime.StopPodSandbox(cri.PodSandboxRequest(pod_sandbox_id=pod))
        runtime.RemovePodSandbox(cri.PodSandboxRequest(pod_sandbox_id=pod))


main()
