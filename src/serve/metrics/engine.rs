//! The families of how the runtime is followed: mode, health, and what the cache holds.

use std::fmt;
use std::time::Duration;

use super::families::{Families, SECONDS};
use super::{Figures, Followed, PodFigures, calls, news};
use crate::engine::{Mode, PollingReason};
use crate::lifecycle::UnixNanos;

/// Everything that is known without the driver.
pub(super) fn known(families: &mut Families<'_>, figures: &Figures) -> fmt::Result {
    families.info(
        "build",
        "The build that runs.",
        Some([("version", env!("CARGO_PKG_VERSION"))]),
    )?;
    mode(families, figures.mode)?;
    families.gauge(
        "driver_responsive",
        "Whether the driver answered this scrape in time. If not, most other figures are missing.",
        usize::from(figures.followed.is_some()),
    )?;
    pods(families, &figures.pods)
}

fn mode(families: &mut Families<'_>, mode: Mode) -> fmt::Result {
    let polling = PollingReason::ALL.map(|reason| Mode::Polling { reason });
    let evented = Mode::Evented {
        audit_period: Duration::ZERO,
    };
    let all = [Mode::Connecting, evented].into_iter().chain(polling);
    families.gauges(
        "mode",
        "How the runtime is followed: 1 for the present mode, 0 for the others.",
        all.map(|shown| {
            let labels = [("mode", shown.name().to_owned()), ("reason", reason(shown))];
            let is_present = shown.name() == mode.name() && reason(shown) == reason(mode);
            (labels, usize::from(is_present))
        }),
    )?;
    let audit_period = match mode {
        Mode::Evented { audit_period } => Some(audit_period.as_secs_f64()),
        Mode::Connecting | Mode::Polling { .. } => None,
    };
    families.measured(
        (
            "audit_period",
            SECONDS,
            "The time between two relists that trust in the event stream has earned. Evented only.",
        ),
        audit_period,
    )
}

/// The label for why a node polls; empty, which is no label at all, if it does not.
fn reason(mode: Mode) -> String {
    match mode {
        Mode::Polling { reason } => reason.to_string(),
        Mode::Connecting | Mode::Evented { .. } => String::new(),
    }
}

fn pods(families: &mut Families<'_>, pods: &PodFigures) -> fmt::Result {
    families.gauge("pods", "Pods in the cache.", pods.all)?;
    families.gauge(
        "running_pods",
        "Pods with a ready sandbox (kubelet_running_pods).",
        pods.running,
    )?;
    families.gauge(
        "pods_with_stale_details",
        "Pods whose last inspection failed.",
        pods.with_errors,
    )?;
    families.gauges(
        "containers",
        "Containers by state (kubelet_running_containers).",
        pods.containers.iter().map(|(state, count)| {
            let labels = [("container_state", state.to_string().to_lowercase())];
            (labels, *count)
        }),
    )
}

/// Everything that the driver told.
pub(super) fn followed(
    families: &mut Families<'_>,
    now: UnixNanos,
    Followed { stats, health }: &Followed,
) -> fmt::Result {
    let past = |age: Option<Duration>| age.map(|age| seconds_since_1970(now) - age.as_secs_f64());
    families.gauge(
        "healthy",
        "Whether the last successful full relist is recent enough, in the kubelet's sense.",
        usize::from(health.is_healthy()),
    )?;
    families.measured(
        (
            "health_threshold",
            SECONDS,
            "How old the last successful full relist may be.",
        ),
        Some(health.threshold.as_secs_f64()),
    )?;
    families.measured(
        (
            "last_seen_timestamp",
            SECONDS,
            "When the last successful full relist began (kubelet_pleg_last_seen_seconds).",
        ),
        past(health.last_relist_age),
    )?;
    families.measured(
        (
            "stream_last_event_timestamp",
            SECONDS,
            "When the last message of the present event stream came.",
        ),
        past(health.last_event_age),
    )?;
    families.measured(
        (
            "stream_opened_timestamp",
            SECONDS,
            "When the present event stream was asked for.",
        ),
        past(health.stream_age),
    )?;
    families.info(
        "runtime",
        "The runtime, as it last answered Version.",
        stats.engine.runtime.as_ref().map(|runtime| {
            [
                ("name", runtime.name.to_string()),
                ("version", runtime.version.to_string()),
                ("api_version", runtime.api_version.to_string()),
            ]
        }),
    )?;
    families.counters(
        "mode_transitions",
        "Changes of mode. The reason is why the node polls, or polled.",
        stats
            .measures
            .mode_steps
            .iter()
            .map(|((from, to, reason), n)| {
                let reason = reason.map(|reason| reason.to_string()).unwrap_or_default();
                let labels = [
                    ("from", (*from).to_owned()),
                    ("to", (*to).to_owned()),
                    ("reason", reason),
                ];
                (labels, *n)
            }),
    )?;
    calls::write(families, stats)?;
    news::write(families, stats)
}

/// As Prometheus counts moments.
pub(super) fn seconds_since_1970(moment: UnixNanos) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds are left of a moment of this century"
    )]
    let nanos = moment.0 as f64;
    nanos / 1e9
}
