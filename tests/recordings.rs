//! Recordings as a user makes them, on the real clock: what the command printed live is what a replay
//! of its recording tells. Nothing here is slept through: each test waits for an end. And recordings of
//! real runtimes, which go on telling what they told.
#![cfg(all(feature = "cli", feature = "simulate"))]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use pleg::engine::Output;
use pleg::lifecycle::{EventSubject, LifecycleEvent};
use pleg::scenario::recording::{Deliveries, Fidelity, play_file};
use pleg::scenario::{Trace, scenario_files};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The command with an environment of its own, so that no machine's settings reach it.
fn pleg(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleg"));
    command
        .env_clear()
        .args(words.split_whitespace())
        .stdin(Stdio::null());
    command
}

fn written(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

#[test]
fn what_a_watch_kept_of_itself_replays_exactly_as_it_was_printed() {
    let folder = TempDir::new().unwrap();
    for name in ["last.jsonl", "last.jsonl.zst"] {
        let path = written(&folder, name);
        let output = pleg("watch --simulate --seed 3 -o json --for 4s --dump-last")
            .arg(&path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("wrote the last minutes"), "{said}");
        let printed = Deliveries::read(&*output.stdout).unwrap();
        let played = play_file(Path::new(&path), false).unwrap();
        assert_eq!(played.replayed.fidelity, Fidelity::Exact);
        assert!(printed.len() > 20, "{}", printed.len());
        let differences = printed.differences(&played.deliveries);
        // Events of the last instant may be delivered and not printed any more.
        let unprinted = |d: &pleg::scenario::recording::Difference| d.expected.is_none();
        assert!(differences.iter().all(unprinted), "{differences:?}");
    }
}

#[test]
fn a_signal_has_the_last_minutes_written_while_the_watch_goes_on() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "last.jsonl");
    let mut child = pleg("watch --simulate --seed 3 -o json --dump-last")
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    for _ in 0..10 {
        printed.next().unwrap().unwrap();
    }
    kill_process(pid, Signal::USR1).unwrap();
    let told = said.next().unwrap().unwrap();
    assert!(told.contains("wrote the last minutes to"), "{told}");
    let first = play_file(Path::new(&path), false).unwrap();
    assert_eq!(first.replayed.fidelity, Fidelity::Exact);
    assert!(first.deliveries.len() >= 9, "{}", first.deliveries.len());

    for _ in 0..10 {
        printed.next().unwrap().unwrap();
    }
    kill_process(pid, Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    let second = play_file(Path::new(&path), false).unwrap();
    assert!(second.replayed.entries > first.replayed.entries);
}

#[test]
fn a_terminal_that_is_closed_loses_nothing_that_was_recorded() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "run.jsonl.zst");
    // Whoever runs the tests may have told them to ignore hang-ups, which children inherit.
    let mut record = Command::new("env")
        .args(["-i", "--default-signal=HUP", env!("CARGO_BIN_EXE_pleg")])
        .args(["record", "--simulate", "--seed", "3", "--out", &path])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A node that begins later and has had three seconds.
    let watch = pleg("watch --simulate --seed 3 -o json --for 3s").output();
    assert!(watch.unwrap().status.success());
    assert!(Path::new(&path).exists());
    kill_process(Pid::from_child(&record), Signal::HUP).unwrap();
    assert!(record.wait().unwrap().success());
    let played = play_file(Path::new(&path), false).unwrap();
    assert_eq!(played.replayed.fidelity, Fidelity::Exact);
    assert!(!played.deliveries.is_empty());
}

#[test]
fn a_recording_ends_when_it_is_told_to_and_a_bad_place_is_told_before_anything_is_asked() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "run.jsonl.zst");
    let output = pleg("record --simulate --seed 2 --for 3s --no-events --out")
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("recorded "), "{said}");
    let played = play_file(Path::new(&path), true).unwrap();
    assert_eq!(played.replayed.fidelity, Fidelity::Exact);
    assert!(!played.deliveries.is_empty());
    let runtime = played.replayed.header.runtime.unwrap();
    assert_eq!(&*runtime.name, "containerd");
    // A trace tells the same as the events alone.
    let mut lines = Vec::new();
    played.trace.unwrap().write_json_lines(&mut lines).unwrap();
    let traced = Deliveries::read(&*lines).unwrap();
    assert_eq!(traced, played.deliveries);

    let output = pleg("record --simulate --for 1s --out /no/such/folder/run.jsonl")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("there is no folder /no/such/folder"),
        "{said}"
    );
}

#[test]
fn a_disk_that_is_full_ends_the_recording_with_that_reason() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let output = pleg("record --simulate --seed 2 --out /dev/full")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("cannot write /dev/full"), "{said}");
    assert!(said.contains("No space left"), "{said}");
}

/// Of each recorded containerd, what `pleg` told: pods by name, each in the order in which it was told.
/// A poller sees no life that is shorter than its period, and misses the code of a container that was
/// removed within one.
const TOLD_OF_CONTAINERD_16: &str = "\
a-container-exits-with-seven
  relist ContainerStarted sandbox/0
  relist ContainerStarted app/0
  relist ContainerDied app/0 exit 7
  relist ContainerRemoved app/0
  relist ContainerDied sandbox/0
  relist ContainerRemoved sandbox/0
a-container-is-killed
  relist ContainerStarted sandbox/0
  relist ContainerStarted app/0
  relist ContainerDied app/0 exit 137
  relist ContainerRemoved app/0
  relist ContainerDied sandbox/0
  relist ContainerRemoved sandbox/0
a-sandbox-is-re-created-under-the-same-pod
  relist ContainerStarted sandbox/0
  relist ContainerStarted app/0
  relist ContainerDied app/0 exit 137
  relist ContainerDied sandbox/0
  relist ContainerStarted sandbox/1
  relist ContainerStarted app/1
  relist ContainerRemoved app/0
  relist ContainerRemoved sandbox/0
  relist ContainerDied app/1
  relist ContainerRemoved app/1
  relist ContainerDied sandbox/1
  relist ContainerRemoved sandbox/1
a-sandbox-runs-stops-and-is-removed
  relist ContainerStarted sandbox/0
  relist ContainerDied sandbox/0
  relist ContainerRemoved sandbox/0
three-containers-share-a-pod
  relist ContainerStarted sandbox/0
  relist ContainerStarted init/0
  relist ContainerStarted server/0
  relist ContainerDied init/0 exit 0
  relist ContainerDied worker/0 exit 7
  relist ContainerDied worker/1 exit 3
  relist ContainerDied server/0 exit 137
  relist ContainerDied sandbox/0
  relist ContainerRemoved init/0
  relist ContainerRemoved worker/0
  relist ContainerRemoved server/0
  relist ContainerRemoved worker/1
  relist ContainerRemoved sandbox/0
";

/// Of the later ones, up to where containerd itself removes containers in no order.
const TOLD_OF_CONTAINERD_17_AND_21: &str = "\
a-container-exits-with-seven
  event ContainerStarted sandbox/0
  event ContainerStarted app/0
  event ContainerDied app/0 exit 7
  event ContainerRemoved app/0
  event ContainerDied sandbox/0
  event ContainerRemoved sandbox/0
a-container-is-killed
  event ContainerStarted sandbox/0
  event ContainerStarted app/0
  event ContainerDied app/0 exit 137
  event ContainerDied sandbox/0
  event ContainerRemoved app/0
  event ContainerRemoved sandbox/0
a-sandbox-is-re-created-under-the-same-pod
  event ContainerStarted sandbox/0
  event ContainerStarted app/0
  event ContainerDied app/0 exit 137
  event ContainerDied sandbox/0
  event ContainerStarted sandbox/1
  event ContainerStarted app/1
  event ContainerRemoved app/0
  event ContainerRemoved sandbox/0
  event ContainerDied app/1 exit 143
  event ContainerDied sandbox/1
  event ContainerRemoved app/1
  event ContainerRemoved sandbox/1
a-sandbox-runs-stops-and-is-removed
  event ContainerStarted sandbox/0
  event ContainerDied sandbox/0
  event ContainerRemoved sandbox/0
three-containers-share-a-pod
  event ContainerStarted sandbox/0
  event ContainerStarted server/0
  event ContainerStarted init/0
  event ContainerDied init/0 exit 0
  event ContainerStarted worker/0
  event ContainerDied worker/0 exit 7
  event ContainerStarted worker/1
  event ContainerDied worker/1 exit 3
  event ContainerDied server/0 exit 137
  event ContainerDied sandbox/0
";

const REMOVED_BY_CONTAINERD_17: &str = "  event ContainerRemoved server/0
  event ContainerRemoved init/0
  event ContainerRemoved worker/0
  event ContainerRemoved worker/1
  event ContainerRemoved sandbox/0
";

const REMOVED_BY_CONTAINERD_21: &str = "  event ContainerRemoved worker/1
  event ContainerRemoved server/0
  event ContainerRemoved init/0
  event ContainerRemoved worker/0
  event ContainerRemoved sandbox/0
";

/// The recordings that the real suite made and that are kept with the scenarios.
#[test]
fn what_was_recorded_of_real_runtimes_is_told_as_it_was_then() {
    let told_of_17 = [TOLD_OF_CONTAINERD_17_AND_21, REMOVED_BY_CONTAINERD_17].concat();
    let told_of_21 = [TOLD_OF_CONTAINERD_17_AND_21, REMOVED_BY_CONTAINERD_21].concat();
    let told = [TOLD_OF_CONTAINERD_16, &told_of_17, &told_of_21];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut recordings = scenario_files(&folder).unwrap();
    recordings.retain(|file| file.extension().is_some_and(|ending| ending != "yaml"));
    let expected = ["1.6", "1.7", "2.1"]
        .map(|version| folder.join(format!("recorded/containerd-{version}.jsonl")));
    assert_eq!(recordings, expected);
    for (recording, told) in recordings.iter().zip(told) {
        let size = fs::metadata(recording).unwrap().len();
        assert!(size < 150_000, "{size} bytes in {}", recording.display());
        let played = play_file(recording, true).unwrap();
        assert_eq!(played.replayed.fidelity, Fidelity::Exact);
        assert!(!played.replayed.is_cut_off);
        let now = by_pod(&played.trace.unwrap());
        assert!(
            now == told,
            "{}, told now:\n{now}then:\n{told}",
            recording.display()
        );
    }
}

/// What was delivered, in the form of the lists above.
fn by_pod(trace: &Trace) -> String {
    let mut pods: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for output in trace.entries.iter().flat_map(|entry| &entry.outputs) {
        if let Output::Deliver(event) = output {
            let told = pods.entry(&event.pod.name).or_default();
            told.push(line(event));
        }
    }
    let told = pods
        .iter()
        .map(|(pod, told)| format!("{pod}\n{}", told.concat()));
    told.collect()
}

fn line(event: &LifecycleEvent) -> String {
    let subject = match &event.subject {
        Some(EventSubject::Sandbox { attempt, .. }) => format!(" sandbox/{attempt}"),
        Some(EventSubject::Container { name, attempt, .. }) => format!(" {name}/{attempt}"),
        None => String::new(),
    };
    let exit = event.exit.as_ref();
    let exit = exit.map_or(String::new(), |exit| format!(" exit {}", exit.exit_code));
    format!("  {} {}{subject}{exit}\n", event.source, event.kind)
}

#[test]
fn a_replay_of_a_folder_plays_the_recordings_in_the_folders_in_it() {
    let folder = TempDir::new().unwrap();
    let inner = folder.path().join("node/of-today");
    fs::create_dir_all(&inner).unwrap();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/recorded");
    for name in ["containerd-1.6.jsonl", "containerd-2.1.jsonl"] {
        fs::copy(recorded.join(name), inner.join(name)).unwrap();
    }
    let output = pleg("replay").arg(folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert_eq!(printed.matches(": exact, ").count(), 2, "{printed}");
    assert!(printed.contains("2 replays passed"), "{printed}");
}
