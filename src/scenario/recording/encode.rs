//! From entries to lines.

use std::collections::BTreeSet;

use super::format::{AskedToWrite, Entry, Header, LONGEST_LINE, LineToWrite, ListLine, Record};
use super::lists::LastList;
use crate::engine::{Answer, Input, Question, RequestId};

/// Writes entries as lines, and remembers what the next ones may refer to.
#[derive(Debug)]
pub(super) struct Encoder {
    header: Header,
    lists: LastList,
    /// Full relists that have no answer yet. The engine has one at a time.
    relists: BTreeSet<RequestId>,
}

impl Encoder {
    pub(super) fn new(header: Header) -> Self {
        Self {
            header,
            lists: LastList::default(),
            relists: BTreeSet::new(),
        }
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Appends an entry's line to `lines`. An entry that is too long for a line becomes a gap.
    pub(super) fn push(&mut self, lines: &mut Vec<u8>, entry: &Entry) {
        let before = lines.len();
        let line = self.line(entry);
        let written = serde_json::to_writer(&mut *lines, &line);
        if written.is_err() || lines.len() - before >= LONGEST_LINE {
            lines.truncate(before);
            self.lists.forget();
            let gap = LineToWrite {
                gap: Some(1),
                ..self.bare(entry)
            };
            // Three numbers into memory: nothing that can fail.
            let _ = serde_json::to_writer(&mut *lines, &gap);
        }
        lines.push(b'\n');
    }

    fn bare(&self, entry: &Entry) -> LineToWrite<'static> {
        LineToWrite {
            at: entry.at.mono.0,
            drift: self.header.drift(entry.at),
            ..LineToWrite::default()
        }
    }

    fn line<'a>(&mut self, entry: &'a Entry) -> LineToWrite<'a> {
        let mut line: LineToWrite<'a> = self.bare(entry);
        match &entry.record {
            Record::Taken(input) => match input {
                Input::Answered {
                    request,
                    answer: Answer::Listed(Ok(list)),
                } if self.relists.remove(request) => {
                    line.list = Some(ListLine {
                        request: *request,
                        content: self.lists.shorten(list),
                    });
                }
                Input::Answered { request, .. } => {
                    self.relists.remove(request);
                    line.took = Some(input);
                }
                _ => line.took = Some(input),
            },
            Record::Asked { request, question } => {
                if *question == Question::FullRelist {
                    self.relists.insert(*request);
                }
                line.asked = Some(AskedToWrite {
                    request: *request,
                    question,
                });
            }
            Record::StreamOpened { session } => line.opened = Some(*session),
            Record::StreamClosed { session } => line.closed = Some(*session),
            Record::Marked => line.marked = Some(true),
            Record::Gap { dropped } => line.gap = Some(*dropped),
            Record::Known(known) => line.known = Some(known),
        }
        line
    }
}
