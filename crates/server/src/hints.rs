//! What an operator can do about an error of the system.

use std::io::{Error, ErrorKind};
use std::path::Path;

/// Why something in the data folder cannot be used, and what to do.
pub(crate) fn in_data_folder(path: &Path, error: &Error) -> String {
    let elsewhere = "choose another data folder with --data PATH";
    let hint = match error.kind() {
        ErrorKind::WouldBlock => format!("stop that program, or {elsewhere}"),
        ErrorKind::PermissionDenied => format!("{}, or {elsewhere}", let_us("write there")),
        // What lies there, or above it, is no folder.
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            format!("a file lies where a folder is needed: move it away, or {elsewhere}")
        }
        ErrorKind::StorageFull => format!("make room on that disk, or {elsewhere}"),
        _ => elsewhere.to_owned(),
    };
    format!("cannot use the folder '{}': {error}; {hint}", path.display())
}

/// Why the file that a setting names cannot be read, and what to do.
pub(crate) fn unreadable(setting: &str, path: &Path, error: &Error) -> String {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => format!("; {}", let_us("read it")),
        ErrorKind::NotFound => format!("; put it there, or correct {setting}"),
        _ => String::new(),
    };
    format!("cannot read '{}' ({setting}): {error}{hint}", path.display())
}

/// Why a Unix socket cannot be made, and what to do; none: it is the one for administration.
pub(crate) fn no_socket(setting: Option<&str>, path: &Path, error: &Error) -> String {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new(".")).display();
    let named = setting.map(|name| format!(" ({name})")).unwrap_or_default();
    let (name, value) = setting.map_or(("data", "PATH"), |name| (name, "unix:PATH"));
    let elsewhere = format!("choose another with --{name} {value}");
    let hint = match error.kind() {
        ErrorKind::NotFound => format!("make the folder '{folder}' first, or {elsewhere}"),
        ErrorKind::PermissionDenied => format!("{} '{folder}', or {elsewhere}", let_us("write to")),
        // Only a socket that a broker has left behind is replaced.
        ErrorKind::AddrInUse => format!("a file is there: move it away, or {elsewhere}"),
        ErrorKind::InvalidFilename => format!("choose a shorter one with --{name} {value}"),
        _ => elsewhere,
    };
    format!("cannot listen on '{}'{named}: {error}; {hint}", path.display())
}

fn let_us(verb: &str) -> String {
    let user = rustix::process::geteuid().as_raw();
    format!("let the user that the broker runs as (number {user}) {verb}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FileMode;
    use angarium_journal::Disk;

    #[track_caller]
    fn check(message: &str, parts: &[&str]) {
        for part in parts {
            assert!(message.contains(part), "{message}: {part}");
        }
    }

    #[test]
    fn a_file_in_the_way_of_a_folder_is_called_so() {
        let data = tempfile::tempdir().unwrap();
        let journal = data.path().join("journal");
        std::fs::write(&journal, "").unwrap();
        let what = "a file lies where a folder is needed: move it away";
        for folder in [journal.clone(), journal.join("in it")] {
            let error = Disk::open(&folder).unwrap_err();
            check(&in_data_folder(&folder, &error), &["journal", what, "--data"]);
        }
    }

    #[test]
    fn a_data_folder_in_use_or_not_ours_has_a_way_out() {
        let data = tempfile::tempdir().unwrap();
        let first = Disk::open(data.path()).unwrap();
        let error = Disk::open(data.path()).unwrap_err();
        check(&in_data_folder(data.path(), &error), &["in use by process", "stop that program"]);
        drop(first);
        let denied = in_data_folder(Path::new("/d"), &ErrorKind::PermissionDenied.into());
        check(&denied, &["'/d'", "write there", "--data PATH"]);
    }

    #[test]
    fn a_socket_that_cannot_be_made_names_its_setting_and_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let socket = |path: &Path| {
            crate::reactor::listeners::unix(Some("amqp"), path, FileMode(0o600)).unwrap_err()
        };
        let missing = socket(&folder.path().join("missing/mq.sock"));
        check(&missing, &["(amqp)", "make the folder", "--amqp unix:PATH"]);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        check(&socket(&file), &["(amqp)", "a file is there: move it away"]);
        assert!(file.exists());
        check(&socket(&folder.path().join("x".repeat(200))), &["a shorter one"]);
        let denied = no_socket(None, Path::new("/d/s"), &ErrorKind::PermissionDenied.into());
        check(&denied, &["'/d/s'", "write to '/d'", "--data PATH"]);
    }
}
