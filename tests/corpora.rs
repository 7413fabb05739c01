//! The fuzzers' corpora, replayed: what once reached a corner of the decoder, the engine or a parser goes
//! there again in every run. What once crashed is a test of its own.

use std::fs;
use std::path::Path;

#[allow(unreachable_pub, reason = "it is part of a library too")]
#[path = "../fuzz/src/recording.rs"]
mod recording;
#[allow(unreachable_pub, reason = "it is part of a library too")]
#[path = "../fuzz/src/scenario.rs"]
mod scenario;
#[allow(unreachable_pub, reason = "it is part of a library too")]
#[path = "../fuzz/src/wire.rs"]
mod wire;

/// Gives every file of a target's corpus to the target.
fn replay(target: &str, run: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut replayed = 0;
    for entry in fs::read_dir(&corpus).expect("there is a corpus") {
        let path = entry.expect("it can be listed").path();
        let bytes = fs::read(&path).expect("it can be read");
        // Shown if the next line panics.
        println!("{}", path.display());
        run(&bytes);
        replayed += 1;
    }
    assert!(
        replayed >= 10,
        "only {replayed} inputs in {}",
        corpus.display()
    );
}

#[test]
fn what_reached_corners_of_the_decoder_and_the_engine_still_keeps_the_laws() {
    replay("wire", wire::run);
}

#[test]
fn what_reached_corners_of_the_scenario_parser_is_still_read_or_refused() {
    replay("scenario", scenario::run);
}

#[test]
fn what_reached_corners_of_the_recording_parser_is_still_played_or_refused() {
    replay("recording", recording::run);
}
