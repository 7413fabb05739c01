//! The codec between tonic and the service: requests are read by prost, answers are bytes already.

use std::marker::PhantomData;

use bytes::{BufMut, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// One answer, in the pieces of which it is made.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts(Vec<Bytes>);

impl From<Bytes> for Parts {
    fn from(whole: Bytes) -> Self {
        Self(vec![whole])
    }
}

impl From<Vec<Bytes>> for Parts {
    fn from(parts: Vec<Bytes>) -> Self {
        Self(parts)
    }
}

/// Reads requests of type `Q`, writes [`Parts`].
#[derive(Debug)]
pub(super) struct AnswerCodec<Q>(PhantomData<fn() -> Q>);

impl<Q> Default for AnswerCodec<Q> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<Q: prost::Message + Default + 'static> Codec for AnswerCodec<Q> {
    type Encode = Parts;
    type Decode = Q;
    type Encoder = PartsEncoder;
    type Decoder = RequestDecoder<Q>;

    fn encoder(&mut self) -> PartsEncoder {
        PartsEncoder
    }

    fn decoder(&mut self) -> RequestDecoder<Q> {
        RequestDecoder(PhantomData)
    }
}

/// Writes the pieces one after another.
#[derive(Debug)]
pub(super) struct PartsEncoder;

impl Encoder for PartsEncoder {
    type Item = Parts;
    type Error = Status;

    fn encode(&mut self, Parts(parts): Parts, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(parts.iter().map(Bytes::len).sum());
        for part in &parts {
            buffer.put_slice(part);
        }
        Ok(())
    }
}

/// Reads a request.
#[derive(Debug)]
pub(super) struct RequestDecoder<Q>(PhantomData<fn() -> Q>);

impl<Q: prost::Message + Default> Decoder for RequestDecoder<Q> {
    type Item = Q;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Q>, Status> {
        Q::decode(buffer)
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
