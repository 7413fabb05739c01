//! Finding a runtime that answers, and following it with the library as any embedder would.

use std::future::ready;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use futures::{Stream, StreamExt};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Uri};

use super::args::Begin;
use super::config::{RuntimeChoice, RuntimeConfig};
use super::discover::Candidate;
use super::unreachable::{Attempt, NoRuntime, Why};
use crate::cri::{CallLimits, CriClient, Endpoint, StartError};
use crate::engine::{Call, Freshness, ModeChange, RuntimeVersion};
use crate::feed::WatchFrom;
use crate::lifecycle::{LifecycleEvent, Mark, PodStatus};
#[cfg(feature = "simulate")]
use crate::simulate::{ChurnTask, SimulatedRuntime};
use crate::{Builder, Driver, Pleg};

/// A build without simulation has none to keep busy.
#[cfg(not(feature = "simulate"))]
type ChurnTask = std::convert::Infallible;

/// How often to look whether the relist has failed; nothing tells it.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

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
    /// The runtime's name and version.
    whom: String,
    pleg: Pleg,
    driver: JoinHandle<Result<(), StartError>>,
    _churn: Option<ChurnTask>,
}

/// Finds the runtime and makes ready to follow it, by its events or without.
pub(crate) async fn attach(config: &RuntimeConfig, events: bool) -> anyhow::Result<Attached> {
    attach_with(config, events, |builder, _| Ok(builder)).await
}

/// The same, with what `set_up` makes of the builder once the runtime has answered.
pub(crate) async fn attach_with(
    config: &RuntimeConfig,
    events: bool,
    set_up: impl FnOnce(Builder, &RuntimeVersion) -> anyhow::Result<Builder>,
) -> anyhow::Result<Attached> {
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
            let builder = set_up(builder.endpoint(endpoint), &version)?;
            Attached::new(builder, version, None)
        }
        RuntimeChoice::Simulated { seed } => simulated(builder, *seed, set_up).await,
    }
}

/// What a daemon follows: whatever of the candidates serves when it is dialled, be it later than the
/// daemon or another one than before; and what keeps a simulated runtime busy.
pub(crate) fn for_daemon(
    config: &RuntimeConfig,
    events: bool,
) -> anyhow::Result<(Builder, Option<ChurnTask>)> {
    let builder = Pleg::builder()
        .evented_pleg(events)
        .max_message_size(config.max_message_size);
    match &config.choice {
        RuntimeChoice::Node(candidates) => {
            let endpoints: Vec<Endpoint> = candidates
                .iter()
                .map(|candidate| candidate.endpoint.parse())
                .collect::<Result<_, _>>()?;
            let builder = match endpoints.as_slice() {
                [only] => builder.endpoint(only.clone()),
                _ => builder.connector(move || first_that_answers(&endpoints)),
            };
            Ok((builder, None))
        }
        RuntimeChoice::Simulated { seed } => simulated_for_daemon(builder, *seed),
    }
}

/// A channel to the first of several sockets that takes a connection, looked for with each dial.
fn first_that_answers(endpoints: &[Endpoint]) -> Channel {
    let endpoints: Arc<[Endpoint]> = endpoints.into();
    let dial = tower::service_fn(move |_: Uri| {
        let endpoints = Arc::clone(&endpoints);
        async move {
            let mut last = io::Error::other("no runtime is named");
            for endpoint in &*endpoints {
                match UnixStream::connect(endpoint.path()).await {
                    Ok(stream) => return Ok(TokioIo::new(stream)),
                    Err(error) => {
                        last = io::Error::new(error.kind(), format!("{endpoint}: {error}"));
                    }
                }
            }
            Err(last)
        }
    });
    tonic::transport::Endpoint::from_static("http://runtime").connect_with_connector_lazy(dial)
}

#[cfg(feature = "simulate")]
fn busy_node(seed: Option<u64>) -> SimulatedRuntime {
    let mut simulation = SimulatedRuntime::builder().busy_node();
    if let Some(seed) = seed {
        simulation = simulation.seed(seed);
    }
    simulation.build()
}

#[cfg(feature = "simulate")]
#[expect(clippy::unnecessary_wraps, reason = "without simulation it fails")]
fn simulated_for_daemon(
    builder: Builder,
    seed: Option<u64>,
) -> anyhow::Result<(Builder, Option<ChurnTask>)> {
    let runtime = busy_node(seed);
    let churn = runtime.spawn_churn();
    Ok((builder.connector(move || runtime.channel()), Some(churn)))
}

#[cfg(not(feature = "simulate"))]
fn simulated_for_daemon(
    _: Builder,
    _: Option<u64>,
) -> anyhow::Result<(Builder, Option<ChurnTask>)> {
    anyhow::bail!("this build of pleg has no simulated runtime; build it with the feature simulate")
}

/// The first candidate that answers `Version`, and its answer.
pub(super) async fn find(
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
        .map_err(|error| match error.kind() {
            // A folder and a plain file refuse just as a socket does that nobody serves.
            io::ErrorKind::ConnectionRefused if !is_socket(endpoint.path()) => Why::NoSocket,
            _ => Why::Connect(error),
        })?;
    let version = CriClient::for_endpoint(&endpoint, limits)
        .version()
        .await
        .map_err(|error| Why::Answer(error.into()))?;
    Ok((endpoint, version))
}

/// Whether there is a socket. What cannot be looked at counts as one.
pub(super) fn is_socket(path: &str) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.file_type().is_socket())
}

#[cfg(feature = "simulate")]
async fn simulated(
    builder: Builder,
    seed: Option<u64>,
    set_up: impl FnOnce(Builder, &RuntimeVersion) -> anyhow::Result<Builder>,
) -> anyhow::Result<Attached> {
    let runtime = busy_node(seed);
    let version = CriClient::new(runtime.channel(), CallLimits::default())
        .version()
        .await
        .context("the simulated runtime does not answer")?;
    let churn = runtime.spawn_churn();
    let builder = set_up(builder.connector(move || runtime.channel()), &version)?;
    Attached::new(builder, version, Some(churn))
}

#[cfg(not(feature = "simulate"))]
async fn simulated(
    _: Builder,
    _: Option<u64>,
    _: impl FnOnce(Builder, &RuntimeVersion) -> anyhow::Result<Builder>,
) -> anyhow::Result<Attached> {
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
            whom: format!("{} {}", self.version.name, self.version.version),
            pleg: self.pleg,
            driver: tokio::spawn(self.driver.run()),
            _churn: self.churn,
        }
    }
}

impl Following {
    /// Every pod that the first full relist shows, once its inspection was done or has failed.
    pub(crate) async fn pods(&self) -> anyhow::Result<Vec<Arc<PodStatus>>> {
        let begun = tokio::select! {
            biased;
            begun = self.pleg.relisted_since(Mark::default()) => begun?,
            failure = self.relist_failure() => return Err(failure),
        };
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

    /// Resolves when a full relist has failed.
    async fn relist_failure(&self) -> anyhow::Error {
        loop {
            let failed = match self.pleg.stats().await {
                Ok(stats) => stats.engine.counters.failed,
                Err(stopped) => return stopped.into(),
            };
            for (call, kind) in failed.into_keys() {
                if call == Call::FullRelist {
                    return anyhow!(
                        "{} answers, but its pods cannot be listed ({kind:?}); the log on stderr \
                         says why (--log-level warn if there is none)",
                        self.whom
                    );
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Resolves when the driver has ended by itself, which it should not.
    pub(crate) async fn broke_off(&self) {
        let mut modes = self.pleg.modes();
        while modes.next().await.is_some() {}
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

#[cfg(all(test, feature = "simulate"))]
mod tests {
    use super::*;
    use crate::cli::discover::Origin;
    use crate::simulate::{Fault, Rpc};
    use std::os::unix::net::UnixListener;
    use tempfile::TempDir;
    use tonic::Code;

    fn following(runtime: &SimulatedRuntime) -> Following {
        let builder = Pleg::builder()
            .evented_pleg(false)
            .channel(runtime.channel());
        let version = RuntimeVersion {
            name: "containerd".into(),
            version: "2.1.9".into(),
            api_version: "v1".into(),
        };
        Attached::new(builder, version, None).unwrap().follow()
    }

    #[tokio::test]
    async fn the_first_endpoint_that_answers_is_taken_and_the_others_are_left_alone() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        drop(UnixListener::bind(at("deserted")).unwrap());
        let runtime = SimulatedRuntime::builder().build();
        let _first = runtime.serve_unix(at("first")).unwrap();
        let other = SimulatedRuntime::builder().build();
        let _second = other.serve_unix(at("second")).unwrap();
        let candidates: Vec<_> = ["missing", "deserted", "first", "second"]
            .map(|name| Candidate {
                endpoint: at(name).display().to_string(),
                origin: Origin::UsualSocket,
            })
            .into();

        let (endpoint, _) = find(&candidates, CallLimits::default()).await.unwrap();
        assert!(endpoint.path().ends_with("/first"), "{endpoint}");
        assert_eq!(other.rpc_counts().of(Rpc::Version), 0);

        let error = find(&candidates[..2], CallLimits::default())
            .await
            .unwrap_err();
        assert_eq!(error.tried.len(), 2);
        assert!(matches!(error.tried[0].why, Why::Connect(_)));
    }

    #[tokio::test]
    async fn a_folder_or_a_file_is_not_taken_for_a_socket_that_nobody_serves() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        drop(UnixListener::bind(at("deserted")).unwrap());
        let candidates = ["folder", "file", "deserted"].map(|name| Candidate {
            endpoint: at(name).display().to_string(),
            origin: Origin::Flag,
        });
        let told: Vec<_> = find(&candidates, CallLimits::default())
            .await
            .unwrap_err()
            .tried
            .iter()
            .map(|attempt| attempt.why.to_string())
            .collect();
        let no_socket = "is a file or a folder, no socket";
        assert_eq!(told[..2], [no_socket, no_socket]);
        assert!(told[2].contains("nobody listens"), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn pods_come_with_their_details_at_two_reads_each_and_without_the_event_stream() {
        let runtime = SimulatedRuntime::builder().pods(5).containers(2).build();
        let following = following(&runtime);
        let pods = following.pods().await.unwrap();
        assert_eq!(pods.len(), 5);
        for status in &pods {
            assert_eq!(status.error, None);
            let on_the_nodes_network = status.sandboxes[0].host_network;
            assert!(on_the_nodes_network || !status.ips.is_empty(), "{status:?}");
            assert!(status.containers.iter().all(|c| c.started_at.is_some()));
        }
        let counts = runtime.rpc_counts();
        // The first list also learns that this runtime has no streaming ones.
        let lists = counts.of(Rpc::ListContainers) + counts.of(Rpc::StreamContainers);
        assert_eq!(lists, 2, "{counts:?}");
        assert!(counts.of(Rpc::ContainerStatus) <= 2 * 10, "{counts:?}");
        assert_eq!(counts.of(Rpc::GetContainerEvents), 0);
        following.stop().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_cannot_be_inspected_is_shown_with_its_error_and_holds_up_nobody() {
        let runtime = SimulatedRuntime::builder().pods(3).containers(1).build();
        let broken = runtime.run_pod("default", "broken", &["app"]);
        runtime.inject(
            Fault::fail(Rpc::ContainerStatus, Code::Internal).for_id(broken.containers[0].as_str()),
        );
        let following = following(&runtime);
        let pods = following.pods().await.unwrap();
        let with_error: Vec<_> = pods
            .iter()
            .filter(|status| status.error.is_some())
            .map(|status| &*status.pod.name)
            .collect();
        assert_eq!(pods.len(), 4);
        assert_eq!(with_error, ["broken"]);
        following.stop().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_runtime_whose_lists_fail_is_a_failure_and_not_a_wait() {
        let runtime = SimulatedRuntime::builder().pods(1).build();
        runtime.inject(Fault::fail(Rpc::ListContainers, Code::Internal));
        runtime.inject(Fault::fail(Rpc::StreamContainers, Code::Internal));
        let following = following(&runtime);
        let error = following.pods().await.unwrap_err();
        assert!(error.to_string().contains("cannot be listed"), "{error}");
        following.stop().await.unwrap();
    }
}
