//! A client of a running daemon, which comes back by itself.
//!
//! [`Watching`] goes on where it was after a broken connection; if the daemon cannot go on there, it
//! says so and begins with a snapshot. Whoever reads it never has a gap that it was not told of.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{Channel, Endpoint as Dialled};
use tonic::{Code, Request, Status as CallStatus, Streaming, TimeoutExpired};

use super::client_stub::pleg_client::PlegClient;
use super::convert::{self, Unreadable};
use super::messages::{
    GetRecordingRequest, GetRecordingResponse, GetStatusRequest, ListPodsRequest, WatchFrom,
    WatchRequest, WatchResponse, watch_response,
};
use crate::cri::Endpoint;
use crate::engine::ModeChange;
use crate::lifecycle::{LifecycleEvent, PodStatus};
use crate::serve::status::Status;

/// The largest answer taken: a node has few pods, but a list has their texts.
const ANSWER_BYTES: usize = 64 << 20;

/// How long a call may take that the daemon answers by itself.
const DEADLINE: Duration = Duration::from_secs(10);

/// A daemon that says nothing for so long is asked whether it is there ...
const PING_AFTER: Duration = Duration::from_secs(20);

/// ... and taken for gone if it does not answer for so long.
const PING_DEADLINE: Duration = Duration::from_secs(10);

/// The first wait before the next try to connect; it doubles ...
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// ... up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It refused, or was not there.
    #[error("{}", in_words(.0))]
    Call(#[source] Box<CallStatus>),
    /// It said something that this client cannot read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

fn in_words(status: &CallStatus) -> String {
    match status.code() {
        Code::Unavailable => format!("the daemon is not there ({})", status.message()),
        Code::Unimplemented => format!(
            "the daemon does not have this: {} (is it of another version?)",
            status.message()
        ),
        Code::DeadlineExceeded => format!(
            "it takes connections, but {} (does it hang, or do too many ask it?)",
            status.message()
        ),
        code => format!("the daemon refused ({code:?}): {}", status.message()),
    }
}

impl From<CallStatus> for ClientError {
    fn from(status: CallStatus) -> Self {
        let has_expired = causes(&status).any(<dyn Error>::is::<TimeoutExpired>);
        Self::Call(Box::new(if has_expired { late() } else { status }))
    }
}

/// What a transport's error was made of, from the outside in.
fn causes(status: &CallStatus) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |&cause| cause.source())
}

fn late() -> CallStatus {
    CallStatus::deadline_exceeded(format!("gave no answer within {} s", DEADLINE.as_secs()))
}

/// Why there is no watch, or none any more, in the words of whoever knows best.
fn why_not(status: &CallStatus, stood: bool) -> String {
    match causes(status).last() {
        Some(cause) => cause.to_string(),
        None if stood => status.message().to_owned(),
        None => in_words(status),
    }
}

/// A client of one daemon. Clones share a connection, which is made anew when it broke.
#[derive(Clone, Debug)]
pub struct DaemonClient {
    stub: PlegClient<Channel>,
}

impl DaemonClient {
    /// A client of the daemon at a socket. Nothing is dialled before the first call.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, which runs the connection.
    #[must_use]
    pub fn at(socket: &Endpoint) -> Self {
        // tonic refuses no text that begins with `unix:`, except one that is not UTF-8.
        let dialled = Dialled::from_shared(socket.to_string())
            .unwrap_or_else(|_| Dialled::from_static("unix:/"))
            .http2_keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PING_DEADLINE);
        Self::over(dialled.connect_lazy())
    }

    /// A client over a channel of the caller's.
    #[must_use]
    pub fn over(channel: Channel) -> Self {
        let stub = PlegClient::new(channel).max_decoding_message_size(ANSWER_BYTES);
        Self { stub }
    }

    /// The daemon's status.
    ///
    /// # Errors
    ///
    /// If it is not there, or says what cannot be read.
    pub async fn status(&self) -> Result<Status, ClientError> {
        let request = with_deadline(GetStatusRequest {});
        let answer = self.stub.clone().get_status(request).await?;
        Ok(convert::status_from(answer.into_inner())?)
    }

    /// Every pod.
    ///
    /// # Errors
    ///
    /// If it is not there, or says what cannot be read.
    pub async fn pods(&self) -> Result<Vec<Arc<PodStatus>>, ClientError> {
        let request = with_deadline(ListPodsRequest {});
        let answer = self.stub.clone().list_pods(request).await?.into_inner();
        let pods = answer.items.into_iter();
        let pods: Result<_, _> = pods
            .map(|pod| convert::pod_from(pod).map(Arc::new))
            .collect();
        Ok(pods?)
    }

    /// The recording of at least the last `span`, in pieces.
    ///
    /// # Errors
    ///
    /// If it is not there, or has no flight recorder.
    pub async fn recording(&self, span: Duration) -> Result<Recording, ClientError> {
        let last_seconds = span.as_secs_f64();
        let request = Request::new(GetRecordingRequest { last_seconds });
        let answer = self.stub.clone().get_recording(request).await?;
        Ok(Recording(answer.into_inner()))
    }

    /// Watches, for as long as the answer is asked for more. `client` is who watches, for the status.
    #[must_use]
    pub fn watch(&self, begin: Begin, client: &str) -> Watching {
        Watching {
            stub: self.stub.clone(),
            client: client.to_owned(),
            begin,
            stream: None,
            heard: false,
            told_lost: false,
            is_to_wait: false,
            wait: FIRST_WAIT,
        }
    }
}

fn with_deadline<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    request
}

/// A recording on its way.
#[derive(Debug)]
pub struct Recording(Streaming<GetRecordingResponse>);

impl Recording {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    ///
    /// If the rest does not come.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        Ok(self.0.message().await?.map(|piece| piece.data))
    }
}

/// What somebody who watches a daemon is told.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Watched {
    /// Something happened, or is there already.
    Event(Arc<LifecycleEvent>),
    /// The snapshot is complete.
    SnapshotEnd,
    /// The mode changed.
    ModeChanged(ModeChange),
    /// The connection is lost, or cannot be made; it is tried again and again, which is told once. Nothing
    /// is lost yet.
    Lost(String),
    /// What followed cannot be told exactly: a snapshot comes next, and whatever was told before it
    /// and is not in it is gone.
    ListAgain(String),
}

/// Where a watch begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Begin {
    /// With what is there already.
    Snapshot,
    /// With what happens from now on.
    Now,
    /// With what followed a position, as a watch or a list gave it.
    After(String),
}

/// Somebody who watches a daemon, over any number of connections.
#[derive(Debug)]
pub struct Watching {
    stub: PlegClient<Channel>,
    client: String,
    begin: Begin,
    stream: Option<Streaming<WatchResponse>>,
    /// Whether the present or last stream has told anything.
    heard: bool,
    /// Whether it was told that there is no connection, since something was last heard.
    told_lost: bool,
    /// Whether the last try came to nothing, so that the next one is not made at once.
    is_to_wait: bool,
    wait: Duration,
}

impl Watching {
    /// Where it would go on after a broken connection.
    #[must_use]
    pub fn begin(&self) -> &Begin {
        &self.begin
    }

    /// Waits for what comes next.
    ///
    /// Not cancel-safe while no connection stands: the wait before the next try begins anew.
    ///
    /// # Errors
    ///
    /// What trying again would not mend: the daemon does not take the request, or says what cannot be
    /// read.
    pub async fn next(&mut self) -> Result<Watched, ClientError> {
        loop {
            let Some(stream) = &mut self.stream else {
                if self.is_to_wait {
                    tokio::time::sleep(self.wait).await;
                    self.wait = (self.wait * 2).min(LONGEST_WAIT);
                    self.is_to_wait = false;
                }
                self.heard = false;
                match self.connect().await {
                    Ok(stream) => self.stream = Some(stream),
                    Err(status) => {
                        if let Some(watched) = self.broken(status)? {
                            return Ok(watched);
                        }
                    }
                }
                continue;
            };
            match stream.message().await {
                Ok(Some(answer)) => {
                    self.wait = FIRST_WAIT;
                    self.heard = true;
                    self.told_lost = false;
                    if let Some(watched) = self.take(answer)? {
                        return Ok(watched);
                    }
                }
                Ok(None) => {
                    if let Some(watched) = self.lost("the daemon ended the watch") {
                        return Ok(watched);
                    }
                }
                Err(status) => {
                    if let Some(watched) = self.broken(status)? {
                        return Ok(watched);
                    }
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<Streaming<WatchResponse>, CallStatus> {
        let (from, position) = match &self.begin {
            Begin::Snapshot => (WatchFrom::Snapshot, String::new()),
            Begin::Now => (WatchFrom::Now, String::new()),
            Begin::After(position) => (WatchFrom::Position, position.clone()),
        };
        let request = WatchRequest {
            from: from.into(),
            position,
            mode_changes: true,
            client: self.client.clone(),
        };
        // A daemon answers at once, be there anything to tell or not.
        match tokio::time::timeout(DEADLINE, self.stub.watch(request)).await {
            Ok(answer) => Ok(answer?.into_inner()),
            Err(_) => Err(late()),
        }
    }

    fn take(&mut self, answer: WatchResponse) -> Result<Option<Watched>, ClientError> {
        if !answer.position.is_empty() {
            self.begin = Begin::After(answer.position);
        }
        Ok(match answer.told {
            Some(watch_response::Told::Event(event)) => {
                Some(Watched::Event(Arc::new(convert::event_from(event)?)))
            }
            Some(watch_response::Told::SnapshotEnd(_)) => Some(Watched::SnapshotEnd),
            Some(watch_response::Told::ModeChange(change)) => {
                Some(Watched::ModeChanged(convert::mode_change_from(change)?))
            }
            // Of a newer daemon, and nothing that this client asked for.
            None => None,
        })
    }

    /// What a failed call means; `None` if there is nothing new to say and only time will help.
    fn broken(&mut self, status: CallStatus) -> Result<Option<Watched>, ClientError> {
        match status.code() {
            Code::OutOfRange => {
                self.is_to_wait = !self.heard;
                self.stream = None;
                self.begin = Begin::Snapshot;
                Ok(Some(Watched::ListAgain(status.message().to_owned())))
            }
            Code::InvalidArgument
            | Code::Unimplemented
            | Code::PermissionDenied
            | Code::Unauthenticated => {
                self.stream = None;
                Err(status.into())
            }
            _ => Ok(self.lost(&why_not(&status, self.stream.is_some()))),
        }
    }

    /// There is no stream, or no longer. Told once, until something is heard again.
    fn lost(&mut self, why: &str) -> Option<Watched> {
        let stood = self.stream.take().is_some();
        self.is_to_wait = !self.heard;
        let was_cut_short = match self.begin {
            Begin::After(_) => false,
            Begin::Snapshot => self.heard,
            Begin::Now => stood,
        };
        if was_cut_short {
            // There is no position to go on from.
            self.begin = Begin::Snapshot;
            let why = format!("list again: {why} before there was a position");
            return Some(Watched::ListAgain(why));
        }
        let is_news = !std::mem::replace(&mut self.told_lost, true);
        is_news.then(|| Watched::Lost(why.to_owned()))
    }
}
