//! Zstandard around a recording, so that it can be handed over.
//!
//! `ruzstd` and not the C library: a recording comes from somebody else's node, and no C code shall
//! parse it here; nor does the build need a compiler for C. It compresses about as the reference
//! does at its level 1. Frames are small and independent, so that a recorder that was killed has lost
//! no more than the last of them; the format allows any number one after the other.

use std::io::{self, BufRead, Read, Write};

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// How much goes into one frame.
const FRAME: usize = 256 << 10;

/// What a Zstandard frame begins with.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The largest window that a frame may ask for.
const WINDOW: u64 = 64 << 20;

/// Compresses what is written to it.
#[derive(Debug)]
pub(super) struct Compressor<W: Write> {
    waiting: Vec<u8>,
    out: W,
}

impl<W: Write> Compressor<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            waiting: Vec::new(),
            out,
        }
    }

    #[cfg(test)]
    pub(super) fn into_inner(self) -> W {
        self.out
    }

    fn end_frame(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let frame = compress_to_vec(self.waiting.as_slice(), CompressionLevel::Fastest);
        self.waiting.clear();
        self.out.write_all(&frame)
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = FRAME.saturating_sub(self.waiting.len()).max(1);
        let taken = bytes.len().min(room);
        self.waiting.extend(bytes.iter().take(taken));
        if self.waiting.len() >= FRAME {
            self.end_frame()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end_frame()?;
        self.out.flush()
    }
}

/// Notes when the input ended, so that a frame that was cut off is told from a damaged one.
#[derive(Debug)]
struct UntilEnd<R> {
    input: R,
    ended: bool,
}

impl<R: Read> Read for UntilEnd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.ended |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

/// Decompresses what it reads: frame after frame, as far as they go. A file that was cut off gives
/// [`io::ErrorKind::UnexpectedEof`] where it was cut, a damaged one [`io::ErrorKind::InvalidData`].
pub(super) struct Decompressor<R> {
    input: UntilEnd<R>,
    decoder: FrameDecoder,
    within_a_frame: bool,
}

impl<R: BufRead> Decompressor<R> {
    pub(super) fn new(input: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        Self {
            input: UntilEnd {
                input,
                ended: false,
            },
            decoder,
            within_a_frame: false,
        }
    }

    /// Decodes until there is something to take. Returns whether there is.
    fn advance(&mut self) -> Result<bool, FrameDecoderError> {
        loop {
            if self.within_a_frame {
                if self.decoder.can_collect() > 0 {
                    return Ok(true);
                }
                if !self.decoder.is_finished() {
                    let block = BlockDecodingStrategy::UptoBlocks(1);
                    self.decoder.decode_blocks(&mut self.input, block)?;
                    continue;
                }
            }
            // If it cannot be read it has ended; reading on tells how.
            if self.input.input.fill_buf().is_ok_and(<[u8]>::is_empty) {
                return Ok(false);
            }
            self.decoder.reset(&mut self.input)?;
            self.within_a_frame = true;
        }
    }
}

impl<R: BufRead> Read for Decompressor<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        match self.advance() {
            Ok(true) => self.decoder.read(buffer),
            Ok(false) => Ok(0),
            Err(_) if self.input.ended => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                error.to_string(),
            )),
        }
    }
}
