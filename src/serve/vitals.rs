//! Feels the driver's pulse for as long as the daemon serves.
//!
//! Each few seconds it asks the driver for its state. An answer is a beat: the watchdog's thread and
//! systemd's watchdog live on beats, so a driver that hangs, or serving that hangs, ends the process.
//! It never waits for the runtime: a driver answers whatever the runtime does.

use std::process;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, warn};

use super::Serving;
use super::notify;
use super::watchdog::{Heart, watch_over};

/// Beats within the time allowed: one may be late without harm.
const BEATS: u32 = 4;

/// The time between beats that nobody needs sooner: how old the status that systemd shows may be.
const LEISURE: Duration = Duration::from_secs(5);

/// Tells the service manager that the daemon serves, then how it is, and once it is dropped that the
/// daemon stops. For [`Daemon::beside`](super::Daemon::beside). Without a
/// beat for `timeout` it ends the process with a core, if the system is set to keep one.
pub async fn attend(serving: Serving, timeout: Option<Duration>) {
    let heart = Heart::default();
    if let Some(timeout) = timeout {
        let stuck = || {
            error!(
                "Driver has not answered for too long; the process ends so that it is restarted"
            );
            process::abort();
        };
        if let Err(error) = watch_over(heart.clone(), timeout, stuck) {
            warn!(%error, "Watchdog has no thread; a driver that hangs will not be noticed");
        }
    }
    notify::ready();
    let _farewell = Farewell;
    let mut beats = interval(pace(timeout, notify::patience()));
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = String::new();
    loop {
        beats.tick().await;
        let status = serving.status().await;
        if status.driver.answers {
            heart.beat();
            notify::alive();
        }
        if status.words != told {
            notify::status(&status.words);
            told = status.words;
        }
    }
}

/// Tells the service manager that the daemon stops, when it stops being attended to.
struct Farewell;

impl Drop for Farewell {
    fn drop(&mut self) {
        notify::stopping();
    }
}

/// The time between beats.
fn pace(watchdog: Option<Duration>, manager: Option<Duration>) -> Duration {
    let allowed = [watchdog, manager].into_iter().flatten().min();
    allowed.map_or(LEISURE, |allowed| (allowed / BEATS).min(LEISURE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pulse_is_felt_several_times_within_the_shortest_patience() {
        let secs = Duration::from_secs;
        assert_eq!(pace(None, None), secs(5));
        assert_eq!(pace(Some(secs(60)), None), secs(5));
        assert_eq!(pace(Some(secs(60)), Some(secs(8))), secs(2));
    }
}
