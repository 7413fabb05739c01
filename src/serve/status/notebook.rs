//! What passes the driver and is not counted: since when the mode is, when the stream is tried again,
//! when a change was last missed, why relists fail.
//!
//! Written by a tap on the driver, which must not wait; read by whoever puts a status together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cri::Tapped;
use crate::engine::{Call, Note, Output};
use crate::lifecycle::{Mono, Now};

/// What was noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// When the present mode began, if it is not the first.
    pub mode_since: Option<Now>,
    /// What brought it about.
    pub cause: Option<Arc<str>>,
    /// When the event stream last ended, and how.
    pub stream_ended: Option<(Now, Arc<str>)>,
    /// When it is asked for again.
    pub retry_at: Option<Mono>,
    /// Why the last full relist failed, if it did.
    pub relist_failure: Option<Arc<str>>,
    /// When a change was last missed that is no known gap of the runtime.
    pub last_missed: Option<Now>,
    /// The time between two relists while polling.
    pub relist_period: Duration,
    /// The moment of the last input.
    pub(super) now: Now,
}

/// Keeps [`Noted`]. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Notebook {
    noted: Arc<Mutex<Noted>>,
}

impl Notebook {
    /// Sees something pass. For [`Builder::tap`](crate::Builder::tap); returns at once.
    pub fn see(&self, tapped: Tapped<'_>) {
        match tapped {
            Tapped::Begun { now, settings } => {
                let mut noted = self.lock();
                noted.now = now;
                noted.relist_period = settings.fast_period;
            }
            Tapped::Input { now, .. } => self.lock().now = now,
            Tapped::Output(output) => self.see_output(output),
            Tapped::Marked { .. } => {}
        }
    }

    /// What was noted so far.
    #[must_use]
    pub fn noted(&self) -> Noted {
        self.lock().clone()
    }

    fn see_output(&self, output: &Output) {
        match output {
            Output::ModeChanged(change) => {
                let mut noted = self.lock();
                noted.mode_since = Some(noted.now);
                noted.cause = Some(Arc::clone(&change.cause));
            }
            Output::OpenStream { .. } => self.lock().retry_at = None,
            Output::Note(Note::StreamEnded { how, retry_in_ms }) => {
                let mut noted = self.lock();
                let now = noted.now;
                noted.stream_ended = Some((now, Arc::clone(how)));
                noted.retry_at = Some(now.mono.after(Duration::from_millis(*retry_in_ms)));
            }
            Output::Note(Note::CallFailed {
                call: Call::FullRelist,
                failure,
                ..
            }) => self.lock().relist_failure = Some(Arc::clone(&failure.message)),
            Output::ObservedAll { .. } => self.lock().relist_failure = None,
            Output::Note(Note::Missed {
                known_gap: false, ..
            }) => {
                let mut noted = self.lock();
                noted.last_missed = Some(noted.now);
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        // Nothing that holds the lock can panic half-way through a change.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
