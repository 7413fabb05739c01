//! A runtime that does what a test says, with the habits of Go's servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::codegen::BoxStream;
use tonic::{Code, Request, Response, Status};

use crate::cri::wire::messages::{
    Container, ContainerEventResponse, ContainerStatus, ContainerStatusRequest,
    ContainerStatusResponse, GetEventsRequest, ListContainersRequest, ListContainersResponse,
    ListPodSandboxRequest, ListPodSandboxResponse, PodSandbox, PodSandboxStatusRequest,
    PodSandboxStatusResponse, StreamContainersRequest, StreamContainersResponse,
    StreamPodSandboxesRequest, StreamPodSandboxesResponse, VersionRequest, VersionResponse,
};
use crate::cri::wire::server::runtime_service_server::RuntimeService;

/// What the runtime says when it is asked.
#[derive(Default)]
pub(super) struct Script {
    /// Methods that never answer.
    pub(super) hanging: BTreeSet<&'static str>,
    /// Methods that answer with an error.
    pub(super) failing: BTreeMap<&'static str, Code>,
    pub(super) version: VersionResponse,
    pub(super) sandboxes: Vec<PodSandbox>,
    pub(super) containers: Vec<Container>,
    /// The pieces of a streamed list and how it ends; without any the method is unknown.
    pub(super) sandbox_pieces: Option<Vec<Result<Vec<PodSandbox>, Code>>>,
    pub(super) container_pieces: Option<Vec<Result<Vec<Container>, Code>>>,
    pub(super) sandbox_statuses: BTreeMap<String, PodSandboxStatusResponse>,
    pub(super) container_statuses: BTreeMap<String, ContainerStatus>,
}

type Event = Result<ContainerEventResponse, Status>;

/// The runtime's end of one event stream. Dropping it closes the stream cleanly.
pub(super) type ServerStream = mpsc::UnboundedSender<Event>;

#[derive(Clone)]
pub(super) struct Fake {
    script: Arc<Mutex<Script>>,
    log: Arc<Mutex<Vec<String>>>,
    told: mpsc::UnboundedSender<String>,
    streams: mpsc::UnboundedSender<ServerStream>,
}

/// What a test sees of the runtime.
pub(super) struct Watched {
    /// Each line of the log as it is written.
    pub(super) told: mpsc::UnboundedReceiver<String>,
    /// Each event stream as it is asked for.
    pub(super) streams: mpsc::UnboundedReceiver<ServerStream>,
}

impl Watched {
    pub(super) async fn stream(&mut self) -> ServerStream {
        self.streams.recv().await.expect("the runtime lives")
    }

    pub(super) async fn until_told(&mut self, line: &str) {
        while self.told.recv().await.expect("the runtime lives") != line {}
    }
}

impl Fake {
    pub(super) fn new() -> (Self, Watched) {
        let (told, told_there) = mpsc::unbounded_channel();
        let (streams, streams_there) = mpsc::unbounded_channel();
        let script = Script {
            version: VersionResponse {
                version: "0.1.0".into(),
                runtime_name: "fake".into(),
                runtime_version: "v1.2.3".into(),
                runtime_api_version: "v1".into(),
            },
            ..Script::default()
        };
        let fake = Self {
            script: Arc::new(Mutex::new(script)),
            log: Arc::default(),
            told,
            streams,
        };
        let watched = Watched {
            told: told_there,
            streams: streams_there,
        };
        (fake, watched)
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no test panics with it")
    }

    pub(super) fn tell(&self, line: impl Into<String>) {
        let line = line.into();
        self.log
            .lock()
            .expect("no test panics with it")
            .push(line.clone());
        let _ = self.told.send(line);
    }

    pub(super) fn log(&self) -> Vec<String> {
        self.log.lock().expect("no test panics with it").clone()
    }

    /// Takes the log away, so that the next look begins anew.
    pub(super) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().expect("no test panics with it"))
    }

    async fn enter(&self, method: &'static str, detail: &str) -> Result<(), Status> {
        self.tell(format!("{method} {detail}").trim_end());
        let (hangs, fails) = {
            let script = self.script();
            let hangs = script.hanging.contains(method);
            (hangs, script.failing.get(method).copied())
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        match fails {
            Some(code) => Err(Status::new(code, "as the test says")),
            None => Ok(()),
        }
    }
}

fn selected(labels: Option<BTreeMap<String, String>>) -> String {
    let labels = labels.unwrap_or_default().into_iter();
    let pairs: Vec<_> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}

fn pieces<T: Send + 'static, M: Send + 'static>(
    pieces: Option<Vec<Result<Vec<T>, Code>>>,
    message: fn(Vec<T>) -> M,
) -> Result<Response<BoxStream<M>>, Status> {
    let pieces = pieces.ok_or_else(|| Status::unimplemented("unknown method"))?;
    let pieces = pieces.into_iter().map(move |piece| {
        piece
            .map(message)
            .map_err(|code| Status::new(code, "as the test says"))
    });
    Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
}

/// Tells the log when a stream is dropped.
struct Dropped(Fake);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.tell("stream dropped");
    }
}

#[tonic::async_trait]
impl RuntimeService for Fake {
    async fn version(
        &self,
        _: Request<VersionRequest>,
    ) -> Result<Response<VersionResponse>, Status> {
        self.enter("Version", "").await?;
        Ok(Response::new(self.script().version.clone()))
    }

    async fn list_pod_sandbox(
        &self,
        request: Request<ListPodSandboxRequest>,
    ) -> Result<Response<ListPodSandboxResponse>, Status> {
        let labels = request.into_inner().filter.map(|f| f.label_selector);
        self.enter("ListPodSandbox", &selected(labels)).await?;
        let items = self.script().sandboxes.clone();
        Ok(Response::new(ListPodSandboxResponse { items }))
    }

    async fn list_containers(
        &self,
        request: Request<ListContainersRequest>,
    ) -> Result<Response<ListContainersResponse>, Status> {
        let labels = request.into_inner().filter.map(|f| f.label_selector);
        self.enter("ListContainers", &selected(labels)).await?;
        let containers = self.script().containers.clone();
        Ok(Response::new(ListContainersResponse { containers }))
    }

    async fn stream_pod_sandboxes(
        &self,
        request: Request<StreamPodSandboxesRequest>,
    ) -> Result<Response<BoxStream<StreamPodSandboxesResponse>>, Status> {
        let labels = request.into_inner().filter.map(|f| f.label_selector);
        self.enter("StreamPodSandboxes", &selected(labels)).await?;
        pieces(self.script().sandbox_pieces.clone(), |pod_sandboxes| {
            StreamPodSandboxesResponse { pod_sandboxes }
        })
    }

    async fn stream_containers(
        &self,
        request: Request<StreamContainersRequest>,
    ) -> Result<Response<BoxStream<StreamContainersResponse>>, Status> {
        let labels = request.into_inner().filter.map(|f| f.label_selector);
        self.enter("StreamContainers", &selected(labels)).await?;
        pieces(self.script().container_pieces.clone(), |containers| {
            StreamContainersResponse { containers }
        })
    }

    async fn pod_sandbox_status(
        &self,
        request: Request<PodSandboxStatusRequest>,
    ) -> Result<Response<PodSandboxStatusResponse>, Status> {
        let id = request.into_inner().pod_sandbox_id;
        self.enter("PodSandboxStatus", &id).await?;
        let status = self.script().sandbox_statuses.get(&id).cloned();
        let gone = || Status::not_found(format!("no sandbox {id}"));
        Ok(Response::new(status.ok_or_else(gone)?))
    }

    async fn container_status(
        &self,
        request: Request<ContainerStatusRequest>,
    ) -> Result<Response<ContainerStatusResponse>, Status> {
        let id = request.into_inner().container_id;
        self.enter("ContainerStatus", &id).await?;
        let status = self.script().container_statuses.get(&id).cloned();
        let gone = || Status::not_found(format!("no container {id}"));
        Ok(Response::new(ContainerStatusResponse {
            status: Some(status.ok_or_else(gone)?),
        }))
    }

    /// Sends no headers before the first message, as grpc-go does.
    async fn get_container_events(
        &self,
        request: Request<GetEventsRequest>,
    ) -> Result<Response<BoxStream<ContainerEventResponse>>, Status> {
        let deadline = match request.metadata().get("grpc-timeout") {
            Some(_) => "with a deadline",
            None => "",
        };
        let dropped = Dropped(self.clone());
        let (stream, mut events) = mpsc::unbounded_channel();
        let _ = self.streams.send(stream);
        self.enter("GetContainerEvents", deadline).await?;
        let first: Event = match events.recv().await {
            Some(Err(status)) => return Err(status),
            Some(Ok(event)) => Ok(event),
            None => return Ok(Response::new(Box::pin(tokio_stream::empty()))),
        };
        let rest = UnboundedReceiverStream::new(events);
        let all = tokio_stream::once(first).chain(rest).map(move |event| {
            let _held = &dropped;
            event
        });
        Ok(Response::new(Box::pin(all)))
    }
}
