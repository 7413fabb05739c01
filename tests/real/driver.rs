//! Drives pods through CRI, as the kubelet does, and records every call with the time before and
//! after it.
//!
//! It never interprets what the runtime says beyond success and failure: the record of calls is the
//! truth that an observer of the node is held against.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pleg::lifecycle::{ContainerId, PodIdentity, SandboxId, UnixNanos};
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

use crate::wire::{
    Container, ContainerConfig, ContainerEventResponse, ContainerFilter, ContainerMetadata,
    ContainerStatus, ContainerStatusRequest, CreateContainerRequest, GetEventsRequest, ImageSpec,
    LinuxContainerConfig, LinuxContainerSecurityContext, LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext, ListContainersRequest, ListPodSandboxRequest, NamespaceMode,
    NamespaceOption, PodSandbox, PodSandboxConfig, PodSandboxFilter, PodSandboxMetadata,
    PodSandboxStatusRequest, RemoveContainerRequest, RemovePodSandboxRequest, RunPodSandboxRequest,
    RuntimeServiceClient, StartContainerRequest, StopContainerRequest, StopPodSandboxRequest,
    VersionRequest,
};

/// Holds the busybox applets; `tests/testbed.sh` makes and imports it.
const IMAGE: &str = "testbed.local/busybox:1";
const POD_UID_LABEL: &str = "io.kubernetes.pod.uid";

/// The wall clock, which the runtime's stamps are compared with: both run on one machine.
#[expect(
    clippy::disallowed_methods,
    reason = "what really happened has real times"
)]
pub(crate) fn wall_clock() -> UnixNanos {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970");
    UnixNanos(i64::try_from(since_epoch.as_nanos()).expect("the clock is before 2262"))
}

/// A stretch of real time, from before a call to after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) begun: UnixNanos,
    pub(crate) ended: UnixNanos,
}

/// A call that may change the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    RunSandbox(PodIdentity, u32),
    StopSandbox(SandboxId),
    RemoveSandbox(SandboxId),
    Create(SandboxId, String),
    Start(ContainerId),
    Stop(ContainerId),
    Remove(ContainerId),
}

/// One call as it went.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) call: Call,
    pub(crate) span: Span,
    /// The gRPC status of a call that failed, as text.
    pub(crate) failure: Option<String>,
}

/// A sandbox that was run: what later calls about it need.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    pub(crate) id: SandboxId,
    config: PodSandboxConfig,
}

/// A CRI client with write access, and its record. Clones share both.
#[derive(Clone)]
pub(crate) struct Driver {
    client: RuntimeServiceClient<Channel>,
    record: Arc<Mutex<Vec<Operation>>>,
}

impl Driver {
    /// A driver of the runtime behind this socket. It connects with the first call, and anew after a
    /// restart of the runtime.
    pub(crate) fn new(socket: &Path) -> Self {
        Self {
            client: RuntimeServiceClient::new(endpoint(socket).connect_lazy()),
            record: Arc::default(),
        }
    }

    /// Every call so far that may have changed the node, in the order in which they ended.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        self.record.lock().expect("no call panics").clone()
    }

    /// The runtime's name and version.
    pub(crate) async fn version(&self) -> Result<(String, String), Status> {
        let mut client = self.client.clone();
        let answer = client
            .version(VersionRequest::default())
            .await?
            .into_inner();
        Ok((answer.runtime_name, answer.runtime_version))
    }

    pub(crate) async fn run_sandbox(
        &self,
        pod: &PodIdentity,
        attempt: u32,
    ) -> Result<(Sandbox, Span), Status> {
        let config = sandbox_config(pod, attempt);
        let request = RunPodSandboxRequest {
            config: Some(config.clone()),
            runtime_handler: String::new(),
        };
        let mut client = self.client.clone();
        let call = Call::RunSandbox(pod.clone(), attempt);
        let (answer, span) = self.recorded(call, client.run_pod_sandbox(request)).await?;
        let id = SandboxId::from(answer.pod_sandbox_id);
        Ok((Sandbox { id, config }, span))
    }

    /// Kills the sandbox's containers at once and ends the sandbox.
    pub(crate) async fn stop_sandbox(&self, id: &SandboxId) -> Result<Span, Status> {
        let request = StopPodSandboxRequest {
            pod_sandbox_id: id.to_string(),
        };
        let mut client = self.client.clone();
        let call = Call::StopSandbox(id.clone());
        Ok(self
            .recorded(call, client.stop_pod_sandbox(request))
            .await?
            .1)
    }

    /// Removes the sandbox and every container left in it.
    pub(crate) async fn remove_sandbox(&self, id: &SandboxId) -> Result<Span, Status> {
        let request = RemovePodSandboxRequest {
            pod_sandbox_id: id.to_string(),
        };
        let mut client = self.client.clone();
        let call = Call::RemoveSandbox(id.clone());
        let removed = self.recorded(call, client.remove_pod_sandbox(request));
        Ok(removed.await?.1)
    }

    pub(crate) async fn create(
        &self,
        sandbox: &Sandbox,
        name: &str,
        attempt: u32,
        command: &[String],
    ) -> Result<(ContainerId, Span), Status> {
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.id.to_string(),
            config: Some(container_config(sandbox, name, attempt, command)),
            sandbox_config: Some(sandbox.config.clone()),
        };
        let mut client = self.client.clone();
        let call = Call::Create(sandbox.id.clone(), name.to_owned());
        let (answer, span) = self
            .recorded(call, client.create_container(request))
            .await?;
        Ok((ContainerId::from(answer.container_id), span))
    }

    pub(crate) async fn start(&self, id: &ContainerId) -> Result<Span, Status> {
        let request = StartContainerRequest {
            container_id: id.to_string(),
        };
        let mut client = self.client.clone();
        let call = Call::Start(id.clone());
        Ok(self
            .recorded(call, client.start_container(request))
            .await?
            .1)
    }

    /// SIGTERM, then SIGKILL after `grace` in whole seconds; none kills at once.
    pub(crate) async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<Span, Status> {
        let request = StopContainerRequest {
            container_id: id.to_string(),
            timeout: i64::try_from(grace.as_secs()).unwrap_or(i64::MAX),
        };
        let mut client = self.client.clone();
        let call = Call::Stop(id.clone());
        Ok(self.recorded(call, client.stop_container(request)).await?.1)
    }

    pub(crate) async fn remove(&self, id: &ContainerId) -> Result<Span, Status> {
        let request = RemoveContainerRequest {
            container_id: id.to_string(),
        };
        let mut client = self.client.clone();
        let call = Call::Remove(id.clone());
        Ok(self
            .recorded(call, client.remove_container(request))
            .await?
            .1)
    }

    pub(crate) async fn status(&self, id: &ContainerId) -> Result<ContainerStatus, Status> {
        let request = ContainerStatusRequest {
            container_id: id.to_string(),
        };
        let answer = self.client.clone().container_status(request).await?;
        Ok(answer.into_inner().status.unwrap_or_default())
    }

    /// The addresses of a sandbox, primary first.
    pub(crate) async fn addresses(&self, sandbox: &str) -> Result<Vec<String>, Status> {
        let request = PodSandboxStatusRequest {
            pod_sandbox_id: sandbox.to_owned(),
        };
        let answer = self.client.clone().pod_sandbox_status(request).await?;
        let status = answer.into_inner().status.unwrap_or_default();
        let network = status.network.unwrap_or_default();
        let further = network.additional_ips.into_iter().map(|further| further.ip);
        let addresses = std::iter::once(network.ip).chain(further);
        Ok(addresses.filter(|ip| !ip.is_empty()).collect())
    }

    /// The pod's sandboxes and containers as the runtime lists them.
    pub(crate) async fn list(
        &self,
        pod: &PodIdentity,
    ) -> Result<(Vec<PodSandbox>, Vec<Container>), Status> {
        let of_pod = BTreeMap::from([(POD_UID_LABEL.to_owned(), pod.uid.to_string())]);
        self.list_labelled(of_pod).await
    }

    /// All sandboxes and containers of the node.
    pub(crate) async fn list_node(&self) -> Result<(Vec<PodSandbox>, Vec<Container>), Status> {
        self.list_labelled(BTreeMap::new()).await
    }

    async fn list_labelled(
        &self,
        labels: BTreeMap<String, String>,
    ) -> Result<(Vec<PodSandbox>, Vec<Container>), Status> {
        let sandboxes = ListPodSandboxRequest {
            filter: Some(PodSandboxFilter {
                label_selector: labels.clone(),
                ..PodSandboxFilter::default()
            }),
        };
        let containers = ListContainersRequest {
            filter: Some(ContainerFilter {
                label_selector: labels,
                ..ContainerFilter::default()
            }),
        };
        let mut client = self.client.clone();
        let sandboxes = client.list_pod_sandbox(sandboxes).await?.into_inner();
        let containers = client.list_containers(containers).await?.into_inner();
        Ok((sandboxes.items, containers.containers))
    }

    async fn recorded<T>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<(T, Span), Status> {
        let begun = wall_clock();
        let answer = answer.await;
        let span = Span {
            begun,
            ended: wall_clock(),
        };
        let failure = answer.as_ref().err().map(ToString::to_string);
        self.record.lock().expect("no call panics").push(Operation {
            call,
            span,
            failure,
        });
        answer.map(|answer| (answer.into_inner(), span))
    }
}

/// Opens an event stream on a connection of its own, with HTTP/2's smallest usual windows, so that a
/// reader that stops is felt soon. The answer may wait for the first event.
pub(crate) async fn container_events(
    socket: &Path,
) -> Result<Streaming<ContainerEventResponse>, Status> {
    const WINDOW: u32 = 65_535;
    let channel = endpoint(socket)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .connect_lazy();
    let mut client = RuntimeServiceClient::new(channel);
    let answer = client.get_container_events(GetEventsRequest {}).await?;
    Ok(answer.into_inner())
}

fn endpoint(socket: &Path) -> Endpoint {
    Endpoint::from_shared(format!("unix://{}", socket.display())).expect("a socket path is a URI")
}

fn sandbox_config(pod: &PodIdentity, attempt: u32) -> PodSandboxConfig {
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: pod.name.to_string(),
            uid: pod.uid.to_string(),
            namespace: pod.namespace.to_string(),
            attempt,
        }),
        hostname: pod.name.to_string(),
        labels: kubelet_labels(pod),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: String::new(),
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: Some(own_processes()),
            }),
        }),
        ..PodSandboxConfig::default()
    }
}

fn container_config(
    sandbox: &Sandbox,
    name: &str,
    attempt: u32,
    command: &[String],
) -> ContainerConfig {
    let mut labels = sandbox.config.labels.clone();
    labels.insert("io.kubernetes.container.name".to_owned(), name.to_owned());
    ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: name.to_owned(),
            attempt,
        }),
        image: Some(ImageSpec {
            image: IMAGE.to_owned(),
        }),
        command: command.to_vec(),
        labels,
        linux: Some(LinuxContainerConfig {
            security_context: Some(LinuxContainerSecurityContext {
                namespace_options: Some(own_processes()),
            }),
        }),
        ..ContainerConfig::default()
    }
}

/// The kubelet's default: the processes of a container see only each other. CRI's own default would
/// let the end of the sandbox's process kill every container.
fn own_processes() -> NamespaceOption {
    NamespaceOption {
        pid: NamespaceMode::Container.into(),
        ..NamespaceOption::default()
    }
}

fn kubelet_labels(pod: &PodIdentity) -> BTreeMap<String, String> {
    [
        ("io.kubernetes.pod.name", &*pod.name),
        ("io.kubernetes.pod.namespace", &*pod.namespace),
        (POD_UID_LABEL, pod.uid.as_str()),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}
