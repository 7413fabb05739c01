//! Bytes as a recording, compressed or not: played to its end, or refused at a line.

use pleg::cri::Tapped;
use pleg::engine::Output;
use pleg::scenario::recording::{self, play};

/// Plays the bytes as a recording.
pub fn run(bytes: &[u8]) {
    let mut reader = match recording::read("fuzzed", bytes) {
        Ok(reader) => reader,
        Err(problem) => {
            assert!(!problem.to_string().is_empty());
            return;
        }
    };
    let mut delivered = 0;
    let played = play(&mut reader, None, &mut |tapped| {
        delivered += u64::from(matches!(tapped, Tapped::Output(Output::Deliver(_))));
    });
    match played {
        Ok(replayed) => assert_eq!(replayed.delivered, delivered),
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
}
