//! The audit of a runtime's event stream against its own lists.
//!
//! An [`Auditor`] is told what the stream said and what the lists showed, and in the end it says what
//! the stream told, what it kept to itself, and how well it told the rest. It is a state machine
//! without I/O or clocks, as the engine is, and it has nothing of the engine's judgement: that one is made
//! to forgive a bad stream, this one must not. Only the words, a few bounds (what is late, what a usable stamp is)
//! and the merge of claims about one subject are the same, `lifecycle::Knowledge`, because what a list proves
//! does not depend on who asks.
//!
//! It accuses only where a list or a later event leaves no other explanation. What happened before the
//! stream was surely open, across a break, or too fast for any list is not judged.
//!
//! # The contract of the caller
//!
//! - Give [`Input::StreamAsked`] when the stream is asked for, then whatever it brings, in order.
//! - Give [`Input::ListAsked`] before each list is asked for, one at a time, and [`Input::Listed`] with
//!   its answer.
//! - Ask for the statuses of [`Auditor::wanted`], and give the answers as [`Input::Inspected`].
//! - When the audit's time is over, go on giving messages until [`Auditor::is_waiting`] says no or
//!   [`PATIENCE`] has passed, then take the [`report`](Auditor::report).

mod auditor;
mod evidence;
mod findings;
mod habits;
mod latency;
mod message;
mod report;
mod tally;
mod trail;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use auditor::{Auditor, Input};
pub use findings::{Finding, FindingKind};
pub use habits::Habits;
pub use latency::{Latencies, Percentiles};
pub use report::{EventRow, Report, Verdict};
pub use tally::Tally;

/// A message that comes this much after a list showed its change, or after its own stamp, is late: the
/// grace that the engine gives the stream, too.
pub const LATE: Duration = crate::engine::GRACE;

/// How long a message may take after a list proved its change before it counts as missing at the
/// audit's end.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The events of CRI v1 in the order of a life.
const KINDS: [crate::lifecycle::EventKind; 4] = [
    crate::lifecycle::EventKind::Created,
    crate::lifecycle::EventKind::Started,
    crate::lifecycle::EventKind::Stopped,
    crate::lifecycle::EventKind::Deleted,
];
