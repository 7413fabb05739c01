//! Plays a recording: the same inputs at the same moments into the same engine.
//!
//! The engine is driven directly, without client, transport or tokio: the recording *is* what those
//! made of a real run, and anything between it and the engine could only make it less exact. Time is
//! what the entries say; nothing waits.
//!
//! As long as the engine asks exactly what the recorded one asked, at the same points, the two are in
//! step, and the replay is exact, to the counter and the stamp. Once it asks anything else (it is a newer
//! version, has other settings, or the recording is an excerpt) it has left the step for good. From there
//! it keeps its own timers; recorded messages still come when they came; a question that was
//! recorded as well gets the recorded answer when that came; any other is answered from what the
//! recording knows (`known`) at that moment of each id, else as soon as it knows, else as
//! unrecorded. Each of those is counted.

mod answers;
mod fidelity;
mod out_of_step;
mod player;
mod questions;

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

pub use self::fidelity::{Deviations, Fidelity};
use self::player::Player;
use super::deliveries::Deliveries;
use super::error::ReadError;
use super::format::Header;
use super::read::{Reader, open};
use crate::cri::Tapped;
use crate::engine::{Counters, Mode, Output, Settings};
use crate::scenario::trace::{Trace, TraceRecorder};

/// How long an answer takes that was not recorded.
const LATENCY: Duration = Duration::from_millis(1);

/// What came of a replay.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replayed {
    /// The recording's header.
    pub header: Header,
    /// How close it was.
    pub fidelity: Fidelity,
    /// Entries read.
    pub entries: u64,
    /// The time that they span.
    pub span: Duration,
    /// Whether the file ends within a line.
    pub is_cut_off: bool,
    /// Events delivered.
    pub delivered: u64,
    /// The engine's mode at the end.
    pub mode: Mode,
    /// What the engine counted.
    pub counters: Counters,
}

/// Plays a recording to its end, with the recorded settings or others. `show` is shown what a tap on a
/// live run is: every input that the replayed engine takes, and every output.
///
/// # Errors
///
/// If a line cannot be read. What was shown before it stands.
pub fn play<R: BufRead>(
    reader: &mut Reader<R>,
    settings: Option<Settings>,
    show: &mut dyn FnMut(Tapped<'_>),
) -> Result<Replayed, ReadError> {
    let header = reader.header().clone();
    let settings = settings.unwrap_or_else(|| header.settings.clone());
    show(Tapped::Begun {
        now: header.began,
        settings: &settings,
    });
    let mut player = Player::new(settings, &header, show);
    let mut entries = 0;
    while let Some(entry) = reader.next_entry()? {
        entries += 1;
        player.enter(reader.line(), entry);
    }
    let is_cut_off = reader.is_cut_off();
    Ok(player.end(header, entries, is_cut_off))
}

/// A recording that was played, with what came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlayedRecording {
    /// How it went.
    pub replayed: Replayed,
    /// What was delivered.
    pub deliveries: Deliveries,
    /// All that went into the engine and came out of it, if it was to be kept.
    pub trace: Option<Trace>,
}

/// Opens a recording and plays it with its own settings. A trace is as long as the recording: it is
/// kept only if it is wanted.
///
/// # Errors
///
/// If the file cannot be read, or no further than some line.
pub fn play_file(path: &Path, keep_trace: bool) -> Result<PlayedRecording, ReadError> {
    let mut reader = open(path)?;
    let mut deliveries = Deliveries::default();
    let tracer = keep_trace.then(TraceRecorder::default);
    let replayed = play(&mut reader, None, &mut |tapped| {
        if let Tapped::Output(Output::Deliver(event)) = tapped {
            deliveries.push(event);
        }
        if let Some(tracer) = &tracer {
            tracer.take(tapped);
        }
    })?;
    Ok(PlayedRecording {
        replayed,
        deliveries,
        trace: tracer.map(|tracer| tracer.finish()),
    })
}
