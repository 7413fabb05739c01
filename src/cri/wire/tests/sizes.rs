//! Huge and hostile messages.

use super::*;
use crate::cri::wire::listing::MOST_ITEMS;

/// Two bytes each, and each of them an item without an id: prost made a hundred bytes of each.
#[test]
fn a_message_full_of_empty_items_keeps_a_byte_for_each() {
    let bytes = [0x0a, 0x00].repeat(1 << 20);
    let listed: Listed<ContainerListing> = read_list(&bytes).expect("a message");
    assert_eq!(listed.refused.len(), 1 << 20);
    assert!(listed.items.is_empty() && listed.unreadable.is_empty());

    let bytes = [0x2a, 0x00].repeat(1 << 20);
    let event = read_event(&bytes).expect("a message");
    assert_eq!(event.refused.len(), (1 << 20) + 1);
    assert!(event.containers.is_empty());
}

#[test]
fn more_items_than_any_message_has_are_refused() {
    let containers = (0..=MOST_ITEMS).map(|n| container(&n.to_string(), 1));
    let answer = wire::ListContainersResponse {
        containers: containers.collect(),
    };
    let too_many = Malformed::TooManyItems { most: MOST_ITEMS };
    let read = read_list::<ContainerListing>(&answer.encode_to_vec());
    assert_eq!(read.err(), Some(too_many));

    let statuses = (0..=MOST_ITEMS).map(|n| container_status(&n.to_string(), 1));
    let event = wire::ContainerEventResponse {
        containers_statuses: statuses.collect(),
        ..Default::default()
    };
    assert_eq!(
        read_event(&event.encode_to_vec()),
        Err(Refusal::Undecodable)
    );
}

/// A runtime that writes new texts into every list makes nobody remember them.
#[test]
fn texts_that_nothing_holds_are_forgotten() {
    let (mut known, mut texts) = (KnownItems::default(), KnownTexts::default());
    for n in 0..10_000 {
        let mut changing = container("c1", 1);
        changing.image_ref = format!("sha256:{n}");
        let answer = wire::ListContainersResponse {
            containers: vec![changing],
        };
        let mut reader: ListReader<'_, ContainerListing> =
            ListReader::begin(&mut known, &mut texts);
        reader.take(&answer.encode_to_vec()).expect("a message");
        assert_eq!(reader.finish().items.len(), 1);
        assert!(texts.len() < 2_000);
    }
}
