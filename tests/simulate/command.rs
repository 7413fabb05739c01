//! `pleg simulate`: the runtime as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tonic::transport::Endpoint;

use crate::client::{Client, cri};

fn simulate(socket: &Path, words: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pleg"))
        .env_clear()
        .arg("simulate")
        .arg(format!("--listen=unix://{}", socket.display()))
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A client of it, once the socket is there.
async fn client(socket: &Path) -> Client {
    let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap();
    loop {
        if let Ok(channel) = endpoint.connect().await {
            return Client::over(channel);
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn it_serves_until_it_is_interrupted_and_gives_an_account() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("cri.sock");
    let words = "--character containerd-1.7 --pods 5 --containers 4 --churn 0 --burst 30 -o json";
    let child = simulate(&socket, words);
    let client = client(&socket).await;
    assert_eq!(client.version().await.unwrap().runtime_version, "1.7.24");
    assert_eq!(client.containers(None).await.unwrap().len(), 20);

    send(&child, Signal::USR1);
    let mut events = client.open_events().await.unwrap();
    for at in 0..45 {
        let event = events.message().await.unwrap().unwrap();
        if at == 0 {
            let stopped = cri::ContainerEventType::ContainerStoppedEvent;
            assert_eq!(event.container_event_type(), stopped);
        }
    }
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("5 pods, 20 containers"), "{said}");
    assert!(said.contains("burst of 30"), "{said}");
    let account: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(account["rpcs"]["ListContainers"], 1);
    assert!(account["events"]["told"].as_u64() >= Some(45), "{account}");
    assert!(account["cpuSeconds"].as_f64() > Some(0.0), "{account}");
    assert!(
        account["peakResidentKib"].as_u64() > Some(1000),
        "{account}"
    );
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_held_one_lets_nothing_happen_until_it_is_released_and_says_so_far_what_it_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("cri.sock");
    let words = "--pods 5 --containers 4 --churn 500/s --restarts-only --held --burst 6 -o json";
    let mut child = simulate(&socket, words);
    let client = client(&socket).await;
    assert_eq!(client.containers(None).await.unwrap().len(), 20);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut account = || -> serde_json::Value {
        send(&child, Signal::USR2);
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let held = account();
    assert_eq!(held["rpcs"]["ListContainers"], 1);
    assert_eq!(held["events"]["told"], 0);

    send(&child, Signal::USR1);
    let mut events = client.open_events().await.unwrap();
    for _ in 0..40 {
        events.message().await.unwrap().unwrap();
    }
    let released = account();
    assert!(released["events"]["told"].as_u64() >= Some(40));
    assert_eq!(released["rpcs"]["ListContainers"], 1);
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("burst of 6"), "{said}");
}

#[test]
fn a_socket_that_cannot_be_is_a_failure_with_advice() {
    let socket = Path::new("/nonexistent/folder/cri.sock");
    let output = simulate(socket, "").wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("its folder does not exist"), "{said}");
}

#[tokio::test]
async fn a_scenario_happens_to_whoever_looks() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, story) = (
        folder.path().join("cri.sock"),
        folder.path().join("story.yaml"),
    );
    let steps = "version: 1\nname: a death\nstory: A container is killed.\n\
        initial: [run: {pod: web, containers: [app]}]\n\
        steps:\n  - at: 300ms\n    do: [exit: {container: web/app, code: 137}]\n";
    std::fs::write(&story, steps).unwrap();
    let child = simulate(
        &socket,
        &format!("--scenario {} --for 20s", story.display()),
    );
    let client = client(&socket).await;
    assert_eq!(client.containers(None).await.unwrap().len(), 1);
    let mut events = client.open_events().await.unwrap();
    let event = events.message().await.unwrap().unwrap();
    let stopped = cri::ContainerEventType::ContainerStoppedEvent;
    assert_eq!(event.container_event_type(), stopped);
    let status = event.containers_statuses.first().unwrap();
    assert_eq!(status.exit_code, 137);

    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("a death on unix://"), "{said}");
}
