//! A client that stops reading freezes pod creation on containerd 2.x. `pleg` never may: not while what
//! embeds it hangs, and not for longer than it lives.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use crate::disturbances::{
    BLOCKED, a_pod_with_large_events, a_short_pod, create_until_blocked, pods_can_be_made,
};
use crate::driver::Driver;
use crate::observer::Observer;
use crate::story::Program;
use crate::testbed::{Testbed, Version};
use crate::truth::Sight;

/// `pleg watch` in a process of its own is frozen until it has frozen the runtime; its end sets it free.
#[tokio::test]
async fn containerd_21_goes_on_once_a_frozen_pleg_is_killed() {
    let bed = Testbed::start(Version::Containerd21).await;
    let driver = Driver::new(&bed.socket());
    let mut child = Command::new(env!("CARGO_BIN_EXE_pleg"))
        .args(["watch", "-o", "json", "--runtime-endpoint", &bed.endpoint()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("pleg starts");
    let pid = child
        .id()
        .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
        .expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();

    let (mut story, sandbox) = a_pod_with_large_events(&driver).await;
    let told = async {
        while let Some(line) = lines.next_line().await.expect("it can be read") {
            if line.contains(sandbox.id.as_str()) {
                return;
            }
        }
        panic!("pleg ended");
    };
    timeout(Duration::from_secs(10), told)
        .await
        .expect("pleg tells of the pod");

    kill_process(pid, Signal::STOP).expect("our own child takes signals");
    let created = create_until_blocked(&mut story, &sandbox).await;
    assert!(created.is_some(), "the runtime went on");
    assert!(!pods_can_be_made(&driver).await);
    kill_process(pid, Signal::KILL).expect("our own child takes signals");
    child.wait().await.expect("it has ended");
    let killed = Instant::now();
    assert!(pods_can_be_made(&driver).await);
    println!(
        "blocked after {created:?} creations; a pod was made {} ms after the kill",
        Instant::now().duration_since(killed).as_millis()
    );
}

/// The embedder's only executor thread hangs while 500 large events come: the runtime notices nothing, and
/// everything is told afterwards.
#[tokio::test]
async fn a_hanging_embedder_never_blocks_containerd_21() {
    const EVENTS: usize = 500;
    const HANGS_FOR: Duration = Duration::from_secs(10);
    let bed = Testbed::start(Version::Containerd21).await;
    let driver = Driver::new(&bed.socket());
    let observer = Observer::attach(&bed).await;
    let (mut story, sandbox) = a_pod_with_large_events(&driver).await;
    assert!(observer.until_told(story.truth(), Sight::EveryChange).await);
    let before = observer.stats().await.reader;

    let events_came = Arc::new(AtomicBool::new(false));
    let hung = {
        let (begun, events_came) = (Instant::now(), Arc::clone(&events_came));
        observer.block_until(move || {
            events_came.load(Ordering::Relaxed) && Instant::now().duration_since(begun) >= HANGS_FOR
        });
        begun
    };
    sleep(Duration::from_millis(100)).await;
    let mut slowest = Duration::ZERO;
    // Each creation and each removal is an event.
    for _ in 0..EVENTS / 2 {
        let begun = Instant::now();
        let round = async {
            let id = story.create(&sandbox, "churn", Program::True).await;
            story.remove(&id).await;
        };
        timeout(BLOCKED, round)
            .await
            .expect("the runtime is not blocked");
        slowest = slowest.max(Instant::now().duration_since(begun));
    }
    let pod = timeout(BLOCKED, a_short_pod(&driver))
        .await
        .expect("pods can be made");
    assert!(
        observer.heard_of(pod.pod()).is_empty(),
        "the observer hangs"
    );
    events_came.store(true, Ordering::Relaxed);

    let after = observer.stats().await;
    println!(
        "hung for {:?}; slowest creation and removal {slowest:?}; {:?}",
        Instant::now().duration_since(hung),
        after.reader
    );
    assert!(Instant::now().duration_since(hung) >= HANGS_FOR);
    assert_eq!(after.reader.dropped, 0);
    assert!(after.reader.messages - before.messages >= EVENTS as u64);
    let wrong = observer
        .mistakes(pod.truth(), Sight::EveryChange, &driver)
        .await;
    assert!(wrong.is_empty(), "{wrong:#?}");
    let wrong = observer
        .mistakes(story.truth(), Sight::EveryChange, &driver)
        .await;
    assert!(
        wrong.is_empty(),
        "{} wrong, first: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
    let counters = observer.stats().await.engine.counters;
    assert!(counters.missed.is_empty(), "{:?}", counters.missed);
}
