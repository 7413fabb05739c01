//! An answer to a watcher that is encoded already.
//!
//! A thousand watchers get the same event; its bytes are made once and sent to each of them. For tonic
//! it is a message that writes itself by copying.

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{DecodeContext, WireType};
use prost::{DecodeError, Message};

use super::messages::WatchResponse;

/// The bytes of a `WatchResponse`. Only ever sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded(Bytes);

impl Encoded {
    /// What was encoded before.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<&WatchResponse> for Encoded {
    fn from(response: &WatchResponse) -> Self {
        Self(response.encode_to_vec().into())
    }
}

impl Message for Encoded {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        // Nobody reads one; whatever comes is passed over, as an unknown field would be.
        prost::encoding::skip_field(wire_type, tag, buf, ctx)
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0 = Bytes::new();
    }
}
