//! A CRI client of the tests' own, so that the simulated runtime is not judged by the code that it
//! is to test.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use http::uri::PathAndQuery;
use pleg::simulate::SimulatedRuntime;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

#[allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "written by a generator"
)]
pub(crate) mod cri {
    include!("../../src/cri/wire/generated/runtime.v1.rs");
}

/// Answers within an hour, or panics: in virtual time that is at once.
pub(crate) const PATIENCE: Duration = Duration::from_hours(1);

#[derive(Clone)]
pub(crate) struct Client(Grpc<Channel>);

impl Client {
    pub(crate) fn to(runtime: &SimulatedRuntime) -> Self {
        Self(Grpc::new(runtime.channel()))
    }

    pub(crate) fn over(channel: Channel) -> Self {
        Self(Grpc::new(channel))
    }

    pub(crate) async fn unary<Q, A>(&self, method: &'static str, question: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = self.0.clone();
        grpc.ready()
            .await
            .map_err(|e| Status::unavailable(e.to_string()))?;
        let answer = grpc
            .unary(Request::new(question), path(method), ProstCodec::default())
            .await?;
        Ok(answer.into_inner())
    }

    async fn stream<Q, A>(&self, method: &'static str, question: Q) -> Result<Streaming<A>, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = self.0.clone();
        grpc.ready()
            .await
            .map_err(|e| Status::unavailable(e.to_string()))?;
        let answer = grpc
            .server_streaming(Request::new(question), path(method), ProstCodec::default())
            .await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn version(&self) -> Result<cri::VersionResponse, Status> {
        self.unary("Version", cri::VersionRequest::default()).await
    }

    pub(crate) async fn sandboxes(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>, Status> {
        let question = cri::ListPodSandboxRequest { filter };
        let answer: cri::ListPodSandboxResponse = self.unary("ListPodSandbox", question).await?;
        Ok(answer.items)
    }

    pub(crate) async fn containers(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>, Status> {
        let question = cri::ListContainersRequest { filter };
        let answer: cri::ListContainersResponse = self.unary("ListContainers", question).await?;
        Ok(answer.containers)
    }

    pub(crate) async fn container_parts(&self) -> Result<Vec<usize>, Status> {
        let question = cri::StreamContainersRequest { filter: None };
        let mut parts: Streaming<cri::StreamContainersResponse> =
            self.stream("StreamContainers", question).await?;
        let mut sizes = Vec::new();
        while let Some(part) = parts.message().await? {
            sizes.push(part.containers.len());
        }
        Ok(sizes)
    }

    pub(crate) async fn sandbox_status(
        &self,
        id: impl ToString,
    ) -> Result<cri::PodSandboxStatusResponse, Status> {
        let pod_sandbox_id = id.to_string();
        self.unary(
            "PodSandboxStatus",
            cri::PodSandboxStatusRequest { pod_sandbox_id },
        )
        .await
    }

    pub(crate) async fn container_status(
        &self,
        id: impl ToString,
    ) -> Result<cri::ContainerStatus, Status> {
        let container_id = id.to_string();
        let answer: cri::ContainerStatusResponse = self
            .unary(
                "ContainerStatus",
                cri::ContainerStatusRequest { container_id },
            )
            .await?;
        answer
            .status
            .ok_or_else(|| Status::internal("an answer without a status"))
    }

    pub(crate) async fn open_events(
        &self,
    ) -> Result<Streaming<cri::ContainerEventResponse>, Status> {
        self.stream("GetContainerEvents", cri::GetEventsRequest {})
            .await
    }

    /// Opens the stream and reads it in a task, as an agent does. Returns when the runtime has it.
    pub(crate) async fn events(&self, runtime: &SimulatedRuntime) -> Events {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let client = self.clone();
        let before = runtime.open_streams();
        let task = tokio::spawn(async move {
            let mut stream = match client.open_events().await {
                Ok(stream) => stream,
                Err(status) => return Err(status),
            };
            while let Some(event) = stream.message().await? {
                let _ = sender.send(event);
            }
            Ok(())
        });
        tokio::time::timeout(PATIENCE, runtime.streams_opened(before + 1))
            .await
            .expect("the stream is opened");
        Events { receiver, task }
    }
}

pub(crate) struct Events {
    receiver: tokio::sync::mpsc::UnboundedReceiver<cri::ContainerEventResponse>,
    task: tokio::task::JoinHandle<Result<(), Status>>,
}

impl Events {
    /// The next event.
    pub(crate) async fn next(&mut self) -> cri::ContainerEventResponse {
        tokio::time::timeout(PATIENCE, self.receiver.recv())
            .await
            .expect("an event within an hour")
            .expect("an event before the stream ends")
    }

    /// All that comes until nothing has come for a second.
    pub(crate) async fn drain(&mut self) -> Vec<cri::ContainerEventResponse> {
        let all = futures::stream::unfold(&mut self.receiver, |receiver| async {
            let quiet = Duration::from_secs(1);
            let event = tokio::time::timeout(quiet, receiver.recv()).await.ok()??;
            Some((event, receiver))
        });
        pin!(all).collect().await
    }

    /// How the stream ended.
    pub(crate) async fn end(self) -> Result<(), Status> {
        tokio::time::timeout(PATIENCE, self.task)
            .await
            .expect("the stream ends")
            .expect("its reader did not panic")
    }

    /// All that comes until the stream ends, and how it ends.
    pub(crate) async fn until_end(
        mut self,
    ) -> (Vec<cri::ContainerEventResponse>, Result<(), Status>) {
        let told = self.drain().await;
        (told, self.end().await)
    }

    /// Cancels the call and lets the runtime's side see that.
    pub(crate) async fn cancel(self) {
        self.task.abort();
        let _ = self.task.await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn path(method: &'static str) -> PathAndQuery {
    format!("/runtime.v1.RuntimeService/{method}")
        .parse()
        .expect("a method's name is a path")
}
