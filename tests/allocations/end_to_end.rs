//! What an event costs from the socket to the subscriber: connection, decoder, engine, cache, feed.

use std::time::Duration;

use futures::StreamExt;
use pleg::Pleg;
use pleg::feed::WatchFrom;
use pleg::simulate::SimulatedRuntime;
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
            // Nothing is folded, however many come at once.
            .channel_capacity(4 * TRANSITIONS)
            .build()
            .expect("the settings agree");
        tokio::spawn(driver.run());
        let mut events = pleg.watch(WatchFrom::Now).expect("the feed has begun");
        for _ in 0..PODS * (CONTAINERS + 1) {
            events.next().await.expect("the driver runs");
        }
        runtime.streams_opened(1).await;
        let relists = pleg.stats().await.expect("it runs").engine.counters.relists;
        let told = runtime.event_counts().told;
        let stumbling = runtime.clone();
        let burst = std::thread::spawn(move || stumbling.burst(TRANSITIONS));
        assert_eq!(burst.join().expect("no panic"), TRANSITIONS);
        let messages = runtime.event_counts().told - told;

        let before = so_far();
        let mut taken = 0;
        // A start is two messages, of which one is an event.
        while taken < messages - TRANSITIONS as u64 / 2 {
            events.next().await.expect("the driver runs");
            taken += 1;
        }
        let count = so_far() - before;
        let relists = pleg.stats().await.expect("it runs").engine.counters.relists - relists;
        println!(
            "{messages} messages: {} allocations each, {relists} relists among them",
            count / messages
        );
        assert!(count <= 60 * messages, "{} each", count / messages);
    });
    end.send(()).expect("it waits for this");
    thread.join().expect("no panic");
}
