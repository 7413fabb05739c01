//! The clocks: the one place that reads them.
//!
//! Everything below the shell is given the time as a [`Now`]. The monotonic half is tokio's clock, so
//! that a paused test runtime moves it; the wall half is the system's, or, for tests and replays, a
//! fixed beginning plus the monotonic half, so that nothing depends on when a test runs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::lifecycle::{Mono, Now, UnixNanos};

/// As far ahead as a timer is ever set, where adding more would overflow.
const FAR_FUTURE: Duration = Duration::from_hours(30 * 365 * 24);

/// A source of [`Now`]. A copy reads the same clocks and counts from the same origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    wall: Wall,
}

#[derive(Clone, Copy, Debug)]
enum Wall {
    System,
    /// What the wall clock showed at the origin; it moves with the monotonic clock from there.
    From(UnixNanos),
}

impl Clock {
    /// Counts from now on; the wall clock is the system's.
    #[must_use]
    pub fn system() -> Self {
        Self {
            origin: Instant::now(),
            wall: Wall::System,
        }
    }

    /// Counts from now on; the wall clock reads `base` now and moves with tokio's clock, paused or
    /// not. For tests and replays.
    #[must_use]
    pub fn starting_at(base: UnixNanos) -> Self {
        Self {
            origin: Instant::now(),
            wall: Wall::From(base),
        }
    }

    /// The moment on both clocks.
    #[must_use]
    pub fn now(&self) -> Now {
        let elapsed = Instant::now().saturating_duration_since(self.origin);
        let mono = Mono::default().after(elapsed);
        let wall = match self.wall {
            Wall::System => system_wall(),
            Wall::From(base) => {
                let nanos = i64::try_from(mono.0).unwrap_or(i64::MAX);
                UnixNanos(base.0.saturating_add(nanos))
            }
        };
        Now { mono, wall }
    }

    /// The moment as tokio's timers want it.
    #[must_use]
    pub fn instant(&self, mono: Mono) -> Instant {
        self.origin
            .checked_add(Duration::from_nanos(mono.0))
            .unwrap_or_else(|| Instant::now() + FAR_FUTURE)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the module that reads the clocks"
)]
fn system_wall() -> UnixNanos {
    let nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |n| -n),
    };
    UnixNanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn both_clocks_move_with_virtual_time_from_a_fixed_beginning() {
        let clock = Clock::starting_at(UnixNanos(1_000));
        assert_eq!(
            clock.now(),
            Now {
                mono: Mono(0),
                wall: UnixNanos(1_000),
            }
        );
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(
            clock.now(),
            Now {
                mono: Mono(3_000_000_000),
                wall: UnixNanos(3_000_001_000),
            }
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_for_a_moment_fires_at_that_moment() {
        let clock = Clock::starting_at(UnixNanos(0));
        let copy = clock;
        tokio::time::sleep_until(clock.instant(Mono(5_000_000_000))).await;
        assert_eq!(copy.now().mono, Mono(5_000_000_000));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_time_is_a_timer_like_any_other() {
        let clock = Clock::system();
        assert!(clock.instant(Mono(u64::MAX)) > clock.instant(Mono(1)));
    }
}
