//! Bytes as a scenario file: read, or refused with a place.

use pleg::scenario::Scenario;

/// Reads the bytes as a scenario.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Scenario::parse(text) {
        Ok(scenario) => {
            let moments = scenario.moments().expect("checked when it was read");
            assert!(moments.is_sorted(), "a step lies before the one before it");
        }
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
}
