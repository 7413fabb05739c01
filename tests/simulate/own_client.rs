//! This crate's own client and reader on the simulated runtime.

use pleg::cri::{
    CallLimits, CriClient, Inbox, ReaderLimits, ReaderPlace, StreamItem, StreamReader,
};
use pleg::engine::SessionId;
use pleg::lifecycle::{EventKind, RuntimeEvent};
use pleg::simulate::{Character, SimulatedRuntime};

use crate::runtime;

async fn next_event(inbox: &mut Inbox) -> RuntimeEvent {
    let mut batch = Vec::new();
    while inbox.recv_batch(&mut batch).await > 0 {
        for item in batch.drain(..) {
            if let StreamItem::Message { event, .. } = item {
                return event;
            }
        }
    }
    panic!("the reader ended without an event");
}

async fn follow(runtime: SimulatedRuntime, place: ReaderPlace) {
    let (reader, mut inbox) =
        StreamReader::start(runtime.stream_source(), place, ReaderLimits::default()).unwrap();
    reader.open(SessionId(1));
    runtime.streams_opened(1).await;
    let web = runtime.run_pod("default", "web-0", &[]);
    let event = next_event(&mut inbox).await;
    assert_eq!(&*event.id, web.sandbox.as_str());
    assert_eq!(event.kind, EventKind::Created);
    assert_eq!(
        event.stamp,
        event.sandbox.unwrap().created_at.unwrap().0 + 1_000_000
    );
    assert_eq!(event.refused, []);
    reader.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_the_same_runtime_hears_events_in_virtual_time() {
    follow(
        runtime(Character::containerd_2()),
        ReaderPlace::CurrentRuntime,
    )
    .await;
}

#[tokio::test]
async fn a_reader_on_its_own_thread_hears_events_over_memory_too() {
    follow(runtime(Character::containerd_2()), ReaderPlace::OwnThread).await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_node_is_listed_and_inspected_without_a_refusal() {
    for character in [Character::containerd_2(), Character::cri_o()] {
        let runtime = crate::builder(character).busy_node().build();
        let client = CriClient::new(runtime.channel(), CallLimits::default());
        let node = client.list_node().await.unwrap();
        assert_eq!(node.sandboxes.items.len(), 8);
        assert_eq!(node.sandboxes.refused, []);
        assert_eq!(node.containers.refused, []);
        assert!(node.sandboxes.items.iter().all(|sandbox| sandbox.labelled));

        let sandboxes: Vec<_> = node
            .sandboxes
            .items
            .iter()
            .map(|item| item.id.clone())
            .collect();
        let containers: Vec<_> = node
            .containers
            .items
            .iter()
            .map(|item| item.id.clone())
            .collect();
        let inspected = client.inspect(&sandboxes, &containers).await;
        for (_, sandbox) in inspected.sandboxes {
            let sandbox = sandbox.unwrap();
            assert_eq!(sandbox.ips.is_empty(), sandbox.host_network);
        }
        for (_, container) in inspected.containers {
            let container = container.unwrap();
            assert!(container.started_at > container.created_at);
            assert!(container.pod.is_some());
        }
    }
}
