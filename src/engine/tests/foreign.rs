//! Messages that speak of what is another pod's, or lack what they should show.

use super::*;
use crate::engine::Contradiction;
use crate::lifecycle::Refusal;

/// P with c1, and Q with c2.
fn with_two_pods() -> Node {
    let mut node = Node::with_c1();
    node.world.sandbox("Q", "S2", "B");
    node.world.run("S2", "c2");
    node.tell(Started, "c2");
    node.wait(5.0);
    node.forget_the_past();
    node
}

fn refused(node: &Node) -> u64 {
    let refused = &node.engine.counters().refused;
    refused.get(&Refusal::PodChanged).copied().unwrap_or(0)
}

#[test]
fn a_message_of_one_pod_does_not_move_the_container_of_another() {
    let mut node = with_two_pods();
    let mut message = node.event(Started, "c1");
    let mut foreign = node.world.container("c2").clone();
    foreign.pod = None;
    foreign.state = ReportedState::Exited;
    message.containers.push(foreign);
    node.send(message);
    assert_eq!(node.shows("Q"), "[B] S2=R c2=R");
    assert_eq!(refused(&node), 1);
    assert_eq!(node.take_asked()[0], "Relist(Q)");
}

#[test]
fn a_message_of_one_pod_brings_no_container_that_its_labels_give_to_another() {
    let mut node = with_two_pods();
    let mut message = node.event(Started, "c1");
    let mut foreign = node.world.container("c2").clone();
    foreign.id = "c9".into();
    message.containers.push(foreign);
    node.send(message);
    assert_eq!(node.shows("Q"), "[B] S2=R c2=R");
    assert_eq!(refused(&node), 1);
}

/// The list of Q shows P's container as Q's: that is refused, and says nothing of whether P has it.
#[test]
fn a_list_of_one_pod_does_not_keep_the_container_of_another_alive() {
    let mut node = with_two_pods();
    node.world.container("c1").pod = node.world.container("c2").pod.clone();
    node.request_relist("Q");
    assert_eq!(refused(&node), 1);
    node.world.remove("c1");
    node.wait(5.0);
    node.take_told();
    node.relist();
    assert_eq!(node.shows("P"), "[A] S1=R");
}

#[test]
fn a_snapshot_without_the_subject_and_none_at_all_are_counted_apart() {
    let mut node = Node::with_c1();
    let mut lacks_it = node.event(Started, "c1");
    lacks_it.containers.clear();
    let mut unknown = lacks_it.clone();
    unknown.id = "nobody".into();
    for message in [lacks_it, unknown] {
        node.send(message.clone());
        let mut empty = message;
        empty.sandbox = None;
        node.send(empty);
    }
    let counted = &node.engine.counters().contradictions;
    assert_eq!(counted.get(&Contradiction::SubjectMissing), Some(&2));
    assert_eq!(counted.get(&Contradiction::NoSnapshot), Some(&2));
}

/// There is no pod to look at: only a relist finds what the message was about.
#[test]
fn a_contradiction_about_a_pod_that_nobody_knows_makes_a_relist_due() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    node.world.run("S1", "c1");
    node.tell(Stopped, "c1");
    assert_eq!(node.take_relists(), 1);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
}
