//! What systemd is told: that the daemon is ready, how it is, that it lives, that it stops.
//!
//! Ready means that its listeners answer. It does not wait for the runtime: a daemon that starts before
//! the runtime says so in its status and is no failure. Without systemd every word goes nowhere.

use std::time::Duration;

use sd_notify::NotifyState;

/// The listeners answer.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// How the daemon is, in a line.
pub(crate) fn status(words: &str) {
    tell(&[NotifyState::Status(words)]);
}

/// The driver has answered just now.
pub(crate) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// The daemon begins to stop.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// How long the manager waits for [`alive`] (`WatchdogSec`), if it does.
#[must_use]
pub(crate) fn patience() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn tell(state: &[NotifyState<'_>]) {
    // Without a manager it is Ok. With one that has gone there is nobody to tell.
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "the service manager does not listen");
    }
}
