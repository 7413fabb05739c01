//! What goes wrong with the event stream on purpose, and how a stream is ended.
//!
//! It stands between what operations tell and the event queue. Each message goes past the faults in
//! the order in which they were put in; the first that fits decides. Pure: it is told the time, and
//! says when it next has something to send.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tonic::{Code, Status};

use super::FaultId;
use super::message::{Message, Messages};
use super::spelling::{code, duration};
use crate::lifecycle::{EventKind, Mono, PodUid};

/// Something that happens to messages of the event stream before the runtime's queue has them.
///
/// ```
/// use std::time::Duration;
/// use pleg::lifecycle::EventKind;
/// use pleg::simulate::StreamFault;
///
/// let lost = StreamFault::lose().times(3);
/// let deaf = StreamFault::lose().of_kind(EventKind::Stopped).about("6f1d");
/// let late = StreamFault::delay(Duration::from_secs(2));
/// # let _ = (lost, deaf, late);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct StreamFault {
    /// Only messages of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EventKind>,
    /// Only messages about this container or sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// Only messages that concern this pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodUid>,
    /// Only each such message of that many that fit, the first at once: 3 is one in three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_in: Option<u32>,
    /// How often it happens; `None`: until it is lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// What happens.
    pub mishap: Mishap,
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Mishap {
    /// It is lost without trace.
    Lose,
    /// It comes this much later.
    Delay(#[serde(with = "duration")] Duration),
    /// It comes this many times more.
    Duplicate(u32),
    /// It comes after this many of the messages that follow it.
    Behind(u32),
    /// It comes when the fault is lifted, in order with the others that wait for that.
    Hold,
}

impl StreamFault {
    /// Messages are lost. Without [`times`](Self::times) that is a mute stream.
    #[must_use]
    pub fn lose() -> Self {
        Self::new(Mishap::Lose)
    }

    /// Messages come `delay` late each.
    #[must_use]
    pub fn delay(delay: Duration) -> Self {
        Self::new(Mishap::Delay(delay))
    }

    /// Messages come twice.
    #[must_use]
    pub fn duplicate() -> Self {
        Self::new(Mishap::Duplicate(1))
    }

    /// A message comes after `messages` of those that follow it.
    #[must_use]
    pub fn behind(messages: u32) -> Self {
        Self::new(Mishap::Behind(messages))
    }

    /// Messages wait until the fault is lifted.
    #[must_use]
    pub fn hold() -> Self {
        Self::new(Mishap::Hold)
    }

    /// The same, this often only.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// The same, for one in this many of the messages that fit.
    #[must_use]
    pub fn one_in(mut self, messages: u32) -> Self {
        self.one_in = Some(messages);
        self
    }

    /// The same, for messages of this type only.
    #[must_use]
    pub fn of_kind(mut self, kind: EventKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// The same, for messages about this container or sandbox only.
    #[must_use]
    pub fn about(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The same, for messages that concern this pod only.
    #[must_use]
    pub fn of_pod(mut self, pod: PodUid) -> Self {
        self.pod = Some(pod);
        self
    }

    fn new(mishap: Mishap) -> Self {
        Self {
            kind: None,
            id: None,
            pod: None,
            one_in: None,
            times: None,
            mishap,
        }
    }

    fn fits(&self, message: &Message) -> bool {
        self.kind.is_none_or(|kind| message.is_of_kind(kind))
            && self.id.as_ref().is_none_or(|id| message.is_about(id))
            && self.pod.as_ref().is_none_or(|pod| message.concerns(pod))
    }
}

/// How the runtime ends a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum StreamEnd {
    /// Without an error.
    Clean,
    /// With this status.
    Failed {
        /// Its code.
        #[serde(with = "code")]
        code: Code,
        /// Its message.
        #[serde(default)]
        message: String,
    },
}

impl Default for StreamEnd {
    /// What a client sees when the runtime's process ends.
    fn default() -> Self {
        Self::failed(Code::Unavailable, "the runtime went away")
    }
}

impl StreamEnd {
    /// With this status.
    pub fn failed(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Failed { code, message }
    }

    pub(super) fn status(&self) -> Option<Status> {
        match self {
            Self::Clean => None,
            Self::Failed { code, message } => Some(Status::new(*code, message.clone())),
        }
    }
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("clean end"),
            Self::Failed { code, message } => write!(f, "{code:?}: {message}"),
        }
    }
}

/// A message that is kept back.
#[derive(Debug)]
struct Held {
    by: FaultId,
    message: Arc<Message>,
    until: Until,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Moment(Mono),
    /// So many more messages have passed.
    Passed(u32),
    Lifted,
}

#[derive(Debug)]
struct InForce {
    id: FaultId,
    fault: StreamFault,
    /// Messages that fitted.
    fitted: u32,
}

/// The faults in force and what they keep back.
#[derive(Debug, Default)]
pub(super) struct StreamFaults {
    faults: Vec<InForce>,
    held: Vec<Held>,
    pub(super) is_muted: bool,
}

/// What came of a message that went past the faults.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Passage {
    /// What goes on now, in this order: none, it, it and others that waited for it.
    pub(super) on: Messages,
    pub(super) lost: bool,
    pub(super) held: bool,
    /// How many copies of it were added.
    pub(super) duplicates: u32,
}

impl StreamFaults {
    pub(super) fn add(&mut self, id: FaultId, fault: StreamFault) {
        if fault.times != Some(0) {
            self.faults.push(InForce {
                id,
                fault,
                fitted: 0,
            });
        }
    }

    /// Takes one out and returns what it kept back.
    pub(super) fn lift(&mut self, id: FaultId) -> Messages {
        self.faults.retain(|other| other.id != id);
        let freed = self.held.extract_if(.., |held| held.by == id);
        freed.map(|held| held.message).collect()
    }

    /// Takes all out and returns what they kept back.
    pub(super) fn lift_all(&mut self) -> Messages {
        self.faults.clear();
        self.is_muted = false;
        self.held.drain(..).map(|held| held.message).collect()
    }

    /// The process is gone, with what was kept back.
    pub(super) fn forget_held(&mut self) {
        self.held.clear();
    }

    pub(super) fn pass(&mut self, now: Mono, message: Arc<Message>) -> Passage {
        let mut passage = Passage::default();
        if self.is_muted {
            passage.lost = true;
            return passage;
        }
        let Some((id, mishap)) = self.take(&message) else {
            self.send(&mut passage, message, 0);
            return passage;
        };
        let until = match mishap {
            Mishap::Lose => {
                passage.lost = true;
                return passage;
            }
            Mishap::Duplicate(copies) => {
                self.send(&mut passage, message, copies);
                return passage;
            }
            Mishap::Delay(delay) => Until::Moment(now.after(delay)),
            Mishap::Behind(0) => {
                self.send(&mut passage, message, 0);
                return passage;
            }
            Mishap::Behind(messages) => Until::Passed(messages),
            Mishap::Hold => Until::Lifted,
        };
        passage.held = true;
        self.held.push(Held {
            by: id,
            message,
            until,
        });
        passage
    }

    /// When the next message is due that is late.
    pub(super) fn next_due(&self) -> Option<Mono> {
        self.held
            .iter()
            .filter_map(|held| match held.until {
                Until::Moment(due) => Some(due),
                Until::Passed(_) | Until::Lifted => None,
            })
            .min()
    }

    /// What is due, each with its moment, earliest first.
    pub(super) fn due(&mut self, now: Mono) -> Vec<(Mono, Arc<Message>)> {
        let is_due = |held: &mut Held| matches!(held.until, Until::Moment(due) if due <= now);
        let mut due: Vec<(Mono, Arc<Message>)> = self
            .held
            .extract_if(.., is_due)
            .filter_map(|held| match held.until {
                Until::Moment(due) => Some((due, held.message)),
                Until::Passed(_) | Until::Lifted => None,
            })
            .collect();
        // Stable: what is due at one moment keeps its order.
        due.sort_by_key(|(due, _)| *due);
        due
    }

    /// What happens to this message, which uses the fault up by one.
    fn take(&mut self, message: &Message) -> Option<(FaultId, Mishap)> {
        for at in 0..self.faults.len() {
            let Some(InForce { id, fault, fitted }) = self.faults.get_mut(at) else {
                break;
            };
            if !fault.fits(message) {
                continue;
            }
            let turn = *fitted % fault.one_in.unwrap_or(1).max(1);
            *fitted = fitted.wrapping_add(1);
            if turn != 0 {
                continue;
            }
            let taken = (*id, fault.mishap);
            if let Some(times) = &mut fault.times {
                *times = times.saturating_sub(1);
                if *times == 0 {
                    self.faults.remove(at);
                }
            }
            return Some(taken);
        }
        None
    }

    /// It goes on, and with it those that only waited for it.
    fn send(&mut self, passage: &mut Passage, message: Arc<Message>, copies: u32) {
        for _ in 0..copies {
            passage.on.push(message.clone());
        }
        passage.on.push(message);
        passage.duplicates = copies;
        for held in &mut self.held {
            if let Until::Passed(left) = &mut held.until {
                *left = left.saturating_sub(1);
            }
        }
        let freed = self
            .held
            .extract_if(.., |held| held.until == Until::Passed(0));
        passage.on.extend(freed.map(|held| held.message));
    }
}

#[cfg(test)]
mod tests;
