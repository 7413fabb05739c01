//! Reads the event stream, and does nothing else.
//!
//! A client that stops reading stalls the node: containerd 2.x sends each event to each client before
//! the call that caused it returns, so a full window stops the creation of pods. Therefore the reader
//! waits for nothing but the stream. It takes no lock of ours, awaits no consumer and puts what it
//! read into an [`Inbox`], which drops when it is full; the only other things that can wake it are a
//! command, the inbox having been emptied after a loss, and its consumer having gone. By default the
//! connection and the reader have a thread to themselves, so that no stall of the embedder's executor
//! reaches them either.
//!
//! One stream is open at a time. On a thread of its own each stream has a runtime of its own too:
//! when that is dropped the socket is closed, and only then is the next one dialled.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use futures::{FutureExt, select_biased};
use tokio::sync::{mpsc, oneshot};
use tokio::task;
use tonic::transport::Channel;

use super::inbox::{InboxWriter, Shared, inbox};
use super::{CallError, CallLimits, CriClient, Endpoint, Inbox, ReaderCounts};
use crate::engine::{Failure, FailureKind, SessionId, StreamEnd};

/// Where the streams come from.
#[derive(Clone)]
pub enum StreamSource {
    /// A socket: each stream has a connection of its own.
    Endpoint(Endpoint),
    /// A channel of the caller's, whose connection runs where the caller made it and is shared by all
    /// streams. It must have no timeout of its own.
    Channel(Channel),
    /// Makes a channel for each stream, in the runtime that will read it.
    Connector(Arc<dyn Fn() -> Channel + Send + Sync>),
}

impl StreamSource {
    fn channel(&self) -> Channel {
        match self {
            Self::Endpoint(endpoint) => endpoint.channel(),
            Self::Channel(channel) => channel.clone(),
            Self::Connector(connect) => connect(),
        }
    }
}

impl fmt::Debug for StreamSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(endpoint) => write!(f, "Endpoint({endpoint})"),
            Self::Channel(_) => f.write_str("Channel"),
            Self::Connector(_) => f.write_str("Connector"),
        }
    }
}

/// Where the reader runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReaderPlace {
    /// On a thread of its own with runtimes of its own.
    #[default]
    OwnThread,
    /// As a task of the runtime that starts it: for tests in virtual time, and for a ready channel,
    /// whose connection runs there anyway.
    CurrentRuntime,
}

/// What the reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderLimits {
    /// The largest message, in bytes; 16 MiB by default. A larger one breaks the stream.
    pub message_size: usize,
    /// What may wait in the inbox, in bytes of memory, about; 32 MiB by default, some 25,000 messages about
    /// pods of three containers.
    pub inbox_size: usize,
}

impl Default for ReaderLimits {
    fn default() -> Self {
        Self {
            message_size: CallLimits::default().message_size,
            inbox_size: 32 << 20,
        }
    }
}

/// Why a reader could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The system gave no thread.
    #[error("cannot start a thread for the event stream")]
    Thread(#[source] std::io::Error),
    /// It was to run on the current runtime, and there is none.
    #[error("cannot read the event stream here: this is outside a tokio runtime")]
    NoRuntime(#[source] tokio::runtime::TryCurrentError),
}

enum Command {
    Open(SessionId),
    Close(SessionId),
}

/// The handle of the reader. Dropping it ends the stream, and then the reader.
#[derive(Debug)]
pub struct StreamReader {
    commands: mpsc::UnboundedSender<Command>,
    running: Running,
    shared: Arc<Shared>,
}

#[derive(Debug)]
enum Running {
    Thread {
        thread: thread::JoinHandle<()>,
        ended: oneshot::Receiver<()>,
    },
    Task(task::JoinHandle<()>),
}

impl StreamReader {
    /// Starts a reader. No stream is asked for yet.
    ///
    /// # Errors
    ///
    /// If there is no thread to be had, or no runtime to run on.
    pub fn start(
        source: StreamSource,
        place: ReaderPlace,
        limits: ReaderLimits,
    ) -> Result<(Self, Inbox), StartError> {
        let (writer, inbox) = inbox(limits.inbox_size);
        let shared = Arc::clone(writer.shared());
        let (commands, received) = mpsc::unbounded_channel();
        let work = Work {
            source,
            limits: CallLimits {
                message_size: limits.message_size,
                ..CallLimits::default()
            },
            commands: received,
            inbox: writer,
        };
        let running = match place {
            ReaderPlace::OwnThread => {
                let (alive, ended) = oneshot::channel();
                let thread = thread::Builder::new()
                    .name("pleg-events".to_owned())
                    .spawn(move || {
                        work.run_on_this_thread();
                        drop(alive);
                    })
                    .map_err(StartError::Thread)?;
                Running::Thread { thread, ended }
            }
            ReaderPlace::CurrentRuntime => {
                let runtime =
                    tokio::runtime::Handle::try_current().map_err(StartError::NoRuntime)?;
                Running::Task(runtime.spawn(work.run()))
            }
        };
        let reader = Self {
            commands,
            running,
            shared,
        };
        Ok((reader, inbox))
    }

    /// Asks for the stream. One that is still open is dropped first, and tells nothing more.
    pub fn open(&self, session: SessionId) {
        // It fails only when the reader ended, because its inbox was dropped.
        let _ = self.commands.send(Command::Open(session));
    }

    /// Drops the stream, if it is still this one. It tells nothing more, not even its end.
    pub fn close(&self, session: SessionId) {
        let _ = self.commands.send(Command::Close(session));
    }

    /// What was counted up to now.
    #[must_use]
    pub fn counts(&self) -> ReaderCounts {
        self.shared.counts()
    }

    /// Drops the stream and waits until the reader has ended: its thread, or its task.
    pub async fn shutdown(self) {
        drop(self.commands);
        match self.running {
            Running::Thread { thread, ended } => {
                // Its sender is dropped as the last thing that the thread does.
                let _ = ended.await;
                let _ = thread.join();
            }
            Running::Task(task) => {
                let _ = task.await;
            }
        }
    }
}

/// What to do when a stream is over.
enum Next {
    Open(SessionId),
    Wait,
    Stop,
}

impl Next {
    /// What a command means while no stream is open.
    fn after_a_wait(command: Option<&Command>) -> Self {
        match command {
            Some(Command::Open(session)) => Self::Open(*session),
            Some(Command::Close(_)) => Self::Wait,
            None => Self::Stop,
        }
    }
}

struct Work {
    source: StreamSource,
    limits: CallLimits,
    commands: mpsc::UnboundedReceiver<Command>,
    inbox: InboxWriter,
}

impl Work {
    async fn run(mut self) {
        let mut next = Next::Wait;
        loop {
            next = match next {
                Next::Open(session) => self.follow(session).await,
                Next::Wait => Next::after_a_wait(self.commands.recv().await.as_ref()),
                Next::Stop => return,
            }
        }
    }

    fn run_on_this_thread(mut self) {
        let mut next = Next::Wait;
        loop {
            next = match next {
                Next::Open(session) => self.follow_in_a_runtime_of_its_own(session),
                Next::Wait => Next::after_a_wait(self.commands.blocking_recv().as_ref()),
                Next::Stop => return,
            }
        }
    }

    fn follow_in_a_runtime_of_its_own(&mut self, session: SessionId) -> Next {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        match runtime {
            // With the runtime, which is dropped here, goes the connection.
            Ok(runtime) => runtime.block_on(self.follow(session)),
            Err(error) => {
                let message = format!("cannot make a runtime for the event stream: {error}");
                self.inbox.end(session, broken(&message));
                Next::Wait
            }
        }
    }

    /// Reads one stream until it ends or another command comes.
    async fn follow(&mut self, session: SessionId) -> Next {
        let Self {
            source,
            limits,
            commands,
            inbox,
        } = self;
        inbox.shared().sessions.fetch_add(1, Ordering::Relaxed);
        let mut abandoned = pin!(inbox.abandoned().fuse());
        let end = {
            let reading = read(session, source, *limits, inbox);
            let mut reading = pin!(AssertUnwindSafe(reading).catch_unwind().fuse());
            loop {
                select_biased! {
                    command = commands.recv().fuse() => match command {
                        Some(Command::Open(next)) => break Err(Next::Open(next)),
                        Some(Command::Close(closed)) if closed == session => break Err(Next::Wait),
                        Some(Command::Close(_)) => {}
                        None => break Err(Next::Stop),
                    },
                    () = abandoned => break Err(Next::Stop),
                    end = reading => break Ok(end),
                }
            }
            // The stream is dropped here, which cancels it, before anything else is done.
        };
        match end {
            Ok(end) => {
                let end = end.unwrap_or_else(|_| broken("the reader of the event stream panicked"));
                inbox.end(session, end);
                Next::Wait
            }
            Err(next) => {
                inbox.report_gap();
                next
            }
        }
    }
}

async fn read(
    session: SessionId,
    source: &StreamSource,
    limits: CallLimits,
    inbox: &mut InboxWriter,
) -> StreamEnd {
    let client = CriClient::new(source.channel(), limits);
    let mut stream = match client.events().await {
        Ok(stream) => stream,
        Err(error) => return end_by(&error),
    };
    loop {
        let message = select_biased! {
            () = inbox.gap_can_be_reported().fuse() => None,
            message = stream.next().fuse() => Some(message),
        };
        match message {
            None => inbox.report_gap(),
            Some(Ok(Some(message))) => inbox.put(session, message),
            Some(Ok(None)) => return StreamEnd::Clean,
            Some(Err(error)) => return end_by(&error),
        }
    }
}

fn end_by(error: &CallError) -> StreamEnd {
    match error.kind() {
        FailureKind::Unimplemented => StreamEnd::Unimplemented,
        _ => StreamEnd::Broken(error.into()),
    }
}

fn broken(message: &str) -> StreamEnd {
    StreamEnd::Broken(Failure {
        kind: FailureKind::Other,
        message: message.into(),
    })
}
