//! The wire format of protocol buffers: a message's fields, one after the other, straight from its bytes.
//!
//! Nothing here copies, allocates or recurses, and no bytes can make it panic. It refuses what prost
//! refuses, and groups besides, which proto3 does not have: without them a message is as deep as CRI's
//! proto says, and skipping a field never walks into it.

/// Why bytes are no message of CRI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a number is cut off or longer than 64 bits")]
    Number,
    #[error("a field has no valid number or wire type")]
    Key,
    #[error("a field is longer than what is left of its message")]
    Length,
    #[error("field {number} has another wire type than CRI gives it")]
    WireType {
        /// The field's number in its message.
        number: u32,
    },
    #[error("labels are not encoded as a map")]
    NoMap,
    #[error("a text is not UTF-8")]
    Text,
    #[error("groups are not part of proto3")]
    Group,
    #[error("one message holds more than {most} items")]
    TooManyItems {
        /// How many are read.
        most: usize,
    },
}

/// One field as it stands in the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    value: Value<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Varint(u64),
    Delimited(&'a [u8]),
    /// Four or eight bytes. No field that is read here has this form.
    Fixed,
}

impl<'a> Field<'a> {
    fn is_of_other_type(self) -> Malformed {
        Malformed::WireType {
            number: self.number,
        }
    }

    fn varint(self) -> Result<u64, Malformed> {
        match self.value {
            Value::Varint(value) => Ok(value),
            _ => Err(self.is_of_other_type()),
        }
    }

    pub(crate) fn int64(self) -> Result<i64, Malformed> {
        self.varint().map(u64::cast_signed)
    }

    /// `uint32`. Longer numbers lose their upper half, as the encoding demands.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a 32-bit field keeps the lower half of its varint"
    )]
    pub(crate) fn uint32(self) -> Result<u32, Malformed> {
        self.varint().map(|value| value as u32)
    }

    /// `int32`, and every enum.
    pub(crate) fn int32(self) -> Result<i32, Malformed> {
        self.uint32().map(u32::cast_signed)
    }

    /// The bytes of a message inside the message.
    pub(crate) fn message(self) -> Result<&'a [u8], Malformed> {
        match self.value {
            Value::Delimited(bytes) => Ok(bytes),
            _ => Err(self.is_of_other_type()),
        }
    }

    /// The bytes of one entry of a map.
    pub(crate) fn map_entry(self) -> Result<&'a [u8], Malformed> {
        self.message().map_err(|_| Malformed::NoMap)
    }

    pub(crate) fn text(self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.message()?).map_err(|_| Malformed::Text)
    }
}

/// The fields of a message in the order of its bytes. After an error there are no more.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        match self.rest {
            [byte @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        let mut rest = self.rest;
        for shift in (0..64).step_by(7) {
            let [byte, after @ ..] = rest else {
                break;
            };
            rest = after;
            // The tenth byte has room for one bit.
            if shift == 63 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(Malformed::Number)
    }

    #[inline]
    fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed::Length)?;
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed::Length)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn field(&mut self) -> Result<Field<'a>, Malformed> {
        let key = u32::try_from(self.varint()?).map_err(|_| Malformed::Key)?;
        let number = key >> 3;
        if number == 0 {
            return Err(Malformed::Key);
        }
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Delimited(self.take(length)?)
            }
            3 | 4 => return Err(Malformed::Group),
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed::Key),
        };
        Ok(Field { number, value })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}
