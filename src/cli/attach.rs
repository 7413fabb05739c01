//! Finding a runtime that answers, and following it with the library as any embedder would.

use std::future::ready;
use std::sync::Arc;

use anyhow::Context;
use futures::{Stream, StreamExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::args::Begin;
use super::config::{RuntimeChoice, RuntimeConfig};
use super::discover::Candidate;
use super::unreachable::{Attempt, NoRuntime, Why};
use crate::cri::{CallLimits, CriClient, Endpoint, StartError};
use crate::engine::{Freshness, ModeChange, RuntimeVersion};
use crate::feed::WatchFrom;
use crate::lifecycle::{LifecycleEvent, Mark, PodStatus};
#[cfg(feature = "simulate")]
use crate::simulate::{ChurnTask, SimulatedRuntime};
use crate::{Builder, Driver, Pleg};

/// A build without simulation has none to keep busy.
#[cfg(not(feature = "simulate"))]
type ChurnTask = std::convert::Infallible;

/// A runtime that answered, about to be followed. Nothing has been asked of it yet but its version.
pub(crate) struct Attached {
    /// Who answered.
    pub(crate) version: RuntimeVersion,
    pleg: Pleg,
    driver: Driver,
    /// Keeps a simulated runtime busy.
    churn: Option<ChurnTask>,
}

/// A runtime that is followed.
pub(crate) struct Following {
    pleg: Pleg,
    driver: JoinHandle<Result<(), StartError>>,
    _churn: Option<ChurnTask>,
}

/// Finds the runtime and makes ready to follow it, by its events or without.
pub(crate) async fn attach(config: &RuntimeConfig, events: bool) -> anyhow::Result<Attached> {
    let builder = Pleg::builder()
        .evented_pleg(events)
        .max_message_size(config.max_message_size);
    match &config.choice {
        RuntimeChoice::Node(candidates) => {
            let limits = CallLimits {
                message_size: config.max_message_size,
                ..CallLimits::default()
            };
            let (endpoint, version) = find(candidates, limits).await?;
            Attached::new(builder.endpoint(endpoint), version, None)
        }
        RuntimeChoice::Simulated { seed } => simulated(builder, *seed).await,
    }
}

/// The first candidate that answers `Version`, and its answer.
async fn find(
    candidates: &[Candidate],
    limits: CallLimits,
) -> Result<(Endpoint, RuntimeVersion), NoRuntime> {
    let mut tried = Vec::new();
    for candidate in candidates {
        match try_one(candidate, limits).await {
            Ok(found) => return Ok(found),
            Err(why) => tried.push(Attempt {
                candidate: candidate.clone(),
                why,
            }),
        }
    }
    Err(NoRuntime { tried })
}

async fn try_one(
    candidate: &Candidate,
    limits: CallLimits,
) -> Result<(Endpoint, RuntimeVersion), Why> {
    let endpoint: Endpoint = candidate.endpoint.parse().map_err(Why::Misspelt)?;
    // A plain connection first: its errors say more than a transport's, and it costs nothing.
    UnixStream::connect(endpoint.path())
        .await
        .map_err(Why::Connect)?;
    let version = CriClient::for_endpoint(&endpoint, limits)
        .version()
        .await
        .map_err(|error| Why::Answer(error.into()))?;
    Ok((endpoint, version))
}

#[cfg(feature = "simulate")]
async fn simulated(builder: Builder, seed: Option<u64>) -> anyhow::Result<Attached> {
    let mut simulation = SimulatedRuntime::builder().busy_node();
    if let Some(seed) = seed {
        simulation = simulation.seed(seed);
    }
    let runtime = simulation.build();
    let version = CriClient::new(runtime.channel(), CallLimits::default())
        .version()
        .await
        .context("the simulated runtime does not answer")?;
    let churn = runtime.spawn_churn();
    let builder = builder.connector(move || runtime.channel());
    Attached::new(builder, version, Some(churn))
}

#[cfg(not(feature = "simulate"))]
async fn simulated(_: Builder, _: Option<u64>) -> anyhow::Result<Attached> {
    anyhow::bail!("this build of pleg has no simulated runtime; build it with the feature simulate")
}

impl Attached {
    fn new(
        builder: Builder,
        version: RuntimeVersion,
        churn: Option<ChurnTask>,
    ) -> anyhow::Result<Self> {
        let (pleg, driver) = builder.build().context("cannot follow the runtime")?;
        Ok(Self {
            version,
            pleg,
            driver,
            churn,
        })
    }

    /// The events from now on, beginning with what the first relist will find unless only news is
    /// wanted.
    pub(crate) fn watch(
        &self,
        from: Begin,
    ) -> anyhow::Result<impl Stream<Item = Arc<LifecycleEvent>> + use<>> {
        // Nothing is known before the first relist, so a snapshot would be empty: what there is
        // comes as events of that relist, marked as initial.
        let events = self.pleg.watch(WatchFrom::Now)?;
        Ok(events.filter(move |event| ready(from == Begin::Snapshot || !event.initial)))
    }

    /// The changes of mode from now on.
    pub(crate) fn modes(&self) -> impl Stream<Item = ModeChange> + use<> {
        self.pleg.modes()
    }

    /// Begins to follow the runtime. Whoever subscribed before misses nothing.
    pub(crate) fn follow(self) -> Following {
        Following {
            pleg: self.pleg,
            driver: tokio::spawn(self.driver.run()),
            _churn: self.churn,
        }
    }
}

impl Following {
    /// Every pod that the first full relist shows, once its inspection was done or has failed.
    pub(crate) async fn pods(&self) -> anyhow::Result<Vec<Arc<PodStatus>>> {
        let begun = self.pleg.relisted_since(Mark::default()).await?;
        let readings = self.pleg.cache().list().into_iter().map(|cached| {
            let uid = cached.status.pod.uid.clone();
            self.pleg.get_newer_than(uid, begun, Freshness::Details)
        });
        let readings = futures::future::try_join_all(readings).await?;
        Ok(readings
            .into_iter()
            .filter_map(|reading| reading.status)
            .collect())
    }

    /// Stops. Gives the driver's own error, if it had one.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.pleg.shutdown().await;
        self.driver
            .await
            .context("following the runtime broke off")?
            .context("cannot follow the runtime's events")
    }
}
