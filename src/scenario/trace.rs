//! The trace: everything that went into the engine and came out of it, in order, with its time.
//!
//! It is what a failure is explained with and what two runs are compared by. It is serialisable, and
//! has a stable plain form for people and for `diff`, see [`Trace::text`].

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::listing::LastListing;
pub use super::listing::ListingChange;
use crate::cri::Tapped;
use crate::engine::{Answer, Input, Output, Question, RequestId};
use crate::lifecycle::Now;

/// One input and what followed from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TraceEntry {
    /// When the engine took it.
    pub now: Now,
    /// What it took.
    pub input: TracedInput,
    /// What it wanted done, in order.
    pub outputs: Vec<Output>,
}

/// An input. Full relists are told by what they changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TracedInput {
    /// Any input.
    Input(Input),
    /// A full relist that succeeded.
    Relisted {
        /// Which question it answers.
        request: RequestId,
        /// What it showed that the one before had not.
        change: ListingChange,
    },
}

/// All entries of a run, oldest first. An entry whose input is `Start` begins another engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trace {
    /// The entries.
    pub entries: Vec<TraceEntry>,
}

impl Trace {
    /// Writes it as JSON Lines, one entry a line.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_json_lines(&self, out: &mut impl io::Write) -> io::Result<()> {
        for entry in &self.entries {
            serde_json::to_writer(&mut *out, entry)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Writes a trace down as it happens. Clones write the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceRecorder(Arc<Mutex<Recording>>);

#[derive(Debug, Default)]
struct Recording {
    trace: Trace,
    last: LastListing,
    full_relists: BTreeSet<RequestId>,
}

impl TraceRecorder {
    /// Takes what a tap shows.
    pub(super) fn take(&self, tapped: Tapped<'_>) {
        let mut recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tapped {
            Tapped::Input { now, input } => {
                let input = recording.traced(input);
                recording.trace.entries.push(TraceEntry {
                    now,
                    input,
                    outputs: Vec::new(),
                });
            }
            Tapped::Begun { .. } | Tapped::Marked { .. } => {}
            Tapped::Output(output) => {
                if let Output::Ask {
                    request,
                    question: Question::FullRelist,
                } = output
                {
                    recording.full_relists.insert(*request);
                }
                if let Some(entry) = recording.trace.entries.last_mut() {
                    entry.outputs.push(output.clone());
                }
            }
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        let recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recording.trace.entries.len()
    }

    /// The entries so far, looked at.
    pub(super) fn look<T>(&self, look: impl FnOnce(&[TraceEntry]) -> T) -> T {
        let recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(&recording.trace.entries)
    }

    /// The trace so far, taken out.
    pub(super) fn finish(&self) -> Trace {
        let mut recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut recording.trace)
    }
}

impl Recording {
    fn traced(&mut self, input: &Input) -> TracedInput {
        match input {
            Input::Start => {
                self.last = LastListing::default();
                self.full_relists.clear();
            }
            Input::Answered {
                request,
                answer: Answer::Listed(Ok(list)),
            } if self.full_relists.remove(request) => {
                return TracedInput::Relisted {
                    request: *request,
                    change: self.last.change_to(list),
                };
            }
            _ => {}
        }
        TracedInput::Input(input.clone())
    }
}
