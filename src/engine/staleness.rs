//! Whether a runtime's wall-clock stamp is usable, and whether it is older than a list's beginning.
//!
//! The only place where wall-clock stamps decide anything: news of an unknown id that may be older
//! than the newest full relist is stale (law 2.5). The comparison is made on the monotonic clock plus
//! the largest wall-minus-monotonic offset seen, so that a clock that steps back cannot make old news
//! look new.

use super::settings::{CLOCK_GUARD, STAMP_TOLERANCE};
use crate::law::Law;
use crate::lifecycle::{Mono, Now, SeqPoint, UnixNanos};

/// 2000-01-01: nanoseconds of an earlier moment are seconds, milliseconds or microseconds of a later one.
const NANOSECONDS_BEGIN: i64 = 946_684_800_000_000_000;

/// The largest offset seen, over the present stretch of [`CLOCK_GUARD`] and the one before it: a
/// smaller one takes effect after one to two stretches, in bounded memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClockGuard {
    pub(super) stretch_began: Mono,
    pub(super) largest: Option<i64>,
    pub(super) largest_before: Option<i64>,
}

impl ClockGuard {
    pub(super) fn observe(&mut self, now: Now) {
        let offset = offset_of(now);
        if !Law::ClockStepsAreGuarded.holds() {
            *self = Self::default();
        }
        if now.mono.since(self.stretch_began) >= CLOCK_GUARD {
            self.stretch_began = now.mono;
            self.largest_before = self.largest.take();
        }
        self.largest = self.largest.max(Some(offset));
    }

    /// The stamp, unless no sane runtime could have made it.
    pub(crate) fn usable(stamp: i64, now: Now) -> Option<UnixNanos> {
        let latest = now.wall.0.saturating_add(nanos(STAMP_TOLERANCE));
        let is_sane = (NANOSECONDS_BEGIN..=latest).contains(&stamp);
        (is_sane || !Law::AbsurdStampsAreRefused.holds()).then_some(UnixNanos(stamp))
    }

    /// Whether the stamp is certainly no older than `begun`.
    pub(super) fn is_newer(&self, stamp: UnixNanos, begun: SeqPoint) -> bool {
        let Some(offset) = self.largest.max(self.largest_before) else {
            return false;
        };
        stamp.0 >= signed(begun.at).saturating_add(offset)
    }
}

fn offset_of(now: Now) -> i64 {
    now.wall.0.saturating_sub(signed(now.mono))
}

fn signed(moment: Mono) -> i64 {
    i64::try_from(moment.0).unwrap_or(i64::MAX)
}

fn nanos(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_700_000_000_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    fn at(mono: i64, wall: i64) -> Now {
        Now {
            mono: Mono(u64::try_from(mono).unwrap()),
            wall: UnixNanos(wall),
        }
    }

    #[test]
    fn stamps_of_a_wrong_unit_or_from_the_future_are_absurd() {
        let now = at(0, NOON);
        for absurd in [
            0,
            -1,
            i64::MIN,
            NOON / 1_000_000_000,
            NOON / 1000,
            NOON + 2 * SECOND,
        ] {
            assert_eq!(ClockGuard::usable(absurd, now), None, "{absurd}");
        }
        for sane in [NOON, NOON + SECOND] {
            assert_eq!(ClockGuard::usable(sane, now), Some(UnixNanos(sane)));
        }
    }

    #[test]
    fn a_clock_that_steps_back_does_not_make_old_news_look_new() {
        let mut guard = ClockGuard::default();
        guard.observe(at(0, NOON));
        let stamped = UnixNanos(NOON + 5 * SECOND);
        // The clock steps back by 100 s, then a list begins 10 s after the stamp was made.
        let stepped = at(15 * SECOND, NOON - 85 * SECOND);
        guard.observe(stepped);
        let list = SeqPoint {
            at: stepped.mono,
            count: 9,
        };
        assert!(!guard.is_newer(stamped, list));
        // Once the guard has expired, the new clock is believed.
        guard.observe(at(400 * SECOND, NOON + 300 * SECOND));
        guard.observe(at(800 * SECOND, NOON + 700 * SECOND));
        let later = SeqPoint {
            at: Mono(800 * 1_000_000_000),
            count: 10,
        };
        assert!(guard.is_newer(UnixNanos(NOON + 700 * SECOND), later));
    }
}
