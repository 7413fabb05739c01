//! How many calls went to the runtime, by method and by the code that they ended with.
//!
//! Shared by all clones of a client. The event stream's reader has no part in it, because it takes no
//! lock of ours: how streams end is the engine's to tell.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tonic::Code;

use super::CallError;

/// A method's name and the name of a gRPC code: `("ListContainers", "OK")`.
pub type MethodAndCode = (&'static str, &'static str);

/// The counts of a client and its clones.
#[derive(Clone, Debug, Default)]
pub(super) struct RpcCounts {
    ended: Arc<Mutex<BTreeMap<MethodAndCode, u64>>>,
}

impl RpcCounts {
    /// Counts a call that has ended.
    pub(super) fn ended<T>(&self, method: &'static str, result: &Result<T, CallError>) {
        let code = result.as_ref().map_or_else(CallError::code, |_| Code::Ok);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        *ended.entry((method, code_name(code))).or_default() += 1;
    }

    /// All so far.
    pub(super) fn so_far(&self) -> BTreeMap<MethodAndCode, u64> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.clone()
    }
}

/// A gRPC code as the protocol's libraries spell it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}
