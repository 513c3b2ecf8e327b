//! Makes certificates for the TLS tests: an authority's, the broker's, and that of a client named ada.

use crate::process;
use std::path::Path;

const DAYS: &str = "30";

/// Makes all of them in `folder`.
pub(super) fn make(folder: &Path) -> Result<(), String> {
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let authority = ["-x509", "-days", DAYS, "-subj", "/CN=Angarium test authority"];
    let files = ["-keyout", "authority.key", "-out", "authority.pem"];
    openssl(folder, &[&["req"], &key[..], &authority[..], &files[..]].concat())?;
    sign(folder, &key, "server", "localhost", "subjectAltName=DNS:localhost,IP:127.0.0.1")?;
    sign(folder, &key, "ada", "ada", "extendedKeyUsage=clientAuth")
}

/// Makes NAME.key and NAME.pem, signed by the authority.
fn sign(
    folder: &Path,
    key: &[&str],
    name: &str,
    subject: &str,
    extension: &str,
) -> Result<(), String> {
    let file = |ending: &str| format!("{name}.{ending}");
    let (private, request, certificate) = (file("key"), file("csr"), file("pem"));
    let extensions = file("ext");
    let text = format!("basicConstraints=critical,CA:FALSE\n{extension}\n");
    std::fs::write(folder.join(&extensions), text)
        .map_err(|error| format!("{extensions}: {error}"))?;
    let subject = format!("/CN={subject}");
    let files = ["-subj", &subject, "-keyout", &private, "-out", &request];
    openssl(folder, &[&["req"], key, &files[..]].concat())?;
    let by = ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-days", DAYS];
    let files = ["-in", &request, "-extfile", &extensions, "-out", &certificate];
    openssl(folder, &[&["x509", "-req"], &by[..], &files[..]].concat())
}

fn openssl(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    process::output("openssl", arguments, folder).map(drop)
}
