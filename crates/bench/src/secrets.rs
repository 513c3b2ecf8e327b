//! Passwords: from the environment or a file, never from the command line, which every user of a machine can
//! read (`ps`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The variable with a password.
pub const PASSWORD: &str = "ANGARIUM_PASSWORD";
/// The variable that names a file with one.
pub const PASSWORD_FILE: &str = "ANGARIUM_PASSWORD_FILE";

/// The login that everybody knows.
const GUEST: &str = "guest:guest";

/// The password that was given, if one was: in this file, else in the environment.
pub fn password(file: Option<&Path>) -> Result<Option<String>, String> {
    chosen(file, |name| std::env::var_os(name).and_then(|value| value.into_string().ok()))
}

fn chosen(
    file: Option<&Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, String> {
    if file.is_none()
        && let Some(password) = variable(PASSWORD)
    {
        return Ok(Some(password));
    }
    let named = variable(PASSWORD_FILE).map(PathBuf::from);
    file.map(Path::to_owned).or(named).map(|path| read(&path)).transpose()
}

/// The first line of a file.
pub fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read a password from '{shown}': {error}"))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(format!("there is no password in the first line of '{shown}'")),
    }
}

/// Refuses a command line with an address that has a password. What follows `--` is for another program.
pub fn refuse_in<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Result<(), String> {
    for word in words {
        let word = word.as_ref().to_string_lossy();
        if word == "--" {
            break;
        }
        let hidden = without_password(&word);
        let is_public = word.split_once("://").is_some_and(|(_, rest)| {
            rest.rsplit_once('@').is_some_and(|(login, _)| login == GUEST)
        });
        if hidden != *word && !is_public {
            return Err(format!(
                "every user of this machine can read the password in '{hidden}': leave it away (USER@HOST), \
                 and give it in the environment ({PASSWORD}), or in a file that {PASSWORD_FILE} names"
            ));
        }
    }
    Ok(())
}

/// A word of the command line without its password.
pub(crate) fn without_password(word: &str) -> String {
    let Some((before, rest)) = word.split_once("://") else { return word.to_owned() };
    let Some((login, address)) = rest.rsplit_once('@') else { return word.to_owned() };
    let login = match login.split_once(':') {
        Some((user, _)) => format!("{user}:***"),
        None => login.to_owned(),
    };
    format!("{before}://{login}@{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_on_the_command_line_is_refused() {
        for (word, shown) in [
            ("--quick", None),
            ("amqp://host:5672/v", None),
            ("amqp://user@host", None),
            ("amqp://guest:guest@host", None),
            ("nats://@host", None),
            ("--target=amqp://user:p@ss@host/v", Some("--target=amqp://user:***@host/v")),
            ("mqtt5://user:secret@host", Some("mqtt5://user:***@host")),
            ("amqp://guest:other@host", Some("amqp://guest:***@host")),
        ] {
            assert_eq!(without_password("amqp://guest:guest@host"), "amqp://guest:***@host");
            match (refuse_in(["bench", word]), shown) {
                (Ok(()), None) => {}
                (Err(why), Some(shown)) => {
                    assert!(why.contains(&format!("in '{shown}': ")), "{why}");
                    assert_eq!(without_password(word), shown);
                }
                (found, _) => panic!("{word}: {found:?}"),
            }
            assert_eq!(refuse_in(["bench", "start", "--", word]), Ok(()));
        }
    }

    #[test]
    fn a_password_comes_from_a_file_or_the_environment() {
        let folder = std::env::temp_dir().join(format!("secrets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("password");
        std::fs::write(&file, "in the file\nmore\n").unwrap();
        let empty = folder.join("empty");
        std::fs::write(&empty, "\n").unwrap();
        let variables = |password: bool, named: bool| {
            let file = file.display().to_string();
            move |name: &str| match name {
                PASSWORD => password.then(|| "in the environment".to_owned()),
                PASSWORD_FILE => named.then(|| file.clone()),
                _ => None,
            }
        };
        let in_file = || Ok(Some("in the file".to_owned()));
        let in_environment = || Ok(Some("in the environment".to_owned()));
        assert_eq!(chosen(None, variables(false, false)), Ok(None));
        assert_eq!(chosen(None, variables(true, true)), in_environment());
        assert_eq!(chosen(None, variables(false, true)), in_file());
        assert_eq!(chosen(Some(&file), variables(true, false)), in_file());
        for wrong in [&empty, &folder.join("none")] {
            assert!(chosen(Some(wrong), variables(true, false)).is_err());
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
