//! What belongs to a pod: several sandboxes, their order, and the addresses.

use super::*;

/// A pod `P` whose first sandbox ended and whose second one runs `c2`, all told by the stream.
fn with_second_sandbox() -> Node {
    let mut node = Node::with_c1();
    node.world.exit("c1", 137);
    node.tell(Stopped, "c1");
    node.world.stop_sandbox("S1");
    node.wait(1.0);
    node.world.sandbox("P", "S2", "B");
    node.tell(Started, "S2");
    node.world.run("S2", "c2");
    node.tell(Started, "c2");
    node
}

/// A16 [HARD]
#[test]
fn removing_an_old_sandbox_leaves_the_live_one_alone() {
    let mut node = with_second_sandbox();
    assert_eq!(node.take_told(), ["Died(c1)", "Started(S2)", "Started(c2)"]);
    node.tell(Stopped, "S1");
    assert_eq!(node.take_told(), ["Died(S1)"]);
    assert_eq!(node.shows("P"), "[B] S2=R S1=X c2=R c1=X(137)");
    node.delete("c1");
    assert_eq!(node.take_told(), ["Removed(c1)"]);
    assert_eq!(node.shows("P"), "[B] S2=R S1=X c2=R");
    let mut deleted = node.event(Deleted, "S1");
    node.world.remove("S1");
    deleted.sandbox.as_mut().unwrap().state = ReportedState::Exited;
    node.send(deleted);
    assert_eq!(node.take_told(), ["Removed(S1)"]);
    assert_eq!(node.shows("P"), "[B] S2=R c2=R");
    let reader = node.read("P");
    assert_eq!(node.answer(reader).unwrap(), "[B] S2=R c2=R");
    node.world.exit("c2", 0);
    node.tell(Stopped, "c2");
    node.delete("c2");
    node.world.stop_sandbox("S2");
    node.tell(Stopped, "S2");
    assert_eq!(node.shows("P"), "[B] S2=X");
    node.delete("S2");
    assert_eq!(node.shows("P"), "-");
}

/// A16, the variant: the new sandbox's events overtake the old one's end.
#[test]
fn a_new_sandbox_whose_events_come_first_is_kept_as_the_newest() {
    let mut node = Node::with_c1();
    node.world.sandbox("P", "S2", "B");
    node.tell(Started, "S2");
    assert_eq!(node.shows("P"), "[B] S2=R S1=R c1=R");
    node.world.exit("c1", 137);
    node.world.stop_sandbox("S1");
    node.tell(Stopped, "S1");
    assert_eq!(node.shows("P"), "[B] S2=R S1=X c1=X(137)");
    assert_eq!(node.take_told(), ["Started(S2)", "Died(c1)", "Died(S1)"]);
}

/// D2, X-GRP-TWO-SBX: from a relist and from events.
#[test]
fn the_newest_sandbox_is_the_one_of_the_highest_attempt_whatever_the_clock_said() {
    let year = 365 * 24 * 3_600_000_000_000;
    for by_events in [false, true] {
        let mut node = Node::trusted();
        node.world.sandbox("P", "S0", "A");
        node.world.stop_sandbox("S0");
        node.world.sandbox("P", "S1", "B");
        let created = node.world.wall.0 - year;
        node.world.sandbox_mut("S1").created_at = Some(UnixNanos(created));
        if by_events {
            node.tell(Stopped, "S0");
            node.tell(Started, "S1");
        } else {
            node.relist();
        }
        assert_eq!(node.shows("P"), "[B] S1=R S0=X");
    }
}

/// D2: the same attempt twice is ordered by creation, then id.
#[test]
fn sandboxes_of_one_attempt_are_ordered_by_creation_then_id() {
    let mut node = Node::polling();
    for id in ["old", "b", "a"] {
        node.world.sandbox("P", id, "A");
        node.world.sandbox_mut(id).attempt = 5;
    }
    node.world.sandbox_mut("old").created_at = Some(UnixNanos(NOON - 1));
    node.wait(1.0);
    assert_eq!(node.shows("P"), "[A] a=R b=R old=R");
}

/// D3
#[test]
fn the_newest_container_of_a_name_is_the_one_of_the_highest_attempt() {
    let mut node = Node::polling();
    node.world.sandbox("P", "S1", "A");
    for (id, attempt, created) in [("c0", 0, 200), ("c1", 1, 140)] {
        node.world.run("S1", id);
        let container = node.world.container(id);
        container.name = "app".into();
        container.attempt = attempt;
        container.created_at = Some(UnixNanos(NOON + created));
    }
    node.world.exit("c0", 1);
    node.wait(1.0);
    let newest = node.cache["P"].container("app").unwrap();
    assert_eq!(newest.id.as_str(), "c1");
    assert_eq!(newest.state, ReportedState::Running);
}

/// D4, G-IP-1a, G-IP-1b, X-IP-NOTREADY-STATUS: told by relist and by event.
#[test]
fn a_finished_pod_keeps_its_address_until_its_entry_goes() {
    for by_event in [false, true] {
        let mut node = Node::with_c1();
        node.world.exit("c1", 0);
        node.world.stop_sandbox("S1");
        if by_event {
            node.tell(Stopped, "S1");
        } else {
            node.relist();
        }
        assert_eq!(node.shows("P"), "[A] S1=X c1=X(0)");
        node.request_reinspect("P");
        assert_eq!(node.shows("P"), "[A] S1=X c1=X(0)");
        node.world.remove("S1");
        node.relist();
        assert_eq!(node.shows("P"), "[A] c1=X(0)");
        node.world.remove_all();
        node.relist();
        assert_eq!(node.shows("P"), "-");
    }
}

/// D6
#[test]
fn the_address_stays_through_every_update_of_a_death() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(0)");
    node.world.sandbox_mut("S1").ips.clear();
    node.tell(Stopped, "c1");
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(0)");
    node.world.stop_sandbox("S1");
    node.tell(Stopped, "c1");
    assert_eq!(node.shows("P"), "[A] S1=X c1=X(0)");
    node.tell(Stopped, "S1");
    assert_eq!(node.shows("P"), "[A] S1=X c1=X(0)");
    assert_eq!(node.take_told(), ["Died(c1)", "Died(S1)"]);
}

/// D7
#[test]
fn a_pods_addresses_are_its_newest_sandboxs_and_all_ready_ones_are_shown() {
    let node = with_second_sandbox();
    assert!(node.shows("P").starts_with("[B] S2=R"));
    let mut node = Node::with_c1();
    node.world.sandbox("P", "S2", "B");
    node.relist();
    assert_eq!(node.shows("P"), "[B] S2=R S1=R c1=R");
    let ips = node.cache["P"].sandboxes.iter().map(|it| it.ips.join(" "));
    assert_eq!(ips.collect::<Vec<_>>(), ["B", "A"]);
}

/// E-IP-1: primary first, in the runtime's order.
#[test]
fn new_addresses_replace_the_old_ones() {
    let mut node = Node::with_c1();
    node.world.sandbox_mut("S1").ips = vec!["10.0.0.10".into(), "fd00::1".into()];
    node.request_reinspect("P");
    assert_eq!(node.shows("P"), "[10.0.0.10 fd00::1] S1=R c1=R");
}

/// E-IP-2: a new sandbox never inherits the old one's address.
#[test]
fn a_new_sandbox_without_an_address_shows_none() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 0);
    node.world.stop_sandbox("S1");
    node.tell(Stopped, "S1");
    node.world.sandbox("P", "S2", "");
    node.tell(Started, "S2");
    assert_eq!(node.shows("P"), "[] S2=R S1=X c1=X(0)");
    // The address comes without an event; the watch over unsettled pods finds it.
    node.world.sandbox_mut("S2").ips = vec!["B".into()];
    node.wait(1.0);
    assert_eq!(node.shows("P"), "[B] S2=R S1=X c1=X(0)");
}

/// E-IP-3
#[test]
fn a_pod_on_the_nodes_network_has_no_address_and_is_settled() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "");
    node.world.sandbox_mut("S1").host_network = true;
    node.tell(Started, "S1");
    node.wait(60.0);
    assert_eq!(node.shows("P"), "[] S1=R");
    assert_eq!(node.take_asked(), NOTHING);
    assert_eq!(node.engine.unsettled_pods(), 0);
}

/// Between two lists the old sandbox ended, a new one began, and one of its two containers ended again.
#[test]
fn what_one_list_shows_is_told_as_it_may_have_happened() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 137);
    node.world.stop_sandbox("S1");
    node.world.sandbox("P", "S2", "B");
    node.world.run("S2", "a1");
    node.world.exit("a1", 0);
    node.world.run("S2", "a2");
    node.relist();
    assert_eq!(
        node.take_told(),
        [
            "Died(c1)",
            "Died(S1)",
            "Started(S2)",
            "Started(a2)",
            "Died(a1)"
        ]
    );
}
