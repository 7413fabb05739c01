//! What is kept of pods and subjects, and what is let go.

use super::world::identity;
use super::*;
use crate::lifecycle::{PodIdentity, PodUid};

fn knows(node: &Node, pod: &str) -> bool {
    node.engine.records.pods.contains_key(&PodUid::from(pod))
}

fn name_of(node: &Node, pod: &str) -> String {
    node.cache[pod].pod.name.to_string()
}

/// A pod that only a container's labels name, which lack its name.
fn with_a_container_without_names(node: &mut Node) {
    node.world.sandbox("P", "S1", "A");
    node.world.run("S1", "c1");
    node.world.container("c1").pod = Some(PodIdentity {
        name: "".into(),
        ..identity("P")
    });
}

#[test]
fn a_pod_that_is_gone_and_forgotten_leaves_nothing_behind() {
    let mut node = Node::with_c1();
    node.world.remove_all();
    node.relist();
    node.wait(2.0);
    assert!(knows(&node, "P"), "its tombstones are kept for a while");
    node.wait(700.0);
    assert_eq!(node.engine.tombstones(), 0);
    assert!(!knows(&node, "P"));
}

#[test]
fn readers_of_pods_that_never_were_leave_nothing_behind_and_publish_nothing() {
    let mut node = Node::trusted();
    let before = node.revision;
    node.hold(Call::FullRelist);
    node.hold(Call::PodRelist);
    let reader = node.read("nobody");
    assert!(knows(&node, "nobody"));
    node.release();
    assert_eq!(node.answer(reader).as_deref(), Some("-"));
    assert!(!knows(&node, "nobody"));
    assert_eq!(node.engine.next_revision(), Revision(before.0 + 1));
}

#[test]
fn a_container_without_names_takes_none_from_its_pod() {
    let mut node = Node::polling();
    with_a_container_without_names(&mut node);
    node.world.containers.clear();
    node.wait(2.0);
    with_a_container_without_names(&mut node);
    node.wait(2.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    assert_eq!(name_of(&node, "P"), "P");
}

#[test]
fn a_pod_without_a_name_is_named_by_whatever_names_it_later() {
    let mut node = Node::polling();
    with_a_container_without_names(&mut node);
    let sandbox = node.world.sandboxes.remove("S1").expect("it was made");
    node.wait(2.0);
    assert_eq!(name_of(&node, "P"), "");
    node.world.sandboxes.insert("S1".into(), sandbox);
    node.wait(2.0);
    assert_eq!(name_of(&node, "P"), "P");
}

/// A DELETED that was wrong: what is in the runtime after all must not be evicted as a tombstone.
#[test]
fn a_container_that_came_back_is_no_tombstone() {
    let mut node = Node::with_c1();
    let c1 = node.world.containers["c1"].clone();
    node.delete("c1");
    assert_eq!(node.engine.tombstones(), 1);
    node.world.containers.insert("c1".into(), c1);
    for _ in 0..3 {
        node.wait(2.0);
        node.relist();
    }
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    assert_eq!(node.engine.tombstones(), 0);
}

#[test]
fn a_tombstone_keeps_nothing_of_how_the_container_ended() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 137);
    node.tell(Stopped, "c1");
    let of_c1 = SubjectId::Container("c1".into());
    let keeps_its_end = |node: &Node| {
        let subject = node.engine.records.subjects.get(&of_c1);
        subject.is_some_and(|subject| subject.exit().is_some() || subject.told_by_stream.is_some())
    };
    assert!(keeps_its_end(&node));
    node.delete("c1");
    assert_eq!(node.exit_code("c1"), Some(137));
    assert!(!keeps_its_end(&node));
}
