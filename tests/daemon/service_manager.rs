//! What a service manager is told over its socket: ready, how it is, that it lives, that it stops.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use pleg::simulate::SimulatedRuntime;
use tokio::task::spawn_blocking;

use crate::process::{Daemon, Node, PATIENCE, text};

/// The words of one message after the other, until one is `last`.
async fn words_until(manager: &UnixDatagram, last: &'static str) -> Vec<String> {
    let manager = manager.try_clone().expect("a socket can be cloned");
    let heard = spawn_blocking(move || {
        manager.set_read_timeout(Some(PATIENCE)).expect("not zero");
        let mut words = Vec::new();
        let mut message = [0; 4_096];
        while words.last().is_none_or(|word: &String| word != last) {
            let length = manager.recv(&mut message).expect("another message");
            let text = String::from_utf8_lossy(&message[..length]).into_owned();
            words.extend(text.lines().map(ToOwned::to_owned));
        }
        words
    });
    heard.await.expect("no panic")
}

#[tokio::test]
async fn the_service_manager_hears_ready_then_status_and_life_signs_then_stopping() {
    let node = Node::new();
    let runtime = SimulatedRuntime::builder().pods(2).containers(1).build();
    let _server = runtime.serve_unix(node.runtime_socket()).unwrap();
    let manager = UnixDatagram::bind(node.file("notify")).unwrap();
    let mut daemon = Daemon::start_with(&node, |command| {
        command.env("NOTIFY_SOCKET", text_of(&node)).env(
            "WATCHDOG_USEC",
            Duration::from_secs(4).as_micros().to_string(),
        );
    });

    let began = words_until(&manager, "WATCHDOG=1").await;
    assert_eq!(
        began.first().map(String::as_str),
        Some("READY=1"),
        "{began:?}"
    );
    let again = words_until(&manager, "WATCHDOG=1").await;
    let all = [began, again].concat();
    assert!(
        all.iter()
            .any(|word| word.starts_with("STATUS=Events, audited")
                || word.starts_with("STATUS=Connecting")),
        "{all:?}"
    );
    assert_eq!(daemon.terminate().await, Some(0));
    words_until(&manager, "STOPPING=1").await;
}

fn text_of(node: &Node) -> String {
    let endpoint = text(&node.file("notify"));
    endpoint.trim_start_matches("unix://").to_owned()
}
