//! The allocator of the measured process: the system's, and a count of what is asked of it.
#![allow(
    unsafe_code,
    reason = "the allocator of a program can be replaced in no other way"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

struct Counting;

fn count(bytes: usize) {
    COUNT.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes as u64, Relaxed);
}

// SAFETY: everything is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        FREED.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        FREED.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What all threads together have asked for since the process began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Allocations made or grown.
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

pub(crate) fn asked() -> Asked {
    Asked {
        allocations: COUNT.load(Relaxed),
        bytes: BYTES.load(Relaxed),
    }
}

/// Bytes that are allocated now.
pub(crate) fn live() -> u64 {
    BYTES.load(Relaxed).saturating_sub(FREED.load(Relaxed))
}
