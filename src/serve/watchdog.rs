//! Ends a process that stands still.
//!
//! Somebody beats after each round trip to the driver. A thread of its own, which no executor can block,
//! looks whether the beats go on, and ends the process when they do not: a node is better served by a
//! restarted daemon, which knows all after one relist, than by one that hangs and looks alive.
//!
//! It reads no clock. It counts its own short sleeps, so that a process that was stopped and continued,
//! or a machine that was suspended, is not taken for one that hung.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often it looks within the time allowed.
const LOOKS: u32 = 12;

/// What is beaten. Clones beat the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heart(Arc<AtomicU64>);

impl Heart {
    /// The driver has answered.
    pub(crate) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn beats(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether beats go on, look by look.
#[derive(Debug, Default, PartialEq, Eq)]
struct Vigil {
    beats: u64,
    looks_without: u32,
}

impl Vigil {
    /// Looks once. Whether the heart has stood still for as many looks as are allowed.
    fn look(&mut self, beats: u64) -> bool {
        if self.beats == beats {
            self.looks_without += 1;
        } else {
            *self = Self {
                beats,
                looks_without: 0,
            };
        }
        self.looks_without >= LOOKS
    }
}

/// Watches a heart from a thread of its own, for as long as anybody else holds it; calls `stuck` once if
/// it stands still for `timeout`.
///
/// # Errors
///
/// The system gives no thread.
pub(crate) fn watch_over(
    heart: Heart,
    timeout: Duration,
    stuck: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || {
            let mut vigil = Vigil::default();
            while Arc::strong_count(&heart.0) > 1 {
                thread::sleep(timeout / LOOKS);
                if vigil.look(heart.beats()) {
                    return stuck();
                }
            }
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many looks pass until it is stuck, if it is within a hundred.
    fn looks_until_stuck(beat_before_look: impl Fn(u32) -> bool) -> Option<u32> {
        let heart = Heart::default();
        let mut vigil = Vigil::default();
        (1..=100).find(|look| {
            if beat_before_look(*look) {
                heart.beat();
            }
            vigil.look(heart.beats())
        })
    }

    #[test]
    fn a_heart_that_never_beats_is_stuck_after_the_time_allowed() {
        assert_eq!(looks_until_stuck(|_| false), Some(LOOKS));
    }

    #[test]
    fn a_heart_that_stops_is_given_the_whole_time_again() {
        assert_eq!(looks_until_stuck(|look| look <= 30), Some(30 + LOOKS));
    }

    #[test]
    fn a_slow_heart_is_left_alone() {
        assert_eq!(looks_until_stuck(|look| look % (LOOKS - 1) == 0), None);
    }

    #[test]
    fn a_standing_heart_is_told_once_and_a_heart_that_was_dropped_never() {
        let (told, hears) = std::sync::mpsc::channel();
        let kept = Heart::default();
        let tell = told.clone();
        watch_over(kept.clone(), Duration::from_millis(12), move || {
            tell.send("stuck").unwrap();
        })
        .unwrap();
        assert_eq!(hears.recv(), Ok("stuck"));

        let dropped = Heart::default();
        watch_over(dropped.clone(), Duration::from_secs(3600), move || {
            told.send("dropped").unwrap();
        })
        .unwrap();
        drop(dropped);
        drop(kept);
        assert!(hears.try_recv().is_err());
    }
}
