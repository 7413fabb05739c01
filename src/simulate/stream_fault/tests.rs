use bytes::Bytes;

use super::*;
use crate::simulate::RawEvent;

fn message(id: &str, kind: EventKind) -> Arc<Message> {
    let raw = RawEvent {
        container_id: id.into(),
        ..RawEvent::default()
    };
    Arc::new(raw.kind(kind).into())
}

fn started(id: &str) -> Arc<Message> {
    message(id, EventKind::Started)
}

fn faults(list: impl IntoIterator<Item = StreamFault>) -> StreamFaults {
    let mut faults = StreamFaults::default();
    for (id, fault) in (1..).zip(list) {
        faults.add(FaultId(id), fault);
    }
    faults
}

/// What goes on, of messages with these ids.
fn heard(faults: &mut StreamFaults, ids: &[&'static str]) -> Vec<&'static str> {
    let mut on = Messages::new();
    for id in ids {
        on.extend(faults.pass(Mono(0), started(id)).on);
    }
    names(&on, ids)
}

fn names(messages: &Messages, ids: &[&'static str]) -> Vec<&'static str> {
    messages
        .iter()
        .filter_map(|message| ids.iter().copied().find(|id| message.is_about(id)))
        .collect()
}

#[test]
fn the_next_messages_are_lost_and_no_more() {
    let mut faults = faults([StreamFault::lose().times(2)]);
    assert_eq!(heard(&mut faults, &["a", "b", "c", "d"]), ["c", "d"]);
}

#[test]
fn one_in_three_is_the_first_and_every_third_after_it() {
    let mut faults = faults([StreamFault::lose().one_in(3)]);
    let all = ["a", "b", "c", "d", "e", "f", "g"];
    assert_eq!(heard(&mut faults, &all), ["b", "c", "e", "f"]);
}

#[test]
fn only_what_fits_in_every_way_is_lost() {
    let fault = StreamFault::lose().of_kind(EventKind::Stopped).about("a");
    let mut faults = faults([fault]);
    assert!(!faults.pass(Mono(0), started("a")).lost);
    assert!(!faults.pass(Mono(0), message("b", EventKind::Stopped)).lost);
    assert!(faults.pass(Mono(0), message("a", EventKind::Stopped)).lost);
    let bytes = Arc::new(Message::bytes(Bytes::from_static(b"a")));
    assert!(!faults.pass(Mono(0), bytes).lost);
}

#[test]
fn a_duplicate_follows_at_once() {
    let mut faults = faults([StreamFault::duplicate().times(1)]);
    assert_eq!(heard(&mut faults, &["a", "b"]), ["a", "a", "b"]);
}

#[test]
fn a_message_that_falls_behind_comes_after_those_it_waits_for() {
    let mut faults = faults([StreamFault::behind(2).times(1)]);
    assert_eq!(
        heard(&mut faults, &["a", "b", "c", "d"]),
        ["b", "c", "a", "d"]
    );
}

#[test]
fn what_is_held_comes_in_order_when_the_fault_is_lifted() {
    let mut faults = faults([StreamFault::hold()]);
    assert!(heard(&mut faults, &["a", "b"]).is_empty());
    assert_eq!(names(&faults.lift(FaultId(1)), &["a", "b"]), ["a", "b"]);
    assert_eq!(heard(&mut faults, &["c"]), ["c"]);
}

#[test]
fn each_late_message_comes_when_it_is_due() {
    let second = Duration::from_secs(1);
    let mut faults = faults([
        StreamFault::delay(3 * second).about("slow"),
        StreamFault::delay(second).about("quick"),
    ]);
    for id in ["slow", "quick", "prompt"] {
        let passage = faults.pass(Mono(0), started(id));
        assert_eq!(passage.held, id != "prompt");
    }
    let after = |seconds: u32| Mono(0).after(seconds * second);
    assert_eq!(faults.next_due(), Some(after(1)));
    assert_eq!(faults.due(Mono(after(1).0 - 1)), []);
    assert_eq!(
        faults.due(after(9)),
        [(after(1), started("quick")), (after(3), started("slow"))]
    );
    assert_eq!(faults.next_due(), None);
}

#[test]
fn a_mute_stream_loses_all_and_holds_nothing() {
    let mut faults = faults([StreamFault::hold()]);
    faults.is_muted = true;
    let passage = faults.pass(Mono(0), started("a"));
    assert!(passage.lost && !passage.held);
    faults.is_muted = false;
    assert!(faults.pass(Mono(0), started("a")).held);
    assert_eq!(faults.lift_all().len(), 1);
}
