//! What goes into the engine and what comes out: one serialisable form for recording, replay and
//! shrinking.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ModeChange, Note};
use crate::lifecycle::{
    ContainerId, ContainerStatus, LifecycleEvent, Mark, NodeList, PodStatus, PodUid, Refusal,
    Revision, RuntimeEvent, SandboxId, SandboxStatus,
};

/// Names one question that the engine asked; its answer carries the same number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// Names one life of the event stream. Messages of an older one are dropped.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SessionId(pub u64);

/// Names one caller of `get_newer_than`; chosen by the shell, never used twice.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ReaderId(pub u64);

/// How much a reader of the cache needs to be fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Freshness {
    /// Membership and phases: two lists answer it.
    Phases,
    /// Exit codes, addresses and times too: the lists and the pod's statuses.
    Details,
}

/// A question for the runtime.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// `Version`: the heartbeat.
    Version,
    /// Both lists, unfiltered.
    FullRelist,
    /// Both lists, filtered by the label of one pod's uid.
    PodRelist {
        /// The pod.
        uid: PodUid,
    },
    /// `PodSandboxStatus` and `ContainerStatus` of these subjects of one pod.
    Inspect {
        /// The pod.
        uid: PodUid,
        /// The sandboxes to read.
        sandboxes: Vec<SandboxId>,
        /// The containers to read.
        containers: Vec<ContainerId>,
    },
}

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// The runtime does not have what was asked for.
    NotFound,
    /// The runtime does not know the method.
    Unimplemented,
    /// Nobody answers at the endpoint, or the connection broke.
    Unavailable,
    /// No answer within the deadline.
    DeadlineExceeded,
    /// The answer is larger than the message limit.
    TooLarge,
    /// The answer is no message of CRI, or lacks what CRI requires.
    Malformed,
    /// Any other code.
    Other,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The class of failure, which is all that decisions look at.
    pub kind: FailureKind,
    /// What to show to people: the call and its cause.
    pub message: Arc<str>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// `Version`'s answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeVersion {
    /// `containerd`, `cri-o` …
    pub name: Arc<str>,
    /// The runtime's own version.
    pub version: Arc<str>,
    /// The CRI version, `v1`.
    pub api_version: Arc<str>,
}

/// The answers to an inspection, one per subject asked about, in the order asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Each sandbox's status, or why there is none.
    pub sandboxes: Vec<(SandboxId, Result<SandboxStatus, Failure>)>,
    /// Each container's status, or why there is none.
    pub containers: Vec<(ContainerId, Result<ContainerStatus, Failure>)>,
}

/// The runtime's answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// To [`Question::Version`].
    Version(Result<RuntimeVersion, Failure>),
    /// To [`Question::FullRelist`] and [`Question::PodRelist`].
    Listed(Result<NodeList, Failure>),
    /// To [`Question::Inspect`].
    Inspected(Inspection),
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamEnd {
    /// The runtime does not know the method.
    Unimplemented,
    /// The runtime closed it without an error.
    Clean,
    /// Anything else: the connection broke, the runtime said no.
    Broken(Failure),
}

/// Everything that the engine is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Input {
    /// Begin. Taken once, first.
    Start,
    /// The moment that `poll_timeout` named has come (or something else woke the shell).
    Wake,
    /// The runtime answered, or its deadline passed.
    Answered {
        /// Which question.
        request: RequestId,
        /// What it said.
        answer: Answer,
    },
    /// The stream brought a message.
    StreamMessage {
        /// Which stream.
        session: SessionId,
        /// The message.
        event: RuntimeEvent,
    },
    /// The stream brought bytes that are no message.
    StreamGarbage {
        /// Which stream.
        session: SessionId,
        /// What was wrong with them.
        refusal: Refusal,
    },
    /// Messages had to be dropped because the inbox was full.
    StreamOverflow {
        /// Which stream.
        session: SessionId,
        /// The pods that they were about, as far as could be told.
        pods: BTreeSet<PodUid>,
        /// How many were dropped.
        dropped: u64,
    },
    /// The stream ended.
    StreamEnded {
        /// Which stream.
        session: SessionId,
        /// How.
        end: StreamEnd,
    },
    /// A reader wants a pod's status from a read begun at or after a mark.
    Read {
        /// The reader.
        reader: ReaderId,
        /// The pod.
        uid: PodUid,
        /// The mark.
        newer_than: Mark,
        /// What must be that fresh.
        freshness: Freshness,
    },
    /// A reader gave up.
    CancelRead {
        /// The reader.
        reader: ReaderId,
    },
    /// Somebody acted on a pod and wants it looked at now; `None` asks for a full relist.
    RequestRelist {
        /// The pod.
        uid: Option<PodUid>,
    },
    /// Somebody wants a pod inspected and to be told by one `PodSync` when that was done.
    RequestReinspect {
        /// The pod.
        uid: PodUid,
    },
    /// Stop: no question and no delivery after this.
    Shutdown,
}

/// What a reader of the cache is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Reading {
    /// The pod; `None` if the runtime has nothing of it.
    pub status: Option<Arc<PodStatus>>,
    /// The mark at which the read that vouches for it began.
    pub observed: Mark,
}

/// Everything that the engine wants done, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Output {
    /// Ask the runtime; the answer comes back as [`Input::Answered`], within the call's deadline.
    Ask {
        /// The number that the answer must carry.
        request: RequestId,
        /// The question.
        question: Question,
    },
    /// Ask for the event stream. The one before it has ended or been closed.
    OpenStream {
        /// The number that its messages must carry.
        session: SessionId,
    },
    /// Drop the event stream; nothing more is wanted of it.
    CloseStream {
        /// Which.
        session: SessionId,
    },
    /// Write a pod's status to the cache; `None` takes it out.
    Publish {
        /// The pod.
        uid: PodUid,
        /// The revision of this change.
        revision: Revision,
        /// The new status.
        status: Option<Arc<PodStatus>>,
    },
    /// A read of one pod vouched for it.
    Observed {
        /// The pod.
        uid: PodUid,
        /// When that read began.
        mark: Mark,
    },
    /// A full relist vouched for every pod, present or absent, but these.
    ObservedAll {
        /// When it began.
        mark: Mark,
        /// The pods that it could not vouch for.
        except: BTreeSet<PodUid>,
    },
    /// Tell the subscribers.
    Deliver(Arc<LifecycleEvent>),
    /// Answer a reader.
    Answer {
        /// The reader.
        reader: ReaderId,
        /// What to say.
        reading: Reading,
    },
    /// The supervisor changed its mode.
    ModeChanged(ModeChange),
    /// Something worth a (rate-limited) log line; counted already.
    Note(Note),
}
