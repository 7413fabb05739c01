//! What happens to the runtime itself, or is done to it by other clients. Each needs a daemon of its
//! own.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pleg::lifecycle::{ContainerId, PodIdentity, UnixNanos};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::driver::{Driver, Sandbox, Span, container_events, wall_clock};
use crate::story::{Program, Story};
use crate::testbed::{Process, Testbed};
use crate::wire::ContainerEventType;

/// How long a call may take before the runtime counts as blocked; creations take well
/// under a second, on a busy machine a few.
pub(crate) const BLOCKED: Duration = Duration::from_secs(10);

/// Sends the daemon SIGKILL, ends the container's process meanwhile, and starts the daemon again after
/// this long. Returns the moment at which it served again.
pub(crate) async fn a_container_exits_while_the_runtime_is_dead(
    bed: &Testbed,
    story: &mut Story,
    app: &ContainerId,
    dead_for: Duration,
) -> UnixNanos {
    let process = bed.process_of(app.as_str());
    bed.kill().await;
    let span = killed(process).await;
    sleep(dead_for).await;
    bed.restart().await;
    let served_again = wall_clock();
    let code = bed.version().exit_code_after_downtime(137);
    story.ended(app, span, code).await;
    served_again
}

/// Freezes the daemon for this long; the container's process ends meanwhile and nobody can say so.
pub(crate) async fn a_container_exits_while_the_runtime_is_frozen(
    bed: &Testbed,
    story: &mut Story,
    app: &ContainerId,
    frozen_for: Duration,
) {
    let process = bed.process_of(app.as_str());
    bed.freeze();
    let span = killed(process).await;
    sleep(frozen_for).await;
    bed.thaw();
    story.ended(app, span, 137).await;
}

async fn killed(process: Process) -> Span {
    let begun = wall_clock();
    process.kill().await;
    Span {
        begun,
        ended: wall_clock(),
    }
}

/// Another client of the runtime's event stream, which on containerd 1.7 takes events away from
/// everybody else. It ends when dropped.
pub(crate) struct OtherEventClient {
    received: Arc<Mutex<Vec<Received>>>,
    reader: JoinHandle<()>,
}

/// An event that the other client has received: the id that it is about, and its type.
pub(crate) type Received = (String, ContainerEventType);

impl OtherEventClient {
    pub(crate) fn open(bed: &Testbed) -> Self {
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (socket, list) = (bed.socket(), Arc::clone(&received));
        let reader = tokio::spawn(async move {
            let Ok(mut events) = container_events(&socket).await else {
                return;
            };
            while let Ok(Some(event)) = events.message().await {
                let kind = event.container_event_type();
                let mut list = list.lock().expect("nobody panics");
                list.push((event.container_id, kind));
            }
        });
        Self { received, reader }
    }

    /// The events that it has taken.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("nobody panics").clone()
    }
}

impl Drop for OtherEventClient {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// An event client that asks, takes one event, and then reads no more until it is dropped.
pub(crate) async fn a_client_that_stops_reading(socket: PathBuf) -> impl Sized + use<> {
    let mut events = container_events(&socket).await.expect("the stream opens");
    events
        .message()
        .await
        .expect("the stream lives")
        .expect("the stream has begun");
    events
}

/// A pod whose every event is large: so many containers that a few hundred events fill any buffer
/// between the runtime and a client that does not read.
pub(crate) async fn a_pod_with_large_events(driver: &Driver) -> (Story, Sandbox) {
    let mut story = Story::new(driver, "large-events");
    let sandbox = story.run_sandbox().await;
    for number in 0..30 {
        let name = format!("idle-{number}");
        story.create(&sandbox, &name, Program::Forever).await;
    }
    (story, sandbox)
}

/// Creates and removes containers until the runtime no longer answers such calls. Returns how many
/// were created before; `None` if it went on answering.
pub(crate) async fn create_until_blocked(story: &mut Story, sandbox: &Sandbox) -> Option<usize> {
    for created in 0..1_000 {
        let round = async {
            let id = story.create(sandbox, "churn", Program::True).await;
            story.remove(&id).await;
        };
        if timeout(BLOCKED, round).await.is_err() {
            return Some(created);
        }
    }
    None
}

/// One pod with one short-lived container, from beginning to end.
pub(crate) async fn a_short_pod(driver: &Driver) -> Story {
    let mut story = Story::new(driver, "short");
    let sandbox = story.run_sandbox().await;
    story.run(&sandbox, "app", Program::True, 0).await;
    story.stop_sandbox(&sandbox).await;
    story.remove_sandbox(&sandbox).await;
    story
}

/// Whether a pod can be made and taken away again, in a time in which the busiest runtime that is
/// not blocked manages that.
pub(crate) async fn pods_can_be_made(driver: &Driver) -> bool {
    timeout(BLOCKED, a_short_pod(driver)).await.is_ok()
}

/// Makes pods come and go, and one stay, while no event client listens: containerd 1.7 keeps their
/// events for whoever comes next, containerd 2 does for five minutes. Returns the pods that are gone
/// and the story of the one that stays.
pub(crate) async fn a_backlog_of_events(driver: &Driver) -> (Vec<PodIdentity>, Story, Sandbox) {
    let mut gone = Vec::new();
    for title in ["came-and-went", "came-and-went-too"] {
        let mut story = Story::new(driver, title);
        let sandbox = story.run_sandbox().await;
        story.run(&sandbox, "app", Program::Exits(7), 7).await;
        story.stop_sandbox(&sandbox).await;
        story.remove_sandbox(&sandbox).await;
        gone.push(story.pod().clone());
    }
    let mut story = Story::new(driver, "stays");
    let sandbox = story.run_sandbox().await;
    story.run(&sandbox, "init", Program::Exits(0), 0).await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    (gone, story, sandbox)
}
