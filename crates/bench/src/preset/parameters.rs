//! A preset's parameters: numbers and lists of numbers by name, with the text's values or the user's.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most values of one list.
const VALUES_MAX: usize = 1_000;
/// The largest value: seconds of this number are still a time.
const VALUE_MAX: f64 = 1e12;

/// Values by name. A value is a number, a list such as `1,2,5`, or a range such as `1..9`, both ends
/// included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Changes the value of a parameter that exists.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some(current) = self.0.get_mut(name) else {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            return Err(format!("no parameter `{name}` here; there are: {}", names.join(", ")));
        };
        let values = parse(value)?;
        if values.is_empty() {
            return Err(format!("`{name}` needs a value"));
        }
        value.clone_into(current);
        Ok(())
    }

    /// All values of a parameter; none if there is no such parameter.
    pub(crate) fn list(&self, name: &str) -> Vec<f64> {
        self.0.get(name).and_then(|value| parse(value).ok()).unwrap_or_default()
    }

    /// The first value as a whole number; 0 if there is none.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.real(name) as u64
    }

    /// Octets of a message: the parameter `size`.
    pub(crate) fn size(&self) -> usize {
        self.count("size") as usize
    }

    /// The first value; 0 if there is none.
    pub(crate) fn real(&self, name: &str) -> f64 {
        self.list(name).first().copied().unwrap_or(0.0)
    }

    /// Whether there is a parameter of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Values by name.
    pub(crate) fn all(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

fn parse(text: &str) -> Result<Vec<f64>, String> {
    let mut values = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first || last - first > VALUES_MAX as f64 {
                    return Err(format!("`{part}` is no range"));
                }
                let mut value = first;
                while value <= last {
                    values.push(value);
                    value += 1.0;
                }
            }
            None => values.push(number(part)?),
        }
    }
    if values.len() > VALUES_MAX {
        return Err(format!("at most {VALUES_MAX} values"));
    }
    Ok(values)
}

fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value > VALUE_MAX => Err(format!("`{text}` is too large")),
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err(format!("`{text}` is not a number")),
    }
}

/// A change of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The preset it is for; `None` for all that have the parameter.
    pub(crate) preset: Option<String>,
    /// The parameter.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: String,
}

impl Setting {
    /// Reads `name=value` or `preset.name=value`.
    pub(crate) fn parse(text: &str) -> Result<Setting, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("`{text}` is not name=value"))?;
        let (preset, name) = match name.split_once('.') {
            Some((preset, name)) => (Some(preset.trim().to_owned()), name),
            None => (None, name),
        };
        Ok(Setting { preset, name: name.trim().to_owned(), value: value.trim().to_owned() })
    }

    /// Reads one setting from each line; `#` begins a comment.
    pub(crate) fn parse_lines(text: &str) -> Result<Vec<Setting>, String> {
        let mut settings = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                let setting = Setting::parse(line);
                settings.push(setting.map_err(|why| format!("line {}: {why}", index + 1))?);
            }
        }
        Ok(settings)
    }
}
