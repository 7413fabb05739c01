//! Windows, stamps and clocks: what is later, and what only looks later.

use super::*;
use crate::lifecycle::Refusal;

/// A5: a stamp of a wrong unit is refused, and freezes nothing.
#[test]
pub(super) fn an_absurd_stamp_never_makes_an_entry_win_for_ever() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    for stamp in [0, -1, i64::MAX, 1_700_000_000] {
        let mut event = node.event(Started, "c2");
        event.stamp = stamp;
        node.send(event);
    }
    assert_eq!(node.engine.counters().refused[&Refusal::AbsurdStamp], 4);
    node.wait(30.0);
    node.world.exit("c2", 6);
    node.request_reinspect("P");
    assert_eq!(node.shows("P"), "[A] S1=R c2=X(6) c1=R");
    assert_eq!(node.take_told(), ["Started(c2)", "Died(c2)", "PodSync(P)"]);
    let stamp = node
        .last(LifecycleKind::ContainerStarted, "c2")
        .runtime_stamp;
    assert_eq!(
        stamp.unwrap().0 / 1_000_000_000,
        node.world.wall.0 / 1_000_000_000 - 30
    );
}

/// A7: a relist from before the event, applied after it.
#[test]
fn a_relist_that_was_sent_before_an_exit_does_not_undo_it() {
    let mut node = Node::with_c1();
    node.at(100.2);
    node.hold(Call::FullRelist);
    node.relist();
    node.at(100.9);
    node.world.exit("c1", 0);
    node.at(100.91);
    node.tell(Stopped, "c1");
    node.at(100.95);
    node.release();
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(0)");
    node.at(110.0);
    assert_eq!(node.take_told(), ["Died(c1)"]);
}

/// A7, the mirror run: the relist sees it first, the event comes after.
#[test]
fn an_event_after_the_relist_that_found_it_is_no_second_death() {
    let mut node = Node::with_c1();
    node.at(100.9);
    node.world.exit("c1", 0);
    let stopped = node.event(Stopped, "c1");
    node.at(100.99);
    node.relist();
    node.send(stopped);
    node.at(110.0);
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(0)");
    assert_eq!(node.take_told(), ["Died(c1)"]);
    assert_eq!(node.misses(), 0);
}

/// A9, X-SET-EQUAL: no stamp of any answer is asked for; its own window judges it.
#[test]
fn a_relist_repairs_what_an_event_wrote() {
    let mut node = Node::with_c1();
    node.at(310.0);
    node.take_told();
    node.world.exit("c1", 2);
    node.relist();
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(2)");
    assert_eq!(node.take_told(), ["Died(c1)"]);
}

/// B6 [HARD], X-SET-OLDER, X-SET-OLDER-GATE-OFF (a deviation: no gate makes older news win).
#[test]
pub(super) fn a_relist_in_flight_proves_nothing_about_what_events_told_meanwhile() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c3");
    node.tell(Started, "c3");
    node.world.exit("c3", 0);
    node.tell(Stopped, "c3");
    node.at(20.0);
    node.take_told();
    node.hold(Call::FullRelist);
    node.relist();
    node.at(20.1);
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.at(20.2);
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.at(20.3);
    node.delete("c3");
    assert_eq!(node.take_told(), ["Died(c1)", "Started(c2)", "Removed(c3)"]);
    node.at(22.0);
    node.release();
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c2=R c1=X(0)");
    // The list could not judge c2, which was made since it was sent: one more becomes due by itself, but
    // after ten seconds, because this one took two.
    node.at(31.0);
    assert_eq!(node.take_relists(), 2);
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.shows("P"), "[A] S1=R c2=R c1=X(0)");
}

/// D1 [HARD]: the wall clock steps back between two lives of a container.
#[test]
fn a_wall_clock_that_steps_back_freezes_no_pod() {
    let mut node = Node::with_c1();
    node.at(100.0);
    node.world.exit("c1", 1);
    node.tell(Stopped, "c1");
    node.at(100.2);
    let mark = node.mark();
    node.set_wall_clock(-400);
    node.at(100.7);
    node.world.run("S1", "c2");
    node.world.container("c2").attempt = 1;
    node.tell(Started, "c2");
    let reader = node.read_newer_than("P", mark, Freshness::Details);
    let status = &node.answers[&reader].status;
    assert_eq!(status.as_ref().unwrap().container("c2").unwrap().attempt, 1);
    assert_eq!(node.take_told(), ["Died(c1)", "Started(c2)"]);
    node.at(160.0);
    assert!(node.health().is_healthy());
    assert_eq!(node.mode(), "Evented");
    assert_eq!(node.take_told(), NOTHING);
    assert_eq!(node.misses(), 0);
}

/// D1, our decision: news of an unknown id from before the last relist, by its stamp, costs a relist.
#[test]
fn after_a_step_back_a_new_container_is_told_within_a_second_by_a_relist() {
    let mut node = Node::with_c1();
    node.at(100.0);
    node.set_wall_clock(-400);
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.at(101.0);
    assert_eq!(node.take_told(), ["Started(c2)"]);
    // What is known already is not held up by stamps.
    node.world.exit("c2", 0);
    node.tell(Stopped, "c2");
    assert_eq!(node.take_told(), ["Died(c2)"]);
    let before = node.take_relists();
    assert_eq!(before, 1);
}

/// D1, the mirror: 600 s ahead and back.
#[test]
fn a_wall_clock_that_jumps_ahead_and_back_tells_everything_once() {
    let mut node = Node::with_c1();
    node.at(50.0);
    node.set_wall_clock(600);
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.at(51.0);
    node.set_wall_clock(-600);
    node.world.exit("c2", 0);
    node.tell(Stopped, "c2");
    node.world.run("S1", "c3");
    node.tell(Started, "c3");
    node.at(60.0);
    assert_eq!(node.take_told(), ["Started(c2)", "Died(c2)", "Started(c3)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c2=X(0) c3=R c1=R");
    assert!(node.opened.is_empty());
    assert!(node.take_relists() <= 2);
}

/// E-ORD-1
#[test]
fn a_delayed_created_does_not_undo_a_start() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    let created = node.event(Created, "c2");
    node.wait(1.0);
    node.world.start("c2");
    node.tell(Started, "c2");
    node.send(created);
    assert_eq!(node.shows("P"), "[A] S1=R c2=R c1=R");
    assert_eq!(node.take_told(), ["Started(c2)"]);
}

/// E-ORD-2: what nobody knew is taken, and what fills a gap is taken.
#[test]
fn a_created_completes_what_is_known() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.world.container("c2").image_ref = "".into();
    node.tell(Created, "c2");
    node.world.container("c2").image_ref = "sha256:late".into();
    node.tell(Created, "c2");
    let status = &node.cache["P"];
    assert_eq!(&*status.container("c2").unwrap().image_ref, "sha256:late");
}

/// Law 2.2: details of one phase that differ keep the published value and cause an inspection.
#[test]
pub(super) fn an_exit_code_that_changes_in_a_late_event_is_settled_by_a_read() {
    let mut node = Node::with_c1();
    node.world.exit("c1", 1);
    node.tell(Stopped, "c1");
    let mut odd = node.event(Stopped, "c1");
    odd.containers[0].exit_code = 99;
    node.take_asked();
    node.hold(Call::PodRelist);
    node.send(odd);
    assert_eq!(node.shows("P"), "[A] S1=R c1=X(1)");
    assert_eq!(node.take_asked(), ["Relist(P)"]);
    node.world.container("c1").reason = "OOMKilled".into();
    node.release();
    let status = &node.cache["P"];
    assert_eq!(&*status.container("c1").unwrap().reason, "OOMKilled");
    assert_eq!(node.take_told(), ["Died(c1)"]);
}

/// Law 2.2: neither of two reports of one phase is known to be later, so that neither replaces the
/// other.
#[test]
pub(super) fn a_status_from_before_an_event_replaces_nothing_that_the_event_told() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "");
    node.tell(Started, "S1");
    node.hold(Call::Inspect);
    node.request_relist("P");
    node.world.sandbox_mut("S1").ips = vec!["B".into()];
    node.tell(Started, "S1");
    assert_eq!(node.shows("P"), "[B] S1=R");
    node.release();
    assert_eq!(node.shows("P"), "[B] S1=R");
}

/// X-EV-STALE, a deviation: the reference refuses what is stamped before its entry; here stamps order
/// nothing, and what moves a known subject forward is merged.
#[test]
fn an_event_stamped_before_the_entry_still_moves_its_container_forward() {
    let mut node = Node::with_c1();
    node.world.run("S1", "c2");
    node.tell(Started, "c2");
    node.world.exit("c1", 4);
    let mut stopped = node.event(Stopped, "c1");
    stopped.stamp -= 60 * 1_000_000_000;
    node.send(stopped);
    assert_eq!(node.take_told(), ["Started(c2)", "Died(c1)"]);
    assert_eq!(node.shows("P"), "[A] S1=R c2=R c1=X(4)");
    assert_eq!(node.take_asked(), NOTHING);
}
