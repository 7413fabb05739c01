//! SIGKILL at random moments under churn: each watcher sees either every event or "list again", and
//! believes the truth afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use pleg::lifecycle::{LifecycleEvent, LifecycleKind, ReportedState, SubjectId};
use pleg::serve::grpc::{Begin, Watched};
use pleg::simulate::SimulatedRuntime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::process::{Node, until};

/// How often the daemon is killed, unless `PLEG_KILLS` says otherwise.
const KILLS: u32 = 50;

/// What was told between a snapshot and the next "list again": events of one life of the daemon.
#[derive(Debug, Default)]
struct Life {
    /// Of which, and where the snapshot stands.
    begun: Option<(String, u64)>,
    /// How far the snapshot told of each subject; of some it is ahead of the feed.
    snapshot: BTreeMap<SubjectId, LifecycleKind>,
    told: BTreeMap<u64, LifecycleEvent>,
}

impl Life {
    fn last(&self) -> u64 {
        self.told.last_key_value().map_or(0, |(last, _)| *last)
    }

    fn snapshot_told(&self, event: &LifecycleEvent) -> bool {
        let subject = event.subject.as_ref();
        let told = subject.and_then(|subject| self.snapshot.get(&subject.id()));
        told.is_some_and(|told| event.kind <= *told)
    }
}

/// Somebody who watches.
#[derive(Debug, Default)]
struct Watcher {
    believes: BTreeMap<SubjectId, ReportedState>,
    life: Life,
    lives: Vec<Life>,
    listed_again: u32,
    lost: u32,
}

impl Watcher {
    fn take(&mut self, watched: Watched, stands: &Begin) {
        match watched {
            Watched::Event(event) => self.take_event(&event),
            Watched::SnapshotEnd => {
                let Begin::After(position) = stands else {
                    panic!("a snapshot's end has no position: {stands:?}");
                };
                let (epoch, revision) = position.split_once('-').expect("EPOCH-REVISION");
                let revision = revision.parse().expect("a revision");
                assert!(self.life.begun.is_none(), "two snapshots without a word");
                self.life.begun = Some((epoch.to_owned(), revision));
            }
            Watched::ListAgain(_) => {
                self.listed_again += 1;
                self.believes.clear();
                self.lives.push(std::mem::take(&mut self.life));
            }
            Watched::Lost(_) => self.lost += 1,
            Watched::ModeChanged(_) => {}
            other => panic!("a word that nobody here knows: {other:?}"),
        }
    }

    fn take_event(&mut self, event: &LifecycleEvent) {
        if let Some((_, begun)) = &self.life.begun {
            let last = self
                .life
                .told
                .last_key_value()
                .map_or(*begun, |(last, _)| *last);
            assert!(
                event.revision.0 > last,
                "told twice, or out of order: {event:?}"
            );
            self.life.told.insert(event.revision.0, event.clone());
        }
        let Some(subject) = &event.subject else {
            return;
        };
        if self.life.begun.is_none() {
            self.life.snapshot.insert(subject.id(), event.kind);
        }
        match event.kind {
            LifecycleKind::ContainerStarted => {
                self.believes.insert(subject.id(), ReportedState::Running);
            }
            LifecycleKind::ContainerDied => {
                self.believes.insert(subject.id(), ReportedState::Exited);
            }
            LifecycleKind::ContainerRemoved => {
                self.believes.remove(&subject.id());
            }
            LifecycleKind::PodSync => {}
        }
    }
}

fn truth(runtime: &SimulatedRuntime) -> BTreeMap<SubjectId, ReportedState> {
    runtime.world(|world| {
        let sandboxes = world.sandboxes().map(|sandbox| {
            let state = if sandbox.ready {
                ReportedState::Running
            } else {
                ReportedState::Exited
            };
            (SubjectId::Sandbox(sandbox.id.clone()), state)
        });
        let containers = world
            .containers()
            .map(|container| (SubjectId::Container(container.id.clone()), container.state));
        sandboxes
            .chain(containers)
            .filter(|(_, state)| *state > ReportedState::Created)
            .collect()
    })
}

/// Two who watched the same life were told the same, wherever both were watching.
fn told_the_same(one: &Watcher, other: &Watcher) -> usize {
    let mut compared = 0;
    for mine in &one.lives {
        let Some((epoch, begun)) = &mine.begun else {
            continue;
        };
        for theirs in &other.lives {
            let Some((other_epoch, other_begun)) = &theirs.begun else {
                continue;
            };
            let from = *begun.max(other_begun);
            let to = mine.last().min(theirs.last());
            if epoch != other_epoch || from >= to {
                continue;
            }
            let part = |life: &Life| -> Vec<LifecycleEvent> {
                let part = life.told.range(from + 1..=to).map(|(_, event)| event);
                // What one of the two snapshots told is not told to that one again.
                part.filter(|event| !mine.snapshot_told(event) && !theirs.snapshot_told(event))
                    .cloned()
                    .collect()
            };
            assert_eq!(part(mine), part(theirs), "one of them has a silent gap");
            compared += part(mine).len();
        }
    }
    compared
}

fn watches(node: &Node, name: &str, mut done: watch::Receiver<bool>) -> JoinHandle<Watcher> {
    let mut watching = node.client().watch(Begin::Snapshot, name);
    tokio::spawn(async move {
        let mut watcher = Watcher::default();
        loop {
            tokio::select! {
                biased;
                watched = watching.next() => {
                    let watched = watched.expect("a daemon that comes back takes the request");
                    watcher.take(watched, watching.begin());
                }
                _ = done.wait_for(|done| *done) => break,
            }
        }
        watcher.lives.push(std::mem::take(&mut watcher.life));
        watcher
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_moments_it_leaves_no_watcher_with_a_silent_gap() {
    let kills = std::env::var("PLEG_KILLS").ok();
    let kills: u32 = kills.map_or(KILLS, |kills| kills.parse().expect("a number"));
    let node = Node::new();
    let runtime = SimulatedRuntime::builder().pods(12).churn(60.0).build();
    let _server = runtime.serve_unix(node.runtime_socket()).unwrap();
    let churn = runtime.spawn_churn();
    let (finish, finished) = watch::channel(false);
    let watchers: Vec<_> = ["one", "two", "three"]
        .map(|name| watches(&node, name, finished.clone()))
        .into();

    // The moments are spread evenly over the life of a daemon; the machine makes them random.
    for kill in 0..kills {
        let daemon = node.run().await;
        sleep(Duration::from_millis(u64::from(kill * 37 % 600))).await;
        daemon.kill();
    }
    let _last = node.run().await;
    sleep(Duration::from_secs(1)).await;
    drop(churn);
    until("the daemon knows the end", async || {
        let Ok(pods) = node.client().pods().await else {
            return false;
        };
        let known = pods.iter().flat_map(|pod| {
            let sandboxes = pod.sandboxes.iter();
            let containers = pod.containers.iter();
            let sandboxes = sandboxes.map(|s| (SubjectId::Sandbox(s.id.clone()), s.state));
            let containers = containers.map(|c| (SubjectId::Container(c.id.clone()), c.state));
            sandboxes.chain(containers)
        });
        let known: BTreeMap<_, _> = known
            .filter(|(_, state)| *state > ReportedState::Created)
            .collect();
        known == truth(&runtime)
    })
    .await;
    until("nothing waits for a watcher", async || {
        let Ok(status) = node.client().status().await else {
            return false;
        };
        status.subscribers.len() == 3
            && status
                .subscribers
                .iter()
                .all(|watcher| watcher.lag == Some(0))
    })
    .await;
    // What was handed to the connection has to cross it still, and deaths wait for exit codes.
    sleep(Duration::from_secs(2)).await;
    finish.send(true).expect("they watch");
    let mut all = Vec::new();
    for watcher in watchers {
        all.push(watcher.await.expect("no assertion failed"));
    }
    let truth = truth(&runtime);
    for watcher in &all {
        assert_eq!(watcher.believes, truth);
        assert!(watcher.listed_again > 0 || kills == 0);
    }
    let compared = told_the_same(&all[0], &all[1]) + told_the_same(&all[1], &all[2]);
    let told: usize = all[0].lives.iter().map(|life| life.told.len()).sum();
    println!(
        "{kills} kills: the first watcher listed again {} times, lost the connection {} times and \
         was told {told} events; {compared} events compared between watchers",
        all[0].listed_again, all[0].lost
    );
    assert!(compared > 0, "nothing was compared");
}
