//! `pleg verify` on each runtime, alone and with a second client. The reports are printed:
//!
//! ```text
//! cargo test --test real verify -- --nocapture
//! ```

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::disturbances::OtherEventClient;
use crate::driver::Driver;
use crate::scenarios;
use crate::story::Story;
use crate::testbed::{Testbed, Version};

/// As long as the stories take, and a little longer.
const AUDIT: &str = "40s";
const PATIENCE: Duration = Duration::from_secs(120);

/// What a run of the command came to.
struct Outcome {
    code: Option<i32>,
    report: String,
    said: String,
}

impl Outcome {
    fn print(&self, title: &str) {
        println!(
            "--- {title}: exit code {:?}\n{}{}",
            self.code, self.said, self.report
        );
    }

    /// What was found, by the words that begin each line.
    fn findings(&self) -> Vec<&str> {
        let findings = self.report.lines().filter(|line| line.starts_with("  "));
        findings
            .filter_map(|line| line.trim().split_once(": ").map(|(name, _)| name))
            .collect()
    }
}

/// Runs the command; once it has said that it audits, pods come and go.
async fn verified(bed: &Testbed, words: &[&str]) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pleg"))
        .args(["verify", "--for", AUDIT])
        .args(["--runtime-endpoint", &bed.endpoint()])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("pleg starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut said = String::new();
    let mut audits = false;
    while let Some(line) = stderr.next_line().await.expect("it can be read") {
        audits = line.starts_with("pleg: auditing");
        said.push_str(&line);
        said.push('\n');
        if audits {
            break;
        }
    }
    if audits && bed.version() != Version::Containerd16 {
        // Its stream is open and its first list taken.
        sleep(Duration::from_secs(4)).await;
        pods_come_and_go(&Driver::new(&bed.socket())).await;
    }
    let output = timeout(PATIENCE, child.wait_with_output())
        .await
        .expect("it ends by itself")
        .expect("it ends");
    Outcome {
        code: output.status.code(),
        report: String::from_utf8(output.stdout).expect("text"),
        said,
    }
}

/// Every kind of life, those without events among them.
async fn pods_come_and_go(driver: &Driver) {
    macro_rules! side_by_side {
        ($($scenario:ident),+ $(,)?) => {
            tokio::join!($(async {
                let mut story = Story::new(driver, &stringify!($scenario).replace('_', "-"));
                Box::pin(scenarios::$scenario(&mut story)).await;
            }),+)
        };
    }
    side_by_side![
        a_sandbox_runs_stops_and_is_removed,
        a_container_exits_with_zero,
        a_container_exits_with_seven,
        a_container_is_terminated,
        a_container_is_killed,
        a_start_fails,
        three_containers_share_a_pod,
        a_sandbox_is_re_created_under_the_same_pod,
    ];
}

#[tokio::test]
async fn containerd_21_passes() {
    let bed = Testbed::start(Version::Containerd21).await;
    let outcome = verified(&bed, &[]).await;
    outcome.print("containerd 2.1");
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.findings().is_empty());
    assert!(outcome.report.contains("PASSED"));
}

#[tokio::test]
async fn containerd_17_alone_passes_once_it_may_take_events() {
    let bed = Testbed::start(Version::Containerd17).await;
    let refused = verified(&bed, &[]).await;
    refused.print("containerd 1.7, unasked");
    assert_eq!(refused.code, Some(2));
    assert!(refused.said.contains("gives each event to one client only"));
    assert!(refused.said.contains("--take-events"));

    let outcome = verified(&bed, &["--take-events"]).await;
    outcome.print("containerd 1.7, alone");
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.findings().is_empty());
    let first = outcome
        .said
        .lines()
        .next()
        .expect("it says something first");
    assert!(first.contains("events are taken away from any other client"));
}

#[tokio::test]
async fn containerd_17_with_a_second_client_is_told_by_its_name() {
    let bed = Testbed::start(Version::Containerd17).await;
    let _thief = OtherEventClient::open(&bed);
    let outcome = verified(&bed, &["--take-events"]).await;
    outcome.print("containerd 1.7, with a second client");
    assert_eq!(outcome.code, Some(1));
    assert_eq!(outcome.findings(), ["second client"]);
    assert!(outcome.report.contains("a second client takes events"));
}

#[tokio::test]
async fn containerd_16_has_no_events_to_audit() {
    let bed = Testbed::start(Version::Containerd16).await;
    let outcome = verified(&bed, &[]).await;
    outcome.print("containerd 1.6");
    assert_eq!(outcome.code, Some(2));
    assert_eq!(outcome.findings(), ["no events"]);
    assert!(outcome.report.contains("has no events to audit"));
}
