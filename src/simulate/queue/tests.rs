use std::time::Duration;

use super::*;
use crate::simulate::{Character, EventSupport};

fn queue(character: &Character) -> EventQueue {
    match &character.events {
        EventSupport::Served(delivery) => EventQueue::new(delivery.clone()),
        EventSupport::Unimplemented | EventSupport::EndsAtOnce => panic!("serves no events"),
    }
}

fn message(number: u64) -> Arc<Message> {
    Arc::new(Message::bytes(number.to_string().into()))
}

fn publish(queue: &mut EventQueue, numbers: std::ops::Range<u64>) {
    for number in numbers {
        queue.publish(Mono(0), message(number));
    }
}

/// All that a stream has now, as numbers.
fn heard(queue: &mut EventQueue, stream: StreamId) -> Vec<u64> {
    std::iter::from_fn(|| match queue.next(stream) {
        Next::Message(message) => std::str::from_utf8(&message.encoded()).ok()?.parse().ok(),
        Next::Nothing | Next::End(_) => None,
    })
    .collect()
}

fn seconds(seconds: u64) -> Mono {
    Mono::default().after(Duration::from_secs(seconds))
}

#[test]
fn competing_streams_take_turns() {
    let mut queue = queue(&Character::containerd_1_7());
    let (first, second) = (queue.open(Mono(0)), queue.open(Mono(0)));
    publish(&mut queue, 0..5);
    assert_eq!(heard(&mut queue, first), [0, 2, 4]);
    assert_eq!(heard(&mut queue, second), [1, 3]);
}

#[test]
fn every_stream_gets_every_event_on_containerd_2_and_cri_o() {
    for character in [Character::containerd_2(), Character::cri_o()] {
        let mut queue = queue(&character);
        let (first, second) = (queue.open(Mono(0)), queue.open(Mono(0)));
        publish(&mut queue, 0..3);
        assert_eq!(heard(&mut queue, first), [0, 1, 2]);
        assert_eq!(heard(&mut queue, second), [0, 1, 2]);
        assert_eq!(queue.counts.sent, 6);
    }
}

#[test]
fn without_a_client_containerd_1_7_keeps_the_oldest_thousand_for_ever() {
    let mut queue = queue(&Character::containerd_1_7());
    publish(&mut queue, 0..1003);
    assert_eq!(queue.counts.dropped, 3);
    let stream = queue.open(seconds(86_400));
    assert_eq!(heard(&mut queue, stream), (0..1000).collect::<Vec<_>>());
}

#[test]
fn without_a_client_containerd_2_keeps_five_minutes() {
    let mut queue = queue(&Character::containerd_2());
    queue.publish(seconds(0), message(0));
    queue.publish(seconds(100), message(1));
    queue.publish(seconds(399), message(2));
    let stream = queue.open(seconds(400));
    assert_eq!(heard(&mut queue, stream), [1, 2]);
    assert_eq!(queue.counts.expired, 1);
}

#[test]
fn cri_o_keeps_events_only_until_its_first_client_ever() {
    let mut queue = queue(&Character::cri_o());
    publish(&mut queue, 0..1001);
    let first = queue.open(Mono(0));
    assert_eq!(heard(&mut queue, first), (0..1000).collect::<Vec<_>>());
    queue.abandon(first);
    publish(&mut queue, 2000..2003);
    let second = queue.open(Mono(0));
    assert_eq!(heard(&mut queue, second), Vec::<u64>::new());
    assert_eq!(queue.counts.dropped, 1 + 3);
}

#[test]
fn an_abandoned_stream_of_containerd_1_7_swallows_one_event_even_beside_a_live_one() {
    let mut queue = queue(&Character::containerd_1_7());
    let (gone, live) = (queue.open(Mono(0)), queue.open(Mono(0)));
    queue.abandon(gone);
    assert_eq!(queue.open_streams(), 1);
    publish(&mut queue, 0..4);
    assert_eq!(heard(&mut queue, live), [1, 2, 3]);
    assert_eq!(queue.counts.swallowed, 1);
}

#[test]
fn an_abandoned_stream_of_containerd_2_costs_one_event_only_if_nobody_else_listens() {
    let mut alone = queue(&Character::containerd_2());
    let gone = alone.open(Mono(0));
    alone.abandon(gone);
    publish(&mut alone, 0..3);
    let late = alone.open(Mono(0));
    assert_eq!(heard(&mut alone, late), [1, 2]);
    assert_eq!(alone.counts.swallowed, 1);

    let mut shared = queue(&Character::containerd_2());
    let (gone, live) = (shared.open(Mono(0)), shared.open(Mono(0)));
    shared.abandon(gone);
    publish(&mut shared, 0..3);
    assert_eq!(heard(&mut shared, live), [0, 1, 2]);
    assert_eq!(shared.counts.swallowed, 0);
}

#[test]
fn a_stream_that_does_not_read_blocks_the_producers_of_containerd_2_and_starves_the_others() {
    let mut queue = queue(&Character::containerd_2());
    let (stuck, other) = (queue.open(Mono(0)), queue.open(Mono(0)));
    publish(&mut queue, 0..270);
    assert_eq!(queue.blocked_producers(), 5);
    assert_eq!(heard(&mut queue, other).len(), 265);
    assert_eq!(heard(&mut queue, stuck), (0..270).collect::<Vec<_>>());
    assert_eq!(queue.blocked_producers(), 0);
    assert_eq!(heard(&mut queue, other).len(), 5);
    assert_eq!(queue.counts.dropped, 0);
}

#[test]
fn blocked_producers_go_on_when_the_stuck_client_is_gone() {
    let mut queue = queue(&Character::containerd_2());
    let (stuck, other) = (queue.open(Mono(0)), queue.open(Mono(0)));
    publish(&mut queue, 0..266);
    heard(&mut queue, other);
    assert_eq!(queue.blocked_producers(), 1);
    queue.abandon(stuck);
    assert_eq!(queue.blocked_producers(), 0);
    assert_eq!(heard(&mut queue, other), [265]);
}

#[test]
fn a_stream_that_does_not_read_costs_the_newest_events_on_containerd_1_7_and_cri_o() {
    for character in [Character::containerd_1_7(), Character::cri_o()] {
        let mut queue = queue(&character);
        let stuck = queue.open(Mono(0));
        publish(&mut queue, 0..1170);
        assert_eq!(queue.blocked_producers(), 0);
        assert_eq!(queue.counts.dropped, 5);
        let got = heard(&mut queue, stuck);
        assert_eq!(got, (0..1165).collect::<Vec<_>>());
    }
}

#[test]
fn an_ended_stream_sends_what_it_holds_first() {
    let mut queue = queue(&Character::containerd_2());
    let stream = queue.open(Mono(0));
    publish(&mut queue, 0..1);
    queue.end_all(&StreamEnd::Clean);
    assert_eq!(queue.open_streams(), 0);
    assert_eq!(heard(&mut queue, stream), [0]);
    assert_eq!(queue.next(stream), Next::End(StreamEnd::Clean));
}

#[test]
fn a_restart_forgets_what_was_queued_and_every_stream() {
    let mut queue = queue(&Character::containerd_1_7());
    publish(&mut queue, 0..3);
    let stream = queue.open(Mono(0));
    publish(&mut queue, 3..5);
    let delivery = queue.delivery.clone();
    queue.restart(delivery);
    assert_eq!(queue.next(stream), Next::End(StreamEnd::default()));
    let new = queue.open(Mono(0));
    assert_ne!(new, stream);
    assert_eq!(heard(&mut queue, new), Vec::<u64>::new());
}
