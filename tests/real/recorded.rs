//! What `pleg` recorded of a real runtime, played again: the same events as it told live.
//!
//! With `PLEG_WRITE_RECORDINGS=1` the recordings become those under `scenarios/recorded/`, which every
//! run of `tests/recordings.rs` plays.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleg::cri::{CallLimits, CriClient, Tapped};
use pleg::engine::Output;
use pleg::lifecycle::LifecycleEvent;
use pleg::scenario::recording::{
    Deliveries, Fidelity, FileRecorder, QueueLimits, Recorder, open, play, play_file,
};

use crate::driver::Driver;
use crate::observer::Observer;
use crate::scenarios;
use crate::story::Story;
use crate::testbed::{Testbed, Version};

on_each_runtime![a_recording_tells_what_was_told_live];

/// A committed recording is read by people too.
const LARGEST: usize = 150_000;

/// On a daemon of its own, so that the recording has these pods and no others.
async fn a_recording_tells_what_was_told_live(version: Version) {
    let bed = Testbed::start(version).await;
    let driver = Driver::new(&bed.socket());
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("run.jsonl");

    let live = record(&bed, &driver, &path).await;

    let played = play_file(&path, false).expect("the recording is whole");
    assert_eq!(played.replayed.fidelity, Fidelity::Exact);
    assert!(!played.replayed.is_cut_off);
    let mut deliveries = Deliveries::default();
    for event in &live {
        deliveries.push(event);
    }
    assert_eq!(deliveries.differences(&played.deliveries), []);
    // An exact replay leaves nothing out: sources, stamps, positions, the order between pods.
    assert_eq!(told_by(&path), live);

    let text = fs::read_to_string(&path).expect("the recording is text");
    is_fit_to_be_published(&text, &bed);
    if std::env::var_os("PLEG_WRITE_RECORDINGS").is_some_and(|wanted| wanted == "1") {
        publish(&text, &committed(version));
    }
    assert!(bed.stop());
}

/// Tells five stories side by side, holds what is told of each against the truth, and gives all that
/// was told while it was recorded.
async fn record(bed: &Testbed, driver: &Driver, path: &Path) -> Vec<Arc<LifecycleEvent>> {
    let endpoint = bed.endpoint().parse().expect("the socket is an endpoint");
    let runtime = CriClient::for_endpoint(&endpoint, CallLimits::default())
        .version()
        .await
        .expect("it answers");
    let file = FileRecorder::create(path, Some(runtime)).expect("the file is made");
    let (tap, recorder) = Recorder::start(file, QueueLimits::default()).expect("a thread");
    let observer =
        Observer::attach_with(bed, |builder| builder.tap(move |tapped| tap.see(tapped))).await;

    let sight = bed.version().sight();
    macro_rules! told_side_by_side {
        ($($scenario:ident),+ $(,)?) => {
            tokio::join!($(async {
                let mut story = Story::new(driver, &stringify!($scenario).replace('_', "-"));
                Box::pin(scenarios::$scenario(&mut story)).await;
                let wrong = observer.mistakes(story.truth(), sight, driver).await;
                assert!(wrong.is_empty(), "{wrong:#?}");
            }),+)
        };
    }
    told_side_by_side![
        a_sandbox_runs_stops_and_is_removed,
        a_container_exits_with_seven,
        a_container_is_killed,
        three_containers_share_a_pod,
        a_sandbox_is_re_created_under_the_same_pod,
    ];
    let heard = observer.heard();
    observer.pleg.shutdown().await;
    let kept = recorder.finish().expect("all was written");
    println!(
        "containerd {}: {} entries, {} bytes, {} events",
        bed.version().label(),
        kept.entries,
        kept.bytes,
        heard.len()
    );
    assert_eq!(observer.heard().len(), heard.len(), "all was told before");
    heard.into_iter().map(|heard| heard.event).collect()
}

/// All that a replay delivers, whole and in order.
fn told_by(path: &Path) -> Vec<Arc<LifecycleEvent>> {
    let mut reader = open(path).expect("the recording is there");
    let mut told = Vec::new();
    play(&mut reader, None, &mut |tapped| {
        if let Tapped::Output(Output::Deliver(event)) = tapped {
            told.push(event.clone());
        }
    })
    .expect("the recording is whole");
    told
}

/// Small, and without a path of this machine.
fn is_fit_to_be_published(text: &str, bed: &Testbed) {
    assert!(text.len() < LARGEST, "{} bytes", text.len());
    let socket = bed.socket();
    let directory = socket.parent().expect("it lies in a directory");
    let directory = directory.to_str().expect("a plain name");
    for private in [directory, env!("CARGO_MANIFEST_DIR")] {
        assert!(!text.contains(private), "it tells {private}");
    }
}

fn committed(version: Version) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!(
        "scenarios/recorded/containerd-{}.jsonl",
        version.label()
    ))
}

fn publish(text: &str, to: &Path) {
    // Only here: a host may be called by a word that is in every recording.
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host has a name");
    assert!(!text.contains(host.trim()), "it tells the host's name");
    fs::create_dir_all(to.parent().expect("a folder")).expect("the folder is made");
    fs::write(to, text).expect("the recording is written");
}
