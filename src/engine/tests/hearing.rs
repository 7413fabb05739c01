//! What is taken from a message besides the change that it tells: its snapshot shows the whole pod.

use super::*;
use crate::engine::Ignored;

/// Messages alone speak: no read is answered from here on.
fn nothing_is_read(node: &mut Node) {
    for call in [Call::FullRelist, Call::PodRelist, Call::Inspect] {
        node.hold(call);
    }
}

/// A message about a container whose birth is too old to be news; its snapshot shows the others as ever.
fn stale_message(node: &mut Node) -> RuntimeEvent {
    node.world.create("S1", "c9");
    let mut message = node.event(Created, "c9");
    message.stamp -= 3_600_000_000_000;
    message
}

#[test]
fn a_stale_message_still_brings_the_address_of_a_known_sandbox() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "");
    node.tell(Started, "S1");
    nothing_is_read(&mut node);
    node.world.sandbox_mut("S1").ips = vec!["A".into()];
    let message = stale_message(&mut node);
    node.send(message);
    assert_eq!(node.shows("P"), "[A] S1=R");
}

#[test]
fn a_stale_message_still_brings_details_of_a_known_container() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    node.tell(Started, "S1");
    node.world.run("S1", "c1");
    let started_at = node.world.container("c1").started_at.take();
    node.tell(Started, "c1");
    nothing_is_read(&mut node);
    node.world.container("c1").started_at = started_at;
    let message = stale_message(&mut node);
    node.send(message);
    assert_eq!(node.cache["P"].containers[0].started_at, started_at);
}

#[test]
fn the_message_of_a_deleted_container_tells_of_its_sandbox() {
    let mut node = Node::with_c1();
    nothing_is_read(&mut node);
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.world.stop_sandbox("S1");
    node.delete("c1");
    assert_eq!(node.take_told(), ["Died(c1)", "Removed(c1)", "Died(S1)"]);
}

/// containerd 2.x shows the last state of a sandbox in its own DELETED: that is no late news.
#[test]
fn the_last_state_in_the_deleted_of_a_sandbox_is_not_behind() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    node.tell(Started, "S1");
    node.world.stop_sandbox("S1");
    node.tell(Stopped, "S1");
    nothing_is_read(&mut node);
    let deleted = node.event(Deleted, "S1");
    node.world.remove("S1");
    node.send(deleted);
    assert_eq!(node.shows("P"), "-");
    let ignored = &node.engine.counters().ignored;
    assert_eq!(ignored.get(&Ignored::Behind), None);
}

/// A status names no sandbox, and the others may run in another one of the pod.
#[test]
fn only_the_container_that_a_message_is_about_is_put_into_its_sandbox() {
    let mut node = Node::with_c1();
    nothing_is_read(&mut node);
    node.world.create("S1", "c2");
    node.world.create("S1", "c3");
    node.tell(Created, "c3");
    let sandbox_of = |id: &str| {
        let mut containers = node.cache["P"].containers.iter();
        let container = containers.find(|container| container.id.as_str() == id);
        container.and_then(|container| container.sandbox_id.clone())
    };
    assert_eq!(sandbox_of("c2"), None);
    assert_eq!(sandbox_of("c3"), Some("S1".into()));
}

/// A snapshot may leave labels out; a filter by the pod's uid shows the sandbox all the same.
#[test]
fn a_message_without_labels_does_not_make_a_pod_unlistable() {
    let mut node = Node::with_c1();
    let mut message = node.event(Started, "c1");
    if let Some(sandbox) = &mut message.sandbox {
        sandbox.labelled = false;
    }
    node.send(message);
    node.take_asked();
    node.request_relist("P");
    assert_eq!(node.take_asked()[0], "Relist(P)");
}

/// What a message tells of a further phase is newer than whatever was known of the one before.
#[test]
fn a_message_that_moves_a_container_on_brings_its_details_too() {
    let mut node = Node::with_c1();
    nothing_is_read(&mut node);
    node.world.exit("c1", 0);
    node.world.container("c1").image_ref = "sha256:pulled-since".into();
    node.tell(Stopped, "c1");
    assert_eq!(
        &*node.cache["P"].containers[0].image_ref,
        "sha256:pulled-since"
    );
    assert!(node.engine.counters().contradictions.is_empty());
}

/// A message without a snapshot about an id that nobody knows.
fn hint_of(node: &Node, id: &str) -> RuntimeEvent {
    RuntimeEvent {
        id: id.into(),
        kind: Created,
        stamp: node.world.wall.0,
        sandbox: None,
        containers: Vec::new(),
        refused: Vec::new(),
    }
}

/// What the stream told without a snapshot is no miss; of how many ids that is remembered is bounded.
#[test]
fn of_a_thousand_unknown_ids_and_no_more_it_is_remembered_that_the_stream_told_of_them() {
    let mut node = Node::with_c1();
    node.hold(Call::FullRelist);
    let first = hint_of(&node, "nobody");
    // It makes a relist due, which begins before the others are heard of.
    node.send(first);
    for n in 0..1_000 {
        let message = hint_of(&node, &format!("x{n}"));
        node.send(message);
        node.world.create("S1", &format!("x{n}"));
    }
    node.wait(0.5);
    node.release();
    node.wait(10.0);
    assert_eq!(node.cache["P"].containers.len(), 1_001);
    assert_eq!(node.misses(), 1);
}

/// A list that lacks what the stream told of has judged it: what comes under that id later was not told.
#[test]
fn what_the_stream_told_without_a_snapshot_counts_for_the_next_relist_alone() {
    let mut node = Node::with_c1();
    let message = hint_of(&node, "x1");
    node.send(message);
    node.wait(5.0);
    node.world.create("S1", "x1");
    node.relist();
    node.wait(5.0);
    assert_eq!(node.misses(), 1);
}
