//! Recordings: what passed over the wire of a real run, kept in a file and played again.
//!
//! An operator whose node misbehaved hands over a file; a developer replays it in a second, on a
//! laptop, with the same outcome each time. Three things make that so:
//!
//! - What is recorded is what the engine was handed, decoded, in the order and with the moments (on
//!   both clocks) at which it was handed over, and each question that it asked. The engine reads no
//!   clock and draws no randomness, so the same settings and the same inputs give the same events.
//!   Bytes would not do better: which answer was taken before which message, and how late a timer
//!   fired, is not in them, and every part above the decoder would have to be guessed.
//! - The recorder is a [`Tap`](crate::cri::Tap) on the one client there is. It opens no stream, asks
//!   no question and holds nobody up; what it could not keep it counts, as a gap in the recording.
//! - Nobody records before the fault, so a [`FlightRecorder`] keeps the last minutes in memory.
//!
//! A file is JSON Lines, a header first; `.zst` is the same, compressed. [`play`] plays one.

mod compress;
mod deliveries;
mod encode;
mod error;
mod flight;
mod format;
mod known;
mod lists;
mod play;
mod queue;
mod read;
mod weight;
mod write;

#[cfg(test)]
mod tests;

pub use deliveries::{Deliveries, DeliveriesError, Difference};
pub use error::{Problem, ReadError};
pub use flight::{Flight, FlightLimits, FlightRecorder};
pub use format::{Entry, Header, Record, VERSION};
pub use known::Known;
pub use play::{Deviations, Fidelity, PlayedRecording, Replayed, play, play_file};
pub use queue::{Keeper, QueueLimits, Recorder, RecordingTap};
pub use read::{Reader, open, read};
pub use write::{FileRecorder, Recorded, Writer, recording_file};
