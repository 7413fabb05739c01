//! What every subscriber may rely on, whatever happens and however it reads.

mod histories;
mod stories;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::cache::{CacheWriter, cache};
use crate::lifecycle::{
    Exit, PodContainer, PodIdentity, PodStatus, PodUid, ReportedState, Source, SubjectId,
    events_owed,
};

/// A node with one container a pod, whose engine tells the feed what it wrote to the cache, later.
struct Node {
    writer: CacheWriter,
    feed: Feed,
    handle: FeedHandle,
    revision: u64,
    /// Events that the engine holds back: the cache shows their phases already.
    held: Vec<Arc<LifecycleEvent>>,
    present: BTreeMap<u8, Present>,
    /// How many containers each pod has had, which names the next one.
    made: BTreeMap<u8, u32>,
}

#[derive(Clone, Debug)]
struct Present {
    name: String,
    born: Revision,
    state: ReportedState,
}

impl Node {
    fn new(capacity: usize) -> Self {
        let (writer, reader) = cache();
        let (feed, handle) = feed(capacity, reader);
        Self {
            writer,
            feed,
            handle,
            revision: 0,
            held: Vec::new(),
            present: BTreeMap::new(),
            made: BTreeMap::new(),
        }
    }

    fn watch(&self, from: WatchFrom) -> Subscription {
        self.handle.watch(from, UnixNanos(7)).expect("can begin")
    }

    fn next_revision(&mut self) -> Revision {
        self.revision += 1;
        Revision(self.revision)
    }

    fn create(&mut self, pod: u8) {
        if self.present.contains_key(&pod) {
            return;
        }
        let made = self.made.entry(pod).or_default();
        *made += 1;
        let name = format!("{pod}-{made}");
        let born = self.next_revision();
        let state = ReportedState::Created;
        self.present.insert(pod, Present { name, born, state });
        self.write(pod, born);
    }

    fn start(&mut self, pod: u8) {
        self.step(pod, ReportedState::Created, ReportedState::Running);
    }

    fn die(&mut self, pod: u8) {
        self.step(pod, ReportedState::Running, ReportedState::Exited);
    }

    fn fail_to_start(&mut self, pod: u8) {
        self.step(pod, ReportedState::Created, ReportedState::Exited);
    }

    fn step(&mut self, pod: u8, from: ReportedState, to: ReportedState) {
        let Some(present) = self.present.get_mut(&pod).filter(|p| p.state == from) else {
            return;
        };
        present.state = to;
        let present = present.clone();
        let revision = self.next_revision();
        self.write(pod, revision);
        let kind = match to {
            ReportedState::Running => LifecycleKind::ContainerStarted,
            _ => LifecycleKind::ContainerDied,
        };
        self.hold(pod, &present, kind);
    }

    /// The runtime no longer knows the container's state.
    fn forget_state(&mut self, pod: u8) {
        let Some(present) = self.present.get_mut(&pod) else {
            return;
        };
        let before = std::mem::replace(&mut present.state, ReportedState::Unknown);
        let revision = self.next_revision();
        self.write_with(pod, revision, before == ReportedState::Exited);
    }

    fn remove(&mut self, pod: u8) {
        let Some(present) = self.present.remove(&pod) else {
            return;
        };
        let revision = self.next_revision();
        self.writer.publish(uid(pod), revision, None);
        let owed = events_owed(present.state.phase(), crate::lifecycle::Phase::Removed);
        for kind in owed.iter() {
            self.hold(pod, &present, kind);
        }
    }

    fn sync(&mut self, pod: u8) {
        let revision = self.next_revision();
        self.held.push(Arc::new(event(
            pod,
            None,
            LifecycleKind::PodSync,
            revision,
            revision,
        )));
    }

    fn write(&mut self, pod: u8, revision: Revision) {
        let exited = self.present[&pod].state == ReportedState::Exited;
        self.write_with(pod, revision, exited);
    }

    fn write_with(&mut self, pod: u8, revision: Revision, exited: bool) {
        let present = &self.present[&pod];
        let status = PodStatus {
            pod: identity(pod),
            ips: Vec::new(),
            error: None,
            sandboxes: Vec::new(),
            containers: vec![PodContainer {
                id: present.name.as_str().into(),
                name: "main".into(),
                attempt: 0,
                sandbox_id: None,
                state: present.state,
                created_at: None,
                started_at: None,
                finished_at: None,
                exit_code: exited.then_some(7),
                reason: "Error".into(),
                message: "".into(),
                image: "".into(),
                image_ref: "".into(),
            }],
            revision,
        };
        self.writer
            .publish(uid(pod), revision, Some(Arc::new(status)));
    }

    fn hold(&mut self, pod: u8, present: &Present, kind: LifecycleKind) {
        let revision = self.next_revision();
        let event = event(pod, Some(&present.name), kind, revision, present.born);
        self.held.push(Arc::new(event));
    }

    fn deliver(&mut self, most: usize) {
        let most = most.min(self.held.len());
        let batch: Vec<_> = self.held.drain(..most).collect();
        self.feed.publish(&batch);
    }

    fn deliver_all(&mut self) {
        self.deliver(usize::MAX);
    }

    fn live_once(&mut self, pod: u8) {
        self.create(pod);
        self.start(pod);
        self.die(pod);
        self.remove(pod);
        self.deliver_all();
    }

    /// The last event that tells each present container's phase.
    fn last_owed(&self) -> BTreeMap<String, Option<LifecycleKind>> {
        self.present
            .values()
            .map(|present| {
                let kind = match present.state {
                    ReportedState::Running => Some(LifecycleKind::ContainerStarted),
                    ReportedState::Exited => Some(LifecycleKind::ContainerDied),
                    _ => None,
                };
                (present.name.clone(), kind)
            })
            .collect()
    }
}

fn uid(pod: u8) -> PodUid {
    format!("pod-{pod}").into()
}

fn identity(pod: u8) -> PodIdentity {
    PodIdentity {
        uid: uid(pod),
        namespace: "ns".into(),
        name: "pod".into(),
    }
}

fn event(
    pod: u8,
    container: Option<&str>,
    kind: LifecycleKind,
    revision: Revision,
    born: Revision,
) -> LifecycleEvent {
    LifecycleEvent {
        kind,
        revision,
        pod: identity(pod),
        subject: container.map(|id| EventSubject::Container {
            id: id.into(),
            name: "main".into(),
            attempt: 0,
        }),
        exit: (kind == LifecycleKind::ContainerDied).then(|| Exit {
            exit_code: 7,
            reason: "Error".into(),
            finished_at: None,
        }),
        source: Source::Event,
        initial: false,
        runtime_stamp: None,
        seen_at: UnixNanos(1),
        born,
    }
}

fn drain(subscription: &mut Subscription) -> Vec<Arc<LifecycleEvent>> {
    std::iter::from_fn(|| subscription.try_next()).collect()
}

fn told(events: &[Arc<LifecycleEvent>]) -> Vec<(String, LifecycleKind)> {
    events
        .iter()
        .map(|event| {
            let name = subject_of(event)
                .map_or_else(|| event.pod.uid.to_string(), |subject| subject.to_string());
            (name, event.kind)
        })
        .collect()
}
