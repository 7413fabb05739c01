//! The reconnect schedule of KEP-3386: at once, then after 1, 2, 4 … seconds, 60 at most, for ever.
//!
//! Built once with the `backoff` crate and handed to the engine as data, so that nothing else depends
//! on the crate, its clock or its random numbers. The engine adds its own seeded jitter and decides
//! when the schedule begins anew.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

/// The wait after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(1);

/// The waits before each attempt to open the stream: the first is zero, the last repeats for ever.
#[must_use]
pub(crate) fn reconnect_delays() -> Vec<Duration> {
    let mut schedule = ExponentialBackoff {
        current_interval: FIRST,
        initial_interval: FIRST,
        multiplier: 2.0,
        max_interval: LONGEST,
        // The crate's random numbers cannot be seeded.
        randomization_factor: 0.0,
        // By default the crate gives up after 15 minutes.
        max_elapsed_time: None,
        ..ExponentialBackoff::default()
    };
    let waits = std::iter::from_fn(|| schedule.next_backoff())
        // Even without jitter the crate may round up by a nanosecond, at random.
        .map(|wait| Duration::from_secs(wait.as_secs()));
    let mut delays = vec![Duration::ZERO];
    for wait in waits {
        delays.push(wait);
        if wait >= LONGEST {
            break;
        }
    }
    delays
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_is_that_of_the_kep_and_ends_at_its_cap() {
        let seconds: Vec<u64> = reconnect_delays().iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [0, 1, 2, 4, 8, 16, 32, 60]);
    }

    #[test]
    fn the_schedule_is_the_same_each_time() {
        let first = reconnect_delays();
        assert!((0..1_000).all(|_| reconnect_delays() == first));
    }
}
