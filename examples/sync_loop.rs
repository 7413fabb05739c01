//! The kubelet's consumer in small: pods that are kept as somebody wants them.
//!
//! One worker a pod, woken by lifecycle events (every type but Removed is worth a sync). A sync asks for
//! the pod as it is now, newer than the last sync; restarts what has died, with back-off; removes dead
//! containers beyond a number kept; and asks for a relist after it acted. Pods that nobody asked for are
//! ignored with a line.
//!
//! The node is simulated, so that there is something to act on and nothing to break:
//!
//!     cargo run --example sync_loop              # for as long as you like
//!     cargo run --example sync_loop -- 5         # for five seconds

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pleg::Pleg;
use pleg::engine::Freshness;
use pleg::feed::WatchFrom;
use pleg::lifecycle::{
    ContainerId, LifecycleKind, Mark, PodContainer, PodStatus, PodUid, ReportedState,
};
use pleg::simulate::{RunningPod, SimulatedRuntime};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The containers that each pod should run.
const WANTED: [&str; 2] = ["app", "proxy"];
/// Dead containers of a name that are kept for whoever reads their logs.
const DEAD_KEPT: usize = 1;
/// The first wait before a restart; it doubles with each.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(10);
/// A pod is looked at now and then even if nobody woke its worker, as the kubelet does each minute.
const RESYNC: Duration = Duration::from_secs(60);

/// Keeps one pod as it is wanted.
struct Worker {
    name: String,
    uid: PodUid,
    pleg: Pleg,
    runtime: SimulatedRuntime,
    wake: Arc<Notify>,
    last_sync: Mark,
    backoff: BTreeMap<&'static str, Duration>,
}

impl Worker {
    async fn run(mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        loop {
            let wait = self.sync().await?;
            // Whichever comes first; an early wake costs one more look and changes nothing.
            let _ = timeout(wait, self.wake.notified()).await;
        }
    }

    /// Looks at the pod and acts. Gives the time until it wants to look again by itself.
    async fn sync(&mut self) -> Result<Duration, Box<dyn Error + Send + Sync>> {
        let reading = self
            .pleg
            .get_newer_than(self.uid.clone(), self.last_sync, Freshness::Details)
            .await?;
        let Some(status) = reading.status else {
            println!("{}: gone from the runtime", self.name);
            return Ok(RESYNC);
        };
        let mut wait = RESYNC;
        let mut acted = self.remove_the_dead(&status);
        for name in WANTED {
            let newest = status.container(name);
            if newest.is_some_and(|it| it.state != ReportedState::Exited) {
                continue;
            }
            let backoff = self.backoff.entry(name).or_insert(FIRST_BACKOFF);
            let rested = newest.is_none_or(|it| has_rested(it, *backoff, &self.runtime));
            if rested {
                let Some(sandbox) = status.sandboxes.first() else {
                    println!("{}: no sandbox to run {name} in", self.name);
                    continue;
                };
                self.runtime.run_container(&sandbox.id, name)?;
                *backoff = (*backoff * 2).min(LAST_BACKOFF);
                let why = newest.map_or("was missing".to_owned(), ended);
                println!("{}: {name} restarted, it {why}", self.name);
                acted = true;
            } else {
                println!(
                    "{}: {name} rests for {backoff:?} before its restart",
                    self.name
                );
                wait = wait.min(*backoff);
            }
        }
        if acted {
            // What was just done is worth a look that does not wait for its event.
            self.pleg.request_relist(self.uid.clone()).await?;
        }
        // The next sync must see at least what is there after this one.
        self.last_sync = self.pleg.mark().await?;
        Ok(wait)
    }

    /// Removes the dead of each name, oldest first, but for the newest ones. Whether there were any.
    fn remove_the_dead(&self, status: &PodStatus) -> bool {
        let mut acted = false;
        for name in WANTED {
            let dead = status
                .containers
                .iter()
                .filter(|it| &*it.name == name && it.state == ReportedState::Exited);
            // They come newest first.
            for container in dead.skip(DEAD_KEPT + 1) {
                // Somebody may have removed it meanwhile; then it is as wanted.
                if self.runtime.remove_container(&container.id).is_ok() {
                    println!(
                        "{}: {name} attempt {} removed",
                        self.name, container.attempt
                    );
                    acted = true;
                }
            }
        }
        acted
    }
}

/// Whether a dead container's back-off is over.
fn has_rested(container: &PodContainer, backoff: Duration, runtime: &SimulatedRuntime) -> bool {
    let since = |ended: i64| u128::try_from(runtime.now().0 - ended).unwrap_or(0);
    container
        .finished_at
        .is_none_or(|ended| since(ended.0) >= backoff.as_nanos())
}

fn ended(container: &PodContainer) -> String {
    match container.exit_code {
        Some(code) => format!("ended with {code} ({})", container.reason),
        None => "ended".to_owned(),
    }
}

/// What goes wrong on a node: one of our containers dies each 150 ms.
async fn disturb(runtime: SimulatedRuntime, ours: Vec<PodUid>) {
    for round in 0.. {
        sleep(Duration::from_millis(150)).await;
        let running: Vec<ContainerId> = runtime.world(|world| {
            let containers = ours.iter().flat_map(|uid| world.containers_of_pod(uid));
            let running = containers.filter(|it| it.state == ReportedState::Running);
            running.map(|it| it.id.clone()).collect()
        });
        if !running.is_empty() {
            let code = if round % 3 == 0 { 137 } else { 1 };
            let _ = runtime.exit_container(&running[round % running.len()], code);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args()
        .nth(1)
        .map(|text| text.parse())
        .transpose()?;

    let runtime = SimulatedRuntime::builder().build();
    let ours: Vec<(String, RunningPod)> = (0..3)
        .map(|n| format!("web-{n}"))
        .map(|name| (name.clone(), runtime.run_pod("shop", &name, &WANTED)))
        .collect();
    runtime.run_pod("kube-system", "stranger", &["agent"]);

    let simulated = runtime.clone();
    let (pleg, driver) = Pleg::builder()
        .connector(move || simulated.channel())
        .build()?;
    let events = pleg.watch(WatchFrom::Now)?;
    let driving = tokio::spawn(driver.run());

    let mut workers = JoinSet::new();
    let mut wakes = BTreeMap::new();
    for (name, pod) in &ours {
        let wake = Arc::new(Notify::new());
        wakes.insert(pod.uid.clone(), wake.clone());
        let worker = Worker {
            name: name.clone(),
            uid: pod.uid.clone(),
            pleg: pleg.clone(),
            runtime: runtime.clone(),
            wake,
            last_sync: Mark::default(),
            backoff: BTreeMap::new(),
        };
        let name = name.clone();
        workers.spawn(async move {
            if let Err(error) = worker.run().await {
                println!("{name}: its worker gave up: {error}");
            }
        });
    }
    let uids = ours.iter().map(|(_, pod)| pod.uid.clone()).collect();
    tokio::spawn(disturb(runtime, uids));

    let dispatching = dispatch(events, wakes);
    match seconds {
        Some(seconds) => {
            let _ = timeout(Duration::from_secs(seconds), dispatching).await;
        }
        None => dispatching.await,
    }
    // Whoever asks goes first: a worker that asks while the driver stops is refused.
    workers.shutdown().await;
    pleg.shutdown().await;
    driving.await??;
    Ok(())
}

/// Wakes the worker of each event's pod.
async fn dispatch(mut events: pleg::feed::Subscription, wakes: BTreeMap<PodUid, Arc<Notify>>) {
    let mut strangers = BTreeSet::new();
    while let Some(event) = events.next().await {
        // A removal leaves nothing to do: what is gone was dead before.
        if event.kind == LifecycleKind::ContainerRemoved {
            continue;
        }
        match wakes.get(&event.pod.uid) {
            Some(wake) => wake.notify_one(),
            None if strangers.insert(event.pod.uid.clone()) => {
                println!(
                    "{}/{}: nobody asked for it, ignored",
                    event.pod.namespace, event.pod.name
                );
            }
            None => {}
        }
    }
}
