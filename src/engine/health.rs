//! "PLEG is not healthy", in the kubelet's words, and made to be able to fail.
//!
//! Health is judged by the age of the last *successful* full relist alone, counted from its beginning,
//! however lively the stream is. Asking changes nothing.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Call, Mode};
use crate::law::Law;
use crate::lifecycle::{Mono, PodUid};

/// A call that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PendingCall {
    /// Which.
    pub call: Call,
    /// The pod, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<PodUid>,
    /// How long it has been out.
    pub age: Duration,
}

/// Whether relists succeed often enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum HealthState {
    /// No full relist has succeeded yet.
    NotYetRelisted,
    /// The last successful full relist began recently enough.
    Healthy,
    /// It is too long ago.
    Unhealthy,
}

/// The engine's health, with what an operator needs to see why.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Health {
    /// The verdict.
    pub state: HealthState,
    /// The mode now.
    pub mode: Mode,
    /// How long ago the last successful full relist began.
    pub last_relist_age: Option<Duration>,
    /// What that is held against.
    pub threshold: Duration,
    /// How long ago the last stream message came, on the present stream.
    pub last_event_age: Option<Duration>,
    /// How long ago the present stream was asked for.
    pub stream_age: Option<Duration>,
    /// The call that has been out longest, if one is out.
    pub pending: Option<PendingCall>,
}

impl Health {
    /// Whether the verdict is good.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.state == HealthState::Healthy
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.state, self.last_relist_age) {
            (HealthState::Healthy, _) => return f.write_str("ok"),
            (HealthState::NotYetRelisted, _) | (HealthState::Unhealthy, None) => {
                f.write_str("pleg has yet to be successful")?;
            }
            (HealthState::Unhealthy, Some(age)) => write!(
                f,
                "pleg was last seen active {} ago; threshold is {}",
                InSeconds(age),
                InSeconds(self.threshold)
            )?,
        }
        write!(f, "; mode {}", self.mode)?;
        if let Some(age) = self.last_event_age {
            write!(f, "; last event {} ago", InSeconds(age))?;
        }
        if let Some(pending) = &self.pending {
            write!(
                f,
                "; {:?} unanswered for {}",
                pending.call,
                InSeconds(pending.age)
            )?;
            if let Some(uid) = &pending.uid {
                write!(f, " (pod {uid})")?;
            }
        }
        Ok(())
    }
}

struct InSeconds(Duration);

impl fmt::Display for InSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (minutes, seconds) = (self.0.as_secs() / 60, self.0.as_secs() % 60);
        match (minutes, seconds) {
            (0, seconds) => write!(f, "{seconds}.{:03}s", self.0.subsec_millis()),
            (minutes, seconds) => write!(f, "{minutes}m{seconds}s"),
        }
    }
}

/// When health turns bad, as the mode's threshold moves.
///
/// Never judged by a shorter threshold than the one a relist was planned under, never washed clean by
/// a longer one: a change to a shorter threshold counts from that change at the earliest; a change to
/// a longer one takes effect with the next success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HealthWatch {
    pub(super) last_success: Option<Mono>,
    pub(super) bad_at: Option<Mono>,
    pub(super) threshold: Duration,
}

impl HealthWatch {
    pub(super) fn relist_succeeded(&mut self, begun: Mono, threshold: Duration) {
        self.last_success = Some(begun);
        self.threshold = threshold;
        self.bad_at = Some(begun.after(threshold));
    }

    pub(super) fn threshold_changed(&mut self, now: Mono, threshold: Duration) {
        if let Some(bad_at) = self.bad_at
            && (now.after(threshold) < bad_at || !Law::HealthIsNotWashedClean.holds())
        {
            self.bad_at = Some(now.after(threshold));
            self.threshold = threshold;
        }
    }

    pub(super) fn state(&self, now: Mono) -> HealthState {
        match self.bad_at {
            None => HealthState::NotYetRelisted,
            Some(bad_at) if now > bad_at => HealthState::Unhealthy,
            Some(_) => HealthState::Healthy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_secs(180);
    const SLOW: Duration = Duration::from_secs(600);

    fn second(n: u64) -> Mono {
        Mono(n * 1_000_000_000)
    }

    #[test]
    fn a_switch_to_polling_does_not_make_a_planned_audit_late() {
        let mut watch = HealthWatch::default();
        watch.relist_succeeded(second(0), SLOW);
        watch.threshold_changed(second(250), FAST);
        assert_eq!(watch.state(second(251)), HealthState::Healthy);
        assert_eq!(watch.state(second(430)), HealthState::Healthy);
        assert_eq!(watch.state(second(431)), HealthState::Unhealthy);
    }

    #[test]
    fn a_switch_to_events_does_not_wash_a_bad_state_clean() {
        let mut watch = HealthWatch::default();
        watch.relist_succeeded(second(0), FAST);
        assert_eq!(watch.state(second(181)), HealthState::Unhealthy);
        watch.threshold_changed(second(182), SLOW);
        assert_eq!(watch.state(second(183)), HealthState::Unhealthy);
        watch.relist_succeeded(second(190), SLOW);
        assert_eq!(watch.state(second(191)), HealthState::Healthy);
    }

    #[test]
    fn before_the_first_relist_there_is_no_age_to_speak_of() {
        assert_eq!(
            HealthWatch::default().state(second(900)),
            HealthState::NotYetRelisted
        );
    }

    #[test]
    fn health_that_is_washed_clean_is_missed() {
        Law::HealthIsNotWashedClean
            .is_missed_by(a_switch_to_events_does_not_wash_a_bad_state_clean);
    }
}
