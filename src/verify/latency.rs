//! How long news took, as percentiles of a bounded sample.

use std::time::Duration;

use serde::Serialize;

use crate::lifecycle::UnixNanos;

/// Times kept of each kind: the first so many, which is 800 kB.
const KEPT: usize = 100_000;

/// A sample of times.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<u64>);

impl Times {
    /// From a stamp to the receipt. Clocks of one machine may differ by their grain, so a stamp of the
    /// future is one of now.
    pub(super) fn add(&mut self, from: UnixNanos, to: UnixNanos) {
        if self.0.len() < KEPT {
            let nanos = to.0.saturating_sub(from.0).max(0);
            self.0.push(u64::try_from(nanos).unwrap_or(0));
        }
    }

    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let of = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().map(Duration::from_nanos)
        };
        Some(Percentiles {
            samples: sorted.len(),
            p50: of(50)?,
            p90: of(90)?,
            p99: of(99)?,
            max: of(100)?,
        })
    }
}

/// Of a sample, the smallest times that so many per cent of it do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// How many were measured.
    pub samples: usize,
    /// The median.
    #[serde(serialize_with = "millis")]
    pub p50: Duration,
    /// Nine of ten.
    #[serde(serialize_with = "millis")]
    pub p90: Duration,
    /// 99 of 100.
    #[serde(serialize_with = "millis")]
    pub p99: Duration,
    /// The longest.
    #[serde(serialize_with = "millis")]
    pub max: Duration,
}

/// Milliseconds, so that the number can be read without a unit at hand.
fn millis<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64() * 1000.0)
}

/// From where to the receipt of the message. Serialised in milliseconds; absent if nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Latencies {
    /// From the message's own stamp, which the runtime makes after it has gathered the statuses.
    pub from_stamp: Option<Percentiles>,
    /// From a container's `created_at`, of CREATED.
    pub from_created: Option<Percentiles>,
    /// From a container's `started_at`, of STARTED.
    pub from_started: Option<Percentiles>,
    /// From a container's `finished_at`, of STOPPED.
    pub from_finished: Option<Percentiles>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_members_of_the_sample() {
        let mut times = Times::default();
        assert_eq!(times.percentiles(), None);
        for millis in (1..=200).rev() {
            times.add(UnixNanos(0), UnixNanos(millis * 1_000_000));
        }
        let of = times.percentiles().unwrap();
        assert_eq!(of.samples, 200);
        let millis = [of.p50, of.p90, of.p99, of.max].map(|time| time.as_millis());
        assert_eq!(millis, [100, 180, 198, 200]);
    }

    #[test]
    fn a_stamp_of_the_future_took_no_time() {
        let mut times = Times::default();
        times.add(UnixNanos(5), UnixNanos(3));
        assert_eq!(times.percentiles().unwrap().max, Duration::ZERO);
    }
}
