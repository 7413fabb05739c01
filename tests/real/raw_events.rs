//! The runtime's own event stream, taken at its word: an observer without memory of phases, lists or
//! faults. It is what a story's truth is checked with before any other observer is.

use std::collections::BTreeMap;

use futures::{Stream, stream};
use pleg::lifecycle::{LifecycleKind, PodUid, SubjectId};

use crate::driver::{container_events, wall_clock};
use crate::testbed::Testbed;
use crate::truth::Told;
use crate::wire::{ContainerEventResponse, ContainerEventType};

/// Follows the stream to its end. On containerd 1.7 this takes the events away from other clients.
pub(crate) fn raw_events(bed: &Testbed) -> impl Stream<Item = Told> + Send + 'static {
    let socket = bed.socket();
    let events = async move {
        let messages = container_events(&socket).await.expect("the stream opens");
        stream::unfold(
            (messages, Subjects::default()),
            |(mut messages, mut known)| async move {
                loop {
                    let message = messages.message().await.ok()??;
                    if let Some(told) = known.told_by(&message) {
                        return Some((told, (messages, known)));
                    }
                }
            },
        )
    };
    futures::FutureExt::flatten_stream(events)
}

/// Which pod each subject belongs to: containerd 1.7 does not say so of a sandbox that is gone.
#[derive(Default)]
struct Subjects(BTreeMap<String, (PodUid, SubjectId)>);

impl Subjects {
    fn told_by(&mut self, event: &ContainerEventResponse) -> Option<Told> {
        let id = event.container_id.as_str();
        if let Some(sandbox) = &event.pod_sandbox_status {
            let subject = if sandbox.id == id {
                SubjectId::Sandbox(id.into())
            } else {
                SubjectId::Container(id.into())
            };
            let metadata = sandbox.metadata.clone().unwrap_or_default();
            self.0.insert(id.to_owned(), (metadata.uid.into(), subject));
        }
        let (pod, subject) = self.0.get(id)?.clone();
        let kind = match event.container_event_type() {
            ContainerEventType::ContainerCreatedEvent => return None,
            ContainerEventType::ContainerStartedEvent => LifecycleKind::ContainerStarted,
            ContainerEventType::ContainerStoppedEvent => LifecycleKind::ContainerDied,
            ContainerEventType::ContainerDeletedEvent => LifecycleKind::ContainerRemoved,
        };
        let mut statuses = event.containers_statuses.iter();
        let exit_code = match kind {
            LifecycleKind::ContainerDied => statuses.find(|own| own.id == id),
            _ => None,
        };
        Some(Told {
            pod,
            subject,
            kind,
            exit_code: exit_code.map(|own| own.exit_code),
            at: wall_clock(),
        })
    }
}
