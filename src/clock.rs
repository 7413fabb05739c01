//! The clocks: the one place that reads them.
//!
//! Everything below the shell is given the time as a [`Now`]. The monotonic half is tokio's clock, so
//! that a paused test runtime moves it; the wall half is the system's, or, for tests and replays, a
//! fixed beginning plus the monotonic half, so that nothing depends on when a test runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::lifecycle::{Mono, Now, UnixNanos};

/// As far ahead as a timer is ever set, where adding more would overflow.
const FAR_FUTURE: Duration = Duration::from_hours(30 * 365 * 24);

/// A source of [`Now`]. A clone reads the same clocks and counts from the same origin.
#[derive(Clone, Debug)]
pub struct Clock {
    origin: Instant,
    wall: Wall,
}

#[derive(Clone, Debug)]
enum Wall {
    System,
    /// What the wall clock showed at the origin, with the steps since; it moves with the monotonic
    /// clock from there. Shared by all clones.
    From(Arc<AtomicI64>),
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
    /// not, and can be stepped. For tests and replays.
    #[must_use]
    pub fn starting_at(base: UnixNanos) -> Self {
        Self {
            origin: Instant::now(),
            wall: Wall::From(Arc::new(AtomicI64::new(base.0))),
        }
    }

    /// Steps the wall clock of this clock and all its clones by `nanos`, back if that is negative, as
    /// an administrator or a time service does. The monotonic half does not notice. The system's
    /// clock is not ours to step: then nothing happens, and the answer is false.
    #[expect(
        clippy::must_use_candidate,
        reason = "whoever made the clock knows whether it can be stepped"
    )]
    pub fn step(&self, nanos: i64) -> bool {
        let Wall::From(base) = &self.wall else {
            return false;
        };
        // Saturating, so that no step wraps round to the other end of time.
        let stepped = |base: i64| Some(base.saturating_add(nanos));
        base.fetch_update(Ordering::Relaxed, Ordering::Relaxed, stepped)
            .is_ok()
    }

    /// The moment on both clocks.
    #[must_use]
    pub fn now(&self) -> Now {
        let elapsed = Instant::now().saturating_duration_since(self.origin);
        let mono = Mono::default().after(elapsed);
        let wall = match &self.wall {
            Wall::System => system_wall(),
            Wall::From(base) => {
                let nanos = i64::try_from(mono.0).unwrap_or(i64::MAX);
                UnixNanos(base.load(Ordering::Relaxed).saturating_add(nanos))
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
    async fn a_step_moves_the_wall_clock_of_every_clone_and_no_monotonic_one() {
        let clock = Clock::starting_at(UnixNanos(1_000));
        let clone = clock.clone();
        assert!(clock.step(-400));
        tokio::time::advance(Duration::from_nanos(7)).await;
        assert_eq!(
            clone.now(),
            Now {
                mono: Mono(7),
                wall: UnixNanos(607),
            }
        );
        assert!(!Clock::system().step(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_for_a_moment_fires_at_that_moment() {
        let clock = Clock::starting_at(UnixNanos(0));
        let copy = clock.clone();
        tokio::time::sleep_until(clock.instant(Mono(5_000_000_000))).await;
        assert_eq!(copy.now().mono, Mono(5_000_000_000));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_time_is_a_timer_like_any_other() {
        let clock = Clock::system();
        assert!(clock.instant(Mono(u64::MAX)) > clock.instant(Mono(1)));
    }
}
