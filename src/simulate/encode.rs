//! Protobuf, written straight from the world's values.
//!
//! The simulated runtime writes its answers itself: what the generated messages leave out
//! (annotations, mounts, resources) goes over the wire as a real runtime's does, no string is copied
//! twice, and what must not be decodable can be sent too.

use bytes::{BufMut, Bytes};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Writes one whole message.
    pub(super) fn message(write: impl FnOnce(&mut Self)) -> Bytes {
        let mut writer = Self::default();
        write(&mut writer);
        writer.0.into()
    }

    /// A string field; nothing for the empty string, as proto3 has it.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        if text.is_empty() {
            return;
        }
        encode_key(field, WireType::LengthDelimited, &mut self.0);
        encode_varint(text.len() as u64, &mut self.0);
        self.0.put_slice(text.as_bytes());
    }

    /// An integer or enum field; nothing for zero.
    pub(super) fn number(&mut self, field: u32, number: impl Into<i64>) {
        let number = number.into();
        if number != 0 {
            encode_key(field, WireType::Varint, &mut self.0);
            // Two's complement in 64 bits is how negative numbers are written.
            encode_varint(number.cast_unsigned(), &mut self.0);
        }
    }

    /// A message field, present even if nothing is in it.
    pub(super) fn nested(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        encode_key(field, WireType::LengthDelimited, &mut self.0);
        let start = self.0.len();
        write(self);
        // The length goes before what was just written.
        let length = (self.0.len() - start) as u64;
        let prefix = encoded_len_varint(length);
        let content = start..self.0.len();
        self.0.resize(content.end + prefix, 0);
        self.0.copy_within(content, start + prefix);
        // In range: the vector has just grown by `prefix`.
        encode_varint(length, &mut &mut self.0[start..start + prefix]);
    }

    /// One entry of a map of strings.
    pub(super) fn entry(&mut self, field: u32, key: &str, value: &str) {
        self.nested(field, |entry| {
            entry.text(1, key);
            entry.text(2, value);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cri::wire::messages as cri;
    use prost::Message as _;

    #[test]
    fn what_is_written_is_read_by_prost_whatever_its_length() {
        for length in [0, 1, 127, 128, 20_000] {
            let long = "x".repeat(length);
            let bytes = Writer::message(|event| {
                event.text(1, "id");
                event.number(2, 3);
                event.number(3, -5_i64);
                event.nested(4, |status| {
                    status.text(1, &long);
                    status.nested(2, |_| {});
                    status.entry(7, "key", &long);
                    status.entry(8, "skipped", &long);
                });
            });
            let read = cri::ContainerEventResponse::decode(bytes).unwrap();
            assert_eq!((read.container_id.as_str(), read.created_at), ("id", -5));
            let status = read.pod_sandbox_status.unwrap();
            assert_eq!(status.id, long);
            assert_eq!(status.metadata, Some(cri::PodSandboxMetadata::default()));
            assert_eq!(status.labels["key"], long);
        }
    }
}
