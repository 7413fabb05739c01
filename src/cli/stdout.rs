//! Standard output for those who write line by line and must never wait with the whole process.
//!
//! A pipe is written to by this thread when it has room. Handing each line to another thread, as must be
//! done where a write may block, costs more than the event that the line tells of. The pipe is opened once
//! more for that: whoever else writes to it keeps it in blocking mode.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;

/// Standard output, as it is best written to.
pub(crate) enum Stdout {
    /// A pipe.
    Pipe(pipe::Sender),
    /// A terminal, a file, a socket: written to by another thread.
    Other(tokio::io::Stdout),
}

impl Stdout {
    /// What this process has. Must be called in a runtime.
    pub(crate) fn of_the_process() -> Self {
        // What is no pipe, or another user's, cannot be opened so.
        open(Path::new("/proc/self/fd/1"))
            .map_or_else(|_| Self::Other(tokio::io::stdout()), Self::Pipe)
    }
}

fn open(pipe: &Path) -> io::Result<pipe::Sender> {
    pipe::OpenOptions::new().open_sender(pipe)
}

impl AsyncWrite for Stdout {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Self::Other(other) => Pin::new(other).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            Self::Other(other) => Pin::new(other).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Self::Other(other) => Pin::new(other).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Read, pipe};
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use futures::poll;
    use tokio::io::AsyncWriteExt;
    use tokio::task::{spawn_blocking, yield_now};

    use super::*;

    fn path_of(open: &impl AsRawFd) -> PathBuf {
        format!("/proc/self/fd/{}", open.as_raw_fd()).into()
    }

    fn piped() -> (PipeReader, PipeWriter, Stdout) {
        let (reader, writer) = pipe().expect("a pipe");
        let sender = open(&path_of(&writer)).expect("it is ours");
        (reader, writer, Stdout::Pipe(sender))
    }

    /// Writes while there is room, of which the runtime learns between two looks.
    async fn until_full(mut writing: impl Future<Output = io::Result<()>> + Unpin) {
        for _ in 0..5 {
            assert!(poll!(&mut writing).is_pending());
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_pipe_that_nobody_reads_holds_up_its_writer_alone_and_loses_nothing() {
        let (mut reader, _writer, mut out) = piped();
        let text: Vec<u8> = (0..1_000_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut writing = Box::pin(out.write_all(&text));
        until_full(&mut writing).await;
        let read = spawn_blocking(move || {
            let mut got = vec![0; 1_000_000];
            reader.read_exact(&mut got).map(|()| got)
        });
        writing.await.expect("somebody reads");
        assert!(read.await.expect("it ends").expect("all of it") == text);
    }

    #[tokio::test]
    async fn a_pipe_whose_reader_goes_away_while_it_is_full_says_so() {
        let (reader, _writer, mut out) = piped();
        let text = vec![b'x'; 1_000_000];
        let mut writing = Box::pin(out.write_all(&text));
        until_full(&mut writing).await;
        drop(reader);
        let error = writing.await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn whoever_else_writes_to_the_pipe_still_waits_for_room() {
        use std::io::Write;
        let (mut reader, mut writer, mut out) = piped();
        let text = vec![b'x'; 1_000_000];
        let mut writing = Box::pin(out.write_all(&text));
        until_full(&mut writing).await;
        drop(writing);
        drop(out);
        let others = vec![b'y'; 100_000];
        let wanted = others.clone();
        let other = spawn_blocking(move || writer.write_all(&others));
        let read = spawn_blocking(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        });
        other.await.expect("it ends").expect("it waited");
        let all = read.await.expect("it ends").expect("it is open");
        assert!(all.starts_with(b"x") && all.ends_with(&wanted));
    }

    #[tokio::test]
    async fn a_pipe_whose_reader_was_gone_before_says_so() {
        let (reader, _writer, mut out) = piped();
        drop(reader);
        let error = out.write_all(b"line\n").await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn what_is_no_pipe_is_left_to_another_thread() {
        let file = tempfile::tempfile().expect("a file");
        assert!(open(&path_of(&file)).is_err());
    }
}
