//! "PLEG is not healthy": when, why, and when not.

use super::*;
use crate::engine::HealthState;

/// Health each ten seconds for a while: when it changed, to what.
fn changes(node: &mut Node, seconds: u32) -> Vec<(u32, bool)> {
    let mut changes: Vec<(u32, bool)> = Vec::new();
    for second in (0..=seconds).step_by(10) {
        node.at(f64::from(second));
        let is_healthy = node.health().is_healthy();
        if changes.last().is_none_or(|last| last.1 != is_healthy) {
            changes.push((second, is_healthy));
        }
    }
    changes
}

/// C9, G-HEALTH-1
#[test]
fn before_the_first_relist_health_says_so_and_knows_no_age() {
    let mut node = Node::new();
    node.hold(Call::FullRelist);
    node.start();
    node.at(900.0);
    let health = node.health();
    assert_eq!(health.state, HealthState::NotYetRelisted);
    assert_eq!(health.last_relist_age, None);
    assert!(
        health
            .to_string()
            .starts_with("pleg has yet to be successful"),
        "{health}"
    );
    assert!(!health.to_string().contains("ago"), "{health}");
}

/// G-HEALTH-3
#[test]
fn a_minute_after_a_relist_is_healthy() {
    let mut node = Node::polling();
    node.wait(1.0);
    node.world.lists_fail = true;
    node.wait(60.0);
    assert!(node.health().is_healthy());
    assert_eq!(node.health().to_string(), "ok");
}

/// B17: events alone are no health.
#[test]
fn a_lively_stream_with_failing_lists_is_unhealthy() {
    let mut node = Node::with_c1();
    node.relist();
    node.forget_the_past();
    node.world.lists_fail = true;
    let mut unhealthy_since = None;
    for second in 1..=700 {
        node.at(f64::from(second));
        if second % 7 == 0 {
            node.tell(Started, "c1");
        }
        if !node.health().is_healthy() && unhealthy_since.is_none() {
            unhealthy_since = Some(second);
        }
    }
    assert_eq!(unhealthy_since, Some(601));
    let health = node.health().to_string();
    assert_eq!(
        health,
        "pleg was last seen active 11m40s ago; threshold is 10m0s; mode Evented; last event 0.000s ago"
    );
}

/// B17: silence is no illness.
#[test]
fn an_hour_without_an_event_is_healthy() {
    let mut node = Node::with_c1();
    assert_eq!(changes(&mut node, 3600), [(0, true)]);
    assert!(node.health().last_event_age > Some(Duration::from_secs(3600)));
}

/// B17, E-HEALTH-1, E-HEALTH-2 (a deviation: a full queue of some subscriber is no illness of the node's).
#[test]
fn asking_for_health_changes_nothing() {
    let node = Node::with_c1();
    let before = node.engine.clone();
    for _ in 0..100 {
        assert!(node.health().is_healthy());
    }
    assert_eq!(node.engine, before);
}

/// C7: the age counts from a relist's beginning.
#[test]
fn relists_that_take_longer_than_the_threshold_are_unhealthy_without_flapping() {
    let mut node = Node::polling();
    node.takes(Call::FullRelist, 240.0);
    node.at(0.5);
    node.forget_the_past();
    let changes = changes(&mut node, 1200);
    assert_eq!(changes, [(0, true), (190, false)]);
}

/// C7: relists of 100 s, one after another, with as long a rest as the period.
#[test]
fn slow_relists_within_the_threshold_are_healthy() {
    let mut node = Node::polling();
    node.takes(Call::FullRelist, 85.0);
    assert_eq!(changes(&mut node, 1200), [(0, true)]);
}

/// C8, and G-HEALTH-2
#[test]
fn failing_lists_turn_unhealthy_at_the_threshold_and_one_good_list_heals() {
    let mut node = Node::polling();
    node.at(99.5);
    node.world.lists_fail = true;
    node.at(279.0);
    assert!(node.health().is_healthy());
    node.at(279.1);
    assert_eq!(node.health().state, HealthState::Unhealthy);
    node.at(600.0);
    assert_eq!(node.health().state, HealthState::Unhealthy);
    node.world.lists_fail = false;
    node.at(601.0);
    assert!(node.health().is_healthy());
}

/// C11: the call that hangs is named, with its age.
#[test]
fn a_hanging_call_is_named_with_its_age() {
    let mut node = Node::with_c1();
    node.hold(Call::FullRelist);
    node.relist();
    node.wait(20.0);
    let pending = node.health().pending.unwrap();
    assert_eq!(pending.call, Call::FullRelist);
    assert_eq!(pending.age, Duration::from_secs(20));
    node.release();
    assert_eq!(node.health().pending, None);
    node.hold(Call::PodRelist);
    node.request_relist("P");
    node.wait(7.0);
    let pending = node.health().pending.unwrap();
    assert_eq!(
        (pending.call, pending.uid),
        (Call::PodRelist, Some("P".into()))
    );
}

/// C19
#[test]
fn a_hanging_list_holds_back_neither_events_nor_targeted_relists() {
    let mut node = Node::with_c1();
    node.world.sandbox("P2", "S2", "B");
    node.world.run("S2", "c2");
    node.tell(Started, "c2");
    node.wait(5.0);
    node.relist();
    node.take_told();
    node.forget_the_past();
    node.hold(Call::FullRelist);
    node.relist();
    node.at(10.0);
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    assert_eq!(node.take_told(), ["Died(c1)"]);
    node.at(20.0);
    node.world.exit("c2", 0);
    node.request_relist("P2");
    assert_eq!(node.take_told(), ["Died(c2)"]);
    node.at(500.0);
    assert_eq!(node.take_relists(), 1);
    assert!(node.health().is_healthy());
    node.release();
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(0)");
    assert_eq!(node.shows("P2"), "[B] S2=R c2=X(0)");
}

/// Law 5: a break does not make an audit late that was planned under the slow period.
#[test]
fn a_break_late_in_a_slow_period_is_no_illness() {
    let mut node = Node::with_c1();
    node.relist();
    node.forget_the_past();
    node.at(290.0);
    node.world.is_down = true;
    node.break_stream();
    node.at(291.0);
    assert!(node.health().is_healthy());
    node.at(469.0);
    assert!(node.health().is_healthy());
    node.at(471.0);
    assert!(!node.health().is_healthy());
}
