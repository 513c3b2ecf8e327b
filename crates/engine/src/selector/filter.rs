//! Filters: selectors as consumers and bindings have them, parsed once and shared.

use super::{ParseOptions, Selector, SelectorError};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A selector, with the text that it was made of. Copies share both. Filters are equal if their selectors
/// are.
#[derive(Clone, Debug)]
pub struct Filter(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    selector: Selector,
    text: Box<str>,
    dashes_in_names: bool,
}

impl Filter {
    /// Parses a selector.
    ///
    /// # Errors
    /// The first place at which the text is not a selector, and why.
    pub fn parse(text: &str, options: &ParseOptions) -> Result<Filter, SelectorError> {
        let selector = Selector::parse_with(text, options)?;
        let dashes_in_names = options.dashes_in_names;
        Ok(Filter(Arc::new(Parsed { selector, text: text.into(), dashes_in_names })))
    }

    /// The selector.
    #[must_use]
    pub fn selector(&self) -> &Selector {
        &self.0.selector
    }

    /// The text that it was made of.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether dashes were read as parts of names.
    pub(crate) fn has_dashes_in_names(&self) -> bool {
        self.0.dashes_in_names
    }

    /// About how much memory it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Parsed>() + self.0.text.len() + self.0.selector.memory_bytes()
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.selector == other.0.selector
    }
}

impl Eq for Filter {}

impl Hash for Filter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.selector.hash(state);
    }
}
