//! The stream's life: breaks, ends, runtimes without events, and the way back.

use super::*;

/// B1, the schedule that would have burnt five retries in no time.
#[test]
fn a_short_restart_of_the_runtime_costs_a_second_and_not_the_mode() {
    let mut node = Node::with_c1();
    node.at(10.0);
    node.world.is_down = true;
    node.break_stream();
    assert_eq!(node.mode(), "Polling(StreamBroken)");
    node.at(10.2);
    node.world.exit("c1", 0);
    node.at(10.4);
    node.world.is_down = false;
    node.at(11.4);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    node.at(20.0);
    assert_eq!(node.mode(), "Evented");
    assert_eq!(node.opened, [10.0, 11.0]);
    assert!(node.take_relists() <= 11);
    assert!(node.health().is_healthy());
}

/// B2, G-HEALTH-2, X-EV-EOF5
#[test]
fn after_ten_minutes_of_outage_everything_returns_by_itself() {
    let mut node = Node::with_c1();
    node.world.is_down = true;
    node.break_stream();
    node.at(179.0);
    assert!(node.health().is_healthy());
    node.at(300.0);
    assert!(!node.health().is_healthy());
    node.at(600.0);
    assert!(node.opened.len() <= 16, "{:?}", node.opened);
    node.world.is_down = false;
    node.at(601.0);
    assert!(node.health().is_healthy());
    node.at(603.0);
    assert_eq!(node.mode(), "Evented");
    assert_eq!(
        node.modes,
        [
            "Evented -> Polling(StreamBroken)",
            "Polling(StreamBroken) -> Evented"
        ]
    );
    assert_eq!(node.take_told(), NOTHING);
}

/// B2: the outage without retries that are hurried by a unary success.
#[test]
fn retries_follow_the_schedule_for_ever() {
    let mut node = Node::with_c1();
    node.world.is_down = true;
    node.break_stream();
    node.at(300.0);
    let seconds = node.opened.iter().map(|at| at.round());
    assert_eq!(
        seconds.collect::<Vec<_>>(),
        [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 123.0, 183.0, 243.0]
    );
}

/// B4, P37-5: three clean ends at once are no stream.
#[test]
fn a_stream_that_ends_at_once_is_never_taken_for_one() {
    let mut node = Node::new();
    node.world.serves = Serves::NothingAtOnce;
    node.world.sandbox("P", "S1", "A");
    node.world.run("S1", "c1");
    node.start();
    node.at(30.0);
    node.take_told();
    node.world.exit("c1", 1);
    node.at(31.0);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!(node.mode(), "Polling(Unsupported)");
    node.at(600.0);
    assert_eq!(node.opened.len(), 3);
    assert!(!node.modes.iter().any(|change| change.contains("Evented")));
    assert!(node.health().is_healthy());
    assert!(node.notes < 20, "{}", node.notes);
}

/// B5 [HARD], X-EV-GAP: a full relist that begins once the stream stands closes the hole.
#[test]
fn what_happened_between_a_break_and_the_new_stream_is_told_once() {
    let mut node = Node::with(Settings {
        reconnect_delays: vec![Duration::from_millis(600)],
        jitter_percent: 0,
        ..Settings::default()
    });
    node.world.sandbox("P", "S1", "A");
    for id in ["c1", "c3", "c4"] {
        node.world.run("S1", id);
    }
    node.start();
    node.at(10.0);
    node.take_told();
    node.break_stream();
    node.at(10.05);
    node.world.exit("c1", 1);
    node.at(10.2);
    node.world.run("S1", "c2");
    node.at(10.4);
    node.world.exit("c2", 9);
    node.at(10.55);
    node.world.exit("c3", 3);
    node.at(10.7);
    assert_eq!(node.opened, [0.0, 10.6]);
    node.world.exit("c4", 4);
    node.tell(Stopped, "c4");
    let told = node.take_told();
    assert!(told.contains(&"Died(c4)".to_owned()), "{told:?}");
    node.at(12.0);
    let mut all = told;
    all.append(&mut node.take_told());
    all.sort();
    assert_eq!(all, ["Died(c1)", "Died(c2)", "Died(c3)", "Died(c4)"]);
    assert_eq!(node.exit_code("c2"), Some(9));
    assert_eq!(node.mode(), "Evented");
    node.at(60.0);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.misses(), 0);
}

/// B5: the relist that slows polling down must have begun after the stream was asked for.
#[test]
fn a_relist_from_before_the_stream_was_asked_for_proves_nothing_for_it() {
    let mut node = Node::with_c1();
    node.hold(Call::FullRelist);
    node.relist();
    node.break_stream();
    assert_eq!(node.opened.len(), 1);
    node.wait(5.0);
    assert_eq!(node.mode(), "Polling(StreamBroken)");
    let (request, answer) = node.held.remove(0);
    node.handle(Input::Answered { request, answer });
    assert_eq!(node.mode(), "Polling(StreamBroken)");
    node.release();
    node.wait(1.0);
    assert_eq!(node.mode(), "Evented");
}

/// B8
#[test]
fn polling_tells_what_starts_until_the_stream_is_back() {
    let mut node = Node::with_c1();
    node.break_stream();
    node.world.run("S1", "c2");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(c2)"]);
    assert!(node.session.is_some());
    node.wait(2.0);
    assert_eq!(node.mode(), "Evented");
    node.world.run("S1", "c3");
    node.tell(Started, "c3");
    assert_eq!(node.take_told(), ["Started(c3)"]);
}

/// B9, P37-5
#[test]
fn a_runtime_without_the_method_is_polled_and_asked_again_when_it_changes() {
    let mut node = Node::new();
    node.world.serves = Serves::Unimplemented;
    node.start();
    node.at(3600.0);
    assert_eq!(node.mode(), "Polling(Unsupported)");
    assert_eq!(node.opened.len(), 6);
    assert_eq!(node.take_relists(), 3601);
    assert!(node.health().is_healthy());
    assert!(node.notes <= 6);
    node.world.serves = Serves::Events;
    node.world.version = "2.1.1";
    node.at(3613.0);
    assert_eq!(node.mode(), "Evented");
    assert_eq!(node.opened.len(), 7);
}

/// B15: at most one stream (checked in every story), and no hot loop of accepted ones.
#[test]
fn a_stream_that_is_accepted_and_breaks_again_and_again_is_asked_for_by_the_schedule() {
    let mut node = Node::with_c1();
    for _ in 0..600 {
        if node.session.is_some() {
            node.break_stream();
        }
        node.wait(0.1);
    }
    assert!(node.opened.len() <= 7, "{:?}", node.opened);
}

/// P-BACKOFF and P37-5: only a minute of a stream's life and an agreeing relist begin it anew.
#[test]
fn the_schedule_begins_anew_after_a_minute_of_a_streams_life() {
    let mut node = Node::with_c1();
    for _ in 0..5 {
        node.break_stream();
        node.wait(20.0);
    }
    node.wait(120.0);
    node.forget_the_past();
    node.break_stream();
    assert_eq!(node.opened, [0.0]);
}

/// Law 5: a frozen runtime is found by the heartbeat; its stream is kept until it errors.
#[test]
fn a_frozen_runtime_is_polled_and_its_stream_kept() {
    let mut node = Node::with_c1();
    node.hold(Call::Version);
    node.hold(Call::FullRelist);
    node.wait(11.0);
    assert_eq!(node.mode(), "Evented");
    let (request, _) = node.held.remove(0);
    let error = failure(FailureKind::DeadlineExceeded, "no answer within 5 s");
    node.handle(Input::Answered {
        request,
        answer: Answer::Version(Err(error)),
    });
    assert_eq!(node.mode(), "Polling(Unresponsive)");
    assert!(node.session.is_some());
    node.wait(3.0);
    assert_eq!(node.take_asked(), ["Relist"]);
    // Whatever it answers first, it is back; what was lost meanwhile is not held against the stream.
    node.world.exit("c1", 1);
    node.release();
    node.wait(15.0);
    assert_eq!(node.mode(), "Evented");
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!(node.opened, [0.0; 0]);
    assert_eq!(node.misses(), 0);
}

/// The gate: without it no stream is asked for.
#[test]
fn with_the_gate_off_no_stream_is_asked_for() {
    let mut node = Node::polling();
    node.wait(100.0);
    assert_eq!(node.mode(), "Polling(Disabled)");
    assert_eq!(node.opened, [0.0; 0]);
    assert_eq!(node.take_relists(), 100);
}

/// The contract: after the end, no question and no delivery.
#[test]
fn after_shutdown_nothing_is_asked_or_told() {
    let mut node = Node::with_c1();
    node.hold(Call::FullRelist);
    node.relist();
    node.world.exit("c1", 0);
    node.handle(Input::Shutdown);
    assert_eq!(node.session, None);
    node.take_asked();
    node.release();
    node.wait(1000.0);
    assert_eq!(node.take_asked(), NOTHING);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.engine.poll_timeout(), None);
}

/// The timers have names, so that whoever drives the engine can say what it waits for.
#[test]
fn each_wake_says_what_it_is_for() {
    let mut engine = super::super::Engine::new(super::super::Settings::default());
    assert_eq!(engine.next_timer(), None);
    let now = crate::lifecycle::Now::default();
    engine.handle(now, super::super::Input::Start);
    while engine.poll_output().is_some() {}
    // Heartbeat and relist are out; the stream counts as one after a second.
    let due = crate::lifecycle::Mono(1_000_000_000);
    assert_eq!(
        engine.next_timer(),
        Some((due, super::super::Timer::Stream))
    );
    assert_eq!(engine.poll_timeout(), Some(due));
}
