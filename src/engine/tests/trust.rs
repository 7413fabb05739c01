//! How the stream earns trust, how it loses it, and what is never held against it.

use super::*;
use crate::engine::Note;
use crate::lifecycle::SubjectKind;

/// `count` pods that run `c1`… in sandboxes `s1`…, told by the stream. A pod each, since a message's
/// snapshot tells of all containers of its sandbox.
fn run_told(node: &mut Node, count: usize) {
    for n in 1..=count {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.world.run(&format!("s{n}"), &format!("c{n}"));
        node.tell(Started, &format!("c{n}"));
    }
    node.wait(5.0);
    node.forget_the_past();
}

/// From the start on, the relist period after each second.
#[test]
pub(super) fn the_period_doubles_with_each_clean_relist_up_to_what_was_proven() {
    let mut node = Node::new();
    node.start();
    let mut periods = Vec::new();
    let mut watch = |node: &mut Node, seconds: u32| {
        for _ in 0..seconds {
            node.wait(1.0);
            if periods.last() != Some(&node.period()) {
                periods.push(node.period());
            }
        }
    };
    watch(&mut node, 600);
    node.world.sandbox("P", "S1", "A");
    node.tell(Started, "S1");
    watch(&mut node, 1200);
    assert_eq!(
        periods,
        [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0, 120.0, 240.0, 300.0]
    );
}

/// B7 [HARD], F1: half of the events go to another client.
#[test]
fn a_stream_that_loses_half_of_its_events_is_distrusted_and_earns_its_way_back() {
    let mut node = Node::trusted();
    run_told(&mut node, 12);
    for n in 1..=10 {
        node.wait(1.0);
        let id = format!("c{n}");
        node.world.exit(&id, 1);
        if n % 2 == 0 {
            node.tell(Stopped, &id);
        }
    }
    let heard = ["Died(c2)", "Died(c4)", "Died(c6)", "Died(c8)", "Died(c10)"];
    assert_eq!(node.take_told(), heard);
    node.at(300.0);
    let found = ["Died(c1)", "Died(c3)", "Died(c5)", "Died(c7)", "Died(c9)"];
    assert_eq!(node.take_told(), found);
    assert_eq!(node.misses(), 5);
    assert_eq!(node.mode(), "Polling(Untrusted)");
    assert!(node.session.is_some());
    assert_eq!(node.opened, [0.0; 0]);
    // Silence earns nothing while distrusted.
    node.wait(60.0);
    assert_eq!(node.mode(), "Polling(Untrusted)");
    // What still comes is merged, and three clean relists with events between them end it: the first
    // was clean already.
    node.world.exit("c11", 0);
    node.tell(Stopped, "c11");
    node.wait(5.0);
    assert_eq!(node.mode(), "Polling(Untrusted)");
    node.world.exit("c12", 0);
    node.tell(Stopped, "c12");
    node.wait(5.0);
    assert_eq!(node.mode(), "Evented");
    assert!(node.period() < 10.0);
    assert_eq!(node.take_told(), ["Died(c11)", "Died(c12)"]);
}

/// B7: at first the audits are far below the slow period, so that each loss is found soon.
#[test]
fn a_young_stream_that_loses_events_is_found_out_within_its_audit_period() {
    let mut node = Node::new();
    node.world.sandbox("P", "S1", "A");
    for n in 1..=6 {
        node.world.run("S1", &format!("c{n}"));
    }
    node.start();
    node.at(5.0);
    node.take_told();
    for n in 1..=3 {
        let id = format!("c{n}");
        node.world.exit(&id, 1);
        // The period may double once more before it is over.
        let bound = 2.0 * node.period();
        assert!(bound <= 16.0);
        node.wait(bound);
        assert_eq!(node.take_told(), [format!("Died({id})")]);
        assert_eq!(node.mode(), "Evented");
    }
    for id in ["c4", "c5", "c6"] {
        node.world.exit(id, 1);
    }
    let bound = 2.0 * node.period() + 2.0;
    node.wait(bound);
    assert_eq!(node.take_told(), ["Died(c4)", "Died(c5)", "Died(c6)"]);
    assert_eq!(node.mode(), "Polling(Untrusted)");
}

/// B7 [negative]
#[test]
fn a_quiet_node_is_no_reason_for_distrust() {
    let mut node = Node::with_c1();
    node.at(3600.0);
    assert_eq!((node.misses(), node.mode()), (0, "Evented".into()));
    assert!((node.period() - 300.0).abs() < f64::EPSILON);
}

/// F4 [negative], F10
#[test]
pub(super) fn one_lost_event_is_told_by_the_relist_and_begins_the_ramp_anew() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 1);
    node.at(40.0);
    assert_eq!(node.take_told(), NOTHING);
    node.at(300.0);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!((node.misses(), node.mode()), (1, "Evented".into()));
    assert!(node.period() < 300.0);
}

/// F6: the miss counts although other containers' events flow.
#[test]
fn a_container_whose_events_stopped_is_missed_while_others_tell() {
    let mut node = Node::with_c1();
    node.break_stream();
    node.wait(20.0);
    node.world.sandbox("Q", "S2", "B");
    node.world.run("S2", "c2");
    node.tell(Started, "c2");
    node.wait(100.0);
    node.take_told();
    node.world.exit("c1", 1);
    node.world.exit("c2", 1);
    node.tell(Stopped, "c2");
    node.relist();
    assert_eq!(node.take_told(), ["Died(c2)", "Died(c1)"]);
    node.wait(3.0);
    assert_eq!(node.misses(), 1);
    assert!(node.period() <= 2.0);
}

/// Law 5: a change that a read tells first is a miss only after its grace.
#[test]
pub(super) fn an_event_that_comes_within_two_seconds_of_the_read_is_no_miss() {
    for (delay, misses) in [(1.9, 0), (2.1, 1)] {
        let mut node = Node::with_c1();
        node.world.exit("c1", 1);
        let stopped = node.event(Stopped, "c1");
        node.relist();
        node.wait(delay);
        node.send(stopped);
        node.wait(5.0);
        assert_eq!(node.misses(), misses, "{delay}");
    }
}

/// Law 5: what the stream told in a message that had to be looked into, or was stale, was not missed.
#[test]
fn what_the_stream_told_without_being_merged_is_no_miss() {
    let mut node = Node::with_c1();
    // Without a snapshot.
    node.world.exit("c1", 1);
    let mut bare = node.event(Stopped, "c1");
    bare.sandbox = None;
    bare.containers.clear();
    node.send(bare);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    // Stale: stamped before the last relist began.
    let stamp = node.world.wall.0;
    node.relist();
    node.wait(1.0);
    node.world.run("S1", "c2");
    let mut stale = node.event(Started, "c2");
    stale.stamp = stamp - 1;
    node.send(stale);
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(c2)"]);
    node.wait(10.0);
    assert_eq!(node.misses(), 0);
    assert!((node.period() - 300.0).abs() < f64::EPSILON);
}

/// C14 with events: a start that failed has no event on any runtime; the watch finds it.
#[test]
pub(super) fn a_start_that_failed_is_found_soon_and_is_no_miss() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    node.wait(0.5);
    node.world.exit("c2", 128);
    node.wait(0.5);
    assert_eq!(node.take_told(), ["Died(c2)"]);
    assert_eq!(node.exit_code("c2"), Some(128));
    node.wait(10.0);
    assert_eq!(node.misses(), 0);
}

/// Law 5: what a runtime never sends becomes a known gap, and no distrust.
#[test]
pub(super) fn a_kind_that_the_runtime_never_sends_becomes_a_known_gap() {
    let mut node = Node::trusted();
    for n in 0..5 {
        let (pod, id) = (format!("q{n}"), format!("s{n}"));
        node.world.sandbox(&pod, &id, "A");
        node.tell(Started, &id);
        node.world.stop_sandbox(&id);
        node.tell(Stopped, &id);
        node.world.remove(&id);
        node.wait(400.0);
    }
    let gaps: Vec<_> = node.engine.known_gaps().collect();
    assert_eq!(gaps, [(SubjectKind::Sandbox, Deleted)]);
    assert_eq!(node.misses(), 5);
    let in_gaps = &node.engine.counters().missed_in_known_gaps;
    assert_eq!(in_gaps.values().sum::<u64>(), 3);
    assert_eq!(node.mode(), "Evented");
    let told = node.take_told();
    assert_eq!(told[..3], ["Started(s0)", "Died(s0)", "Removed(s0)"]);
    assert_eq!(told.len(), 15);
}

/// Nobody else finds starts and ends in time: a stream that another client shares may lose each end of a
/// crash loop and tell each start.
#[test]
fn a_stream_that_tells_starts_and_no_ends_is_distrusted() {
    let mut node = Node::trusted();
    for n in 0..4 {
        node.world.sandbox(&format!("p{n}"), &format!("s{n}"), "A");
        node.tell(Started, &format!("s{n}"));
    }
    // Each in a pod of its own: another's message would show its end.
    let crash = |node: &mut Node, n: u32| {
        let id = format!("c{n}");
        node.world.run(&format!("s{n}"), &id);
        node.tell(Started, &id);
        node.world.exit(&id, 1);
    };
    for n in 0..3 {
        crash(&mut node, n);
    }
    node.relist();
    node.wait(3.0);
    assert_eq!(node.engine.known_gaps().count(), 0);
    assert_eq!(node.mode(), "Polling(Untrusted)");
    node.take_told();
    crash(&mut node, 3);
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(c3)", "Died(c3)"]);
}

/// Every miss is counted by kind and has a note.
#[test]
fn a_miss_names_what_did_not_come() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 1);
    node.relist();
    node.engine.handle(
        Now {
            mono: node.now().mono.after(Duration::from_secs(3)),
            wall: node.now().wall,
        },
        Input::Wake,
    );
    let mut notes = Vec::new();
    while let Some(output) = node.engine.poll_output() {
        if let Output::Note(note @ Note::Missed { .. }) = output {
            notes.push(note);
        }
    }
    assert_eq!(
        notes,
        [Note::Missed {
            subject: SubjectKind::Container,
            event: Stopped,
            id: "c1".into(),
            known_gap: false
        }]
    );
}

/// Whoever follows the stream is behind: what waits to be taken is not missing, however long it waits.
#[test]
fn messages_that_wait_for_longer_than_the_grace_are_no_misses() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.wait(5.0);
    node.world.exit("c1", 1);
    node.world.exit("c2", 1);
    node.relist();
    let session = node.session.expect("a stream is open");
    let later = node.elapsed + Duration::from_secs(3);
    node.pass_to(later);
    for id in ["c1", "c2"] {
        let event = node.event(Stopped, id);
        let message = Input::StreamMessage { session, event };
        node.engine.handle(node.now(), message);
    }
    node.handle(Input::Wake);
    node.wait(10.0);
    assert_eq!(node.misses(), 0);
}
