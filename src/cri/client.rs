//! The calls: one method for each, each with its deadline.
//!
//! A client is a cheap clone around one channel. It never retries, keeps no state but what it has
//! learnt of the runtime's streaming lists and the items of the last list (so that the next one need
//! not make them anew), and has no call that could change the node.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::Endpoint;
use super::error::{CallError, DecodeError, ListStreaming, SizeLimit};
use super::rpc_counts::{MethodAndCode, RpcCounts};
use super::wire::call::{self, Call};
use super::wire::decode::{self, SandboxAnswer};
use super::wire::event::event;
use super::wire::listing::{Item, KnownItems, KnownLists, ListReader};
use super::wire::texts::{KnownTexts, ListedTexts};
use crate::engine::{Answer, Inspection, Question, RuntimeVersion};
use crate::lifecycle::{
    ContainerId, ContainerStatus, Listed, NodeList, PodUid, Refusal, RuntimeEvent, SandboxId,
};

/// How long a client waits, and how much it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// The largest message taken, in bytes; 16 MiB by default, as the kubelet and containerd have it.
    pub message_size: usize,
    /// How long `Version` may take; 5 s by default. It is the heartbeat.
    pub version_deadline: Duration,
    /// How long any other call but the event stream may take; 120 s by default, the kubelet's.
    pub call_deadline: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            message_size: 16 << 20,
            version_deadline: Duration::from_secs(5),
            call_deadline: Duration::from_mins(2),
        }
    }
}

/// A list that comes in pieces may hold this many times what one message may.
const MESSAGES_IN_A_LIST: usize = 16;

/// How many statuses of one inspection are asked for at a time. The engine inspects up to 8 pods in
/// parallel, so 16 status calls are out at most, but for those that hang.
const STATUSES_AT_A_TIME: usize = 2;

/// A client of one runtime.
#[derive(Clone, Debug)]
pub struct CriClient {
    channel: Channel,
    limits: CallLimits,
    streaming: Arc<StreamingLists>,
    counts: RpcCounts,
    /// What the last list of the node had. Taken out while the next one is read, and forgotten if that
    /// fails.
    known: Arc<Mutex<KnownLists>>,
}

/// What the runtime answered to each streaming list, once asked: whether it has it.
#[derive(Debug, Default)]
struct StreamingLists {
    sandboxes: OnceLock<bool>,
    containers: OnceLock<bool>,
}

impl StreamingLists {
    fn support(&self) -> ListStreaming {
        match self.containers.get().or(self.sandboxes.get()) {
            None => ListStreaming::Unknown,
            Some(true) => ListStreaming::Supported,
            Some(false) => ListStreaming::Unsupported,
        }
    }
}

impl CriClient {
    /// A client over a channel of the caller's. The channel must have no timeout of its own, which
    /// would end an idle event stream.
    #[must_use]
    pub fn new(channel: Channel, limits: CallLimits) -> Self {
        Self {
            channel,
            limits,
            streaming: Arc::default(),
            counts: RpcCounts::default(),
            known: Arc::default(),
        }
    }

    /// A client with a channel of its own. Nothing is dialled before the first call.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, which runs the connection.
    #[must_use]
    pub fn for_endpoint(endpoint: &Endpoint, limits: CallLimits) -> Self {
        Self::new(endpoint.channel(), limits)
    }

    /// The same client for another runtime behind the same channel: what the last one had of streaming
    /// lists is forgotten.
    #[must_use]
    pub fn for_changed_runtime(&self) -> Self {
        Self {
            streaming: Arc::default(),
            ..self.clone()
        }
    }

    /// How many calls of this client and its clones have ended so far, by method and code; the event
    /// stream is not among them, nor is a call that was given up.
    #[must_use]
    pub fn rpcs(&self) -> BTreeMap<MethodAndCode, u64> {
        self.counts.so_far()
    }

    /// Asks for the runtime's name and version.
    ///
    /// # Errors
    ///
    /// As every call; an answer with an empty field is malformed, and each such field named.
    pub async fn version(&self) -> Result<RuntimeVersion, CallError> {
        let read = |bytes: &[u8], _: &KnownTexts| decode::version(bytes);
        self.unary(call::version(), self.limits.version_deadline, read)
            .await
    }

    /// Lists the node: sandboxes first, then containers.
    ///
    /// # Errors
    ///
    /// As every call. A list that failed half-way is no list.
    pub async fn list_node(&self) -> Result<NodeList, CallError> {
        let mut known = std::mem::take(&mut *self.known());
        let list = self.lists(None, &mut known).await?;
        *self.known() = known;
        Ok(list)
    }

    /// Lists one pod: what carries the label of its uid, sandboxes first.
    ///
    /// # Errors
    ///
    /// As [`list_node`](Self::list_node).
    pub async fn list_pod(&self, uid: &PodUid) -> Result<NodeList, CallError> {
        self.lists(Some(uid), &mut KnownLists::default()).await
    }

    fn known(&self) -> std::sync::MutexGuard<'_, KnownLists> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn lists(
        &self,
        pod: Option<&PodUid>,
        known: &mut KnownLists,
    ) -> Result<NodeList, CallError> {
        let KnownLists {
            sandboxes,
            containers,
            texts,
        } = known;
        let sandboxes = self
            .list(
                &self.streaming.sandboxes,
                call::stream_sandboxes(pod),
                call::list_sandboxes(pod),
                (sandboxes, texts),
            )
            .await?;
        let containers = self
            .list(
                &self.streaming.containers,
                call::stream_containers(pod),
                call::list_containers(pod),
                (containers, texts),
            )
            .await?;
        Ok(NodeList {
            sandboxes,
            containers,
        })
    }

    /// One list: streamed, or unary where the runtime said that it does not stream this one.
    async fn list<T: Item + Send + Sync + 'static>(
        &self,
        streams: &OnceLock<bool>,
        streamed: Call,
        unary: Call,
        (items, texts): (&mut KnownItems<T>, &mut KnownTexts),
    ) -> Result<Listed<T>, CallError> {
        if streams.get() != Some(&false) {
            let list = ListReader::begin(items, texts);
            match self.streamed_list(streamed, list).await {
                Err(error) if is_unimplemented(&error) => {
                    let _ = streams.set(false);
                }
                Ok(list) => {
                    let _ = streams.set(true);
                    return Ok(list);
                }
                Err(error) => return Err(error),
            }
        }
        let method = unary.method;
        let answer = self.message(unary, self.limits.call_deadline).await;
        let mut list = ListReader::begin(items, texts);
        let list = answer
            .and_then(|answer| take(method, &mut list, &answer))
            .map(|()| list.finish());
        self.counts.ended(method, &list);
        list
    }

    /// All pieces of a list, or none.
    async fn streamed_list<T: Item + Send + Sync + 'static>(
        &self,
        call: Call,
        mut list: ListReader<'_, T>,
    ) -> Result<Listed<T>, CallError> {
        let method = call.method;
        let most = self.limits.message_size.saturating_mul(MESSAGES_IN_A_LIST);
        let collect = async {
            let mut pieces = self.open(call).await?;
            let mut size = 0_usize;
            while let Some(piece) = self.receive(method, &mut pieces).await? {
                size = size.saturating_add(piece.len());
                if size > most {
                    return Err(CallError::TooLarge {
                        method,
                        size: None,
                        limit: SizeLimit::List(most.try_into().unwrap_or(u64::MAX)),
                        lists: ListStreaming::Supported,
                    });
                }
                take(method, &mut list, &piece)?;
            }
            Ok(list.finish())
        };
        let list = within(self.limits.call_deadline, method, collect).await;
        self.counts.ended(method, &list);
        list
    }

    /// Reads the statuses of these subjects, each of which has an answer of its own.
    ///
    /// A container that a sandbox's answer brought along is not asked for again; one that it did not
    /// bring is, because nothing follows from such a list being empty or short.
    pub async fn inspect(&self, sandboxes: &[SandboxId], containers: &[ContainerId]) -> Inspection {
        let answers: Vec<_> = futures::stream::iter(sandboxes.to_vec())
            .map(|id| {
                let client = self.clone();
                async move {
                    let answer = client.sandbox_status(&id).await;
                    (id, answer)
                }
            })
            .buffered(STATUSES_AT_A_TIME)
            .collect()
            .await;
        let mut inspection = Inspection::default();
        let mut brought: BTreeMap<ContainerId, ContainerStatus> = BTreeMap::new();
        for (id, answer) in answers {
            let answer = answer.map(|answer| {
                for status in answer.containers {
                    brought.entry(status.id.clone()).or_insert(status);
                }
                answer.sandbox
            });
            inspection.sandboxes.push((id, answer.map_err(Into::into)));
        }
        let wanted: Vec<_> = containers
            .iter()
            .map(|id| (id.clone(), brought.remove(id)))
            .collect();
        inspection.containers = futures::stream::iter(wanted)
            .map(|(id, brought)| {
                let client = self.clone();
                async move {
                    let answer = match brought {
                        Some(status) => Ok(status),
                        None => client.container_status(&id).await,
                    };
                    (id, answer.map_err(Into::into))
                }
            })
            .buffered(STATUSES_AT_A_TIME)
            .collect()
            .await;
        inspection
    }

    async fn sandbox_status(&self, id: &SandboxId) -> Result<SandboxAnswer, CallError> {
        let call = call::sandbox_status(id);
        let method = call.method;
        let read = |bytes: &[u8], listed: &KnownTexts| {
            decode::sandbox_answer(bytes, &mut ListedTexts::of(listed))
        };
        let answer = self.unary(call, self.limits.call_deadline, read).await?;
        is_about(method, id.as_str(), answer.sandbox.id.as_str())?;
        Ok(answer)
    }

    async fn container_status(&self, id: &ContainerId) -> Result<ContainerStatus, CallError> {
        let call = call::container_status(id);
        let method = call.method;
        let read = |bytes: &[u8], listed: &KnownTexts| {
            decode::container_answer(bytes, &mut ListedTexts::of(listed))
        };
        let status = self.unary(call, self.limits.call_deadline, read).await?;
        is_about(method, id.as_str(), status.id.as_str())?;
        Ok(status)
    }

    /// Asks a question of the engine's.
    pub async fn answer(&self, question: Question) -> Answer {
        match question {
            Question::Version => Answer::Version(self.version().await.map_err(Into::into)),
            Question::FullRelist => Answer::Listed(self.list_node().await.map_err(Into::into)),
            Question::PodRelist { uid } => {
                Answer::Listed(self.list_pod(&uid).await.map_err(Into::into))
            }
            Question::Inspect {
                uid: _,
                sandboxes,
                containers,
            } => Answer::Inspected(self.inspect(&sandboxes, &containers).await),
        }
    }

    /// Asks for the event stream.
    ///
    /// Servers in Go send the headers with the first message, so this may not return for hours on an
    /// idle node. Being asked for is all that is known of the stream until then. It has no deadline,
    /// and sends none: grpc-go would end the stream by it. Dropping the future or the stream cancels
    /// the call.
    ///
    /// # Errors
    ///
    /// As every call, but for a deadline.
    pub async fn events(&self) -> Result<EventStream, CallError> {
        let call = call::events();
        let method = call.method;
        let messages = self.open(call).await?;
        Ok(EventStream {
            client: self.clone(),
            method,
            messages,
            texts: KnownTexts::default(),
        })
    }

    /// A call with one answer. Its texts that the last list has told already need not be made anew.
    async fn unary<A>(
        &self,
        call: Call,
        deadline: Duration,
        read: impl FnOnce(&[u8], &KnownTexts) -> Result<A, DecodeError>,
    ) -> Result<A, CallError> {
        let method = call.method;
        let answer = self.message(call, deadline).await;
        let answer = answer.and_then(|bytes| {
            read(&bytes, &self.known().texts)
                .map_err(|problem| CallError::Malformed { method, problem })
        });
        self.counts.ended(method, &answer);
        answer
    }

    /// A call's one answer, not counted yet: it may still turn out malformed.
    async fn message(&self, call: Call, deadline: Duration) -> Result<Bytes, CallError> {
        let method = call.method;
        let (request, path, codec) = call.into_parts();
        let mut grpc = self.grpc();
        let send = async {
            ready(&mut grpc).await?;
            grpc.unary(request, path, codec).await
        };
        let answer = within(deadline, method, async {
            send.await.map_err(|status| self.failed(method, status))
        })
        .await?;
        Ok(answer.into_inner())
    }

    async fn open(&self, call: Call) -> Result<Streaming<Bytes>, CallError> {
        let method = call.method;
        let (request, path, codec) = call.into_parts();
        let mut grpc = self.grpc();
        let opened = async {
            ready(&mut grpc).await?;
            grpc.server_streaming(request, path, codec).await
        };
        match opened.await {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(self.failed(method, status)),
        }
    }

    async fn receive(
        &self,
        method: &'static str,
        messages: &mut Streaming<Bytes>,
    ) -> Result<Option<Bytes>, CallError> {
        let message = messages.message().await;
        message.map_err(|status| self.failed(method, status))
    }

    fn grpc(&self) -> Grpc<Channel> {
        Grpc::new(self.channel.clone()).max_decoding_message_size(self.limits.message_size)
    }

    fn failed(&self, method: &'static str, status: Status) -> CallError {
        let lists = self.streaming.support();
        CallError::from_status(method, status, self.limits.message_size, lists)
    }
}

/// Takes the answer of a list or a piece of it.
fn take<T: Item>(
    method: &'static str,
    list: &mut ListReader<'_, T>,
    message: &[u8],
) -> Result<(), CallError> {
    list.take(message).map_err(|problem| CallError::Malformed {
        method,
        problem: problem.into(),
    })
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    grpc.ready()
        .await
        .map_err(|error| Status::from_error(Box::new(error)))
}

async fn within<T>(
    deadline: Duration,
    method: &'static str,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(deadline, call).await {
        Ok(answer) => answer,
        Err(_) => Err(CallError::Deadline {
            method,
            after: deadline,
        }),
    }
}

fn is_unimplemented(error: &CallError) -> bool {
    error.kind() == crate::engine::FailureKind::Unimplemented
}

fn is_about(method: &'static str, asked: &str, told: &str) -> Result<(), CallError> {
    if asked == told {
        return Ok(());
    }
    let problem = DecodeError::OtherSubject {
        asked: asked.to_owned(),
        told: told.to_owned(),
    };
    Err(CallError::Malformed { method, problem })
}

/// The event stream. Dropping it cancels the call.
#[derive(Debug)]
pub struct EventStream {
    client: CriClient,
    method: &'static str,
    messages: Streaming<Bytes>,
    /// Messages about one pod repeat each other's texts.
    texts: KnownTexts,
}

/// One message of the event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamedMessage {
    /// What it takes in memory beside its containers, in bytes: texts that it shares with others count
    /// for the first of them.
    pub held: usize,
    /// The event, or why the bytes are none.
    pub event: Result<RuntimeEvent, Refusal>,
}

impl EventStream {
    /// The next message; `None` once the runtime has closed the stream without an error.
    ///
    /// Cancel-safe: a message is never lost by dropping the future.
    ///
    /// # Errors
    ///
    /// Whatever ended the stream. It is over then.
    pub async fn next(&mut self) -> Result<Option<StreamedMessage>, CallError> {
        let message = self.client.receive(self.method, &mut self.messages).await?;
        Ok(message.map(|bytes| self.read(&bytes)))
    }

    fn read(&mut self, bytes: &[u8]) -> StreamedMessage {
        let before = self.texts.made();
        let event = event(bytes, &mut self.texts);
        let held = self.texts.made() - before;
        self.texts.tidy();
        StreamedMessage { held, event }
    }
}
