//! Which values a setting may have: checked when it is set, and named where it is documented.

use super::value::SettingValue;

/// From one value to another, both included, and one that lies beside them.
pub(super) struct Bounds<T> {
    least: T,
    most: Option<T>,
    besides: Option<T>,
}

pub(super) const fn at_least<T: Copy>(least: T) -> Bounds<T> {
    Bounds { least, most: None, besides: None }
}

pub(super) const fn between<T: Copy>(least: T, most: T) -> Bounds<T> {
    Bounds { least, most: Some(most), besides: None }
}

impl<T: Copy> Bounds<T> {
    /// These and that value.
    pub(super) const fn or(self, besides: T) -> Bounds<T> {
        Bounds { least: self.least, most: self.most, besides: Some(besides) }
    }
}

impl<T: SettingValue + PartialOrd> Bounds<T> {
    /// What is wrong with a value, without repeating it.
    pub(super) fn check(&self, value: &T) -> Result<(), String> {
        let is_within = *value >= self.least && self.most.as_ref().is_none_or(|most| value <= most);
        if is_within || self.besides.as_ref() == Some(value) {
            return Ok(());
        }
        let verb = if self.most.is_some() { "lie" } else { "be" };
        Err(format!("must {verb} {}", self.words()))
    }

    /// What is allowed: `at least 1KiB`.
    pub(super) fn words(&self) -> String {
        let words = match &self.most {
            Some(most) => format!("between {} and {}", self.least.show(), most.show()),
            None => format!("at least {}", self.least.show()),
        };
        let besides = self.besides.as_ref().map(|besides| format!(", or {}", besides.show()));
        words + &besides.unwrap_or_default()
    }
}
