//! What a reader is told, and when: freshness comes from reads alone.

use super::*;

/// A1: the worker that asks after its own sync is not released by a half-way status.
#[test]
fn a_reader_never_gets_a_half_way_status_from_before_its_mark() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    node.tell(Started, "S1");
    node.at(10.1);
    node.world.create("S1", "c1");
    let created = node.event(Created, "c1");
    node.at(10.12);
    node.send(created);
    assert_eq!(node.shows("P"), "[A] S1=R c1=C");
    node.at(10.25);
    node.world.start("c1");
    let started = node.event(Started, "c1");
    node.at(10.31);
    node.hold(Call::PodRelist);
    let reader = node.read("P");
    node.at(10.4);
    assert_eq!(node.answer(reader), None);
    node.at(10.8);
    node.send(started);
    // Law 3.1: the event moved the cache, and no event moves freshness.
    assert_eq!(node.shows("P"), "[A] S1=R c1=R");
    assert_eq!(node.answer(reader), None);
    node.release();
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=R");
    assert_eq!(node.take_told(), ["Started(S1)", "Started(c1)"]);
}

/// A1 (a): the STARTED never comes.
#[test]
fn a_reader_is_released_by_its_own_read_when_the_event_is_lost() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    node.tell(Started, "S1");
    node.world.create("S1", "c1");
    node.tell(Created, "c1");
    node.wait(0.2);
    node.world.start("c1");
    let reader = node.read("P");
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=R");
    assert_eq!(node.take_told(), ["Started(S1)", "Started(c1)"]);
}

/// A2, C-INIT, G-LOOP-1: a cache that has seen nothing says nothing, not "nothing is there".
#[test]
fn before_the_first_relist_no_reader_is_answered() {
    let mut node = Node::new();
    node.world.sandbox("P", "S1", "A");
    node.world.run("S1", "c1");
    node.hold(Call::FullRelist);
    node.start();
    node.at(1.5);
    let reader = node.read("P");
    let absent = node.read_newer_than("Q", Mark::default(), Freshness::Phases);
    node.at(4.0);
    assert_eq!((node.answer(reader), node.answer(absent)), (None, None));
    assert_eq!(node.take_told(), NOTHING);
    node.release();
    assert_eq!(node.answer(absent).unwrap(), "-");
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=R");
    assert_eq!(node.take_told(), ["Started(S1)", "Started(c1)"]);
}

/// A3: `Version` answers all the while, and proves nothing of the pod.
#[test]
fn a_reader_finds_the_death_that_the_stream_lost() {
    let mut node = Node::with_c1();
    node.at(5.0);
    node.world.exit("c1", 137);
    node.at(5.5);
    let mark = node.mark();
    node.at(6.0);
    let reader = node.read_newer_than("P", mark, Freshness::Details);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=X(137)");
    assert_eq!(node.take_told(), ["Died(c1)"]);
    node.relist();
    assert_eq!(node.take_told(), NOTHING);
}

/// A4: exactly one targeted relist and its inspection.
#[test]
fn a_reader_of_a_steady_pod_is_answered_at_once_by_one_targeted_relist() {
    let mut node = Node::with_c1();
    node.at(100.0);
    node.take_asked();
    let mark = node.mark();
    let reader = node.read_newer_than("P", mark, Freshness::Details);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=R");
    assert!(node.observed("P") > Some(mark));
    assert_eq!(node.take_asked(), ["Relist(P)", "Inspect(S1 c1)"]);
    assert_eq!(node.take_told(), NOTHING);
    // C-WAIT-SET and its kin: whoever asks again with the same mark is answered from the cache.
    let again = node.read_newer_than("P", mark, Freshness::Details);
    assert_eq!(node.answer(again).unwrap(), "[A] S1=R c1=R");
    assert_eq!(node.take_asked(), NOTHING);
}

/// A4, for a caller who needs phases alone.
#[test]
fn a_reader_of_phases_costs_no_inspection() {
    let mut node = Node::with_c1();
    let mark = node.mark();
    let reader = node.read_newer_than("P", mark, Freshness::Phases);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=R");
    assert_eq!(node.take_asked(), ["Relist(P)"]);
}

/// A24
#[test]
fn a_sandboxs_events_do_not_release_a_reader_who_asks_after_them() {
    let mut node = Node::trusted();
    node.world.sandbox("P", "S1", "A");
    node.hold(Call::PodRelist);
    node.tell(Created, "S1");
    let reader = node.read("P");
    node.tell(Started, "S1");
    assert_eq!(node.take_told(), ["Started(S1)"]);
    assert_eq!(node.shows("P"), "[A] S1=R");
    node.wait(1.0);
    assert_eq!(node.answer(reader), None);
    node.world.run("S1", "c1");
    let later = node.read("P");
    node.release();
    // The read that was sent before the container came serves the first reader alone.
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R");
    assert_eq!(node.answer(later).unwrap(), "[A] S1=R c1=R");
}

/// C10 of the law check: a wish shares a read only while that is not yet sent.
#[test]
fn a_reader_never_joins_a_read_that_was_sent_before_it_asked() {
    let mut node = Node::with_c1();
    node.hold(Call::PodRelist);
    let first = node.read("P");
    node.world.exit("c1", 1);
    let second = node.read("P");
    let third = node.read("P");
    assert_eq!(node.take_asked(), ["Relist(P)"]);
    node.release();
    assert_eq!(node.answer(second).unwrap(), "[A] S1=R c1=X(1)");
    assert_eq!(node.answer(third), node.answer(second));
    assert!(node.answer(first).is_some());
    let asked = node.take_asked();
    let relists = asked.iter().filter(|asked| *asked == "Relist(P)").count();
    assert_eq!(relists, 1, "the later two share one: {asked:?}");
    assert_eq!(node.take_told(), ["Died(c1)"]);
}

/// C-NEWER-EXISTS-0, C-NEWER-EXISTS-1, C-NEWER-ABSENT-0, C-WAIT-GLOBAL: a full relist vouches for every pod.
#[test]
fn a_full_relist_answers_whoever_asks_for_phases_from_before_it() {
    let mut node = Node::with_c1();
    let mark = node.mark();
    node.relist();
    let reader = node.read_newer_than("P", mark, Freshness::Phases);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=R");
    let absent = node.read_newer_than("Q", mark, Freshness::Details);
    assert_eq!(node.answer(absent).unwrap(), "-");
    assert_eq!(node.take_asked(), ["Relist"]);
}

/// C-NEWER-EXISTS-3, C-WAIT-OBSERVED, C-WAIT-ABSENT-SET: a pod that nobody knows may
/// be one that carries no label, so only an unfiltered list can answer.
#[test]
fn a_reader_of_an_unknown_pod_waits_for_a_full_relist_of_its_own() {
    let mut node = Node::with_c1();
    node.hold(Call::FullRelist);
    let reader = node.read("Q");
    node.wait(3.0);
    assert_eq!(node.answer(reader), None);
    assert_eq!(node.take_asked(), ["Relist"]);
    node.world.sandbox("Q", "S2", "B");
    let later = node.read("Q");
    node.release();
    assert_eq!(node.answer(reader).unwrap(), "-");
    node.wait(1.0);
    assert_eq!(node.answer(later).unwrap(), "[B] S2=R");
}

/// G-LOOP-2, G-LOOP-3
#[test]
fn a_targeted_relist_answers_its_own_pods_readers_and_a_full_one_all() {
    let mut node = Node::with_c1();
    node.world.sandbox("Q", "S2", "B");
    node.tell(Started, "S2");
    node.hold(Call::PodRelist);
    let of_p = node.read_newer_than("P", Mark::default(), Freshness::Details);
    let mark = node.mark();
    let (p, q) = (
        node.read_newer_than("P", mark, Freshness::Phases),
        node.read_newer_than("Q", mark, Freshness::Phases),
    );
    let (request, answer) = node.held.remove(0);
    node.handle(Input::Answered { request, answer });
    assert!(node.answer(of_p).is_some());
    assert_eq!((node.answer(p), node.answer(q)), (None, None));
    node.relist();
    assert_eq!(node.answer(p).unwrap(), "[A] S1=R c1=R");
    assert_eq!(node.answer(q).unwrap(), "[B] S2=R");
}

/// X-BOUNDARY, C-NOTIFY-SET: a mark lies between two reads, so there is no equal time to argue about.
#[test]
fn a_mark_taken_at_the_instant_of_a_read_is_after_it() {
    let mut node = Node::with_c1();
    node.relist();
    let mark = node.mark();
    assert!(node.observed("P") < Some(mark));
    let reader = node.read_newer_than("P", mark, Freshness::Phases);
    assert_eq!(node.take_asked(), ["Relist", "Relist(P)"]);
    assert!(node.answer(reader).is_some());
}

/// X-DELETE-SILENT as it should be, C9 of the law check: the DELETED starts the read that answers.
#[test]
fn a_reader_of_a_pod_that_goes_away_is_answered_by_the_read_that_shows_it_gone() {
    let mut node = Node::with_c1();
    node.hold(Call::PodRelist);
    let reader = node.read("P");
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.delete("c1");
    node.world.stop_sandbox("S1");
    node.tell(Stopped, "S1");
    node.delete("S1");
    assert_eq!(node.shows("P"), "-");
    let later = node.read("P");
    assert_eq!((node.answer(reader), node.answer(later)), (None, None));
    node.release();
    assert_eq!(node.answer(reader).unwrap(), "-");
    assert_eq!(node.answer(later).unwrap(), "-");
    assert_eq!(
        node.take_told(),
        ["Died(c1)", "Removed(c1)", "Died(S1)", "Removed(S1)"]
    );
}

/// X-EV-TICK: time alone releases nobody.
#[test]
fn no_timer_moves_freshness() {
    let mut node = Node::with_c1();
    let observed = node.observed("P");
    node.wait(120.0);
    assert_eq!(node.observed("P"), observed);
    node.hold(Call::PodRelist);
    node.hold(Call::FullRelist);
    let reader = node.read("P");
    node.wait(100.0);
    assert_eq!(node.answer(reader), None);
}

/// X-OBSERVED-BACK as it should be: the newest read that vouched counts, whatever came after it.
#[test]
fn a_relist_that_cannot_vouch_takes_no_freshness_away() {
    let mut node = Node::with_c1();
    node.relist();
    let observed = node.observed("P");
    assert!(observed.is_some());
    node.hold(Call::FullRelist);
    node.relist();
    node.world.exit("c1", 0);
    node.tell(Stopped, "c1");
    node.release();
    assert_eq!(node.observed("P"), observed);
    let reader = node.read_newer_than("P", observed.unwrap(), Freshness::Phases);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=X(0)");
}

/// Law 3.1: a reader who gave up causes nothing more.
#[test]
fn a_reader_who_gives_up_is_forgotten() {
    let mut node = Node::with_c1();
    node.hold(Call::PodRelist);
    node.read("P");
    let reader = node.read("P");
    node.handle(Input::CancelRead { reader });
    node.release();
    assert_eq!(node.answer(reader), None);
    assert_eq!(node.take_asked(), ["Relist(P)", "Inspect(S1 c1)"]);
}

/// Law 3.1: only a read that succeeded vouches; one that failed is sent again.
#[test]
fn a_reader_outlives_a_failed_read() {
    let mut node = Node::with_c1();
    node.world.lists_fail = true;
    let reader = node.read("P");
    node.wait(0.5);
    assert_eq!(node.answer(reader), None);
    node.world.lists_fail = false;
    node.wait(1.0);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=R");
    assert_eq!(
        node.take_asked(),
        ["Relist(P)", "Relist(P)", "Inspect(S1 c1)"]
    );
}

/// The retry of an inspection that keeps failing backs off up to a minute, and a reader of phases, which
/// need no inspection, waited for it.
#[test]
fn a_reader_does_not_wait_for_the_retry_of_somebody_elses_inspection() {
    let mut node = Node::with_c1();
    node.world.unreadable.insert("P");
    node.request_reinspect("P");
    // After 1, 2, 4, 8 and 16 s; the next try is 32 s away.
    node.wait(35.0);
    let mark = node.mark();
    let reader = node.read_newer_than("P", mark, Freshness::Phases);
    assert_eq!(
        node.answer(reader).unwrap(),
        "[A] S1=R c1=R error: network namespace busy"
    );
}

/// What an event adds to what lists have shown is no hearsay.
#[test]
fn whoever_asks_for_no_more_than_was_read_is_answered_at_once_after_an_event() {
    let mut node = Node::with_c1();
    node.world.create("S1", "c2");
    node.relist();
    node.wait(5.0);
    node.forget_the_past();
    node.world.start("c2");
    node.tell(Started, "c2");
    let reader = node.read_newer_than("P", Mark::default(), Freshness::Phases);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c2=R c1=R");
    assert_eq!(node.take_asked(), NOTHING);
}

/// Nor is an end of what the runtime did not know: nothing is older than that.
#[test]
fn whoever_asks_is_answered_at_once_after_the_end_of_what_the_runtime_did_not_know() {
    let mut node = Node::with_c1();
    node.world.container("c1").state = ReportedState::Unknown;
    node.relist();
    node.wait(5.0);
    node.forget_the_past();
    node.world.exit("c1", 7);
    node.tell(Stopped, "c1");
    let reader = node.read_newer_than("P", Mark::default(), Freshness::Phases);
    assert_eq!(node.answer(reader).unwrap(), "[A] S1=R c1=X(7)");
    assert_eq!(node.take_asked(), NOTHING);
}
