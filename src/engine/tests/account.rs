//! What the engine tells of itself: settings, the runtime, counters, notes; and calls that are answered
//! by something else than was asked.

use super::*;
use crate::engine::Inspection;
use crate::lifecycle::Source;

#[test]
fn the_engine_shows_what_it_was_set_up_with_and_whom_it_speaks_to() {
    let settings = Settings {
        tombstones: 7,
        ..Settings::default()
    };
    let mut node = Node::with(settings.clone());
    assert_eq!(*node.engine.settings(), settings);
    assert_eq!(node.engine.runtime(), None);
    node.start();
    let version = node.engine.runtime().map(|runtime| &*runtime.version);
    assert_eq!(version, Some("2.1.0"));
}

#[test]
fn a_second_start_asks_nothing() {
    let mut node = Node::new();
    node.start();
    node.wait(0.5);
    node.forget_the_past();
    node.handle(Input::Start);
    assert_eq!((node.heartbeats, node.rpcs), (0, 0));
}

#[test]
fn pods_that_are_watched_are_counted() {
    let mut node = Node::with_c1();
    assert_eq!(node.engine.unsettled_pods(), 0);
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    assert_eq!(node.engine.unsettled_pods(), 1);
}

#[test]
fn streams_and_changes_of_mode_are_counted() {
    let mut node = Node::new();
    node.start();
    node.wait(5.0);
    node.break_stream();
    node.wait(5.0);
    assert_eq!(node.mode(), "Evented");
    let counters = node.engine.counters();
    assert_eq!(counters.streams_opened, 2);
    // To Evented, to Polling, and back.
    assert_eq!(counters.mode_changes, 3);
}

/// A message that only repeats what is known is everyday news, one of a stream that is gone is not.
#[test]
fn only_what_is_odd_about_an_ignored_message_is_worth_a_note() {
    let mut node = Node::with_c1();
    let early = node.event(Started, "c1");
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.forget_the_past();
    node.send(early.clone());
    assert_eq!(node.notes, 0);
    node.handle(Input::StreamMessage {
        session: SessionId(0),
        event: early,
    });
    assert_eq!(node.notes, 1);
}

/// Lists that fail are asked for again after 1, 1, 2, 4 … times the fast period, up to the period.
#[test]
fn lists_that_fail_are_asked_for_ever_more_rarely_up_to_the_period() {
    let mut node = Node::with_c1();
    node.world.lists_fail = true;
    node.relist();
    node.forget_the_past();
    let mut asked = Vec::new();
    for second in 1..=130 {
        node.at(f64::from(second));
        asked.extend((node.take_relists() > 0).then_some(second));
    }
    assert_eq!(asked, [1, 3, 7, 15, 31, 63, 127]);
}

/// The answer to another question is as good as none: the call failed, and is made again.
#[test]
fn an_answer_of_another_kind_is_a_failure() {
    let mut node = Node::with_c1();
    for call in [Call::FullRelist, Call::PodRelist, Call::Inspect] {
        node.hold(call);
        match call {
            Call::FullRelist => node.relist(),
            _ => node.request_relist("P"),
        }
        let (request, _) = node.held.pop().expect("the call is out");
        node.holding.clear();
        node.in_flight.remove(&request);
        let answer = match call {
            Call::FullRelist => Answer::Inspected(Inspection::default()),
            _ => Answer::Version(Err(failure(FailureKind::Other, "nonsense"))),
        };
        node.take_asked();
        node.handle(Input::Answered { request, answer });
        node.wait(3.0);
        assert!(!node.take_asked().is_empty(), "{call:?} is not made again");
        assert_eq!(node.shows("P"), "[A] S1=R c1=R");
        assert_eq!(node.take_told(), NOTHING);
    }
}

/// A pod whose lists hang holds up the next one for ten seconds and no longer.
#[test]
fn a_call_that_hangs_makes_room_by_the_clock_alone() {
    let mut node = Node::with(Settings {
        parallel_inspections: 1,
        heartbeat_period: Duration::from_secs(3_600),
        ..Settings::default()
    });
    for (pod, sandbox) in [("P", "S1"), ("Q", "S2")] {
        node.world.sandbox(pod, sandbox, "A");
    }
    node.start();
    node.earn(30.0);
    node.wait(3.0);
    node.relist();
    node.wait(3.0);
    node.forget_the_past();
    node.hold(Call::PodRelist);
    node.request_relist("P");
    node.request_relist("Q");
    assert_eq!(node.take_asked(), ["Relist(P)"]);
    node.at(9.9);
    assert_eq!(node.take_asked(), NOTHING);
    node.at(10.1);
    assert_eq!(node.take_asked(), ["Relist(Q)"]);
}

/// Calls that hang make room for others, but not for ever more of them.
#[test]
fn a_runtime_where_every_call_hangs_has_four_times_the_cap_of_them_out() {
    let mut node = Node::with(Settings {
        parallel_inspections: 1,
        ..Settings::default()
    });
    let pods = ["P1", "P2", "P3", "P4", "P5", "P6"];
    for pod in pods {
        node.world.sandbox(pod, &format!("S{pod}"), "A");
    }
    node.start();
    node.wait(5.0);
    node.forget_the_past();
    node.hold(Call::PodRelist);
    for pod in pods {
        node.request_relist(pod);
    }
    node.hold(Call::FullRelist);
    node.wait(100.0);
    let mut reads = node.take_asked();
    reads.retain(|asked| asked != "Relist");
    assert_eq!(
        reads,
        ["Relist(P1)", "Relist(P2)", "Relist(P3)", "Relist(P4)"]
    );
}

/// The hole of a frozen runtime begins when its heartbeat first fails: what the next list finds is not held
/// against the stream.
#[test]
fn what_a_runtime_did_before_its_heartbeat_failed_is_no_miss() {
    let mut node = Node::with_c1();
    node.hold(Call::Version);
    node.wait(12.0);
    let (request, _) = node.held.pop().expect("a heartbeat is out");
    node.in_flight.remove(&request);
    node.world.exit("c1", 137);
    node.handle(Input::Answered {
        request,
        answer: Answer::Version(Err(unavailable())),
    });
    node.wait(5.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(137)");
    assert_eq!(node.misses(), 0);
}

/// A status that is not there is an absence, not a failure.
#[test]
fn only_statuses_that_could_not_be_read_count_as_failed() {
    let mut node = Node::with_c1();
    let failed = |node: &Node| -> u64 {
        let counters = node.engine.counters();
        let of_inspections = counters.failed.iter();
        of_inspections
            .filter(|((call, _), _)| *call == Call::Inspect)
            .map(|(_, count)| count)
            .sum()
    };
    node.world.vanished.insert("c1");
    node.request_relist("P");
    assert_eq!(failed(&node), 0);
    node.world.vanished.clear();
    node.wait(5.0);
    node.world.unreadable.insert("P");
    node.request_relist("P");
    assert_eq!(failed(&node), 1);
}

#[test]
fn messages_that_say_less_than_is_known_are_counted() {
    let mut node = Node::with_c1();
    let early = node.event(Started, "c1");
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.send(early);
    let ignored = &node.engine.counters().ignored;
    assert_eq!(ignored.get(&crate::engine::Ignored::Behind), Some(&1));
}

#[test]
fn relists_and_the_ends_of_streams_are_counted() {
    let mut node = Node::with_c1();
    let before = node.engine.counters().clone();
    node.relist();
    node.wait(5.0);
    node.relist();
    node.break_stream();
    let counters = node.engine.counters();
    assert_eq!(counters.relists, before.relists + 2);
    assert_eq!(counters.streams_ended, before.streams_ended + 1);
}

#[test]
fn a_reinspect_of_an_absent_pod_is_counted_by_the_first_relist_after_it() {
    let mut node = Node::with_c1();
    let counted = |node: &Node| node.engine.counters().reinspects_of_absent_pods;
    node.hold(Call::FullRelist);
    node.relist();
    node.request_reinspect("nobody");
    node.release();
    assert_eq!(counted(&node), 0);
    node.wait(5.0);
    node.relist();
    assert_eq!(counted(&node), 1);
    node.wait(5.0);
    node.relist();
    assert_eq!(counted(&node), 1);
}

#[test]
fn looks_at_unsettled_pods_are_counted_and_so_is_the_relist_that_stands_for_the_rest() {
    let mut node = Node::trusted();
    for n in 0..12 {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.world.create(&format!("s{n}"), &format!("c{n}"));
        node.tell(Created, &format!("c{n}"));
    }
    node.wait(1.5);
    let counters = node.engine.counters();
    assert_eq!(counters.unsettled_reads, 8);
    assert_eq!(counters.reads_folded_into_relists, 1);
}

#[test]
fn doubts_and_absences_that_prove_nothing_are_counted() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.world.remove("c2");
    node.relist();
    assert_eq!(node.engine.counters().unjudged_absences, 1);
    node.wait(5.0);
    assert_eq!(node.engine.counters().doubts, 0);
    node.world.container("c1").state = ReportedState::Created;
    node.relist();
    assert_eq!(node.engine.counters().doubts, 1);
}

#[test]
fn modes_sources_and_failures_are_shown_in_words() {
    let mut node = Node::new();
    assert_eq!(node.engine.mode().name(), "Connecting");
    node.start();
    node.wait(5.0);
    assert_eq!(node.engine.mode().name(), "Evented");
    node.break_stream();
    assert_eq!(node.engine.mode().name(), "Polling");
    let sources = [Source::Event, Source::Relist, Source::Inspect];
    assert_eq!(
        sources.map(|source| source.to_string()),
        ["event", "relist", "inspect"]
    );
    assert_eq!(unavailable().to_string(), "connection refused");
}
