use std::time::Duration;

use pleg::simulate::{Character, Rpc, StreamEnd};
use tonic::Code;

use crate::client::{Client, PATIENCE, cri};
use crate::runtime;

use cri::ContainerEventType as Kind;

fn kinds(events: &[cri::ContainerEventResponse]) -> Vec<Kind> {
    events
        .iter()
        .map(cri::ContainerEventResponse::container_event_type)
        .collect()
}

fn ids(events: &[cri::ContainerEventResponse]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event.container_id.as_str())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn on_an_idle_node_the_open_call_stays_pending_until_the_first_event() {
    let runtime = runtime(Character::containerd_2());
    let client = Client::to(&runtime);
    let mut open = tokio::spawn({
        let client = client.clone();
        async move { client.open_events().await }
    });
    let waited = tokio::time::timeout(PATIENCE, &mut open).await;
    assert!(waited.is_err(), "headers came without an event");
    assert_eq!(runtime.open_streams(), 1);
    client.version().await.unwrap();

    let web = runtime.run_pod("default", "web-0", &[]);
    let mut stream = open.await.unwrap().unwrap();
    let first = stream.message().await.unwrap().unwrap();
    assert_eq!(first.container_id, web.sandbox.as_str());
    assert_eq!(first.container_event_type(), Kind::ContainerCreatedEvent);
}

#[tokio::test(start_paused = true)]
async fn containerd_1_6_does_not_know_the_method() {
    let runtime = runtime(Character::containerd_1_6());
    let status = Client::to(&runtime).open_events().await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(runtime.open_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn cri_o_with_events_off_ends_the_stream_at_once_without_an_error() {
    let runtime = runtime(Character::cri_o_events_off());
    let mut stream = Client::to(&runtime).open_events().await.unwrap();
    assert_eq!(stream.message().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_life_of_a_pod_is_heard_in_order_with_its_snapshots() {
    let runtime = runtime(Character::containerd_1_7());
    let mut events = Client::to(&runtime).events(&runtime).await;
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let app = &web.containers[0];
    runtime.exit_container(app, 7).unwrap();
    runtime.remove_container(app).unwrap();
    runtime.stop_sandbox(&web.sandbox).unwrap();
    runtime.remove_sandbox(&web.sandbox).unwrap();

    let heard = events.drain().await;
    let (sandbox, app) = (web.sandbox.as_str(), app.as_str());
    assert_eq!(
        ids(&heard),
        [sandbox, sandbox, app, app, app, app, sandbox, sandbox]
    );
    assert_eq!(
        kinds(&heard),
        [
            Kind::ContainerCreatedEvent,
            Kind::ContainerStartedEvent,
            Kind::ContainerCreatedEvent,
            Kind::ContainerStartedEvent,
            Kind::ContainerStoppedEvent,
            Kind::ContainerDeletedEvent,
            Kind::ContainerStoppedEvent,
            Kind::ContainerDeletedEvent,
        ]
    );
    let stopped = &heard[4];
    assert_eq!(stopped.containers_statuses[0].exit_code, 7);
    assert!(stopped.created_at > stopped.containers_statuses[0].finished_at);
    let uid = &stopped
        .pod_sandbox_status
        .clone()
        .unwrap()
        .metadata
        .unwrap()
        .uid;
    assert_eq!(uid, web.uid.as_str());
    assert!(heard[5].containers_statuses.is_empty());
    assert_eq!(heard[7].pod_sandbox_status, None);
}

#[tokio::test(start_paused = true)]
async fn two_clients_of_containerd_1_7_share_the_events() {
    let runtime = runtime(Character::containerd_1_7());
    let mut first = Client::to(&runtime).events(&runtime).await;
    let mut second = Client::to(&runtime).events(&runtime).await;
    runtime.run_pod("default", "web-0", &["a", "b"]);
    let (first, second) = (first.drain().await, second.drain().await);
    assert_eq!((first.len(), second.len()), (3, 3));
    assert_eq!(kinds(&first)[0], Kind::ContainerCreatedEvent);
    assert_eq!(kinds(&second)[0], Kind::ContainerStartedEvent);
}

#[tokio::test(start_paused = true)]
async fn two_clients_of_containerd_2_hear_everything() {
    let runtime = runtime(Character::containerd_2());
    let mut first = Client::to(&runtime).events(&runtime).await;
    let mut second = Client::to(&runtime).events(&runtime).await;
    runtime.run_pod("default", "web-0", &["a", "b"]);
    let (first, second) = (first.drain().await, second.drain().await);
    assert_eq!(first.len(), 6);
    assert_eq!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_told_late_with_the_statuses_of_its_time() {
    for (character, heard_after) in [
        (Character::containerd_1_7(), 4),
        (Character::containerd_2(), 0),
        (Character::cri_o(), 3),
    ] {
        let runtime = runtime(character);
        let web = runtime.run_pod("default", "web-0", &["app"]);
        let app = &web.containers[0];
        runtime.world(|world| assert_eq!(world.containers().count(), 1));
        tokio::time::advance(Duration::from_secs(400)).await;
        // Nobody hears of the end, and it is what a read would show.
        runtime.operate(|world, at| {
            let told = world.exit_container(at, app, 0);
            (told.is_ok(), Vec::new())
        });
        let mut events = Client::to(&runtime).events(&runtime).await;
        let heard = events.drain().await;
        assert_eq!(heard.len(), heard_after);
        if let Some(last) = heard.last() {
            let seen = &last.containers_statuses[0];
            assert_eq!(seen.state(), cri::ContainerState::ContainerRunning);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_stream_of_containerd_1_7_takes_one_event_with_it() {
    let runtime = runtime(Character::containerd_1_7());
    let gone = Client::to(&runtime).events(&runtime).await;
    let mut live = Client::to(&runtime).events(&runtime).await;
    gone.cancel().await;
    assert_eq!(runtime.open_streams(), 1);
    runtime.run_pod("default", "web-0", &["app"]);
    let heard = live.drain().await;
    assert_eq!(heard.len(), 3, "of four");
    assert_eq!(runtime.event_counts().swallowed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_blocks_containerd_2_until_it_is_gone() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let stuck = Client::to(&runtime).open_events().await.unwrap();
    let client = Client::to(&runtime);
    let mut told = 0;
    while runtime.blocked_producers() == 0 {
        let extra = runtime.run_container(&web.sandbox, "extra").unwrap();
        runtime.remove_container(&extra).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        told += 1;
        assert!(told < 20_000, "never blocked");
    }
    let waits = tokio::time::timeout(PATIENCE, runtime.unblocked()).await;
    assert!(waits.is_err());
    client.version().await.expect("reads go on");
    client.containers(None).await.expect("reads go on");

    drop(stuck);
    tokio::time::timeout(PATIENCE, runtime.unblocked())
        .await
        .expect("operations go on once the client is gone");
    assert_eq!(runtime.open_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_runtime_can_end_its_streams_either_way() {
    let runtime = runtime(Character::containerd_2());
    let mut first = Client::to(&runtime).events(&runtime).await;
    runtime.run_pod("default", "web-0", &[]);
    first.drain().await;
    runtime.end_streams(&StreamEnd::Clean);
    first.end().await.unwrap();

    let second = Client::to(&runtime).events(&runtime).await;
    runtime.end_streams(&StreamEnd::failed(Code::Unknown, "going down"));
    assert_eq!(second.end().await.unwrap_err().code(), Code::Unknown);
    assert_eq!(runtime.rpc_counts().of(Rpc::GetContainerEvents), 2);
}
