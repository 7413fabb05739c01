//! The CRI service over a simulated runtime, with the habits of the runtimes' Go servers.
//!
//! It reads the world and the event queue through [`SimulatedRuntime`] and changes neither. The
//! habits: the answer to `GetContainerEvents` has no headers before the first event, so that the call
//! of a client on an idle node stays pending; Unimplemented and a clean end come at the first
//! receive; streaming lists send nothing at all for an empty list.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use tonic::codegen::{Body as HttpBody, StdError};
use tonic::server::Grpc;
use tonic::{Request, Response, Status, body::Body};

use super::codec::{AnswerCodec, Parts};
use super::fault::{AsOf, Outcome};
use super::listing::Listing;
use super::subject::{Container, POD_UID_LABEL, Sandbox};
use super::{EventSupport, Rpc, SimulatedRuntime, StreamEnd, World, wire};
use crate::cri::wire::messages as cri;
use crate::lifecycle::PodUid;

/// The one service that is served.
const NAME: &str = "runtime.v1.RuntimeService";

/// The API version that runtimes give for themselves in `Version`, whatever they are.
const KUBELET_API_VERSION: &str = "0.1.0";

#[derive(Clone, Debug)]
pub(super) struct CriService {
    runtime: SimulatedRuntime,
}

/// How a call is answered that is answered.
#[derive(Debug, Default)]
struct Manner {
    as_of: Option<AsOf>,
    cut: Option<(usize, StreamEnd)>,
    slow: Duration,
}

type PartStream = BoxStream<'static, Result<Parts, Status>>;

impl CriService {
    pub(super) fn new(runtime: SimulatedRuntime) -> Self {
        Self { runtime }
    }

    /// Counts the call and lets the fault that fits it happen.
    async fn enter(&self, rpc: Rpc, id: Option<&str>) -> Result<Manner, Status> {
        let fault = self.runtime.change(|state, _| {
            state.calls.count(rpc);
            state.faults.take(rpc, id)
        });
        self.runtime.thawed().await;
        let Some(fault) = fault else {
            return Ok(Manner::default());
        };
        wait(fault.delay).await;
        let mut manner = Manner {
            slow: fault.slow,
            ..Manner::default()
        };
        match fault.outcome {
            Outcome::Answer => {}
            Outcome::Fail { code, message } => return Err(Status::new(code, message)),
            Outcome::Hang => self.runtime.lifted(fault.id).await,
            Outcome::Stale(as_of) => manner.as_of = Some(as_of),
            Outcome::Cut { after, end } => manner.cut = Some((after, end)),
        }
        Ok(manner)
    }

    /// As `enter`, for calls with one answer: a cut leaves nothing of that.
    async fn enter_unary(&self, rpc: Rpc, id: Option<&str>) -> Result<Manner, Status> {
        let manner = self.enter(rpc, id).await?;
        match manner.cut.as_ref().and_then(|(_, end)| end.status()) {
            Some(status) => Err(status),
            None => Ok(manner),
        }
    }

    /// The answer is under way: its content was read, its receiver waits.
    async fn under_way(&self, rpc: Rpc, manner: &Manner) {
        let latency = self
            .runtime
            .character(|character| character.latency.get(&rpc).copied());
        wait(latency.unwrap_or_default()).await;
        wait(manner.slow).await;
        self.runtime.thawed().await;
    }

    /// Reads the world, or that of the past; and the items encoded for lists, which are the
    /// present's.
    fn read<T>(&self, manner: &Manner, read: impl FnOnce(&World, &mut Listing) -> T) -> T {
        self.runtime.change(|state, now| {
            let past = manner
                .as_of
                .as_ref()
                .and_then(|as_of| state.history.world(now.mono, &state.world, as_of));
            match past {
                Some(past) => read(&past, &mut Listing::default()),
                None => read(&state.world, &mut state.listing),
            }
        })
    }

    fn sandbox_items(&self, manner: &Manner, filter: Option<&cri::PodSandboxFilter>) -> Vec<Bytes> {
        self.read(manner, |world, listing| {
            let Some(filter) = filter else {
                return world.sandboxes().map(|it| listing.sandbox(it)).collect();
            };
            let fits = |sandbox: &&Sandbox| sandbox_fits(filter, sandbox);
            match wanted_pod(&filter.label_selector) {
                Some(uid) => world
                    .sandboxes_of_pod(&uid)
                    .filter(fits)
                    .map(|it| listing.sandbox(it))
                    .collect(),
                None => world
                    .sandboxes()
                    .filter(fits)
                    .map(|it| listing.sandbox(it))
                    .collect(),
            }
        })
    }

    fn container_items(
        &self,
        manner: &Manner,
        filter: Option<&cri::ContainerFilter>,
    ) -> Vec<Bytes> {
        self.read(manner, |world, listing| {
            let Some(filter) = filter else {
                return world.containers().map(|it| listing.container(it)).collect();
            };
            let fits = |container: &&Container| container_fits(filter, container);
            match wanted_pod(&filter.label_selector) {
                Some(uid) => world
                    .containers_of_pod(&uid)
                    .filter(fits)
                    .map(|it| listing.container(it))
                    .collect(),
                None => world
                    .containers()
                    .filter(fits)
                    .map(|it| listing.container(it))
                    .collect(),
            }
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

    async fn version(&self) -> Result<Parts, Status> {
        let manner = self.enter_unary(Rpc::Version, None).await?;
        let content = self.runtime.character(|character| {
            wire::version(
                KUBELET_API_VERSION,
                &character.runtime_name,
                &character.runtime_version,
            )
        });
        self.under_way(Rpc::Version, &manner).await;
        Ok(content.into())
    }

    async fn status(&self) -> Result<Parts, Status> {
        let manner = self.enter_unary(Rpc::Status, None).await?;
        self.under_way(Rpc::Status, &manner).await;
        Ok(wire::status(["RuntimeReady", "NetworkReady"]).into())
    }

    async fn list_pod_sandbox(&self, asked: cri::ListPodSandboxRequest) -> Result<Parts, Status> {
        let manner = self.enter_unary(Rpc::ListPodSandbox, None).await?;
        let items = self.sandbox_items(&manner, asked.filter.as_ref());
        self.under_way(Rpc::ListPodSandbox, &manner).await;
        Ok(items.into())
    }

    async fn stream_pod_sandboxes(
        &self,
        asked: cri::StreamPodSandboxesRequest,
    ) -> Result<PartStream, Status> {
        let manner = self.enter(Rpc::StreamPodSandboxes, None).await?;
        let size = self.items_per_message(Rpc::StreamPodSandboxes)?;
        let items = self.sandbox_items(&manner, asked.filter.as_ref());
        self.under_way(Rpc::StreamPodSandboxes, &manner).await;
        Ok(in_messages(items, size, manner.cut))
    }

    async fn pod_sandbox_status(
        &self,
        asked: cri::PodSandboxStatusRequest,
    ) -> Result<Parts, Status> {
        let id = &asked.pod_sandbox_id;
        let manner = self.enter_unary(Rpc::PodSandboxStatus, Some(id)).await?;
        let carries = self
            .runtime
            .character(|character| character.status_carries_containers);
        // Taken before the content, as CRI-O does.
        let timestamp = self.runtime.now().0;
        let content = self.read(&manner, |world, _| {
            let sandbox = world.sandbox(id)?;
            let containers = world.containers_in(&sandbox.id).filter(|_| carries);
            let timestamp = if carries { timestamp } else { 0 };
            Some(wire::sandbox_answer(sandbox, containers, timestamp))
        });
        let content = content.ok_or_else(|| not_found("sandbox", id))?;
        self.under_way(Rpc::PodSandboxStatus, &manner).await;
        Ok(content.into())
    }

    async fn list_containers(&self, asked: cri::ListContainersRequest) -> Result<Parts, Status> {
        let manner = self.enter_unary(Rpc::ListContainers, None).await?;
        let items = self.container_items(&manner, asked.filter.as_ref());
        self.under_way(Rpc::ListContainers, &manner).await;
        Ok(items.into())
    }

    async fn stream_containers(
        &self,
        asked: cri::StreamContainersRequest,
    ) -> Result<PartStream, Status> {
        let manner = self.enter(Rpc::StreamContainers, None).await?;
        let size = self.items_per_message(Rpc::StreamContainers)?;
        let items = self.container_items(&manner, asked.filter.as_ref());
        self.under_way(Rpc::StreamContainers, &manner).await;
        Ok(in_messages(items, size, manner.cut))
    }

    async fn container_status(&self, asked: cri::ContainerStatusRequest) -> Result<Parts, Status> {
        let id = &asked.container_id;
        let manner = self.enter_unary(Rpc::ContainerStatus, Some(id)).await?;
        let content = self
            .read(&manner, |world, _| {
                world.container(id).map(wire::container_answer)
            })
            .ok_or_else(|| not_found("container", id))?;
        self.under_way(Rpc::ContainerStatus, &manner).await;
        Ok(content.into())
    }

    async fn get_container_events(&self) -> Result<PartStream, Status> {
        let rpc = Rpc::GetContainerEvents;
        let manner = self.enter(rpc, None).await?;
        let support = self.runtime.character(|character| character.events.clone());
        match support {
            EventSupport::Unimplemented => return Err(unimplemented(rpc)),
            EventSupport::EndsAtOnce => return Ok(stream::empty().boxed()),
            EventSupport::Served(_) => {}
        }
        self.under_way(rpc, &manner).await;
        let mut events = self.runtime.open_stream();
        // Headers go out with the first message, so until then there is no answer.
        let first = match events.next().await {
            Some(Ok(first)) => first,
            Some(Err(status)) => return Err(status),
            None => return Ok(stream::empty().boxed()),
        };
        let all = stream::iter([Ok(first)]).chain(events);
        Ok(all
            .map(|message| message.map(|message| message.encoded().into()))
            .boxed())
    }
}

/// Which method a request is for, as tonic's generated servers do it, but with answers as bytes.
impl<B> tower::Service<http::Request<B>> for CriService
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let path = request.uri().path().trim_start_matches('/');
            let (asked, method) = path.split_once('/').unwrap_or((path, ""));
            let rpc = Rpc::ALL.into_iter().find(|rpc| rpc.name() == method);
            let Some(rpc) = rpc.filter(|_| asked == NAME) else {
                let unknown = if asked == NAME {
                    format!("unknown method {method} for service {NAME}")
                } else {
                    format!("unknown service {asked}")
                };
                return Ok(Status::unimplemented(unknown).into_http());
            };
            Ok(match rpc {
                Rpc::Version => {
                    one(
                        service,
                        request,
                        |service, _: cri::VersionRequest| async move { service.version().await },
                    )
                    .await
                }
                // Its request has nothing that matters here.
                Rpc::Status => {
                    one(service, request, |service, (): ()| async move {
                        service.status().await
                    })
                    .await
                }
                Rpc::ListPodSandbox => {
                    one(service, request, |service, asked| async move {
                        service.list_pod_sandbox(asked).await
                    })
                    .await
                }
                Rpc::StreamPodSandboxes => {
                    many(service, request, |service, asked| async move {
                        service.stream_pod_sandboxes(asked).await
                    })
                    .await
                }
                Rpc::PodSandboxStatus => {
                    one(service, request, |service, asked| async move {
                        service.pod_sandbox_status(asked).await
                    })
                    .await
                }
                Rpc::ListContainers => {
                    one(service, request, |service, asked| async move {
                        service.list_containers(asked).await
                    })
                    .await
                }
                Rpc::StreamContainers => {
                    many(service, request, |service, asked| async move {
                        service.stream_containers(asked).await
                    })
                    .await
                }
                Rpc::ContainerStatus => {
                    one(service, request, |service, asked| async move {
                        service.container_status(asked).await
                    })
                    .await
                }
                Rpc::GetContainerEvents => {
                    many(
                        service,
                        request,
                        |service, _: cri::GetEventsRequest| async move {
                            service.get_container_events().await
                        },
                    )
                    .await
                }
            })
        })
    }
}

/// A call with one answer.
async fn one<B, Q, F>(
    service: CriService,
    request: http::Request<B>,
    answer: impl Fn(CriService, Q) -> F,
) -> http::Response<Body>
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
    Q: prost::Message + Default + 'static,
    F: Future<Output = Result<Parts, Status>> + Send,
{
    let handler = tower::service_fn(|asked: Request<Q>| {
        let answer = answer(service.clone(), asked.into_inner());
        async move { answer.await.map(Response::new) }
    });
    Grpc::new(AnswerCodec::default())
        .unary(handler, request)
        .await
}

/// A call with a stream of answers.
async fn many<B, Q, F>(
    service: CriService,
    request: http::Request<B>,
    answer: impl Fn(CriService, Q) -> F,
) -> http::Response<Body>
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
    Q: prost::Message + Default + 'static,
    F: Future<Output = Result<PartStream, Status>> + Send,
{
    let handler = tower::service_fn(|asked: Request<Q>| {
        let answer = answer(service.clone(), asked.into_inner());
        async move { answer.await.map(Response::new) }
    });
    Grpc::new(AnswerCodec::default())
        .server_streaming(handler, request)
        .await
}

/// A streamed list: so many items a message, cut off as the fault says.
fn in_messages(mut items: Vec<Bytes>, size: usize, cut: Option<(usize, StreamEnd)>) -> PartStream {
    let mut end = None;
    if let Some((after, how)) = cut {
        items.truncate(after);
        end = how.status();
    }
    let messages: Vec<Parts> = items
        .chunks(size)
        .map(|part| part.to_vec().into())
        .collect();
    stream::iter(messages.into_iter().map(Ok))
        .chain(stream::iter(end.map(Err)))
        .boxed()
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

fn sandbox_fits(filter: &cri::PodSandboxFilter, sandbox: &Sandbox) -> bool {
    (filter.id.is_empty() || filter.id == sandbox.id.as_str())
        && labels_fit(&filter.label_selector, |key| sandbox.pod.label_value(key))
}

fn container_fits(filter: &cri::ContainerFilter, container: &Container) -> bool {
    (filter.id.is_empty() || filter.id == container.id.as_str())
        && (filter.pod_sandbox_id.is_empty() || filter.pod_sandbox_id == container.sandbox.as_str())
        && labels_fit(&filter.label_selector, |key| container.label_value(key))
}

/// The one pod that a selector leaves, if it names one.
fn wanted_pod(selector: &BTreeMap<String, String>) -> Option<PodUid> {
    selector.get(POD_UID_LABEL).map(|uid| uid.as_str().into())
}

fn labels_fit<'a>(
    selector: &BTreeMap<String, String>,
    label: impl Fn(&str) -> Option<&'a str>,
) -> bool {
    selector
        .iter()
        .all(|(key, value)| label(key) == Some(value.as_str()))
}

fn unimplemented(rpc: Rpc) -> Status {
    Status::unimplemented(format!("method {rpc} not implemented"))
}

fn not_found(what: &str, id: &str) -> Status {
    Status::not_found(format!("{what} {id:?} not found"))
}
