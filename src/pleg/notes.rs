//! Log lines about what the engine notes, limited: the first of a kind, then each power of two.
//!
//! The counters have every single one; a log that a misbehaving runtime could fill would be one more
//! way to harm the node.

use std::collections::BTreeMap;

use tracing::{info, warn};

use crate::engine::{Ignored, Note};

/// Writes notes to the log, and counts those left out.
#[derive(Debug, Default)]
pub(super) struct NoteLog {
    seen: BTreeMap<String, u64>,
    pub(super) suppressed: u64,
}

impl NoteLog {
    /// Writes a note, unless too many of its kind were.
    pub(super) fn write(&mut self, note: &Note) {
        let kind = kind(note);
        let seen = self.seen.entry(kind).or_default();
        *seen += 1;
        let times = *seen;
        if !times.is_power_of_two() {
            self.suppressed += 1;
            return;
        }
        log(note, times);
    }
}

/// What is limited together: few values, however many notes there are.
fn kind(note: &Note) -> String {
    match note {
        Note::Refused(refusal) => format!("refused {refusal:?}"),
        Note::Ignored { why, .. } => format!("ignored {why:?}"),
        Note::Contradicted { how, .. } => format!("contradicted {how:?}"),
        Note::Missed {
            subject,
            event,
            known_gap,
            ..
        } => format!("missed {subject:?} {} {known_gap}", event_name(*event)),
        Note::SteppedBack { .. } => "stepped back".to_owned(),
        Note::CallFailed { call, failure, .. } => {
            format!("failed {call:?} {:?}", failure.kind)
        }
        Note::RuntimeChanged { .. } => "runtime changed".to_owned(),
        Note::StreamEnded { .. } => "stream ended".to_owned(),
    }
}

/// A type that CRI does not have yet comes with a number of the runtime's choice.
fn event_name(event: crate::lifecycle::EventKind) -> String {
    match event {
        crate::lifecycle::EventKind::Other(_) => "Other".to_owned(),
        known => format!("{known:?}"),
    }
}

fn log(note: &Note, times: u64) {
    match note {
        Note::Refused(refusal) => warn!(?refusal, times, "Part of a runtime answer left out"),
        Note::Ignored {
            why: why @ (Ignored::Overflow | Ignored::TooManyUnconfirmed),
            id,
        } => warn!(?why, %id, times, "Runtime event dropped"),
        Note::Ignored { why, id } => info!(?why, %id, times, "Runtime event ignored"),
        Note::Contradicted { how, id } => {
            info!(?how, %id, times, "Runtime event contradicts itself; pod is inspected");
        }
        Note::Missed {
            subject,
            event,
            id,
            known_gap: false,
        } => warn!(?subject, ?event, %id, times, "Event stream missed a change"),
        Note::Missed {
            subject, event, id, ..
        } => info!(?subject, ?event, %id, times, "Runtime never sends this event"),
        Note::SteppedBack { id } => warn!(%id, times, "Two reads agree that a subject went back"),
        Note::CallFailed { call, uid, failure } => {
            let pod_uid = uid.as_ref().map(ToString::to_string);
            warn!(?call, pod_uid, err = %failure, times, "Call to the runtime failed");
        }
        Note::RuntimeChanged { to } => info!(%to, "Runtime is another version than before"),
        Note::StreamEnded { how, retry_in_ms } => {
            info!(%how, retry_in_ms, times, "Event stream ended");
        }
    }
}
