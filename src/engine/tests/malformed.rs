//! What no sane runtime sends: no panic, nothing told of it, counted, and bounded.

use super::*;
use crate::engine::{Contradiction, Ignored};
use crate::lifecycle::{ContainerStatus, Refusal};

fn refused(node: &Node, why: Refusal) -> u64 {
    let refused = &node.engine.counters().refused;
    refused.get(&why).copied().unwrap_or_default()
}

fn ignored(node: &Node, why: Ignored) -> u64 {
    let ignored = &node.engine.counters().ignored;
    ignored.get(&why).copied().unwrap_or_default()
}

/// F14: an empty id.
#[test]
fn an_event_with_an_empty_id_has_its_pod_looked_at() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 8);
    let mut event = node.event(Stopped, "c1");
    event.id = "".into();
    event.refused.push(Refusal::EmptyId);
    node.send(event);
    assert_eq!(refused(&node, Refusal::EmptyId), 1);
    assert_eq!(node.take_asked(), ["Relist(P)", "Inspect(S1 c1)"]);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!(node.exit_code("c1"), Some(8));
}

/// B16, the nil message: nothing in it, not even a pod.
#[test]
fn an_empty_message_among_others_costs_a_relist_and_nothing_else() {
    let mut node = Node::with_c1();
    for n in 1..=10 {
        let id = format!("d{n}");
        node.world.run("S1", &id);
        if n == 3 {
            let empty = RuntimeEvent {
                id: "".into(),
                kind: Created,
                stamp: 0,
                sandbox: None,
                containers: Vec::new(),
                refused: vec![Refusal::EmptyId, Refusal::NoMetadata],
            };
            node.send(empty);
        }
        node.tell(Started, &id);
    }
    let told: Vec<String> = (1..=10).map(|n| format!("Started(d{n})")).collect();
    assert_eq!(node.take_told(), told);
    assert_eq!(node.take_relists(), 1);
    assert_eq!(refused(&node, Refusal::EmptyId), 1);
    assert_eq!(refused(&node, Refusal::NoMetadata), 1);
    assert_eq!(refused(&node, Refusal::AbsurdStamp), 1);
}

/// B16: one pod that cannot be inspected delays no other's events.
#[test]
fn a_message_whose_pod_cannot_be_inspected_delays_no_other() {
    let mut node = Node::with_c1();
    node.world.sandbox("Q", "S2", "B");
    node.world.run("S2", "c2");
    node.tell(Started, "c2");
    node.take_told();
    node.world.unreadable.insert("P");
    node.world.exit("c1", 1);
    let mut bare = node.event(Stopped, "c1");
    bare.sandbox = None;
    bare.containers.clear();
    node.send(bare);
    node.world.exit("c2", 2);
    node.tell(Stopped, "c2");
    node.wait(20.0);
    assert_eq!(node.take_told(), ["Died(c2)"]);
    node.world.unreadable.clear();
    node.wait(20.0);
    assert_eq!(node.take_told(), ["Died(c1)"]);
}

/// Bytes that are no message, from the stream.
#[test]
fn undecodable_bytes_are_counted_and_cost_a_relist() {
    let mut node = Node::with_c1();
    let session = node.session.unwrap();
    node.world.exit("c1", 1);
    for _ in 0..5 {
        node.handle(Input::StreamGarbage {
            session,
            refusal: Refusal::Undecodable,
        });
    }
    node.wait(1.5);
    assert_eq!(refused(&node, Refusal::Undecodable), 5);
    assert_eq!(node.take_relists(), 2);
    assert_eq!(node.take_told(), ["Died(c1)"]);
}

/// An inbox that overflowed: the pods named are read, the rest by a relist; the loss is ours and no
/// miss of the stream's.
#[test]
fn an_overflow_is_repaired_by_reads_and_not_held_against_the_stream() {
    let mut node = Node::with_c1();
    let session = node.session.unwrap();
    node.world.exit("c1", 1);
    node.world.sandbox("Q", "S2", "B");
    node.handle(Input::StreamOverflow {
        session,
        pods: ["P".into()].into(),
        dropped: 200,
    });
    assert_eq!(node.take_told_sorted(), ["Died(c1)", "Started(S2)"]);
    assert_eq!(ignored(&node, Ignored::Overflow), 200);
    node.wait(10.0);
    assert_eq!((node.misses(), node.mode()), (0, "Evented".into()));
}

/// F14: a uid that changes, in an event, a list and a status (G-RELIST-1's one id in two pods).
#[test]
fn a_known_container_never_changes_its_pod() {
    let mut node = Node::with_c1();
    node.world.sandbox("Q", "S2", "B");
    node.tell(Started, "S2");
    node.take_told();
    let truth = node.world.containers["c1"].clone();
    let mut thief = truth.1.clone();
    thief.pod = Some(world::identity("Q"));
    thief.state = ReportedState::Exited;

    let mut event = node.world.event(Stopped, "c1", "S2");
    event.containers = vec![thief.clone()];
    node.send(event);
    assert!(refused(&node, Refusal::PodChanged) > 0);
    node.world
        .containers
        .insert("c1".into(), ("S2".into(), thief));
    node.relist();
    node.wait(3.0);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    assert_eq!(node.shows("Q"), "[B] S2=R");
    let before = refused(&node, Refusal::PodChanged);
    node.request_relist("P");
    node.wait(3.0);
    assert!(refused(&node, Refusal::PodChanged) >= before);
    node.world.containers.insert("c1".into(), truth);
    node.wait(400.0);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
}

/// F14, of a sandbox.
#[test]
fn a_known_sandbox_never_changes_its_pod() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 1);
    let mut event = node.event(Stopped, "c1");
    event.sandbox.as_mut().unwrap().pod = world::identity("other");
    for status in &mut event.containers {
        status.pod = Some(world::identity("other"));
    }
    node.send(event);
    assert_eq!(refused(&node, Refusal::PodChanged), 2);
    assert_eq!(node.shows("other"), "-");
    // The pod is looked at, and the truth is told.
    assert_eq!(node.take_told(), ["Died(c1)"]);
    node.world.sandbox_mut("S1").pod = world::identity("other");
    node.relist();
    node.relist();
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("other"), "-");
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(1)");
}

/// F14: one id twice in an answer or a message; the decoder refuses the second, the engine bears it.
#[test]
fn an_id_that_comes_twice_is_told_once() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 5);
    let mut event = node.event(Stopped, "c1");
    let again = ContainerStatus {
        exit_code: 6,
        ..event.containers[0].clone()
    };
    event.containers.push(again);
    node.send(event);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(5)");
    let contradictions = &node.engine.counters().contradictions;
    assert_eq!(contradictions[&Contradiction::Details], 1);
    node.hold(Call::FullRelist);
    node.relist();
    let Answer::Listed(Ok(list)) = &mut node.held[0].1 else {
        panic!("a list is held");
    };
    let mut twice = list.containers.items[0].clone();
    std::sync::Arc::make_mut(&mut twice).state = ReportedState::Running;
    list.containers.items.push(twice);
    node.release();
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(5)");
}

/// Enums from the future: states and types that CRI does not have yet.
#[test]
fn unknown_states_and_types_are_looked_into_and_never_told() {
    let mut node = Node::with_c1();
    node.world.container("c1").state = ReportedState::Unknown;
    node.tell(Stopped, "c1");
    node.tell(EventKind::Other(-3), "c1");
    node.tell(EventKind::Other(i32::MAX), "c1");
    node.wait(2.0);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c1=U");
    let counters = node.engine.counters();
    assert_eq!(counters.contradictions[&Contradiction::UnknownType], 2);
    assert_eq!(counters.contradictions[&Contradiction::StateBehindType], 1);
    node.world.start("c1");
    node.relist();
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    assert_eq!(node.take_told(), NOTHING);
}

/// Stamps that cannot be: each is counted, and news of a known id counts all the same.
#[test]
fn absurd_stamps_are_counted_and_hide_no_news_of_what_is_known() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 1);
    let ahead = node.world.wall.0 + 3_600_000_000_000;
    for stamp in [i64::MIN, -1, 0, 1, 1_700_000_000, ahead, i64::MAX] {
        let mut event = node.event(Stopped, "c1");
        event.stamp = stamp;
        node.send(event);
    }
    assert_eq!(refused(&node, Refusal::AbsurdStamp), 7);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    // Of an unknown id it is not taken, but makes a relist due.
    node.world.run("S1", "c2");
    let mut event = node.event(Started, "c2");
    event.stamp = ahead;
    node.send(event);
    assert_eq!(node.take_told(), ["Started(c2)"]);
    assert_eq!(
        node.last(LifecycleKind::ContainerStarted, "c2").source,
        crate::lifecycle::Source::Relist
    );
}

/// A hundred thousand containers in one message: refused whole, and the pod is found by a relist.
#[test]
fn a_message_of_a_hundred_thousand_containers_is_refused_whole() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c2");
    let mut event = node.event(Started, "c2");
    let one = event.containers[0].clone();
    event
        .containers
        .extend((0..100_000).map(|n| ContainerStatus {
            id: format!("x{n}").as_str().into(),
            ..one.clone()
        }));
    node.send(event);
    assert_eq!(refused(&node, Refusal::TooManySubjects), 1);
    assert_eq!(node.engine.records.subjects.iter().count(), 4);
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(c2)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c2=R c1=R");
}

/// Subjects known from events alone are bounded, and what is not there is forgotten by the next relist.
#[test]
fn a_flood_of_invented_containers_is_bounded_and_gone_after_two_relists() {
    let mut node = Node::with_c1();
    node.relist();
    node.hold(Call::FullRelist);
    let one = node.world.containers["c1"].1.clone();
    for message in 0..12 {
        let ids = (0..1_000).map(|n| format!("x{message}-{n}"));
        let containers = ids.map(|id| ContainerStatus {
            pod: Some(world::identity(&id)),
            id: id.into(),
            ..one.clone()
        });
        let mut event = node.event(Started, "c1");
        event.id = format!("x{message}-0").as_str().into();
        event.sandbox = None;
        event.containers = containers.collect();
        node.send(event);
    }
    assert_eq!(ignored(&node, Ignored::TooManyUnconfirmed), 2_000);
    assert_eq!(node.engine.records.subjects.iter().count(), 10_003);
    assert!(node.engine.hints.len() <= 1_000);
    node.wait(2.0);
    node.release();
    node.wait(5.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    node.wait(900.0);
    assert_eq!(node.engine.records.subjects.iter().count(), 3);
    assert_eq!(node.engine.tombstones(), 0);
}

/// Tombstones are bounded by the setting, oldest first, and counted.
#[test]
fn tombstones_past_the_limit_are_dropped_oldest_first_and_counted() {
    let mut node = Node::with(Settings {
        tombstones: 10,
        evented: false,
        ..Settings::default()
    });
    node.world.sandbox("P", "S1", "A");
    for n in 0..25 {
        node.world.run("S1", &format!("c{n}"));
    }
    node.start();
    for n in 0..25 {
        node.world.remove(&format!("c{n}"));
        node.wait(1.0);
    }
    assert_eq!(node.engine.tombstones(), 10);
    assert_eq!(node.engine.counters().tombstones_evicted, 15);
}

/// Law 8.7: a runtime may send a type for each number there is.
#[test]
fn made_up_types_are_counted_without_growing_memory() {
    let mut node = Node::with_c1();
    for number in 100..400 {
        let mut event = node.event(Stopped, "c1");
        event.kind = crate::lifecycle::EventKind::Other(number);
        node.send(event);
    }
    let messages = &node.engine.counters().messages;
    let others: Vec<_> = messages
        .iter()
        .filter(|(kind, _)| matches!(kind, crate::lifecycle::EventKind::Other(_)))
        .map(|(_, count)| *count)
        .collect();
    assert_eq!(others, [300]);
}
