//! What is counted, with its reason, and what is worth a log line.
//!
//! Counters only grow. Everything that is refused, missed, contradicted or fallen back from shows up
//! here; a figure that can be computed from the records (pods, containers, unsettled subjects) does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Failure, FailureKind};
use crate::lifecycle::{EventKind, LifecycleKind, PodUid, Refusal, Source, SubjectKind};

/// Why a stream message, or a part of it, changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Ignored {
    /// It told of an unknown id and may be older than the newest full relist.
    Stale,
    /// A DELETED of an id that nobody knows.
    UnknownDeleted,
    /// It told less than is known.
    Behind,
    /// It came from a stream that had ended.
    OldStream,
    /// Dropped because the inbox was full.
    Overflow,
    /// It told of an unknown id while too many subjects are known from events alone.
    TooManyUnconfirmed,
}

/// How a stream message contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Contradiction {
    /// It carries no status at all.
    NoSnapshot,
    /// Its statuses lack the subject that it is about.
    SubjectMissing,
    /// A CREATED, STARTED or STOPPED whose own status says less, or that it does not know.
    StateBehindType,
    /// A DELETED whose subject is still in the snapshot.
    DeletedButPresent,
    /// Details that differ from the published ones and cannot be ordered.
    Details,
    /// A type that CRI v1 does not have yet.
    UnknownType,
}

/// The methods that questions are made of, as counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Call {
    /// The heartbeat.
    Version,
    /// A relist of the node.
    FullRelist,
    /// A relist of one pod.
    PodRelist,
    /// The statuses of one pod's subjects.
    Inspect,
}

/// A kind of event of a kind of subject: what gaps and misses are counted by.
pub type SubjectEvent = (SubjectKind, EventKind);

/// All counts since the engine began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Counters {
    /// Questions asked.
    pub asked: BTreeMap<Call, u64>,
    /// Questions that failed; an inspection counts once however many of its statuses failed.
    pub failed: BTreeMap<(Call, FailureKind), u64>,
    /// Stream messages by type; all that CRI v1 does not have yet under one.
    pub messages: BTreeMap<EventKind, u64>,
    /// Messages or parts that changed nothing.
    pub ignored: BTreeMap<Ignored, u64>,
    /// Parts of answers and messages that were left out.
    pub refused: BTreeMap<Refusal, u64>,
    /// Messages that had the pod looked at instead of being believed.
    pub contradictions: BTreeMap<Contradiction, u64>,
    /// Changes that the stream never told (KEP-3386's `kube_pod_missed_events`).
    pub missed: BTreeMap<SubjectEvent, u64>,
    /// Of those, the ones that this runtime is known never to send.
    pub missed_in_known_gaps: BTreeMap<SubjectEvent, u64>,
    /// Lifecycle events delivered, by what told them first.
    pub delivered: BTreeMap<(LifecycleKind, Source), u64>,
    /// Steps back that two reads confirmed.
    pub steps_back: u64,
    /// Reads that contradicted the record and were not believed yet.
    pub doubts: u64,
    /// Lists that lacked a subject which they could not judge.
    pub unjudged_absences: u64,
    /// Full relists that were applied.
    pub relists: u64,
    /// Targeted relists asked because a subject was unsettled.
    pub unsettled_reads: u64,
    /// Full relists made due because many pods wanted a look at once.
    pub reads_folded_into_relists: u64,
    /// Tombstones dropped past the limit.
    pub tombstones_evicted: u64,
    /// Streams asked for.
    pub streams_opened: u64,
    /// Streams that ended.
    pub streams_ended: u64,
    /// Changes of mode.
    pub mode_changes: u64,
    /// Reinspect requests for pods that the runtime does not have.
    pub reinspects_of_absent_pods: u64,
}

impl EventKind {
    /// What it is counted as: a runtime may make up as many types as there are numbers.
    pub(super) fn counted(self) -> Self {
        match self {
            Self::Other(_) => Self::Other(-1),
            known => known,
        }
    }
}

pub(super) fn bump<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_default() += 1;
}

/// Something worth a log line. The shell limits the rate; the counters have it in any case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Note {
    /// A part of an answer or message was left out.
    Refused(Refusal),
    /// A message or part changed nothing.
    Ignored {
        /// Why.
        why: Ignored,
        /// The id that it was about.
        id: Arc<str>,
    },
    /// A message contradicts itself; its pod is looked at.
    Contradicted {
        /// How.
        how: Contradiction,
        /// The id that it was about.
        id: Arc<str>,
    },
    /// The stream never told a change that a read found.
    Missed {
        /// The kind of subject.
        subject: SubjectKind,
        /// The event that did not come.
        event: EventKind,
        /// The subject's id.
        id: Arc<str>,
        /// Whether this runtime is known never to send it.
        known_gap: bool,
    },
    /// Two reads agree that a subject went back.
    SteppedBack {
        /// The subject's id.
        id: Arc<str>,
    },
    /// A call failed.
    CallFailed {
        /// Which.
        call: Call,
        /// The pod, if it was about one.
        uid: Option<PodUid>,
        /// Why.
        failure: Failure,
    },
    /// The runtime answered `Version` differently than before.
    RuntimeChanged {
        /// Name and version now.
        to: Arc<str>,
    },
    /// The stream ended; the next is asked for after `retry_in_ms`, if at all.
    StreamEnded {
        /// How.
        how: Arc<str>,
        /// Milliseconds until the next try.
        retry_in_ms: u64,
    },
}
