//! The CRI service over a simulated runtime, with the habits of the runtimes' Go servers.
//!
//! It reads the world and the event queue through [`SimulatedRuntime`] and changes neither. The
//! habits: the answer to `GetContainerEvents` has no headers before the first event, so that the call
//! of a client on an idle node stays pending; Unimplemented and a clean end come at the first
//! receive; streaming lists send nothing at all for an empty list.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use super::subject::{Container, Labels, Sandbox};
use super::{EventSupport, Outcome, Rpc, SimulatedRuntime, wire};
use crate::cri::wire::messages as cri;
use crate::cri::wire::server::runtime_service_server::RuntimeService;

/// The API version that runtimes give for themselves in `Version`, whatever they are.
const KUBELET_API_VERSION: &str = "0.1.0";

#[derive(Clone, Debug)]
pub(super) struct CriService {
    runtime: SimulatedRuntime,
}

impl CriService {
    pub(super) fn new(runtime: SimulatedRuntime) -> Self {
        Self { runtime }
    }

    /// Counts the call and lets the fault that fits it happen.
    async fn enter(&self, rpc: Rpc, id: Option<&str>) -> Result<(), Status> {
        let fault = self.runtime.note_call(rpc, id);
        self.runtime.thawed().await;
        let Some((delay, outcome)) = fault else {
            return Ok(());
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        match outcome {
            Outcome::Answer => Ok(()),
            Outcome::Fail(code, message) => Err(Status::new(code, message)),
            Outcome::Hang => std::future::pending().await,
        }
    }

    /// The answer is under way: its content was read, its receiver waits.
    async fn answer<T>(&self, rpc: Rpc, content: T) -> Response<T> {
        let latency = self.runtime.latency(rpc);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        self.runtime.thawed().await;
        Response::new(content)
    }

    fn sandbox_items(&self, filter: Option<&cri::PodSandboxFilter>) -> Vec<cri::PodSandbox> {
        self.runtime.world(|world| {
            world
                .sandboxes()
                .filter(|sandbox| filter.is_none_or(|filter| sandbox_fits(filter, sandbox)))
                .map(wire::sandbox_item)
                .collect()
        })
    }

    fn container_items(&self, filter: Option<&cri::ContainerFilter>) -> Vec<cri::Container> {
        self.runtime.world(|world| {
            world
                .containers()
                .filter(|container| filter.is_none_or(|filter| container_fits(filter, container)))
                .map(wire::container_item)
                .collect()
        })
    }

    fn items_per_message(&self, rpc: Rpc) -> Result<usize, Status> {
        let items = self
            .runtime
            .character(|character| character.streaming_lists);
        items
            .map(|items| items.max(1))
            .ok_or_else(|| unimplemented(rpc))
    }
}

#[tonic::async_trait]
impl RuntimeService for CriService {
    async fn version(
        &self,
        _request: Request<cri::VersionRequest>,
    ) -> Result<Response<cri::VersionResponse>, Status> {
        self.enter(Rpc::Version, None).await?;
        let content = self.runtime.character(|character| cri::VersionResponse {
            version: KUBELET_API_VERSION.into(),
            runtime_name: character.runtime_name.clone(),
            runtime_version: character.runtime_version.clone(),
            runtime_api_version: "v1".into(),
        });
        Ok(self.answer(Rpc::Version, content).await)
    }

    async fn list_pod_sandbox(
        &self,
        request: Request<cri::ListPodSandboxRequest>,
    ) -> Result<Response<cri::ListPodSandboxResponse>, Status> {
        self.enter(Rpc::ListPodSandbox, None).await?;
        let items = self.sandbox_items(request.get_ref().filter.as_ref());
        let content = cri::ListPodSandboxResponse { items };
        Ok(self.answer(Rpc::ListPodSandbox, content).await)
    }

    async fn stream_pod_sandboxes(
        &self,
        request: Request<cri::StreamPodSandboxesRequest>,
    ) -> Result<Response<BoxStream<cri::StreamPodSandboxesResponse>>, Status> {
        self.enter(Rpc::StreamPodSandboxes, None).await?;
        let size = self.items_per_message(Rpc::StreamPodSandboxes)?;
        let items = self.sandbox_items(request.get_ref().filter.as_ref());
        let content = in_parts(items, size, |pod_sandboxes| {
            cri::StreamPodSandboxesResponse { pod_sandboxes }
        });
        Ok(self.answer(Rpc::StreamPodSandboxes, content).await)
    }

    async fn pod_sandbox_status(
        &self,
        request: Request<cri::PodSandboxStatusRequest>,
    ) -> Result<Response<cri::PodSandboxStatusResponse>, Status> {
        let id = &request.get_ref().pod_sandbox_id;
        self.enter(Rpc::PodSandboxStatus, Some(id)).await?;
        let carries = self
            .runtime
            .character(|character| character.status_carries_containers);
        // Taken before the content, as CRI-O does.
        let timestamp = self.runtime.now().0;
        let content = self.runtime.world(|world| {
            let sandbox = world.sandbox(id)?;
            let mut answer = cri::PodSandboxStatusResponse {
                status: Some(wire::sandbox_status(sandbox)),
                ..Default::default()
            };
            if carries {
                let containers = world.containers_in(&sandbox.id);
                answer.containers_statuses = containers.map(wire::container_status).collect();
                answer.timestamp = timestamp;
            }
            Some(answer)
        });
        let content = content.ok_or_else(|| not_found("sandbox", id))?;
        Ok(self.answer(Rpc::PodSandboxStatus, content).await)
    }

    async fn list_containers(
        &self,
        request: Request<cri::ListContainersRequest>,
    ) -> Result<Response<cri::ListContainersResponse>, Status> {
        self.enter(Rpc::ListContainers, None).await?;
        let containers = self.container_items(request.get_ref().filter.as_ref());
        let content = cri::ListContainersResponse { containers };
        Ok(self.answer(Rpc::ListContainers, content).await)
    }

    async fn stream_containers(
        &self,
        request: Request<cri::StreamContainersRequest>,
    ) -> Result<Response<BoxStream<cri::StreamContainersResponse>>, Status> {
        self.enter(Rpc::StreamContainers, None).await?;
        let size = self.items_per_message(Rpc::StreamContainers)?;
        let items = self.container_items(request.get_ref().filter.as_ref());
        let content = in_parts(items, size, |containers| cri::StreamContainersResponse {
            containers,
        });
        Ok(self.answer(Rpc::StreamContainers, content).await)
    }

    async fn container_status(
        &self,
        request: Request<cri::ContainerStatusRequest>,
    ) -> Result<Response<cri::ContainerStatusResponse>, Status> {
        let id = &request.get_ref().container_id;
        self.enter(Rpc::ContainerStatus, Some(id)).await?;
        let status = self
            .runtime
            .world(|world| world.container(id).map(wire::container_status))
            .ok_or_else(|| not_found("container", id))?;
        let content = cri::ContainerStatusResponse {
            status: Some(status),
        };
        Ok(self.answer(Rpc::ContainerStatus, content).await)
    }

    async fn get_container_events(
        &self,
        _request: Request<cri::GetEventsRequest>,
    ) -> Result<Response<BoxStream<cri::ContainerEventResponse>>, Status> {
        let rpc = Rpc::GetContainerEvents;
        self.enter(rpc, None).await?;
        let support = self.runtime.character(|character| character.events.clone());
        match support {
            EventSupport::Unimplemented => return Err(unimplemented(rpc)),
            EventSupport::EndsAtOnce => return Ok(Response::new(Box::pin(stream::empty()))),
            EventSupport::Served(_) => {}
        }
        let latency = self.runtime.latency(rpc);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let mut events = self.runtime.open_stream();
        // Headers go out with the first message, so until then there is no answer.
        let first = match events.next().await {
            Some(Ok(first)) => first,
            Some(Err(status)) => return Err(status),
            None => return Ok(Response::new(Box::pin(stream::empty()))),
        };
        let all = stream::iter([Ok(first)]).chain(events);
        Ok(Response::new(Box::pin(all.map(|message| {
            message.map(|message| wire::event(&message))
        }))))
    }
}

fn in_parts<T, M, F>(items: Vec<T>, size: usize, message: F) -> BoxStream<M>
where
    T: Send + 'static,
    F: Fn(Vec<T>) -> M + Send + 'static,
{
    let parts = stream::iter(items).chunks(size);
    Box::pin(parts.map(move |part| Ok(message(part))))
}

fn sandbox_fits(filter: &cri::PodSandboxFilter, sandbox: &Sandbox) -> bool {
    (filter.id.is_empty() || filter.id == sandbox.id.as_str())
        && labels_fit(&filter.label_selector, || sandbox.labels())
}

fn container_fits(filter: &cri::ContainerFilter, container: &Container) -> bool {
    (filter.id.is_empty() || filter.id == container.id.as_str())
        && (filter.pod_sandbox_id.is_empty() || filter.pod_sandbox_id == container.sandbox.as_str())
        && labels_fit(&filter.label_selector, || container.labels())
}

fn labels_fit(selector: &BTreeMap<String, String>, labels: impl FnOnce() -> Labels) -> bool {
    if selector.is_empty() {
        return true;
    }
    let labels = labels();
    selector
        .iter()
        .all(|(key, value)| labels.get(key.as_str()).map(Arc::as_ref) == Some(value.as_str()))
}

fn unimplemented(rpc: Rpc) -> Status {
    Status::unimplemented(format!("method {rpc} not implemented"))
}

fn not_found(what: &str, id: &str) -> Status {
    Status::not_found(format!("{what} {id:?} not found"))
}
