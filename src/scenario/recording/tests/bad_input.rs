//! Files that are no recordings, or not any more.

use std::error::Error;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::engine::{Input, RequestId};
use crate::lifecycle::{ContainerListing, Mono, NodeList, ReportedState, SandboxListing};

fn header() -> String {
    let header = Header::new(Now::default(), Settings::default(), None);
    serde_json::to_string(&header).unwrap()
}

/// The whole error, as the command prints it.
fn said(error: &ReadError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        write!(text, ": {error}").unwrap();
        source = error.source();
    }
    text
}

fn read_all(bytes: &[u8]) -> Result<(u64, bool), ReadError> {
    let mut reader = Reader::new("bad.jsonl", bytes)?;
    let mut entries = 0;
    while reader.next_entry()?.is_some() {
        entries += 1;
    }
    Ok((entries, reader.is_cut_off()))
}

fn refusal(text: &str) -> String {
    said(&read_all(text.as_bytes()).expect_err("must be refused"))
}

#[test]
fn an_empty_file_is_no_recording() {
    assert_eq!(
        refusal(""),
        "bad.jsonl:1: expected a recording's header in the first line, but the file ends there"
    );
}

#[test]
fn another_file_is_told_from_a_recording() {
    let said = refusal("{\"kind\":\"Pod\"}\n");
    assert!(
        said.starts_with("bad.jsonl:1:14: expected a recording's header"),
        "{said}"
    );
    assert!(said.ends_with("missing field `format`"), "{said}");
    let said = refusal("{\"format\":\"flight-plan\",\"version\":1}\n");
    assert!(said.contains("its format is \"flight-plan\""), "{said}");
    assert!(refusal("\u{0}\u{1}\u{2}").contains("expected a recording's header"));
}

#[test]
fn a_newer_format_is_refused_with_that_reason() {
    let said = refusal("{\"format\":\"pleg-recording\",\"version\":2,\"novelty\":[]}\n");
    assert_eq!(
        said,
        "bad.jsonl:1: the recording has format version 2, and this pleg reads up to 1: \
         replay it with a newer pleg"
    );
}

#[test]
fn a_broken_line_is_named_with_its_column_and_what_was_expected() {
    for (line, expected) in [
        (
            "{\"at\":5,\"took\":\"sneeze\"}",
            "bad.jsonl:3:23: expected an entry, {\"at\":NANOSECONDS,\"took\":...} or the like: \
             unknown variant `sneeze`",
        ),
        (
            "{\"at\":\"noon\",\"took\":\"wake\"}",
            "bad.jsonl:3:12: expected an entry",
        ),
        (
            "{\"at\":5,\"wake\":{}}",
            "bad.jsonl:3:14: expected an entry",
        ),
        ("{\"at\":5", "bad.jsonl:3:7: expected an entry"),
        (
            "{\"at\":5}",
            "bad.jsonl:3: expected exactly one of took, list, asked, opened, closed, marked, gap \
             and known, found 0",
        ),
        (
            "{\"at\":5,\"took\":\"wake\",\"marked\":true}",
            "bad.jsonl:3: expected exactly one of took, list, asked, opened, closed, marked, gap \
             and known, found 2",
        ),
        (
            "{\"at\":5,\"list\":{\"request\":1,\"content\":{\"same\":7}}}",
            "bad.jsonl:3: this list refers to list 7, but the last one is None",
        ),
    ] {
        let text = format!("{}\n{{\"at\":1,\"took\":\"start\"}}\n{line}\n", header());
        let said = refusal(&text);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_file_that_was_cut_off_is_read_up_to_its_last_whole_line() {
    let text = format!(
        "{}\n{{\"at\":1,\"took\":\"start\"}}\n{{\"at\":2,\"took\":\"wake\"}}\n",
        header()
    );
    let second = text.rfind("{\"at\":2").unwrap();
    for cut in second..text.len() {
        let whole = if cut >= text.len() - 1 { 2 } else { 1 };
        let (entries, is_cut_off) = read_all(&text.as_bytes()[..cut]).unwrap();
        assert_eq!(entries, whole, "{cut}");
        assert_eq!(is_cut_off, whole == 1 && cut > second, "{cut}");
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += buffer.len() as u64;
            assert!(self.0 < 100 << 20, "read on and on");
            buffer.fill(b' ');
            Ok(buffer.len())
        }
    }
    let header = header() + "\n";
    let input = std::io::Read::chain(header.as_bytes(), std::io::BufReader::new(Endless(0)));
    let mut reader = Reader::new("bad.jsonl", input).unwrap();
    let said = said(&reader.next_entry().expect_err("must be refused"));
    assert_eq!(said, "bad.jsonl:2: the line has more than 67108864 bytes");
}

#[test]
fn damaged_compression_is_an_error_and_not_an_end() {
    let text = header() + "\n" + &"{\"at\":1,\"took\":\"wake\"}\n".repeat(50_000);
    let mut bytes = compressed(text.as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.zst");
    // The second frame's magic number.
    let second = bytes
        .windows(4)
        .skip(1)
        .position(|window| window == compress::MAGIC)
        .unwrap();
    bytes[second + 1] = 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let mut reader = open(&path).unwrap();
    let error = loop {
        match reader.next_entry() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("ended"),
            Err(error) => break error,
        }
    };
    assert!(said(&error).contains("the compressed data is damaged"));
}

#[test]
fn a_gap_in_a_recording_makes_its_replay_approximate() {
    let text = format!(
        "{}\n{{\"at\":1,\"took\":\"start\"}}\n{{\"at\":2,\"gap\":17}}\n",
        header()
    );
    let (_, replayed) = replay(text.as_bytes(), None);
    assert_eq!(replayed.fidelity.to_string(), "approximate: 17");
}

#[test]
fn questions_that_a_recording_has_no_answer_to_are_counted() {
    // A recording that hears nothing for an hour after the start.
    let text = format!(
        "{}\n{{\"at\":1,\"took\":\"start\"}}\n{{\"at\":3600000000000,\"took\":\"wake\"}}\n",
        header()
    );
    let (told, replayed) = replay(text.as_bytes(), None);
    assert!(told.is_empty());
    let Fidelity::Approximate(deviations) = replayed.fidelity else {
        panic!("{:?}", replayed.fidelity)
    };
    assert!(deviations.unrecorded > 20, "{deviations:?}");
    assert_eq!(deviations.answered_otherwise, 0);
}

/// Found by fuzzing: one damaged stamp, and the engine relisted through a century.
#[test]
fn a_stamp_a_century_ahead_does_not_hold_up_a_replay() {
    let century = 100 * 365 * 86_400 * 1_000_000_000_u64;
    let text = format!(
        "{}\n{{\"at\":1,\"took\":\"start\"}}\n{{\"at\":{century},\"took\":\"wake\"}}\n",
        header()
    );
    let (_, replayed) = replay(text.as_bytes(), None);
    let Fidelity::Approximate(deviations) = replayed.fidelity else {
        panic!("{:?}", replayed.fidelity)
    };
    assert_eq!(deviations.leaps, 1, "{deviations:?}");
    assert!(replayed.span.as_secs() > 99 * 365 * 86_400);
}

fn sandbox(id: u8, state: ReportedState) -> SandboxListing {
    SandboxListing {
        id: format!("s{id:03}").into(),
        pod: crate::lifecycle::PodIdentity {
            uid: format!("u{id}").into(),
            namespace: "ns".into(),
            name: "pod".into(),
        },
        attempt: 0,
        state,
        created_at: None,
        labelled: true,
    }
}

fn container(id: u8, state: ReportedState) -> ContainerListing {
    ContainerListing {
        id: format!("c{id:03}").into(),
        sandbox: Some(format!("s{id:03}").into()),
        pod: None,
        name: "app".into(),
        attempt: 0,
        state,
        created_at: None,
        image: "".into(),
        image_ref: "".into(),
    }
}

fn state() -> impl Strategy<Value = ReportedState> {
    prop_oneof![
        Just(ReportedState::Created),
        Just(ReportedState::Running),
        Just(ReportedState::Exited),
    ]
}

fn node_list() -> impl Strategy<Value = NodeList> {
    let items = || proptest::collection::btree_map(0_u8..20, state(), 0..20);
    (items(), items()).prop_map(|(sandboxes, containers)| NodeList {
        sandboxes: sandboxes
            .into_iter()
            .map(|(id, s)| sandbox(id, s))
            .collect::<Vec<_>>()
            .into(),
        containers: containers
            .into_iter()
            .map(|(id, s)| container(id, s))
            .collect::<Vec<_>>()
            .into(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_make_the_reader_panic(lines in proptest::collection::vec(".{0,60}", 0..8)) {
        let text = lines.join("\n");
        let _ = read_all(text.as_bytes());
        let _ = read_all(format!("{}\n{text}", header()).as_bytes());
    }

    #[test]
    fn no_damage_to_a_recording_makes_the_player_panic(
        places in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let list = NodeList {
            sandboxes: vec![sandbox(1, ReportedState::Running)].into(),
            containers: vec![container(1, ReportedState::Exited)].into(),
        };
        let answered = serde_json::to_string(&list).unwrap();
        let mut bytes = format!(
            "{}\n{{\"at\":1,\"took\":\"start\"}}\n\
             {{\"at\":1,\"asked\":{{\"request\":2,\"question\":\"fullRelist\"}}}}\n\
             {{\"at\":9,\"list\":{{\"request\":2,\"content\":{{\"full\":{{\"number\":1,\"list\":{answered}}}}}}}}}\n\
             {{\"at\":1000000099,\"list\":{{\"request\":3,\"content\":{{\"same\":1}}}}}}\n",
            header()
        )
        .into_bytes();
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(mut reader) = Reader::new("damaged", &*bytes) {
            let _ = play(&mut reader, None, &mut |_| {});
        }
    }

    #[test]
    fn lists_are_read_as_they_were_written_however_they_follow_each_other(
        all in proptest::collection::vec(node_list(), 1..12),
        drift in any::<i64>(),
    ) {
        let mut writer = Writer::new(
            Vec::new(),
            Header::new(Now::default(), Settings::default(), None),
        ).unwrap();
        let at = Now { mono: Mono(77), wall: UnixNanos(drift) };
        let mut expected = Vec::new();
        for (number, list) in all.into_iter().enumerate() {
            let request = RequestId(number as u64);
            let asked = Record::Asked { request, question: crate::engine::Question::FullRelist };
            let answer = crate::engine::Answer::Listed(Ok(list));
            let answered = Record::Taken(Input::Answered { request, answer });
            for record in [asked, answered] {
                let entry = Entry { at, record };
                writer.write(&entry).unwrap();
                expected.push(entry);
            }
        }
        let bytes = writer.finish().unwrap();
        let mut reader = Reader::new("lists", &*bytes).unwrap();
        for entry in expected {
            prop_assert_eq!(reader.next_entry().unwrap(), Some(entry));
        }
        prop_assert_eq!(reader.next_entry().unwrap(), None);
    }

    #[test]
    fn whatever_is_compressed_comes_out_again(bytes in proptest::collection::vec(any::<u8>(), 0..5_000), times in 1_usize..80) {
        let bytes = bytes.repeat(times);
        let small = compressed(&bytes);
        let mut out = Vec::new();
        std::io::Read::read_to_end(&mut compress::Decompressor::new(&*small), &mut out).unwrap();
        prop_assert!(out == bytes);
    }
}
