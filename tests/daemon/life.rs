//! Its start before the runtime, what its commands print, and its end.

use std::io::{BufRead, BufReader};
use std::process::Output;
use std::time::Duration;

use pleg::serve::grpc::{Begin, Watched};
use pleg::simulate::SimulatedRuntime;
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::process::{Daemon, Node, PATIENCE, text, until};

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[tokio::test]
async fn it_starts_before_the_runtime_exists_and_waits_for_it() {
    let node = Node::new();
    let _daemon = node.run().await;
    let before = node.output("status").await;
    assert_eq!(before.status.code(), Some(1), "{before:?}");
    let words = String::from_utf8_lossy(&before.stdout).into_owned();
    assert!(words.contains("not relisted yet"), "{words}");
    let pods = node.output("pods").await;
    assert_eq!(pods.status.code(), Some(1), "an empty list would be a lie");

    let runtime = SimulatedRuntime::builder().pods(3).containers(1).build();
    let _server = runtime.serve_unix(node.runtime_socket()).unwrap();
    until("it is healthy", async || {
        node.output("status").await.status.code() == Some(0)
    })
    .await;
    let status = json(&node.output("status -o json").await);
    assert_eq!(status["health"]["verdict"], "healthy");
    assert_eq!(status["pods"], 3);
    let pods = json(&node.output("pods -o json").await);
    assert_eq!(pods["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn without_a_daemon_nobody_can_tell_and_the_answer_says_where_it_looked() {
    let node = Node::new();
    let status = node.output("status").await;
    assert_eq!(status.status.code(), Some(2));
    let said = String::from_utf8_lossy(&status.stderr).into_owned();
    assert!(said.contains(&text(&node.socket())), "{said}");
    assert!(said.contains("pleg run"), "{said}");
    let watch = node.output("watch --for 1s").await;
    assert_eq!(watch.status.code(), Some(1), "{watch:?}");
}

#[tokio::test]
async fn looking_through_the_daemon_opens_no_second_event_stream() {
    let node = Node::new();
    let runtime = SimulatedRuntime::builder().busy_node().build();
    let _server = runtime.serve_unix(node.runtime_socket()).unwrap();
    let _churn = runtime.spawn_churn();
    let _daemon = node.run().await;
    until("the stream stands", async || runtime.open_streams() == 1).await;
    let watch = node.output("watch --for 2s -o json").await;
    assert_eq!(watch.status.code(), Some(0), "{watch:?}");
    let lines = String::from_utf8_lossy(&watch.stdout).into_owned();
    assert!(lines.contains("\"initial\":true"), "{lines}");
    assert_eq!(runtime.open_streams(), 1);

    let file = node.file("last.jsonl.zst");
    let record = node
        .output(&format!("record --last 10m --out {}", text(&file)))
        .await;
    assert_eq!(record.status.code(), Some(0), "{record:?}");
    let replay = node.output(&format!("replay {}", text(&file))).await;
    assert_eq!(replay.status.code(), Some(0), "{replay:?}");
    let told = String::from_utf8_lossy(&replay.stdout).into_owned();
    assert!(told.contains("exact"), "{told}");
}

#[tokio::test]
async fn a_second_daemon_leaves_the_first_ones_socket_alone() {
    let node = Node::new();
    let _first = node.run().await;
    let words = format!(
        "run --simulate --http-listen off --grpc-listen {}",
        text(&node.socket())
    );
    let second = node.output(&words).await;
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another process serves"), "{said}");
    assert!(node.client().status().await.is_ok());
}

#[tokio::test]
async fn sigterm_ends_it_in_time_with_a_watcher_that_stalls_and_one_that_does_not() {
    let node = Node::new();
    let runtime = SimulatedRuntime::builder().pods(20).build();
    let _server = runtime.serve_unix(node.runtime_socket()).unwrap();
    let mut daemon = node.run().await;
    let mut stalled = node.client().watch(Begin::Snapshot, "stalls");
    assert!(stalled.next().await.is_ok());
    let mut watching = node.client().watch(Begin::Snapshot, "reads");
    let reader = tokio::spawn(async move {
        loop {
            match watching.next().await {
                Ok(Watched::Lost(why) | Watched::ListAgain(why)) => return why,
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    for _ in 0..20 {
        runtime.burst(100);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let code = timeout(Duration::from_secs(8), daemon.terminate()).await;
    assert_eq!(code.expect("within its deadline"), Some(0));
    let why = timeout(PATIENCE, reader).await.unwrap().unwrap();
    assert!(why.contains("shutting down"), "{why}");
    assert!(!node.socket().exists());
}

#[tokio::test]
async fn a_watch_goes_on_over_a_restart_and_says_that_it_lists_again() {
    let node = Node::new();
    let runtime = SimulatedRuntime::builder().pods(2).build();
    let _server = runtime.serve_unix(node.runtime_socket()).unwrap();
    let daemon = node.run().await;
    let mut command = node.pleg("watch -o json --for 20s");
    command.stdout(std::process::Stdio::piped());
    let mut watch = command.spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = move || lines.next().map(|line| event_type(&line.unwrap()));
    // Both pods, each with its container; then it has what it can be told again.
    let (before, mut next) = spawn_blocking(move || {
        let mut before = Vec::new();
        while started(&before) < 4 {
            before.push(next().expect("it watches on"));
        }
        (before, next)
    })
    .await
    .unwrap();
    daemon.kill();
    let again: Daemon = node.run().await;
    until("it watches again", async || {
        let status = node.client().status().await;
        status.is_ok_and(|status| status.subscribers.len() == 1)
    })
    .await;
    let rest = spawn_blocking(move || {
        let rest: Vec<String> = std::iter::from_fn(&mut next).collect();
        (rest, watch.wait().unwrap())
    });
    let (rest, ended) = timeout(PATIENCE, rest).await.unwrap().unwrap();
    drop(again);
    assert_eq!(ended.code(), Some(0));
    assert!(!before.contains(&"ListAgain".to_owned()), "{before:?}");
    let gap = rest.iter().position(|kind| kind == "ListAgain");
    let gap = gap.unwrap_or_else(|| panic!("no word of a gap: {rest:?}"));
    assert_eq!(started(&rest[..gap]), 0, "{rest:?}");
    assert_eq!(started(&rest[gap..]), 4, "{rest:?}");
}

fn event_type(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap();
    line["type"].as_str().unwrap().to_owned()
}

fn started(types: &[String]) -> usize {
    types.iter().filter(|it| *it == "ContainerStarted").count()
}
