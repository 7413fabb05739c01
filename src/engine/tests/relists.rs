//! What a relist tells, and what it must not.

use super::*;

/// A polling node with a ready pod `P`, whose sandbox `S1` runs `c1`.
fn polled() -> Node {
    let mut node = Node::polling();
    node.world.sandbox("P", "S1", "A");
    node.world.run("S1", "c1");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(S1)", "Started(c1)"]);
    node.forget_the_past();
    node
}

/// C2
#[test]
fn what_vanished_between_two_relists_is_told_and_cleaned_up_once() {
    let mut node = polled();
    node.world.exit("c1", 0);
    node.world.stop_sandbox("S1");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c1)", "Died(S1)"]);
    node.world.remove_all();
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Removed(c1)", "Removed(S1)"]);
    assert_eq!(node.shows("P"), "-");
    node.wait(1.0);
    assert_eq!(node.take_told(), NOTHING);
}

/// C3
#[test]
fn exited_and_removed_within_one_period_is_told_as_both() {
    let mut node = polled();
    node.world.exit("c1", 0);
    node.world.remove("c1");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c1)", "Removed(c1)"]);
}

/// C4, the polling half: nothing was observed, so nothing is claimed.
#[test]
fn a_life_wholly_between_two_relists_is_not_told_while_polling() {
    let mut node = polled();
    node.world.run("S1", "c9");
    node.world.exit("c9", 3);
    node.world.remove("c9");
    node.wait(3.0);
    assert_eq!(node.take_told(), NOTHING);
}

/// C13
#[test]
fn a_container_that_vanishes_between_list_and_status_holds_nothing_back() {
    let mut node = polled();
    node.world.run("S1", "c-old");
    node.world.exit("c-old", 1);
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c-old)"]);
    node.world.exit("c1", 5);
    node.world.vanished.insert("c-old");
    node.request_reinspect("P");
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(5)");
    assert_eq!(
        node.take_told(),
        ["Removed(c-old)", "Died(c1)", "PodSync(P)"]
    );
    node.world.vanished.clear();
    node.world.remove("c-old");
    node.wait(3.0);
    assert_eq!(node.take_told(), NOTHING);
}

/// C13, at first sight of the container.
#[test]
fn a_container_seen_first_and_already_gone_is_told_as_it_was_observed() {
    let mut node = polled();
    node.world.run("S1", "c-old");
    node.world.exit("c-old", 1);
    node.world.vanished.insert("c-old");
    node.at(1.0);
    assert_eq!(node.take_told(), ["Died(c-old)", "Removed(c-old)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
}

/// C13, of a sandbox.
#[test]
fn a_sandbox_that_vanishes_between_list_and_status_is_no_error() {
    let mut node = polled();
    node.world.exit("c1", 0);
    node.world.stop_sandbox("S1");
    node.world.vanished.insert("S1");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c1)", "Died(S1)", "Removed(S1)"]);
    assert_eq!(node.shows("P"), "[A] c1=X(0)");
}

/// C14, while polling.
#[test]
fn a_start_that_failed_between_two_relists_died_and_never_started() {
    let mut node = polled();
    node.world.create("S1", "c2");
    node.wait(1.0);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c2=C c1=R");
    node.world.exit("c2", 128);
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c2)"]);
    assert_eq!(node.exit_code("c2"), Some(128));
    assert_eq!(node.shows("P"), "[A] S1=R c2=X(128) c1=R");
}

/// C15
#[test]
fn the_sandbox_of_a_finished_pod_dies_once_and_its_containers_stay_shown() {
    let mut node = polled();
    node.world.exit("c1", 0);
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    node.world.stop_sandbox("S1");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(S1)"]);
    assert_eq!(node.shows("P"), "[A] S1=X c1=X(0)");
    node.wait(5.0);
    assert_eq!(node.take_told(), NOTHING);
}

/// C15, the second half.
#[test]
fn a_sandbox_first_seen_not_ready_died_and_never_started() {
    let mut node = polled();
    node.world.sandbox("Q", "S2", "");
    node.world.stop_sandbox("S2");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(S2)"]);
}

/// C17, the minimum: what is removed is gone from the status.
#[test]
fn a_removed_finished_container_leaves_its_pods_others_alone() {
    let mut node = polled();
    node.world.run("S1", "c2");
    node.world.exit("c1", 0);
    node.wait(1.0);
    assert_eq!(node.take_told_sorted(), ["Died(c1)", "Started(c2)"]);
    node.world.remove("c1");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Removed(c1)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c2=R");
}

/// C21
#[test]
fn what_is_simply_still_dead_dies_once() {
    let mut node = polled();
    node.world.exit("c1", 1);
    node.wait(10.0);
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!(node.take_relists(), 10);
}

/// C22
#[test]
fn a_crash_loop_is_told_generation_by_generation_without_events() {
    let mut node = polled();
    for generation in 1..=5 {
        let (old, new) = (format!("c{generation}"), format!("c{}", generation + 1));
        node.world.exit(&old, 1);
        node.world.run("S1", &new);
        node.world.container(&new).attempt = generation;
        node.wait(1.0);
        let expected = [format!("Died({old})"), format!("Started({new})")];
        assert_eq!(node.take_told(), expected);
        assert_eq!(node.exit_code(&old), Some(1));
        node.world.remove(&old);
        node.wait(1.0);
        assert_eq!(node.take_told(), [format!("Removed({old})")]);
    }
}

/// X-LIST-ERROR
#[test]
fn a_failed_list_changes_nothing_and_claims_no_freshness() {
    let mut node = polled();
    let (shown, observed) = (node.shows("P"), node.observed("P"));
    node.world.remove_all();
    node.world.lists_fail = true;
    node.wait(5.0);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), shown);
    assert_eq!(node.observed("P"), observed);
    node.world.lists_fail = false;
    node.wait(1.0);
    assert_eq!(node.shows("P"), "-");
}

/// Oracle rule 5 and X-GRP-NO-META: an item that could not be read is present.
#[test]
fn an_unreadable_item_of_a_list_is_neither_removed_nor_vouched_for() {
    let mut node = polled();
    let observed = node.observed("P");
    node.hold(Call::FullRelist);
    node.wait(1.0);
    let Answer::Listed(Ok(list)) = &mut node.held[0].1 else {
        panic!("a list is held");
    };
    list.containers.items.clear();
    list.containers.unreadable.push("c1".into());
    list.containers
        .refused
        .push(crate::lifecycle::Refusal::NoMetadata);
    node.release();
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    assert_eq!(node.observed("P"), observed);
    let refused = &node.engine.counters().refused;
    assert_eq!(refused[&crate::lifecycle::Refusal::NoMetadata], 1);
}

/// X-GRP-NO-SBX
#[test]
fn a_container_without_a_sandbox_makes_its_pod_by_its_labels() {
    let mut node = polled();
    node.world.sandbox("Q", "S2", "B");
    node.world.run("S2", "orphan");
    node.world.remove("S2");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(orphan)"]);
    assert_eq!(node.shows("Q"), "[] orphan=R");
    node.world.remove("orphan");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(orphan)", "Removed(orphan)"]);
    assert_eq!(node.shows("Q"), "-");
}

/// A8: what an answer does not speak of is not gone.
#[test]
fn an_inspection_that_answers_for_no_container_removes_none() {
    let mut node = polled();
    node.world.run("S1", "c2");
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Started(c2)"]);
    node.hold(Call::Inspect);
    node.world.exit("c2", 4);
    node.wait(1.0);
    let Answer::Inspected(answer) = &mut node.held[0].1 else {
        panic!("an inspection is held");
    };
    answer.containers.clear();
    node.release();
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(
        node.shows("P"),
        "[A] S1=R c2=X c1=R error: no status of c2 was answered"
    );
    node.wait(1.0);
    assert_eq!(node.take_told(), ["Died(c2)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c2=X(4) c1=R");
}

/// A8, the variant: a status read shows one container of two.
#[test]
fn a_partial_inspection_does_not_speak_of_the_rest() {
    let mut node = polled();
    node.world.run("S1", "c2");
    node.wait(1.0);
    node.take_told();
    node.hold(Call::Inspect);
    node.request_reinspect("P");
    let Answer::Inspected(answer) = &mut node.held[0].1 else {
        panic!("an inspection is held");
    };
    answer.containers.retain(|(id, _)| id.as_str() == "c1");
    node.release();
    assert_eq!(node.take_told(), NOTHING);
    assert!(node.shows("P").starts_with("[A] S1=R c2=R c1=R"));
}
