//! The codec between tonic and [`decode`](super::decode): requests go out as bytes made beforehand,
//! answers are read straight from the bytes that came.
//!
//! A decoder here never fails: tonic would end the whole stream for one bad message. What went wrong
//! is part of what was decoded.

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// How many bytes a message had, and what was read out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded<A> {
    pub(crate) bytes: usize,
    pub(crate) content: A,
}

/// What becomes of an answer's bytes.
#[derive(Debug)]
pub(crate) enum Reading<A> {
    /// They are read where they lie.
    InPlace(fn(&[u8]) -> A),
    /// They are handed on, to be read by somebody who remembers the last answer.
    HandedOn(fn(Bytes) -> A),
}

impl<A> Clone for Reading<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Reading<A> {}

/// Reads answers with one function.
#[derive(Debug)]
pub(crate) struct WireCodec<A> {
    pub(crate) reading: Reading<A>,
}

impl<A: Send + 'static> Codec for WireCodec<A> {
    type Encode = Vec<u8>;
    type Decode = Decoded<A>;
    type Encoder = BytesEncoder;
    type Decoder = WireDecoder<A>;

    fn encoder(&mut self) -> BytesEncoder {
        BytesEncoder
    }

    fn decoder(&mut self) -> WireDecoder<A> {
        WireDecoder {
            reading: self.reading,
        }
    }
}

/// Writes the bytes of a request as they are.
#[derive(Debug)]
pub(crate) struct BytesEncoder;

impl Encoder for BytesEncoder {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, request: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(request.len());
        buffer.put_slice(&request);
        Ok(())
    }
}

/// Reads one message at a time.
#[derive(Debug)]
pub(crate) struct WireDecoder<A> {
    reading: Reading<A>,
}

impl<A: Send + 'static> Decoder for WireDecoder<A> {
    type Item = Decoded<A>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Decoded<A>>, Status> {
        let bytes = buffer.remaining();
        // tonic hands over one whole message in one piece; whatever it does, all of it is consumed.
        let content = match self.reading {
            Reading::InPlace(decode) if buffer.chunk().len() == bytes => {
                let content = decode(buffer.chunk());
                buffer.advance(bytes);
                content
            }
            Reading::InPlace(decode) => decode(&buffer.copy_to_bytes(bytes)),
            Reading::HandedOn(take) => take(buffer.copy_to_bytes(bytes)),
        };
        Ok(Some(Decoded { bytes, content }))
    }
}
