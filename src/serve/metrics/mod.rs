//! `/metrics`: what is counted and measured, as Prometheus reads it.
//!
//! Nothing is counted here. Each scrape asks the driver for its counts and the cache for its pods and
//! writes both down, so a gauge is computed from the records at that moment and cannot drift, as the
//! kubelet's do. A driver that does not answer is itself a figure, `pleg_driver_responsive`; a scrape
//! never waits for it longer than [`DRIVER_DEADLINE`].
//!
//! The names are documented in `docs/metrics.md`, which a test compares with what is served.

mod calls;
mod engine;
mod families;
mod news;
mod process;
mod served;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;

use crate::cache::Cached;
use crate::engine::{Health, Mode};
use crate::lifecycle::{ReportedState, UnixNanos};
use crate::{Pleg, Stats};
use families::Families;
use process::Process;
pub(crate) use served::Served;

/// How long a scrape waits for the driver; well within Prometheus' own 10 s.
pub(crate) const DRIVER_DEADLINE: Duration = Duration::from_secs(2);

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The Prometheus text format, 0.0.4.
    Text,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// What an `Accept` header asks for: the better liked of the two, plain text if in doubt.
    pub(crate) fn accepted(accept: &str) -> Self {
        let mut open_metrics = 0.0;
        let mut plain = 0.0_f64;
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts
                .find_map(|part| part.strip_prefix("q="))
                .map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
            match media.as_str() {
                "application/openmetrics-text" => open_metrics = quality,
                "text/plain" => plain = plain.max(quality),
                _ => {}
            }
        }
        if open_metrics > 0.0 && open_metrics >= plain {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// The `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Everything that one scrape tells.
#[derive(Debug)]
pub(crate) struct Figures {
    now: UnixNanos,
    mode: Mode,
    pods: PodFigures,
    followed: Option<Followed>,
    served: Served,
}

/// What the driver told.
#[derive(Debug)]
struct Followed {
    stats: Stats,
    health: Health,
}

/// What the cache holds.
#[derive(Debug, Default, PartialEq, Eq)]
struct PodFigures {
    all: usize,
    running: usize,
    with_errors: usize,
    containers: BTreeMap<ReportedState, usize>,
}

impl PodFigures {
    fn of(pods: &[Cached]) -> Self {
        // States without a container are told too, or they would keep their last value.
        let states = [
            ReportedState::Unknown,
            ReportedState::Created,
            ReportedState::Running,
            ReportedState::Exited,
        ];
        let mut figures = Self {
            all: pods.len(),
            containers: states.map(|state| (state, 0)).into(),
            ..Self::default()
        };
        for pod in pods.iter().map(|cached| &cached.status) {
            let is_running = pod
                .sandboxes
                .iter()
                .any(|sandbox| sandbox.state == ReportedState::Running);
            figures.running += usize::from(is_running);
            figures.with_errors += usize::from(pod.error.is_some());
            for container in &pod.containers {
                *figures.containers.entry(container.state).or_default() += 1;
            }
        }
        figures
    }
}

impl Figures {
    /// Asks the driver and the cache. `served` is what the servers count.
    pub(crate) async fn gather(pleg: &Pleg, served: Served) -> Self {
        let ask = async {
            let stats = pleg.stats().await.ok()?;
            let health = pleg.health().await.ok()?;
            Some(Followed { stats, health })
        };
        let followed = tokio::time::timeout(DRIVER_DEADLINE, ask).await;
        Self {
            now: pleg.now().wall,
            mode: pleg.mode(),
            pods: PodFigures::of(&pleg.cache().list()),
            followed: followed.ok().flatten(),
            served,
        }
    }

    /// Writes them down.
    ///
    /// # Errors
    ///
    /// None that writing to a string can cause; the encoder has the last word.
    pub(crate) fn write(self, format: Format) -> Result<String, fmt::Error> {
        let wall = Duration::from_nanos(u64::try_from(self.now.0).unwrap_or(0));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process::read(wall)));
        registry
            .sub_registry_with_prefix("pleg")
            .register_collector(Box::new(self));
        let mut written = String::new();
        match format {
            Format::Text => prometheus_text::encode(&mut written, &registry)?,
            Format::OpenMetrics => text::encode(&mut written, &registry)?,
        }
        Ok(written)
    }
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families(encoder);
        engine::known(&mut families, self)?;
        if let Some(followed) = &self.followed {
            engine::followed(&mut families, self.now, followed)?;
        }
        self.served.write(&mut families)
    }
}
