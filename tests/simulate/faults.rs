//! Calls that go wrong on purpose.

use std::time::Duration;

use pleg::simulate::{AsOf, Character, ExitStatus, Fault, Rpc, StreamEnd};
use tokio::time::{Instant, timeout};
use tonic::Code;

use crate::client::{Client, PATIENCE, cri};
use crate::runtime;

use cri::ContainerState::{ContainerExited, ContainerRunning};

#[tokio::test(start_paused = true)]
async fn a_hanging_call_is_answered_when_its_fault_is_lifted_as_things_are_then() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);
    let hang = runtime.inject(Fault::hang(Rpc::ListContainers).times(1));
    let mut list = tokio::spawn({
        let client = client.clone();
        async move { client.containers(None).await }
    });
    assert!(timeout(PATIENCE, &mut list).await.is_err());
    // The fault is used up: only the first call hangs.
    client.containers(None).await.unwrap();
    runtime.exit_container(&web.containers[0], 0).unwrap();
    runtime.lift(hang);
    let seen = list.await.unwrap().unwrap();
    assert_eq!(seen[0].state(), ContainerExited);
}

#[tokio::test(start_paused = true)]
async fn lifting_the_faults_of_one_method_leaves_the_others() {
    let runtime = runtime(Character::containerd_2());
    let client = Client::to(&runtime);
    runtime.inject(Fault::fail(Rpc::ListContainers, Code::Internal));
    runtime.inject(Fault::fail(Rpc::Version, Code::Internal));
    runtime.lift_faults(Rpc::Version);
    client.version().await.unwrap();
    client.containers(None).await.unwrap_err();
    runtime.lift_faults(None);
    client.containers(None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_tells_what_was_when_it_was_read() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);
    let slow = Duration::from_secs(3);
    runtime.inject(Fault::slow(Rpc::ListContainers, slow));
    let asked = Instant::now();
    let list = tokio::spawn(async move { client.containers(None).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    runtime.exit_container(&web.containers[0], 0).unwrap();
    let seen = list.await.unwrap().unwrap();
    assert_eq!(Instant::now() - asked, slow);
    assert_eq!(seen[0].state(), ContainerRunning);
}

#[tokio::test(start_paused = true)]
async fn what_is_listed_may_not_be_found() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["a", "b"]);
    let client = Client::to(&runtime);
    let gone = web.containers[0].as_str();
    runtime.inject(Fault::not_found(Rpc::ContainerStatus, gone));
    assert_eq!(client.containers(None).await.unwrap().len(), 2);
    let status = client.container_status(gone).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    client.container_status(&web.containers[1]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_can_break_off_or_end_early_as_if_it_were_whole() {
    let runtime = runtime(Character::containerd_2().with_streaming_lists(2));
    runtime.run_pod("default", "web-0", &["a", "b", "c", "d", "e"]);
    let client = Client::to(&runtime);
    runtime.inject(Fault::cut(Rpc::StreamContainers, 3).times(1));
    let status = client.container_parts().await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);

    let mut quiet = Fault::cut(Rpc::StreamContainers, 3).times(1);
    quiet.outcome = pleg::simulate::Outcome::Cut {
        after: 3,
        end: StreamEnd::Clean,
    };
    runtime.inject(quiet);
    assert_eq!(client.container_parts().await.unwrap(), [2, 1]);
    assert_eq!(client.container_parts().await.unwrap(), [2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_list_can_be_answered_as_it_was_some_time_ago() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["a", "b"]);
    let client = Client::to(&runtime);
    let second = Duration::from_secs(1);
    tokio::time::sleep(10 * second).await;
    runtime.exit_container(&web.containers[0], 1).unwrap();
    tokio::time::sleep(10 * second).await;
    runtime.remove_sandbox(&web.sandbox).unwrap();
    runtime.run_pod("data", "db-0", &["db"]);
    tokio::time::sleep(second).await;

    runtime.inject(Fault::stale(None, AsOf::Ago(5 * second)).times(3));
    let containers = client.containers(None).await.unwrap();
    let exited = containers
        .iter()
        .filter(|container| container.state() == ContainerExited);
    assert_eq!((containers.len(), exited.count()), (2, 1));
    let sandboxes = client.sandboxes(None).await.unwrap();
    assert_eq!(sandboxes.len(), 1);
    assert_eq!(sandboxes[0].id, web.sandbox.as_str());
    assert_eq!(sandboxes[0].state(), cri::PodSandboxState::SandboxReady);
    let status = client.container_status(&web.containers[0]).await.unwrap();
    assert_eq!(status.exit_code, 1);

    runtime.inject(Fault::stale(Rpc::ListContainers, AsOf::Ago(15 * second)).times(1));
    let containers = client.containers(None).await.unwrap();
    assert!(containers.iter().all(|it| it.state() == ContainerRunning));
    assert_eq!(containers.len(), 2);
    // Long before anything ran.
    runtime.inject(Fault::stale(Rpc::ListContainers, AsOf::Ago(100 * second)).times(1));
    client.containers(None).await.unwrap();
    let now = client.containers(None).await.unwrap();
    assert_eq!(now.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_can_be_answered_as_it_was_at_a_remembered_moment() {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let client = Client::to(&runtime);
    runtime.remember("before");
    runtime
        .exit_container(&web.containers[0], ExitStatus::oom_killed())
        .unwrap();
    let before = || AsOf::Remembered("before".into());
    runtime.inject(Fault::stale(Rpc::ListContainers, before()).times(1));
    let stale = client.containers(None).await.unwrap();
    assert_eq!(stale[0].state(), ContainerRunning);
    let status = client.container_status(&web.containers[0]).await.unwrap();
    assert_eq!(status.reason, "OOMKilled");
    let nowhere = AsOf::Remembered("never".into());
    runtime.inject(Fault::stale(Rpc::ListContainers, nowhere));
    let present = client.containers(None).await.unwrap();
    assert_eq!(present[0].state(), ContainerExited);
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_keeps_what_runs_and_its_faults() {
    let runtime = runtime(Character::containerd_1_6());
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let before = runtime.world(|world| world.containers().cloned().collect::<Vec<_>>());
    runtime.inject(Fault::fail(Rpc::ListContainers, Code::Unavailable).times(1));
    runtime.become_character(Character::containerd_2());
    let after = runtime.world(|world| world.containers().cloned().collect::<Vec<_>>());
    assert_eq!(before, after);
    let client = Client::to(&runtime);
    client.containers(None).await.unwrap_err();
    assert_eq!(client.containers(None).await.unwrap().len(), 1);
    client.sandbox_status(&web.sandbox).await.unwrap();
}

#[test]
fn a_fault_reads_in_a_file_as_it_is_said() {
    let read = |text: &str| serde_json::from_str::<Fault>(text).unwrap();
    for (text, expected) in [
        (
            r#"{"method": "ListContainers", "times": 3,
                "outcome": {"fail": {"code": "Unavailable", "message": "down"}}}"#,
            Fault::fail(Rpc::ListContainers, Code::Unavailable)
                .message("down")
                .times(3),
        ),
        (
            r#"{"method": "ContainerStatus", "id": "6f1d", "outcome": "hang"}"#,
            Fault::hang(Rpc::ContainerStatus).for_id("6f1d"),
        ),
        (
            r#"{"delay": "1m 30s"}"#,
            Fault::delay(None, Duration::from_secs(90)),
        ),
        (
            r#"{"outcome": {"stale": {"ago": "5s"}}}"#,
            Fault::stale(None, AsOf::Ago(Duration::from_secs(5))),
        ),
        (
            r#"{"method": "StreamContainers", "outcome": {"cut": {"after": 4}}}"#,
            Fault::cut(Rpc::StreamContainers, 4),
        ),
    ] {
        assert_eq!(read(text), expected);
        let written = serde_json::to_string(&expected).unwrap();
        assert_eq!(read(&written), expected, "{written}");
    }
    for wrong in [
        r#"{"method": "RunPodSandbox"}"#,
        r#"{"delays": "1s"}"#,
        r#"{"delay": "-1s"}"#,
        r#"{"outcome": {"fail": {"code": "UNAVAILABLE"}}}"#,
    ] {
        assert!(serde_json::from_str::<Fault>(wrong).is_err(), "{wrong}");
    }
}
