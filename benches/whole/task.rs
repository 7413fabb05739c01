//! What a measured process is told to do. It prints one JSON object of figures when it has done it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Figures by name.
pub(crate) type Figures = BTreeMap<String, f64>;

/// What it follows, and what is measured meanwhile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) socket: PathBuf,
    pub(crate) pods: usize,
    pub(crate) containers: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// The first relist with its inspections, then so many that find nothing new.
    Relists { times: u32 },
    /// Polling every second.
    Polling { window: Duration },
    /// Following events of which there are none any more.
    Idle {
        /// How far apart the audits must be before the window begins.
        audits: Duration,
        window: Duration,
    },
    /// Following events that come steadily.
    Churn {
        audits: Duration,
        window: Duration,
        subscribers: usize,
    },
    /// Following events that come all at once.
    Burst { audits: Duration },
    /// `get_newer_than`, so often.
    Newer { times: u32 },
}
