//! The flight recorder keeps the last minutes, within its limits, so that they can be replayed.

use super::*;
use crate::engine::{Input, SessionId, Settings};
use crate::lifecycle::{
    ContainerStatus, EventKind, LifecycleKind, Now, ReportedState, RuntimeEvent,
};
use crate::simulate::Character;

fn dumped(flight: &Flight) -> Vec<u8> {
    let mut bytes = Vec::new();
    flight.write_to(&mut bytes).unwrap();
    bytes
}

async fn fly(limits: FlightLimits, seed: u64, lasting: u64) -> Run<Flight> {
    let runtime = SimulatedRuntime::builder()
        .character(Character::containerd_2())
        .busy_node()
        .seed(seed)
        .epoch(EPOCH)
        .build();
    run(
        Flight::new(limits, None),
        runtime,
        |builder| builder.seed(seed),
        Duration::from_secs(lasting),
        std::future::pending(),
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_was_short_is_replayed_exactly() {
    let run = fly(FlightLimits::default(), 1, 60).await;
    let (told, replayed) = replay(&dumped(&run.kept), None);
    assert_eq!(replayed.fidelity, Fidelity::Exact);
    assert_eq!(told, run.live);
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_began_before_the_runtime_was_known_names_it_all_the_same() {
    let run = fly(FlightLimits::default(), 1, 30).await;
    let (_, replayed) = replay(&dumped(&run.kept), None);
    let runtime = replayed.header.runtime.unwrap();
    assert_eq!(&*runtime.name, "containerd");
    assert!(runtime.version.starts_with("2."), "{runtime:?}");
}

#[tokio::test(start_paused = true)]
async fn an_excerpt_tells_what_happened_in_its_time() {
    for seed in 1..=2 {
        let limits = FlightLimits {
            span: Duration::from_secs(40),
            ..FlightLimits::default()
        };
        let run = fly(limits, seed, 150).await;
        let bytes = dumped(&run.kept);
        let (told, replayed) = replay(&bytes, None);
        assert!(replayed.header.excerpt);
        assert!(matches!(replayed.fidelity, Fidelity::Approximate(_)));

        // From a few seconds after its beginning on, the same as live, pod by pod.
        let first = told.first().unwrap().seen_at;
        let settled = UnixNanos(first.0 + 5_000_000_000);
        let ending = run.live.last().unwrap().seen_at;
        let covered = Duration::from_nanos((ending.0 - first.0).unsigned_abs());
        assert!(covered >= Duration::from_secs(38), "{covered:?}");
        assert!(covered <= Duration::from_secs(45), "{covered:?}");
        let deaths = |events: &[Arc<LifecycleEvent>]| {
            let of_then = events.iter().filter(|event| {
                event.seen_at > settled && !event.initial && event.kind != LifecycleKind::PodSync
            });
            deliveries(of_then)
        };
        let (live, told) = (deaths(&run.live), deaths(&told));
        assert!(live.len() > 60, "{}", live.len());
        let differences = live.differences(&told);
        let wrong: Vec<_> = differences.iter().filter(|d| d.got.is_some()).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        assert!(differences.len() <= 1, "seed {seed}: {differences:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flight_never_holds_more_than_its_limit() {
    let limits = FlightLimits {
        bytes: 100_000,
        ..FlightLimits::default()
    };
    let run = fly(limits, 5, 80).await;
    assert!(run.kept.bytes() <= 100_000, "{}", run.kept.bytes());
    assert!(run.kept.bytes() > 30_000, "{}", run.kept.bytes());
    let bytes = dumped(&run.kept);
    let (told, replayed) = replay(&bytes, None);
    assert!(replayed.header.excerpt);
    assert!(!told.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_limit_too_small_for_anything_keeps_nothing_and_says_so() {
    let limits = FlightLimits {
        bytes: 100,
        ..FlightLimits::default()
    };
    let run = fly(limits, 5, 30).await;
    assert!(run.kept.bytes() <= 100);
    let bytes = dumped(&run.kept);
    let mut reader = Reader::new("flight", &*bytes).unwrap();
    assert!(reader.header().excerpt);
    while reader.next_entry().unwrap().is_some() {}
}

#[test]
fn a_flight_counts_what_a_runtime_makes_long() {
    let limits = FlightLimits {
        bytes: 4 << 20,
        ..FlightLimits::default()
    };
    let mut flight = Flight::new(limits, None);
    let at = Now::default();
    flight.begin(at, Settings::default()).unwrap();
    let status = ContainerStatus {
        id: "c1".into(),
        pod: None,
        name: "app".into(),
        attempt: 0,
        state: ReportedState::Exited,
        created_at: None,
        started_at: None,
        finished_at: None,
        exit_code: 1,
        reason: "Error".into(),
        message: "x".repeat(1 << 20).into(),
        image: "app:1".into(),
        image_ref: "sha256:1".into(),
    };
    for _ in 0..20 {
        let event = RuntimeEvent {
            id: "c1".into(),
            kind: EventKind::Stopped,
            stamp: 1,
            sandbox: None,
            containers: vec![status.clone()],
            refused: Vec::new(),
        };
        let session = SessionId(1);
        let record = Record::Taken(Input::StreamMessage { session, event });
        flight.keep(Entry { at, record }).unwrap();
        assert!(flight.bytes() <= 4 << 20, "{}", flight.bytes());
    }
    let recorded = flight.write_to(&mut Vec::new()).unwrap();
    // What was known before them, and three of them.
    assert_eq!(recorded.entries, 1 + 3);
}
