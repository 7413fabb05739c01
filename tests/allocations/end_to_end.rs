//! What an event costs from the socket to the subscriber: connection, decoder, engine, cache, feed.

use std::time::Duration;

use futures::StreamExt;
use pleg::Pleg;
use pleg::feed::WatchFrom;
use pleg::lifecycle::{LifecycleKind, ReportedState, SubjectId};
use pleg::simulate::{Container, SimulatedRuntime};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::counting::so_far;

const PODS: usize = 100;
const CONTAINERS: usize = 3;
const TRANSITIONS: usize = 1000;

/// The runtime has a thread and a socket of its own; all that follows it is on this thread, whose
/// allocations are counted.
#[test]
fn an_event_allocates_sixty_times_at_most_from_the_socket_to_the_subscriber() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let socket = folder.path().join("cri.sock");
    let (serving, served) = std::sync::mpsc::channel();
    let (end, ended) = oneshot::channel::<()>();
    let listens_at = socket.clone();
    let thread = std::thread::spawn(move || {
        let tokio = Builder::new_current_thread().enable_all().build();
        tokio.expect("an event loop can be made").block_on(async {
            let runtime = SimulatedRuntime::builder()
                .pods(PODS)
                .containers(CONTAINERS)
                .history(Duration::ZERO)
                .build();
            let server = runtime.serve_unix(&listens_at).expect("the socket is free");
            serving.send(runtime).expect("somebody waits");
            let _ = ended.await;
            drop(server);
        });
    });
    let runtime = served.recv().expect("it serves");

    let tokio = Builder::new_current_thread().enable_all().build();
    tokio.expect("an event loop can be made").block_on(async {
        let endpoint = format!("unix://{}", socket.display());
        let (pleg, driver) = Pleg::builder()
            .endpoint(endpoint.parse().expect("it is an endpoint"))
            .stream_thread(false)
            .build()
            .expect("the settings agree");
        tokio::spawn(driver.run());
        let mut events = pleg.watch(WatchFrom::Now).expect("the feed has begun");
        for _ in 0..PODS * (CONTAINERS + 1) {
            events.next().await.expect("the driver runs");
        }
        runtime.streams_opened(1).await;
        let heard = pleg.stats().await.expect("it runs").reader.messages;
        let before = so_far();
        // Elsewhere, so that what the runtime allocates is not counted.
        let last = std::thread::spawn(move || {
            assert_eq!(runtime.burst(TRANSITIONS), TRANSITIONS);
            let runs = |it: &&Container| it.state == ReportedState::Running;
            let one = runtime.world(|world| world.containers().find(runs).map(|it| it.id.clone()));
            let last = one.expect("most run");
            runtime.exit_container(&last, 1).expect("it runs");
            last
        });
        let last = SubjectId::Container(last.join().expect("no panic"));
        loop {
            let event = events.next().await.expect("the driver runs");
            let ended = event.kind == LifecycleKind::ContainerDied;
            if ended && event.subject.as_ref().is_some_and(|it| it.id() == last) {
                break;
            }
        }
        let count = so_far() - before;
        let heard = pleg.stats().await.expect("it runs").reader.messages - heard;
        println!("{heard} messages: {} allocations each", count / heard);
        assert!(heard > TRANSITIONS as u64, "{heard} messages");
        assert!(count <= 60 * heard, "{} each", count / heard);
    });
    end.send(()).expect("it waits for this");
    thread.join().expect("no panic");
}
