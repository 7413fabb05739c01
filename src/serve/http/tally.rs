//! What the HTTP server counts. It refuses nothing without a count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The counts of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpTally {
    /// Connections that are open.
    pub open: usize,
    /// Connections that were taken.
    pub accepted: u64,
    /// Connections that came when there were too many: one that was idle was closed for each, or it itself.
    pub refused: u64,
    /// Requests answered, by route and status code. A path that is none counts as `other`.
    pub requests: BTreeMap<(&'static str, u16), u64>,
}

/// Counts. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Counting(Arc<Mutex<HttpTally>>);

impl Counting {
    pub(super) fn read(&self) -> HttpTally {
        self.lock().clone()
    }

    pub(super) fn connection_refused(&self) {
        self.lock().refused += 1;
    }

    /// Counts a connection as open until what is returned is dropped.
    pub(super) fn connection_opened(&self) -> OpenConnection {
        let mut tally = self.lock();
        tally.open += 1;
        tally.accepted += 1;
        OpenConnection(self.clone())
    }

    pub(super) fn answered(&self, route: &'static str, code: u16) {
        *self.lock().requests.entry((route, code)).or_default() += 1;
    }

    fn lock(&self) -> MutexGuard<'_, HttpTally> {
        // Nothing that holds the lock can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(super) struct OpenConnection(Counting);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut tally = self.0.lock();
        tally.open = tally.open.saturating_sub(1);
    }
}
