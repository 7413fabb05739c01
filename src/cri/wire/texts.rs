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

/// Every text of the lists that are known. Nothing iterates over it but to forget.
#[derive(Debug, Default)]
pub(crate) struct KnownTexts {
    texts: HashSet<Arc<str>>,
    /// How many there were when the unused ones were last let go.
    tidied: usize,
}

impl Texts for KnownTexts {
    fn share_some(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }
}

impl KnownTexts {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
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
