//! `pleg` as the observer: attached to a test bed, it is listened to and held to the cache as it tells.
//!
//! Each observer has a tokio runtime of its own, so that no test's waiting is its waiting, and so that a
//! test can block it. It knows what `pleg` told and when, and nothing of what truly happened.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use pleg::cache::Cached;
use pleg::engine::{Freshness, Mode, ModeChange, Reading};
use pleg::feed::WatchFrom;
use pleg::lifecycle::{
    EventSubject, LifecycleEvent, LifecycleKind, PodIdentity, PodStatus, ReportedState, UnixNanos,
};
use pleg::{Builder, Pleg, Stats};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use crate::account::Account;
use crate::driver::{Driver, wall_clock};
use crate::runtime_lists::{Listed, listed_of_pod, shown_of};
use crate::testbed::{Testbed, Version};
use crate::truth::{Sight, Told, Truth};

/// How long an observer that hears events may take to tell what no event tells it: its first looks at
/// an unsettled pod come after 1 and 3 seconds, and the machine is busy.
const SOON: Duration = Duration::from_secs(10);

/// One event with the moment at which the subscription gave it.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) event: Arc<LifecycleEvent>,
    pub(crate) at: UnixNanos,
}

/// A `pleg` that follows a runtime. It ends when dropped.
pub(crate) struct Observer {
    pub(crate) pleg: Pleg,
    account: Account,
    heard: Arc<Mutex<Vec<Heard>>>,
    /// Where the cache was behind an event.
    behind: Arc<Mutex<Vec<String>>>,
    mode_changes: Arc<Mutex<Vec<ModeChange>>>,
    runtime: Option<Runtime>,
}

impl Observer {
    /// The observer that all tests share which only run pods on the shared daemon: on containerd 1.7
    /// two would take events from each other.
    pub(crate) async fn shared(version: Version) -> &'static Self {
        static SHARED: [OnceCell<Observer>; 3] = [const { OnceCell::const_new() }; 3];
        let slot = match version {
            Version::Containerd16 => &SHARED[0],
            Version::Containerd17 => &SHARED[1],
            Version::Containerd21 => &SHARED[2],
        };
        slot.get_or_init(|| async { Self::attach(Testbed::shared(version).await).await })
            .await
    }

    /// Attaches to a test bed with the kubelet's settings and waits for the first relist.
    pub(crate) async fn attach(bed: &Testbed) -> Self {
        Self::attach_with(bed, |builder| builder).await
    }

    pub(crate) async fn attach_with(bed: &Testbed, with: impl FnOnce(Builder) -> Builder) -> Self {
        let endpoint = bed.endpoint().parse().expect("the socket is an endpoint");
        let (pleg, driver) = with(Pleg::builder().endpoint(endpoint))
            .build()
            .expect("the settings agree");
        // One worker: whatever blocks it blocks all of the observer that runs there.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("observer")
            .enable_all()
            .build()
            .expect("a tokio runtime");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let behind = Arc::new(Mutex::new(Vec::new()));
        let mode_changes = Arc::new(Mutex::new(Vec::new()));
        let account = {
            let _inside = runtime.enter();
            let account = Account::of(told(&pleg, &heard, &behind));
            let (mut modes, noted) = (pleg.modes(), Arc::clone(&mode_changes));
            tokio::spawn(async move {
                while let Some(change) = modes.next().await {
                    noted.lock().expect("nobody panics").push(change);
                }
            });
            tokio::spawn(async move { driver.run().await.expect("the reader starts") });
            account
        };
        let observer = Self {
            pleg,
            account,
            heard,
            behind,
            mode_changes,
            runtime: Some(runtime),
        };
        timeout(
            Duration::from_secs(30),
            observer
                .pleg
                .relisted_since(pleg::lifecycle::Mark::default()),
        )
        .await
        .expect("a first relist")
        .expect("the driver runs");
        observer
    }

    /// Blocks the thread that the driver and the subscribers run on until `over` says so.
    pub(crate) fn block_until(&self, over: impl Fn() -> bool + Send + 'static) {
        let runtime = self.runtime.as_ref().expect("it lives");
        runtime.spawn(async move {
            while !over() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }

    /// All that was told so far.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("nobody panics").clone()
    }

    pub(crate) fn heard_of(&self, pod: &PodIdentity) -> Vec<Heard> {
        let mut heard = self.heard();
        heard.retain(|heard| heard.event.pod.uid == pod.uid);
        heard
    }

    pub(crate) fn mode_changes(&self) -> Vec<ModeChange> {
        self.mode_changes.lock().expect("nobody panics").clone()
    }

    pub(crate) async fn stats(&self) -> Stats {
        self.pleg.stats().await.expect("the driver runs")
    }

    /// The pod in the cache.
    pub(crate) fn cached(&self, pod: &PodIdentity) -> Option<Cached> {
        self.pleg.cache().get(&pod.uid)
    }

    /// Waits, at most so long, for a mode; says whether it came.
    pub(crate) async fn until_mode(&self, within: Duration, is_it: impl Fn(Mode) -> bool) -> bool {
        let wait = async {
            while !is_it(self.pleg.mode()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(within, wait).await.is_ok()
    }

    /// Waits until all that must be told of a pod has been.
    pub(crate) async fn until_told(&self, truth: &Truth, sight: Sight) -> bool {
        self.account.until_told(truth, sight, SOON).await
    }

    /// All that is wrong with what was told of a pod whose story is over: against the truth, against
    /// the cache at that moment, against the runtime's own lists now.
    pub(crate) async fn mistakes(
        &self,
        truth: &Truth,
        sight: Sight,
        driver: &Driver,
    ) -> Vec<String> {
        let mut wrong = self.account.mistakes(truth, sight, SOON).await;
        let synced = self
            .heard_of(&truth.pod)
            .into_iter()
            .filter(|heard| heard.event.kind == LifecycleKind::PodSync);
        wrong.extend(synced.map(|heard| format!("nothing stepped back: {:?}", heard.event)));
        wrong.extend(self.behind_of(&truth.pod));
        wrong.extend(self.differences(&truth.pod, driver).await);
        wrong
    }

    /// Where the cache was behind an event of a pod.
    fn behind_of(&self, pod: &PodIdentity) -> Vec<String> {
        let behind = self.behind.lock().expect("nobody panics");
        let of_pod = |line: &&String| line.contains(pod.uid.as_str());
        behind.iter().filter(of_pod).cloned().collect()
    }

    /// Where the cache differs from the runtime's lists of a pod that rests. What the cache says is
    /// asked by a mark that is taken after everything that was done to the pod.
    pub(crate) async fn differences(&self, pod: &PodIdentity, driver: &Driver) -> Vec<String> {
        let reading = self.read(pod).await;
        let shown = reading.status.as_deref().map(shown_of).unwrap_or_default();
        let listed = listed_of_pod(driver, pod).await;
        difference(&listed, &shown)
    }

    /// The same for the whole node.
    pub(crate) async fn differences_of_node(&self, driver: &Driver) -> Vec<String> {
        let mark = self.pleg.mark().await.expect("the driver runs");
        self.pleg
            .request_full_relist()
            .await
            .expect("the driver runs");
        self.pleg
            .relisted_since(mark)
            .await
            .expect("the driver runs");
        let cached = self.pleg.cache().list();
        let shown = cached.iter().flat_map(|cached| shown_of(&cached.status));
        let listed = crate::runtime_lists::listed_of_node(driver).await;
        difference(&listed, &shown.collect())
    }

    /// The pod from a read that begins now.
    pub(crate) async fn read(&self, pod: &PodIdentity) -> Reading {
        let read = async {
            let mark = self.pleg.mark().await?;
            self.pleg
                .get_newer_than(pod.uid.clone(), mark, Freshness::Details)
                .await
        };
        timeout(SOON, read)
            .await
            .expect("a newer status comes in time")
            .expect("the driver runs")
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What a subscription tells, noted down and compared with the cache as it comes.
fn told(
    pleg: &Pleg,
    heard: &Arc<Mutex<Vec<Heard>>>,
    behind: &Arc<Mutex<Vec<String>>>,
) -> impl futures::Stream<Item = Told> + Send + use<> {
    let (cache, heard, behind) = (pleg.cache().clone(), Arc::clone(heard), Arc::clone(behind));
    let events = pleg.watch(WatchFrom::Now).expect("the feed is open");
    events.filter_map(move |event| {
        let at = wall_clock();
        let cached = cache.get(&event.pod.uid);
        let shown = cached.as_ref().map(|cached| &*cached.status);
        if !shown.is_none_or(|status| is_not_behind(status, &event)) {
            let line = format!("the cache is behind: {event:?}: {shown:?}");
            behind.lock().expect("nobody panics").push(line);
        }
        let told = Told::from_event(&event, at);
        heard
            .lock()
            .expect("nobody panics")
            .push(Heard { event, at });
        std::future::ready(told)
    })
}

/// Whether the cache shows the phase that an event tells, a further one, or no longer the subject; and
/// of a dead container how it ended.
fn is_not_behind(status: &PodStatus, event: &LifecycleEvent) -> bool {
    let Some(subject) = &event.subject else {
        return true;
    };
    let (state, exit_code) = match subject {
        EventSubject::Sandbox { id, .. } => {
            let shown = status.sandboxes.iter().find(|sandbox| sandbox.id == *id);
            (shown.map(|sandbox| sandbox.state), None)
        }
        EventSubject::Container { id, .. } => {
            let shown = status.containers.iter().find(|shown| shown.id == *id);
            let exit_code = shown.and_then(|shown| shown.exit_code);
            (shown.map(|container| container.state), exit_code)
        }
    };
    let Some(state) = state else { return true };
    match event.kind {
        LifecycleKind::ContainerStarted => state >= ReportedState::Running,
        LifecycleKind::ContainerDied => {
            let is_container = matches!(subject, EventSubject::Container { .. });
            let told = event.exit.as_ref().map(|exit| exit.exit_code);
            state == ReportedState::Exited && told == exit_code && told.is_some() == is_container
        }
        LifecycleKind::ContainerRemoved => false,
        LifecycleKind::PodSync => true,
    }
}

fn difference(listed: &Listed, shown: &Listed) -> Vec<String> {
    let missing = listed.difference(shown);
    let wrong = missing.map(|entry| format!("the runtime lists it, the cache does not: {entry:?}"));
    let extra = shown.difference(listed);
    wrong
        .chain(extra.map(|entry| format!("the cache has it, the runtime does not: {entry:?}")))
        .collect()
}
