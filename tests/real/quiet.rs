//! What a node pays for being followed while nothing happens, over a real socket and in real time: each
//! slow period one full relist, and the heartbeats.

use std::time::Duration;

use pleg::Pleg;
use pleg::engine::{Call, Mode};
use pleg::simulate::{Rpc, SimulatedRuntime};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::driver::Driver;
use crate::observer::Observer;
use crate::story::{Program, Story};
use crate::testbed::{Testbed, Version};
use crate::truth::Sight;

/// Long enough for three slow periods to be told from four, short enough to wait for.
const SLOW: Duration = Duration::from_secs(10);
const PERIODS: u32 = 3;

fn is_trusted(mode: Mode) -> bool {
    matches!(mode, Mode::Evented { audit_period } if audit_period == SLOW)
}

/// 110 pods, counted by the runtime itself.
#[tokio::test]
async fn a_trusted_simulated_runtime_is_asked_once_a_slow_period() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let socket = folder.path().join("simulated.sock");
    let runtime = SimulatedRuntime::builder().pods(110).build();
    let _server = runtime.serve_unix(&socket).expect("the socket is bound");
    let endpoint = socket.to_str().expect("a plain name").parse();
    let (pleg, driver) = Pleg::builder()
        .endpoint(endpoint.expect("an endpoint"))
        .evented_relist_period(SLOW)
        .build()
        .expect("the settings agree");
    let driver = tokio::spawn(driver.run());
    let trusted = async {
        while !is_trusted(pleg.mode()) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(60), trusted)
        .await
        .expect("silence earns this much");
    // The relist that earned it is over, and so is its grace; the next begins a period after it.
    middle_between_relists(|| runtime.rpc_counts().of(Rpc::ListPodSandbox)).await;

    let before = runtime.rpc_counts();
    sleep(SLOW * PERIODS).await;
    let calls = runtime.rpc_counts().since(&before);
    println!("in {PERIODS} slow periods, 110 pods: {calls}");
    assert_eq!(calls.of(Rpc::ListPodSandbox), u64::from(PERIODS));
    assert_eq!(calls.of(Rpc::ListContainers), u64::from(PERIODS));
    let heartbeats = calls.of(Rpc::Version);
    assert!((2..=4).contains(&heartbeats), "{calls}");
    let streaming_tries = calls.of(Rpc::StreamPodSandboxes) + calls.of(Rpc::StreamContainers);
    assert_eq!(streaming_tries, 0);
    assert_eq!(
        calls.total(),
        u64::from(2 * PERIODS) + heartbeats,
        "nothing else: {calls}"
    );
    pleg.shutdown().await;
    driver.await.expect("it ends").expect("its reader started");
}

#[tokio::test]
async fn containerd_17_is_asked_once_a_slow_period() {
    a_resting_node_is_asked_once_a_slow_period(Version::Containerd17).await;
}

#[tokio::test]
async fn containerd_21_is_asked_once_a_slow_period() {
    a_resting_node_is_asked_once_a_slow_period(Version::Containerd21).await;
}

/// Counted by the questions that the engine asked.
async fn a_resting_node_is_asked_once_a_slow_period(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let observer = Observer::attach_with(&bed, |builder| builder.evented_relist_period(SLOW)).await;
    let mut story = Story::new(&driver, "at-rest");
    let sandbox = story.run_sandbox().await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    story.run(&sandbox, "init", Program::Exits(7), 7).await;
    assert!(observer.until_told(story.truth(), Sight::EveryChange).await);
    assert!(
        observer
            .until_mode(Duration::from_secs(60), is_trusted)
            .await,
        "{}",
        observer.pleg.mode()
    );
    let relists = async || {
        let asked = observer.stats().await.engine.counters.asked;
        asked.get(&Call::FullRelist).copied().unwrap_or(0)
    };
    let begun = relists().await;
    while relists().await == begun {
        sleep(Duration::from_millis(50)).await;
    }
    sleep(SLOW / 2).await;

    let before = observer.stats().await.engine.counters.asked;
    sleep(SLOW * PERIODS).await;
    let mut asked = observer.stats().await.engine.counters.asked;
    for (call, count) in before {
        *asked.entry(call).or_default() -= count;
    }
    asked.retain(|_, count| *count > 0);
    println!(
        "containerd {}, in {PERIODS} slow periods: {asked:?}",
        version.label()
    );
    let heartbeats = asked.remove(&Call::Version).unwrap_or(0);
    assert!((2..=4).contains(&heartbeats), "{heartbeats} heartbeats");
    assert_eq!(asked, [(Call::FullRelist, u64::from(PERIODS))].into());
    assert!(is_trusted(observer.pleg.mode()));
}

/// Waits for the next relist and then half a period, so that the edges of what is counted lie far from
/// any relist.
async fn middle_between_relists(relists: impl Fn() -> u64) {
    let before = relists();
    while relists() == before {
        sleep(Duration::from_millis(20)).await;
    }
    sleep_until(Instant::now() + SLOW / 2).await;
}
