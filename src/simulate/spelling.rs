//! How durations and gRPC codes are written in files: `1m 30s`, `NotFound`.

/// `90s`, `1m 30s`, `250ms`: jiff's friendly form.
pub(crate) mod duration {
    use std::time::Duration;

    use jiff::SignedDuration;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    /// Reads it.
    pub(crate) fn read(text: &str) -> Result<Duration, String> {
        let signed: SignedDuration = text
            .parse()
            .map_err(|_| format!("{text:?} is no duration; write 250ms, 5s or 1m 30s"))?;
        Duration::try_from(signed).map_err(|_| format!("{text:?} is negative"))
    }

    pub(crate) fn write(duration: Duration) -> String {
        let signed = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        format!("{signed:#}")
    }

    pub(crate) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&write(*duration))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        read(&text).map_err(de::Error::custom)
    }
}

/// A gRPC code by the name that Go's and Rust's libraries print: `NotFound`, `Unavailable`.
pub(crate) mod code {
    use serde::{Deserialize as _, Deserializer, Serializer, de};
    use tonic::Code;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{code:?}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Code, D::Error> {
        let name = String::deserialize(deserializer)?;
        (0..=16)
            .map(Code::from_i32)
            .find(|code| format!("{code:?}") == name)
            .ok_or_else(|| {
                de::Error::custom(format!(
                    "{name:?} is no gRPC code; write it as NotFound, Unavailable or DeadlineExceeded"
                ))
            })
    }
}
