//! What the engine is set up with, and where each number comes from.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A number of the laws, not of taste: how far a successful read may lag behind an event, and how
/// far apart the two reads of a step back must be.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

/// How long after a read the stream may still tell a change before it counts as missed.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How long a tombstone is kept after a read had proven the removal.
pub(crate) const KEEP: Duration = Duration::from_secs(60);

/// The audit period past which a stream must have proved itself to earn more.
pub(crate) const UNPROVEN: Duration = Duration::from_secs(30);

/// A stream that ends without a message within this time was never one (CRI-O with events off
/// answers OK and ends at once); one that lives as long counts as open.
pub(crate) const STREAM_MINIMUM_LIFE: Duration = Duration::from_secs(1);

/// Ends of that kind, in a row, that make a runtime `Unsupported`.
pub(crate) const SHORT_ENDS: u8 = 3;

/// A stream must live this long before the reconnect schedule begins anew (KEP-3386).
pub(crate) const HEALTHY_STREAM: Duration = Duration::from_secs(60);

/// How often an unsupported runtime is asked for events again.
pub(crate) const REPROBE: Duration = Duration::from_secs(600);

/// How long a smaller wall-minus-monotonic offset waits before it takes effect: clocks step back,
/// and a backlog of 5 minutes (containerd 2.x) must not look new.
pub(crate) const CLOCK_GUARD: Duration = Duration::from_secs(300);

/// How far an event's stamp may lie in the future.
pub(crate) const STAMP_TOLERANCE: Duration = Duration::from_secs(1);

/// Misses within the last [`AUDITS_WATCHED`] audits that make a stream `Untrusted`.
pub(crate) const MISSES_TOLERATED: u64 = 3;

/// The audits that distrust looks at.
pub(crate) const AUDITS_WATCHED: usize = 5;

/// Clean relists, with events between them, that make an untrusted stream trusted again.
pub(crate) const CLEAN_TO_RETURN: u8 = 3;

/// Misses of one kind, without a single delivery, that make it a known gap of the runtime.
pub(crate) const MISSES_OF_A_GAP: u64 = 3;

/// Subjects that nobody knows which one message may bring; a message with more is refused whole.
pub(crate) const NEW_SUBJECTS_PER_EVENT: usize = 1_000;

/// Subjects known only from events, at most; past it news of unknown ids waits for a list.
pub(crate) const UNCONFIRMED_SUBJECTS: usize = 10_000;

/// Everything that an embedder may choose. The defaults are the kubelet's, by its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The `EventedPLEG` gate: whether the event stream is used at all.
    pub evented: bool,
    /// The relist period while polling (kubelet `genericPlegRelistPeriod`, 1 s).
    pub fast_period: Duration,
    /// Without a successful relist for so long, polling is unhealthy (kubelet
    /// `genericPlegRelistThreshold`, 3 min).
    pub fast_threshold: Duration,
    /// The relist period of a trusted stream (kubelet `eventedPlegRelistPeriod`, 300 s).
    pub slow_period: Duration,
    /// The same as `fast_threshold` while events drive (kubelet `eventedPlegRelistThreshold`, 10 min).
    pub slow_threshold: Duration,
    /// Pods read at one time, at most.
    pub parallel_inspections: usize,
    /// How often `Version` is asked.
    pub heartbeat_period: Duration,
    /// The wait before each try to reopen the stream; the last one repeats for ever. Never empty.
    pub reconnect_delays: Vec<Duration>,
    /// By how much a wait may be shortened, drawn evenly, in percent.
    pub jitter_percent: u8,
    /// What the jitter is drawn from.
    pub seed: u64,
    /// Tombstones kept, at most.
    pub tombstones: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            evented: true,
            fast_period: Duration::from_secs(1),
            fast_threshold: Duration::from_secs(3 * 60),
            slow_period: Duration::from_secs(300),
            slow_threshold: Duration::from_secs(10 * 60),
            parallel_inspections: 8,
            heartbeat_period: Duration::from_secs(10),
            reconnect_delays: [0, 1, 2, 4, 8, 16, 32, 60]
                .map(Duration::from_secs)
                .to_vec(),
            jitter_percent: 20,
            seed: 0,
            tombstones: 10_000,
        }
    }
}
