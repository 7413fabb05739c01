//! The lines of a recording.
//!
//! The first line is a [`Header`]; each other one is an entry: `at` in nanoseconds on the monotonic
//! clock, `drift` in nanoseconds by which the wall clock has left its even course since the header
//! (absent if zero), and one of
//!
//! | key | what |
//! |---|---|
//! | `took` | an input that the engine took: an answer, something of the stream, a timer, a wish |
//! | `list` | the answer to a full relist, whole or as what changed since another list |
//! | `asked` | a question that went out |
//! | `opened`, `closed` | the event stream was asked for, or dropped |
//! | `marked` | a mark was given |
//! | `gap` | so many entries are missing here |
//! | `known` | where an excerpt begins: what had been told before it |
//!
//! Lists are written sorted by id. Their order carries no meaning (containerd gives another one each
//! time), and nothing that is published or delivered depends on it.

use serde::{Deserialize, Serialize};

use super::known::Known;
use super::lists::ListContent;
use crate::engine::{Input, Question, RequestId, RuntimeVersion, SessionId, Settings};
use crate::lifecycle::{Mono, Now, UnixNanos};

/// The newest version of the format, which is the one that is written. A reader refuses newer ones.
pub const VERSION: u32 = 1;

/// What a header calls its file.
pub(super) const FORMAT: &str = "pleg-recording";

/// No line is longer, in bytes. A list of a quarter of a million containers fits.
pub(super) const LONGEST_LINE: usize = 64 << 20;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Header {
    /// Always `pleg-recording`.
    pub format: String,
    /// The format's version.
    pub version: u32,
    /// The version of pleg that wrote it.
    pub pleg: String,
    /// The runtime that answered when recording began, if that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeVersion>,
    /// The beginning, on both clocks.
    pub began: Now,
    /// Whether earlier entries are missing: the file is what a flight recorder still had.
    #[serde(default)]
    pub excerpt: bool,
    /// What the engine was set up with.
    pub settings: Settings,
}

impl Header {
    /// A header of the newest version.
    #[must_use]
    pub fn new(began: Now, settings: Settings, runtime: Option<RuntimeVersion>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            pleg: env!("CARGO_PKG_VERSION").to_owned(),
            runtime,
            began,
            excerpt: false,
            settings,
        }
    }

    /// How far the wall clock of a moment has left its even course since the beginning.
    pub(super) fn drift(&self, at: Now) -> i64 {
        at.wall.0.wrapping_sub(self.even_wall(at.mono))
    }

    /// The moment that a line stands for.
    pub(super) fn moment(&self, mono: Mono, drift: i64) -> Now {
        Now {
            mono,
            wall: UnixNanos(self.even_wall(mono).wrapping_add(drift)),
        }
    }

    fn even_wall(&self, mono: Mono) -> i64 {
        let elapsed = mono.0.wrapping_sub(self.began.mono.0).cast_signed();
        self.began.wall.0.wrapping_add(elapsed)
    }
}

/// One entry: what passed, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The moment, as the engine had it.
    pub at: Now,
    /// What passed.
    pub record: Record,
}

/// What passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// The engine took an input.
    Taken(Input),
    /// A question went out.
    Asked {
        /// The number that its answer carries.
        request: RequestId,
        /// The question.
        question: Question,
    },
    /// The event stream was asked for.
    StreamOpened {
        /// Its number.
        session: SessionId,
    },
    /// The event stream was dropped.
    StreamClosed {
        /// Its number.
        session: SessionId,
    },
    /// A mark was given.
    Marked,
    /// Entries are missing here: whoever kept them could not keep up, or one was too long.
    Gap {
        /// How many.
        dropped: u64,
    },
    /// An excerpt begins: what had been told before it.
    Known(Box<Known>),
}

/// A line as it is written.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineToWrite<'a> {
    pub(super) at: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) drift: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) took: Option<&'a Input>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) list: Option<ListLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<AskedToWrite<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) opened: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) closed: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) marked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) known: Option<&'a Known>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(drift: &i64) -> bool {
    *drift == 0
}

#[derive(Debug, Serialize)]
pub(super) struct AskedToWrite<'a> {
    pub(super) request: RequestId,
    pub(super) question: &'a Question,
}

/// The answer to a full relist.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListLine {
    pub(super) request: RequestId,
    pub(super) content: ListContent,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedLine {
    pub(super) request: RequestId,
    pub(super) question: Question,
}

/// A line as it is read. Named fields, not a tagged enum: serde then knows the column of a mistake.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LineRead {
    pub(super) at: u64,
    #[serde(default)]
    pub(super) drift: i64,
    pub(super) took: Option<Input>,
    pub(super) list: Option<ListLine>,
    pub(super) asked: Option<AskedLine>,
    pub(super) opened: Option<SessionId>,
    pub(super) closed: Option<SessionId>,
    pub(super) marked: Option<bool>,
    pub(super) gap: Option<u64>,
    pub(super) known: Option<Box<Known>>,
}
