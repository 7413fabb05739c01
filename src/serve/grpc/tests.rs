//! The service in front of a simulated runtime, over memory and in virtual time.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::channel::mpsc;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::client_stub::pleg_client::PlegClient;
use super::messages::{
    GetPodRequest, GetStatusRequest, LifecycleEvent, LifecycleKind, ListPodsRequest,
    RequestRelistRequest, TakeMarkRequest, WatchFrom, WatchRequest, lifecycle_event,
    watch_response::Told,
};
use super::{Begin, DaemonClient, LIST_AGAIN, SERVICE, Watched};
use crate::clock::Clock;
use crate::lifecycle::{Mark, ReportedState, UnixNanos};
use crate::serve::status::{Notebook, Verdict};
use crate::serve::{Epoch, Limits, RingLimits, Serving};
use crate::simulate::{Rpc, SimulatedRuntime};
use crate::{Driver, Pleg};

mod bounds;
mod our_client;

const NOON: UnixNanos = UnixNanos(1_700_000_000_000_000_000);

type Dialled = mpsc::UnboundedSender<io::Result<DuplexStream>>;

/// Where clients dial: whichever life of the daemon there is.
#[derive(Clone, Default)]
struct Door(Arc<Mutex<Option<Dialled>>>);

impl Door {
    fn channel(&self) -> Channel {
        self.channel_of(&Endpoint::from_static("http://pleg"))
    }

    /// A client that takes no more than it reads, but for little.
    fn narrow_stub(&self) -> PlegClient<Channel> {
        let narrow = Endpoint::from_static("http://pleg").initial_stream_window_size(4_096);
        PlegClient::new(self.channel_of(&narrow))
    }

    fn channel_of(&self, endpoint: &Endpoint) -> Channel {
        let door = self.clone();
        let dial = tower::service_fn(move |_: Uri| {
            let (ours, theirs) = tokio::io::duplex(16 << 10);
            let taken = match &*door.0.lock().unwrap() {
                Some(dialled) => dialled.unbounded_send(Ok(theirs)).is_ok(),
                None => false,
            };
            std::future::ready(if taken {
                Ok(TokioIo::new(ours))
            } else {
                Err(io::Error::from(io::ErrorKind::ConnectionRefused))
            })
        });
        endpoint.connect_with_connector_lazy(dial)
    }

    fn stub(&self) -> PlegClient<Channel> {
        PlegClient::new(self.channel())
    }

    fn client(&self) -> DaemonClient {
        DaemonClient::over(self.channel())
    }
}

/// One life of a daemon.
struct Life {
    serving: Serving,
    driver: Option<Driver>,
    feeding: JoinHandle<()>,
    closing: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Life {
    /// Serves, without a driver that runs.
    fn begin(runtime: &SimulatedRuntime, door: &Door, epoch: u64, limits: Limits) -> Self {
        let notebook = Notebook::default();
        let noting = notebook.clone();
        let (pleg, driver) = Pleg::builder()
            .channel(runtime.channel())
            .clock(Clock::starting_at(NOON))
            .seed(1)
            .tap(move |tapped| noting.see(tapped))
            .build()
            .unwrap();
        let (serving, feeder) = Serving::new(pleg, Epoch(epoch), limits, notebook, None).unwrap();
        let (dialled, incoming) = mpsc::unbounded();
        *door.0.lock().unwrap() = Some(dialled);
        let (closing, closed) = oneshot::channel();
        let served = super::serve(serving.clone(), incoming, async {
            let _ = closed.await;
        });
        Self {
            serving,
            driver: Some(driver),
            feeding: tokio::spawn(feeder.run()),
            closing,
            served: tokio::spawn(async { served.await.unwrap() }),
        }
    }

    /// Serves what it knows after its first relist.
    async fn of(runtime: &SimulatedRuntime, door: &Door, epoch: u64) -> Self {
        Self::begin(runtime, door, epoch, Limits::default())
            .driven()
            .await
    }

    async fn driven(mut self) -> Self {
        let driver = self.driver.take().unwrap();
        tokio::spawn(async { driver.run().await.unwrap() });
        let relisted = self.serving.pleg().relisted_since(Mark::default());
        relisted.await.unwrap();
        self
    }

    /// Ends as a daemon does on SIGTERM.
    async fn end(self) {
        let _ = self.closing.send(());
        self.serving.pleg().shutdown().await;
        self.feeding.await.unwrap();
        self.served.await.unwrap();
    }
}

fn busy_node() -> SimulatedRuntime {
    SimulatedRuntime::builder()
        .epoch(NOON)
        .busy_node()
        .seed(5)
        .build()
}

fn from_position(position: &str) -> WatchRequest {
    WatchRequest {
        from: WatchFrom::Position.into(),
        position: position.to_owned(),
        ..WatchRequest::default()
    }
}

/// What somebody who follows events believes: each subject that runs or has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Belief(BTreeMap<String, ReportedState>);

impl Belief {
    fn take(&mut self, event: &LifecycleEvent) {
        let id = match &event.subject {
            Some(lifecycle_event::Subject::Sandbox(sandbox)) => &sandbox.id,
            Some(lifecycle_event::Subject::Container(container)) => &container.id,
            None => return,
        };
        match event.r#type() {
            LifecycleKind::ContainerStarted => {
                let before = self.0.insert(id.clone(), ReportedState::Running);
                assert_eq!(before, None, "started twice: {event:?}");
            }
            LifecycleKind::ContainerDied => {
                self.0.insert(id.clone(), ReportedState::Exited);
            }
            LifecycleKind::ContainerRemoved => {
                assert!(self.0.remove(id).is_some(), "removed untold: {event:?}");
            }
            LifecycleKind::PodSync | LifecycleKind::Unspecified => {}
        }
    }

    fn truth(runtime: &SimulatedRuntime) -> Self {
        runtime.world(|world| {
            let sandboxes = world.sandboxes().map(|sandbox| {
                let state = if sandbox.ready {
                    ReportedState::Running
                } else {
                    ReportedState::Exited
                };
                (sandbox.id.to_string(), state)
            });
            let containers = world.containers().map(|c| (c.id.to_string(), c.state));
            let told = sandboxes
                .chain(containers)
                .filter(|(_, state)| *state > ReportedState::Created);
            Self(told.collect())
        })
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_snapshot_and_one_after_a_list_come_to_believe_the_truth() {
    let runtime = busy_node();
    let door = Door::default();
    let life = Life::of(&runtime, &door, 1).await;
    let churn = runtime.spawn_churn();
    let mut stub = door.stub();
    // At moments of all kinds: in the middle of churn, with deaths that wait for their exit codes.
    for round in 0..40 {
        tokio::time::sleep(Duration::from_millis(37 * round)).await;
        let request = WatchRequest::default();
        let mut events = stub.watch(request).await.unwrap().into_inner();
        let mut belief = Belief::default();
        let mut position = String::new();
        let mut revision = 0;
        let deadline = tokio::time::sleep(seconds(5));
        tokio::pin!(deadline);
        loop {
            let answer = tokio::select! {
                biased;
                () = &mut deadline => break,
                answer = events.message() => answer.unwrap().unwrap(),
            };
            match answer.told {
                Some(Told::Event(event)) => {
                    assert_eq!(event.initial, position.is_empty());
                    if !position.is_empty() {
                        assert!(event.revision > revision, "{event:?} after {revision}");
                        revision = event.revision;
                    }
                    belief.take(&event);
                }
                Some(Told::SnapshotEnd(_)) => {
                    let (_, text) = answer.position.split_once('-').unwrap();
                    revision = text.parse().unwrap();
                    position = answer.position;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(!position.is_empty());
        drop(events);
        // Whoever lists and watches after that is told no change that happened before the list.
        let list = stub
            .list_pods(ListPodsRequest {})
            .await
            .unwrap()
            .into_inner();
        let mut after = stub
            .watch(from_position(&list.position))
            .await
            .unwrap()
            .into_inner();
        let first = tokio::time::timeout(seconds(2), after.message()).await;
        if let Ok(answer) = first
            && let Some(Told::Event(event)) = answer.unwrap().unwrap().told
        {
            let newest = list.items.iter().map(|pod| pod.revision).max();
            assert!(Some(event.revision) > newest, "{event:?}");
        }
    }
    drop(churn);
    let mut events = stub
        .watch(WatchRequest::default())
        .await
        .unwrap()
        .into_inner();
    let mut belief = Belief::default();
    while let Ok(answer) = tokio::time::timeout(seconds(30), events.message()).await {
        if let Some(Told::Event(event)) = answer.unwrap().unwrap().told {
            belief.take(&event);
        }
    }
    assert_eq!(belief, Belief::truth(&runtime));
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_gets_exactly_what_followed() {
    let runtime = busy_node();
    let door = Door::default();
    let _life = Life::of(&runtime, &door, 1).await;
    let _churn = runtime.spawn_churn();
    let mut stub = door.stub();
    let mut whole = stub
        .watch(WatchRequest {
            from: WatchFrom::Now.into(),
            ..WatchRequest::default()
        })
        .await
        .unwrap()
        .into_inner();
    let begun = whole.message().await.unwrap().unwrap();
    assert!(matches!(begun.told, Some(Told::SnapshotEnd(_))));
    let mut all = Vec::new();
    while all.len() < 60 {
        all.push(whole.message().await.unwrap().unwrap());
    }
    let mut pieces = Vec::new();
    let mut position = begun.position;
    while pieces.len() < 60 {
        let again = stub.watch(from_position(&position)).await;
        let mut piece = again.unwrap().into_inner();
        for _ in 0..=pieces.len() % 7 {
            let answer = piece.message().await.unwrap().unwrap();
            position.clone_from(&answer.position);
            pieces.push(answer);
        }
    }
    pieces.truncate(60);
    assert_eq!(pieces, all);
}

fn refusal<T>(answer: Result<T, Status>) -> (Code, String, Option<String>) {
    let Err(status) = answer else {
        panic!("must be refused");
    };
    let reason = status.metadata().get(LIST_AGAIN);
    let reason = reason.map(|reason| reason.to_str().unwrap().to_owned());
    (status.code(), status.message().to_owned(), reason)
}

#[tokio::test(start_paused = true)]
async fn positions_that_nothing_can_follow_are_refused_each_with_its_reason() {
    let runtime = busy_node();
    let door = Door::default();
    let _life = Life::of(&runtime, &door, 1).await;
    let mut stub = door.stub();
    for (position, reason) in [
        ("0000000000000002-1", "OtherEpoch"),
        ("0000000000000001-99999999", "Future"),
    ] {
        let (code, text, told) = refusal(stub.watch(from_position(position)).await);
        assert_eq!(code, Code::OutOfRange, "{position}");
        assert!(text.starts_with("list again"), "{text}");
        assert_eq!(told.as_deref(), Some(reason));
    }
    for (position, part) in [
        ("2026-11-30T12:00:00Z", "clocks step"),
        ("1796040000", "clocks step"),
        ("", "never handed out"),
        ("yesterday", "never handed out"),
    ] {
        let (code, text, told) = refusal(stub.watch(from_position(position)).await);
        assert_eq!(code, Code::InvalidArgument, "{position}");
        assert!(text.contains(part), "{text}");
        assert_eq!(told, None);
    }
    let contradiction = WatchRequest {
        position: "0000000000000001-1".to_owned(),
        ..WatchRequest::default()
    };
    assert_eq!(
        refusal(stub.watch(contradiction).await).0,
        Code::InvalidArgument
    );
    let unknown = WatchRequest {
        from: 9,
        ..WatchRequest::default()
    };
    assert_eq!(refusal(stub.watch(unknown).await).0, Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_read_newer_than_now_and_newer_than_a_mark() {
    let runtime = SimulatedRuntime::builder().epoch(NOON).build();
    let door = Door::default();
    let _life = Life::of(&runtime, &door, 1).await;
    let mut stub = door.stub();
    // Nothing tells the daemon of it but a read.
    runtime.set_muted(true);
    let pod = runtime.run_pod("shop", "web-1", &["app"]);
    let uid = pod.uid.to_string();
    let ask = |newer_than: &str| GetPodRequest {
        uid: uid.clone(),
        newer_than: newer_than.to_owned(),
        phases_only: false,
    };
    let cached = stub.get_pod(ask("")).await.unwrap().into_inner();
    assert_eq!(cached.pod, None);
    let fresh = stub.get_pod(ask("now")).await.unwrap().into_inner();
    assert_eq!(fresh.pod.unwrap().containers.len(), 1);

    let mark = stub.take_mark(TakeMarkRequest {}).await.unwrap();
    let mark = mark.into_inner().mark;
    let fresher = stub.get_pod(ask(&mark)).await.unwrap().into_inner();
    let observed: crate::serve::EpochMark = fresher.observed.parse().unwrap();
    assert!(observed.mark >= mark.parse::<crate::serve::EpochMark>().unwrap().mark);

    for (newer_than, code) in [
        ("0000000000000002-1.1", Code::FailedPrecondition),
        ("2026-11-30", Code::InvalidArgument),
        ("later", Code::InvalidArgument),
    ] {
        assert_eq!(refusal(stub.get_pod(ask(newer_than)).await).0, code);
    }
    let nobody = GetPodRequest::default();
    assert_eq!(refusal(stub.get_pod(nobody).await).0, Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_is_asked_for_is_made() {
    let runtime = busy_node();
    let door = Door::default();
    let life = Life::of(&runtime, &door, 1).await;
    tokio::time::sleep(seconds(600)).await;
    let lists = || {
        let counts = runtime.rpc_counts();
        counts.of(Rpc::ListPodSandbox) + counts.of(Rpc::StreamPodSandboxes)
    };
    let before = lists();
    let mark = life.serving.pleg().mark().await.unwrap();
    let wish = RequestRelistRequest::default();
    door.stub().request_relist(wish).await.unwrap();
    life.serving.pleg().relisted_since(mark).await.unwrap();
    assert_eq!(lists(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn the_status_answers_while_the_driver_does_not() {
    let runtime = busy_node();
    let door = Door::default();
    let life = Life::begin(&runtime, &door, 1, Limits::default());
    let client = door.client();
    let status = client.status().await.unwrap();
    assert_eq!(status.health.verdict, Verdict::Unknown);
    assert_eq!(status.health.words, "the driver has not answered yet");
    assert_eq!(status.is_healthy(), None);

    let _life = life.driven().await;
    let status = client.status().await.unwrap();
    assert_eq!(status.health.verdict, Verdict::Healthy);
    assert_eq!(status.health.words, "ok");
    assert!(status.driver.answers);
    assert_eq!(&*status.runtime.unwrap().name, "containerd");
    let raw = door.stub().get_status(GetStatusRequest {}).await.unwrap();
    assert_eq!(raw.into_inner().epoch, "0000000000000001");
}

#[tokio::test(start_paused = true)]
async fn the_health_service_says_what_the_health_is() {
    let runtime = busy_node();
    let door = Door::default();
    let life = Life::begin(&runtime, &door, 1, Limits::default());
    let mut health = HealthClient::new(door.channel());
    let mut is_serving = async |service: &str| {
        tokio::time::sleep(seconds(5)).await;
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request).await.unwrap().into_inner();
        answer.status() == tonic_health::pb::health_check_response::ServingStatus::Serving
    };
    assert!(!is_serving("").await);
    let _life = life.driven().await;
    assert!(is_serving("").await);
    assert!(is_serving(SERVICE).await);
    runtime.set_up(false);
    tokio::time::sleep(seconds(1_300)).await;
    assert!(!is_serving(SERVICE).await);
}

/// As a daemon does whose ring nobody feeds any more.
#[tokio::test(start_paused = true)]
async fn at_the_end_watchers_are_told_that_it_is_one() {
    let runtime = busy_node();
    let door = Door::default();
    let life = Life::of(&runtime, &door, 1).await;
    let mut events = door
        .stub()
        .watch(WatchRequest::default())
        .await
        .unwrap()
        .into_inner();
    let watcher = tokio::spawn(async move {
        loop {
            match events.message().await {
                Ok(Some(_)) => {}
                end => return end.unwrap_err(),
            }
        }
    });
    tokio::time::sleep(seconds(3)).await;
    tokio::select! {
        biased;
        () = life.end() => {}
        () = async { tokio::time::sleep(seconds(60)).await; pending().await } => {}
    }
    let end = watcher.await.unwrap();
    assert_eq!(end.code(), Code::Unavailable);
    assert!(end.message().contains("shutting down"), "{end}");
}
