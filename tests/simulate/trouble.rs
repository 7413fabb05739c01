use std::time::Duration;

use pleg::lifecycle::EventKind;
use pleg::simulate::{Character, ExitStatus, Fault, Rpc, StreamMessage};
use tokio::time::{Instant, timeout};
use tonic::Code;
use tonic::transport::Endpoint;

use crate::client::{Client, PATIENCE, cri};
use crate::runtime;

#[tokio::test(start_paused = true)]
async fn a_fault_fails_a_call_as_often_as_it_says() {
    let runtime = runtime(Character::containerd_2());
    let client = Client::to(&runtime);
    runtime.inject(Fault::fail(Rpc::ListContainers, Code::Unavailable).times(2));
    for _ in 0..2 {
        let status = client.containers(None).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        client.sandboxes(None).await.unwrap();
    }
    client.containers(None).await.unwrap();
    assert_eq!(runtime.rpc_counts().of(Rpc::ListContainers), 3);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_hangs_alone() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["a", "b"]);
    let client = Client::to(&runtime);
    runtime.inject(Fault::hang(Rpc::ContainerStatus).for_id(web.containers[0].as_str()));
    let hangs = client.container_status(&web.containers[0]);
    assert!(timeout(PATIENCE, hangs).await.is_err());
    client.container_status(&web.containers[1]).await.unwrap();
    runtime.clear_faults();
    client.container_status(&web.containers[0]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_reads_when_the_delay_is_over() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);
    let delay = Duration::from_secs(3);
    runtime.inject(Fault::delay(Rpc::ListContainers, delay));
    let asked = Instant::now();
    let list = tokio::spawn(async move { client.containers(None).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    runtime.exit_container(&web.containers[0], 0).unwrap();
    let seen = list.await.unwrap().unwrap();
    assert_eq!(Instant::now() - asked, delay);
    assert_eq!(seen[0].state(), cri::ContainerState::ContainerExited);
}

#[tokio::test(start_paused = true)]
async fn a_cut_ends_streams_and_the_same_channel_dials_again() {
    let runtime = runtime(Character::containerd_1_7());
    let client = Client::to(&runtime);
    let events = client.events(&runtime).await;
    runtime.sever();
    events.end().await.unwrap_err();
    assert_eq!(runtime.open_streams(), 0);
    client.version().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn while_the_runtime_is_down_nobody_is_let_in_and_nobody_is_told() {
    let runtime = runtime(Character::containerd_1_7());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);
    let mut events = client.events(&runtime).await;
    assert_eq!(events.drain().await.len(), 4);
    runtime.set_up(false);
    events.end().await.unwrap_err();
    assert!(client.version().await.is_err());
    runtime
        .exit_container(&web.containers[0], ExitStatus::lost())
        .unwrap();

    runtime.set_up(true);
    let status = client.container_status(&web.containers[0]).await.unwrap();
    assert_eq!((status.exit_code, status.reason.as_str()), (255, "Unknown"));
    let mut events = client.events(&runtime).await;
    assert!(events.drain().await.is_empty(), "the backlog died too");
}

#[tokio::test(start_paused = true)]
async fn a_frozen_runtime_is_silent_and_goes_on_where_it_was() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);
    let mut events = client.events(&runtime).await;
    events.drain().await;
    runtime.set_frozen(true);
    let mut version = tokio::spawn({
        let client = client.clone();
        async move { client.version().await }
    });
    runtime.exit_container(&web.containers[0], 0).unwrap();
    assert!(timeout(PATIENCE, &mut version).await.is_err());
    assert!(events.drain().await.is_empty());

    runtime.set_frozen(false);
    version.await.unwrap().unwrap();
    let event = events.next().await;
    assert_eq!(event.container_id, web.containers[0].as_str());
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_is_a_restart_that_speaks_otherwise() {
    let runtime = runtime(Character::containerd_1_6());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);
    client.open_events().await.unwrap_err();
    runtime.become_character(Character::containerd_2());
    let cut = client.version().await;
    assert!(cut.is_err(), "the old process took its connections along");
    assert_eq!(client.version().await.unwrap().runtime_version, "2.1.9");
    assert_eq!(client.containers(None).await.unwrap().len(), 1);
    let mut events = client.events(&runtime).await;
    runtime.remove_sandbox(&web.sandbox).unwrap();
    let heard = events.drain().await;
    assert!(heard.last().unwrap().pod_sandbox_status.is_some());
}

#[tokio::test(start_paused = true)]
async fn events_can_be_lost_and_made_up() {
    let runtime = runtime(Character::containerd_2());
    let mut events = Client::to(&runtime).events(&runtime).await;
    runtime.withhold_events(3);
    runtime.run_pod("default", "web-0", &["app"]);
    let heard = events.drain().await;
    assert_eq!(heard.len(), 1);
    assert_eq!(
        heard[0].container_event_type(),
        cri::ContainerEventType::ContainerStartedEvent
    );
    assert_eq!(runtime.event_counts().withheld, 3);

    runtime.emit(StreamMessage {
        pod: None,
        id: "".into(),
        kind: EventKind::Other(17),
        stamp: -1,
        sandbox: None,
        containers: Vec::new(),
    });
    let made_up = events.next().await;
    assert_eq!(made_up.container_event_type, 17);
    assert_eq!(made_up.created_at, -1);
    assert_eq!(made_up.pod_sandbox_status, None);
}

#[tokio::test]
async fn over_a_unix_socket_it_is_the_same_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cri.sock");
    let runtime = runtime(Character::containerd_2());
    let server = runtime.serve_unix(&path).unwrap();
    assert!(runtime.serve_unix(&path).is_err(), "the socket is in use");
    let endpoint = Endpoint::from_shared(format!("unix://{}", path.display())).unwrap();
    let client = Client::over(endpoint.connect().await.unwrap());
    assert_eq!(client.version().await.unwrap().runtime_name, "containerd");
    let mut events = client.events(&runtime).await;
    let web = runtime.run_pod("default", "web-0", &[]);
    assert_eq!(events.next().await.container_id, web.sandbox.as_str());

    runtime.set_up(false);
    events.end().await.unwrap_err();
    assert!(client.version().await.is_err());
    runtime.set_up(true);
    while client.version().await.is_err() {
        tokio::task::yield_now().await;
    }

    drop(server);
    assert!(!path.exists());
    assert!(client.version().await.is_err());
}
