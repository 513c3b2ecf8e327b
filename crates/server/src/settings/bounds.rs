//! Which values a setting may have: checked when it is set, and told where it is documented.

use super::value::SettingValue;

/// Decides over the values of a setting.
pub(super) trait Allowed<T> {
    /// What is wrong with a value, without repeating it.
    fn check(&self, value: &T) -> Result<(), String>;
    /// What is allowed, in words: `at least 1KiB`; nothing where the type says it all.
    fn words(&self) -> Option<String>;
}

/// Whatever the type can hold.
pub(super) struct Any;

impl<T> Allowed<T> for Any {
    fn check(&self, _: &T) -> Result<(), String> {
        Ok(())
    }

    fn words(&self) -> Option<String> {
        None
    }
}

/// From one value to another, both included, and one that lies beside them.
pub(super) struct Bounds<T> {
    least: T,
    most: Option<T>,
    besides: Option<T>,
}

/// Every value from that one on.
pub(super) const fn at_least<T: Copy>(least: T) -> Bounds<T> {
    Bounds { least, most: None, besides: None }
}

/// Every value from the one to the other.
pub(super) const fn between<T: Copy>(least: T, most: T) -> Bounds<T> {
    Bounds { least, most: Some(most), besides: None }
}

impl<T: Copy> Bounds<T> {
    /// These and that one.
    pub(super) const fn or(self, besides: T) -> Bounds<T> {
        Bounds { least: self.least, most: self.most, besides: Some(besides) }
    }
}

impl<T: SettingValue + PartialOrd> Allowed<T> for Bounds<T> {
    fn check(&self, value: &T) -> Result<(), String> {
        let is_within = *value >= self.least && self.most.as_ref().is_none_or(|most| value <= most);
        if is_within || self.besides.as_ref() == Some(value) {
            return Ok(());
        }
        let words = self.words().unwrap_or_default();
        Err(if self.most.is_some() {
            format!("must lie {words}")
        } else {
            format!("must be {words}")
        })
    }

    fn words(&self) -> Option<String> {
        let mut words = match &self.most {
            Some(most) => format!("between {} and {}", self.least.show(), most.show()),
            None => format!("at least {}", self.least.show()),
        };
        if let Some(besides) = &self.besides {
            words += &format!(", or {}", besides.show());
        }
        Some(words)
    }
}
