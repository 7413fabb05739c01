//! Recordings as a user makes them, on the real clock: what the command printed live is what a replay
//! of its recording tells. Nothing here is slept through: each test waits for an end.
#![cfg(all(feature = "cli", feature = "simulate"))]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use pleg::scenario::recording::{Deliveries, Fidelity, play_file};
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
