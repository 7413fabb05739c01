//! The codec under the calls: requests go out as bytes made beforehand, answers come as the bytes that they
//! are.
//!
//! It never fails: tonic would end a whole stream for one bad message. What the bytes say is read by whoever
//! asked, who remembers what was told before.

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Bytes out, bytes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, request: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(request.len());
        buffer.put_slice(&request);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        // tonic hands over one whole message in one piece, which this shares and does not copy.
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
