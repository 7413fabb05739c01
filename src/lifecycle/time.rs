//! Time as the core sees it: a parameter, never a clock.
//!
//! Three kinds are kept apart by type. [`Mono`] counts nanoseconds on the shell's monotonic clock
//! and is what delays are measured with. [`UnixNanos`] is the wall clock: shown to people, and used
//! for nothing else but the staleness of unknown news. [`SeqPoint`] is what orders knowledge.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// Nanoseconds on the monotonic clock, since the shell started.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Mono(pub u64);

impl Mono {
    /// This moment and `delay` more; saturates at the far future.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(nanos(delay)))
    }

    /// The time since `earlier`; zero if that is not in the past.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A wall-clock moment in nanoseconds since 1970, as CRI gives it. Serialised as RFC 3339 with
/// nanoseconds, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixNanos(pub i64);

impl UnixNanos {
    /// The moment, or `None` for zero and before, which is how CRI says "not yet".
    #[must_use]
    pub fn from_cri(nanos: i64) -> Option<Self> {
        (nanos > 0).then_some(Self(nanos))
    }
}

impl fmt::Display for UnixNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every i64 of nanoseconds (the years 1677 to 2262) is inside jiff's range.
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(stamp) => write!(f, "{stamp:.9}"),
            Err(_) => write!(f, "{}ns", self.0),
        }
    }
}

impl Serialize for UnixNanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnixNanos {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let stamp: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        i64::try_from(stamp.as_nanosecond())
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// The moment at which an input is taken, on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Now {
    /// The monotonic clock.
    pub mono: Mono,
    /// The wall clock.
    pub wall: UnixNanos,
}

/// A point in the owner's own order of things.
///
/// The counter grows with each input taken and each request sent, so that two things at one
/// (virtual) instant still have an order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SeqPoint {
    /// When, on the monotonic clock.
    pub at: Mono,
    /// Breaks ties: grows by one with each point taken.
    pub count: u64,
}

impl SeqPoint {
    /// Whether this point lies `delay` or more of monotonic time after `earlier`.
    #[must_use]
    pub fn is_past(self, earlier: Self, delay: Duration) -> bool {
        self > earlier && self.at >= earlier.at.after(delay)
    }
}

/// An opaque position in the owner's order: what "newer than" is asked with.
///
/// Valid for the life of the engine that gave it. It is never a wall-clock moment.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Mark(pub(crate) SeqPoint);

/// Grows by one with every change published; what readers and watchers resume from.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_before_are_how_cri_says_not_yet() {
        assert_eq!(UnixNanos::from_cri(-1), None);
        assert_eq!(UnixNanos::from_cri(0), None);
        assert_eq!(UnixNanos::from_cri(1), Some(UnixNanos(1)));
    }

    #[test]
    fn a_wall_clock_moment_is_written_as_rfc_3339_and_read_back() {
        let moment = UnixNanos(1_700_000_000_000_000_007);
        let written = serde_json::to_string(&moment).expect("a text");
        assert_eq!(written, "\"2023-11-14T22:13:20.000000007Z\"");
        assert_eq!(moment.to_string(), written.trim_matches('"'));
        let read: UnixNanos = serde_json::from_str(&written).expect("a moment");
        assert_eq!(read, moment);
        assert_eq!(Revision(7).to_string(), "7");
    }

    #[test]
    fn no_point_is_past_itself() {
        let point = |nanos, count| SeqPoint {
            at: Mono(nanos),
            count,
        };
        let moment = Duration::from_nanos(1);
        assert!(!point(5, 1).is_past(point(5, 1), Duration::ZERO));
        assert!(point(5, 2).is_past(point(5, 1), Duration::ZERO));
        assert!(!point(5, 2).is_past(point(5, 1), moment));
        assert!(point(6, 2).is_past(point(5, 1), moment));
    }
}
