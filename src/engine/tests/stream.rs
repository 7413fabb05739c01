//! Stream messages: what they tell, what they only hint at, and what they must not undo.

use super::*;
use crate::engine::{Contradiction, Ignored};

/// A13 [HARD], X-EV-REPEAT, C4 (with events), X-EV-CREATED, X-EV-STARTED, X-EV-STOPPED, X-EV-DEL-CTR: with
/// and without a relist in the middle.
#[test]
fn a_relist_is_silent_about_everything_that_the_stream_told() {
    for relist_in_the_middle in [false, true] {
        let mut node = Node::trusted();
        node.world.sandbox("P", "S1", "A");
        node.tell(Started, "S1");
        node.world.create("S1", "c1");
        node.tell(Created, "c1");
        node.world.start("c1");
        node.tell(Started, "c1");
        node.wait(10.0);
        node.world.exit("c1", 1);
        node.tell(Stopped, "c1");
        assert_eq!(node.shows("P"), "[A] S1=R c1=X(1)");
        if relist_in_the_middle {
            node.relist();
        }
        node.delete("c1");
        node.world.run("S1", "c2");
        node.tell(Started, "c2");
        assert_eq!(
            node.take_told(),
            [
                "Started(S1)",
                "Started(c1)",
                "Died(c1)",
                "Removed(c1)",
                "Started(c2)"
            ]
        );
        assert_eq!(node.exit_code("c1"), Some(1));
        node.at(700.0);
        assert_eq!(node.take_told(), NOTHING);
        assert_eq!(node.shows("P"), "[A] S1=R c2=R");
        assert_eq!(node.misses(), 0);
    }
}

/// A15
#[test]
fn a_deleted_after_a_stopped_does_not_die_again() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.delete("c1");
    assert_eq!(node.take_told(), ["Died(c1)", "Removed(c1)"]);
}

/// A15, the second half.
#[test]
fn a_deleted_without_a_stopped_died_first() {
    let mut node = Node::with_c1();
    node.delete("c1");
    assert_eq!(node.take_told(), ["Died(c1)", "Removed(c1)"]);
    assert_eq!(node.shows("P"), "[A] S1=R");
}

/// A10, X-EV-DEL-SBX, P37-3 (the message without a sandbox): ids find their pod through the records.
#[test]
fn messages_without_a_sandbox_find_their_pod_by_the_records() {
    let mut node = Node::with_c1();
    node.world.remove("S1");
    node.tell(Deleted, "S1");
    assert_eq!(node.take_told(), ["Died(S1)", "Removed(S1)"]);
    assert_eq!(node.shows("P"), "[A] c1=R");
    node.world.exit("c1", 0);
    let mut stopped = node.event(Stopped, "c1");
    stopped.containers.clear();
    node.send(stopped);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    let contradictions = &node.engine.counters().contradictions;
    assert_eq!(contradictions[&Contradiction::NoSnapshot], 1);
    node.delete("c1");
    assert_eq!(node.take_told(), ["Removed(c1)"]);
    assert_eq!(node.shows("P"), "-");
    node.relist();
    assert_eq!(node.take_told(), NOTHING);
}

/// A10, of an id that nobody knows: a full relist soon, however many such messages come.
#[test]
fn messages_without_a_snapshot_about_unknown_ids_cost_a_relist_not_one_each() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c2");
    node.hold(Call::FullRelist);
    for _ in 0..50 {
        let mut event = node.event(Started, "c2");
        event.sandbox = None;
        event.containers.clear();
        node.send(event);
    }
    assert_eq!(node.take_asked(), ["Relist"]);
    node.release();
    assert_eq!(node.take_told(), ["Started(c2)"]);
    assert_eq!(node.take_asked(), ["Inspect(c2)"]);
    // What came after that relist was sent wants one more (rule 2.7), a second later.
    node.wait(2.0);
    assert_eq!(node.take_asked(), ["Relist"]);
}

/// A17 [HARD], first run: the pod's last message is overtaken by its DELETED.
#[test]
fn a_late_stopped_never_revives_a_deleted_pod() {
    let mut node = Node::with_c1();
    node.at(29.5);
    node.world.exit("c1", 0);
    let late = node.event(Stopped, "c1");
    node.at(30.0);
    node.world.remove("c1");
    node.world.remove("S1");
    node.tell(Deleted, "S1");
    assert_eq!(
        node.take_told(),
        ["Died(S1)", "Removed(S1)", "Died(c1)", "Removed(c1)"]
    );
    assert_eq!(node.shows("P"), "-");
    node.at(30.4);
    node.send(late);
    assert_eq!(node.shows("P"), "-");
    assert_eq!(node.take_told(), NOTHING);
    node.relist();
    assert_eq!(node.take_told(), NOTHING);
}

/// A17, second run: a list from before the DELETED is applied after it.
#[test]
fn a_list_from_before_a_deleted_never_revives_the_pod() {
    let mut node = Node::with_c1();
    node.at(29.9);
    node.hold(Call::FullRelist);
    node.relist();
    node.at(30.0);
    node.world.remove("c1");
    node.world.remove("S1");
    node.tell(Deleted, "S1");
    node.at(30.5);
    node.release();
    assert_eq!(node.shows("P"), "-");
    assert_eq!(
        node.take_told(),
        ["Died(S1)", "Removed(S1)", "Died(c1)", "Removed(c1)"]
    );
    node.wait(5.0);
    assert_eq!(node.shows("P"), "-");
    assert_eq!(node.take_told(), NOTHING);
}

/// A17: tombstones hold for a minute after a read had proven the removal, and longer than a backlog.
#[test]
fn a_stopped_that_comes_minutes_late_revives_nothing() {
    let mut node = Node::with_c1();
    let late = node.event(Started, "c1");
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.delete("c1");
    node.take_told();
    for _ in 0..20 {
        node.wait(61.0);
        node.relist();
    }
    assert_eq!(node.engine.tombstones(), 0);
    node.send(late);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R");
    assert_eq!(node.engine.counters().ignored[&Ignored::Stale], 1);
}

/// A22 (a)
#[test]
fn a_start_that_succeeds_after_its_caller_gave_up_is_told_when_it_happens() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    node.at(12.0);
    assert_eq!(node.take_told(), NOTHING);
    node.world.start("c2");
    node.tell(Started, "c2");
    assert_eq!(node.take_told(), ["Started(c2)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c2=R c1=R");
}

/// A22 (b)
#[test]
fn a_container_that_never_starts_stays_shown_as_created_and_fresh() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    let before = node.observed("P");
    node.at(60.0);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c2=C c1=R");
    assert!(node.observed("P") > before);
}

/// A25, with a snapshot and without.
#[test]
fn a_message_of_an_unknown_type_has_its_pod_looked_at() {
    for with_snapshot in [true, false] {
        let mut node = Node::with_c1();
        node.world.exit("c1", 3);
        let mut event = node.event(EventKind::Other(7), "c1");
        if !with_snapshot {
            event.sandbox = None;
            event.containers.clear();
        }
        node.send(event);
        assert_eq!(node.take_asked()[0], "Relist(P)");
        assert_eq!(node.take_told(), ["Died(c1)"]);
        assert_eq!(node.exit_code("c1"), Some(3));
        assert!(node.session.is_some());
        let contradictions = &node.engine.counters().contradictions;
        assert_eq!(contradictions[&Contradiction::UnknownType], 1);
    }
}

/// F5 [HARD]: stamps do not order; what ended stays ended.
#[test]
fn a_late_started_never_revives_a_dead_container() {
    // The state in the late STARTED's snapshot, and its stamp against the STOPPED's, in milliseconds.
    let variants = [(false, -10), (true, -10), (false, 0), (true, 0), (true, 10)];
    for (started_shows_running, stamped_later_by) in variants {
        let mut node = Node::with_c1();
        node.world.create("S1", "c2");
        node.tell(Created, "c2");
        node.wait(0.04);
        node.world.start("c2");
        let mut started = node.event(Started, "c2");
        node.wait(0.01);
        node.world.exit("c2", 0);
        let stopped = node.event(Stopped, "c2");
        if !started_shows_running {
            started = node.event(Started, "c2");
        }
        started.stamp = stopped.stamp + stamped_later_by * 1_000_000;
        node.wait(0.02);
        node.send(stopped);
        node.send(started);
        assert_eq!(node.shows("P"), "[A] S1=R c2=X(0) c1=R");
        assert_eq!(node.take_told(), ["Died(c2)"]);
        node.relist();
        assert_eq!(node.take_told(), NOTHING);
    }
}

/// F5, in order but ahead: the stream said that it ran, so both are told.
#[test]
fn a_started_that_already_shows_the_end_is_told_as_both() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    node.world.start("c2");
    node.world.exit("c2", 7);
    node.tell(Started, "c2");
    node.tell(Stopped, "c2");
    assert_eq!(node.take_told(), ["Started(c2)", "Died(c2)"]);
    assert_eq!(node.exit_code("c2"), Some(7));
}

/// F7
#[test]
fn a_sandboxs_messages_without_a_status_still_start_it_once() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    for kind in [Created, Started] {
        let mut event = node.event(kind, "S1");
        event.sandbox = None;
        node.send(event);
    }
    node.world.create("S1", "c1");
    node.tell(Created, "c1");
    node.wait(2.0);
    assert_eq!(node.take_told(), ["Started(S1)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c1=C");
}

/// F12
#[test]
fn a_runtime_without_sandbox_events_still_has_sandboxes_started_and_died() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    node.world.run("S1", "c1");
    node.tell(Started, "c1");
    assert_eq!(node.take_told(), ["Started(S1)", "Started(c1)"]);
    node.world.exit("c1", 0);
    node.world.stop_sandbox("S1");
    node.tell(Stopped, "c1");
    assert_eq!(node.take_told(), ["Died(c1)", "Died(S1)"]);
    node.world.remove("S1");
    node.world.remove("c1");
    // Nobody tells; the watch over finished pods finds it.
    node.wait(5.0);
    assert_eq!(node.take_told(), ["Removed(c1)", "Removed(S1)"]);
    assert_eq!(node.shows("P"), "-");
}

/// P37-1 and P37-2, a deviation: the reference only has the pod looked at, and only after a STOPPED; law
/// 2.6 merges what agrees with itself, at no cost.
#[test]
fn a_message_that_agrees_with_itself_is_merged_without_any_call() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.tell(Created, "c2");
    node.world.start("c2");
    node.tell(Started, "c2");
    node.world.exit("c2", 2);
    node.tell(Stopped, "c2");
    assert_eq!(node.take_asked(), NOTHING);
    assert_eq!(node.take_told(), ["Started(c2)", "Died(c2)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c2=X(2) c1=R");
}

/// P37-4
#[test]
fn a_stopped_that_comes_twice_is_told_once() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 0);
    for _ in 0..3 {
        node.tell(Stopped, "c1");
    }
    node.request_relist("P");
    assert_eq!(node.take_told(), ["Died(c1)"]);
}

/// Law 2.6: a STOPPED whose snapshot still runs, a DELETED whose container is still there.
#[test]
fn a_message_that_contradicts_itself_has_its_pod_looked_at_and_tells_nothing() {
    let mut node = Node::with_c1();
    node.tell(Stopped, "c1");
    node.tell(Deleted, "c1");
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    let contradictions = &node.engine.counters().contradictions;
    assert_eq!(contradictions[&Contradiction::StateBehindType], 1);
    assert_eq!(contradictions[&Contradiction::DeletedButPresent], 1);
    let asked = node.take_asked();
    assert!(asked.len() <= 4, "{asked:?}");
}

/// C6 of the law check.
#[test]
pub(super) fn a_deleted_of_an_unknown_id_changes_nothing() {
    let mut node = Node::with_c1();
    let event = node.world.event(Deleted, "c9", "S1");
    node.send(event);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.take_asked(), NOTHING);
    assert_eq!(node.engine.tombstones(), 0);
    assert_eq!(node.engine.counters().ignored[&Ignored::UnknownDeleted], 1);
}
