//! Texts that come again and again: a pod's uid and names stand in each of its containers, an image in
//! hundreds. Each is kept once.

use std::collections::HashSet;
use std::sync::Arc;

/// Makes texts of one's own out of borrowed ones.
pub(crate) trait Texts {
    /// The text, shared with whoever has it already. An empty one costs nothing.
    fn share(&mut self, text: &str) -> Arc<str> {
        if text.is_empty() {
            Arc::default()
        } else {
            self.share_some(text)
        }
    }

    fn share_some(&mut self, text: &str) -> Arc<str>;
}

/// Every text of the lists, or of the stream's messages, that are known. Nothing iterates over it but to
/// forget.
#[derive(Debug, Default)]
pub(crate) struct KnownTexts {
    texts: HashSet<Arc<str>>,
    /// How many there were when the unused ones were last let go.
    tidied: usize,
    /// How many bytes were made so far.
    made: usize,
}

/// A longer text, in bytes, is hardly an id, a name or an image: it is made anew each time, so that
/// nobody can fill the memory with what is kept here.
const LONGEST: usize = 512;

impl Texts for KnownTexts {
    fn share_some(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        self.made += text.len() + OVERHEAD;
        let text: Arc<str> = text.into();
        if text.len() <= LONGEST {
            self.texts.insert(text.clone());
        }
        text
    }
}

/// What a text takes beside itself: its counts, its place in the table, the allocator's share.
const OVERHEAD: usize = 48;

impl KnownTexts {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// How many bytes of memory the texts took that were made so far.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// Lets go of what nobody else holds any more, once that is worth a walk through all of them.
    pub(crate) fn tidy(&mut self) {
        if self.texts.len() > 2 * self.tidied + WORTH_A_WALK {
            self.forget_unused();
        }
    }

    /// Lets go of what nobody else holds any more.
    pub(crate) fn forget_unused(&mut self) {
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        if self.texts.capacity() > 4 * self.texts.len() {
            self.texts.shrink_to_fit();
        }
        self.tidied = self.texts.len();
    }
}

/// The texts that lists have told, and the last few of one message that they have not. It adds nothing to
/// what is known of lists: a status has texts that no list will ever repeat.
#[derive(Debug)]
pub(crate) struct ListedTexts<'k> {
    listed: &'k KnownTexts,
    others: RecentTexts,
}

impl<'k> ListedTexts<'k> {
    pub(crate) fn of(listed: &'k KnownTexts) -> Self {
        Self {
            listed,
            others: RecentTexts::default(),
        }
    }
}

impl Texts for ListedTexts<'_> {
    fn share_some(&mut self, text: &str) -> Arc<str> {
        match self.listed.texts.get(text) {
            Some(known) => known.clone(),
            None => self.others.share_some(text),
        }
    }
}

/// New texts that are let be before they are looked through.
const WORTH_A_WALK: usize = 1024;

/// How many texts of a message are looked through before one is taken to be new: about what the
/// sandbox and the containers of a pod name.
const RECENT: usize = 24;

/// The last few texts of one message.
#[derive(Debug, Default)]
pub(crate) struct RecentTexts {
    texts: Vec<Arc<str>>,
    oldest: usize,
}

impl Texts for RecentTexts {
    fn share_some(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.iter().find(|known| ***known == *text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        if self.texts.is_empty() {
            self.texts.reserve_exact(RECENT);
        }
        if self.texts.len() < RECENT {
            self.texts.push(text.clone());
        } else if let Some(oldest) = self.texts.get_mut(self.oldest) {
            *oldest = text.clone();
            self.oldest = (self.oldest + 1) % RECENT;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_comes_again_is_the_same_and_counted_once() {
        let mut texts = KnownTexts::default();
        let first = texts.share("web");
        let made = texts.made();
        assert!(made >= "web".len());
        assert!(Arc::ptr_eq(&first, &texts.share("web")));
        assert_eq!(texts.made(), made);
    }

    #[test]
    fn texts_longer_than_names_are_counted_and_kept_by_nobody() {
        let mut texts = KnownTexts::default();
        let long = "x".repeat(LONGEST + 1);
        let made = texts.made();
        assert_eq!(&*texts.share(&long), long);
        assert!(texts.made() - made > LONGEST);
        assert_eq!(texts.len(), 0);
    }

    #[test]
    fn texts_that_nobody_holds_go_in_time_however_many_come() {
        let mut texts = KnownTexts::default();
        let kept = texts.share("kept");
        for n in 0..100_000 {
            texts.share(&format!("id{n}"));
            texts.tidy();
        }
        assert!(texts.len() <= 2 * (WORTH_A_WALK + 1), "{}", texts.len());
        assert!(Arc::ptr_eq(&kept, &texts.share("kept")));
    }

    #[test]
    fn a_status_shares_what_a_list_has_told_and_adds_nothing_to_it() {
        let mut listed = KnownTexts::default();
        let name = listed.share("web");
        let mut texts = ListedTexts::of(&listed);
        assert!(Arc::ptr_eq(&name, &texts.share("web")));
        let address = texts.share("10.0.0.1");
        assert!(Arc::ptr_eq(&address, &texts.share("10.0.0.1")));
        assert_eq!(listed.len(), 1);
    }
}
