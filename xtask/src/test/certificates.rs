//! Makes certificates for the TLS tests: an authority's, the broker's, those of clients named ada and eve,
//! and the lists that revoke nobody's and eve's.

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
    let client = "extendedKeyUsage=clientAuth\nsubjectAltName=email:";
    sign(folder, &key, "ada", "ada", &format!("{client}ada@example.com"))?;
    sign(folder, &key, "eve", "eve", &format!("{client}eve@example.com"))?;
    revoke(folder, "eve")
}

/// Makes revoked.pem, the authority's list with NAME's certificate on it, and none-revoked.pem, an empty one.
fn revoke(folder: &Path, name: &str) -> Result<(), String> {
    let settings = "[ca]\ndefault_ca = authority\n[authority]\ndatabase = index\ncrlnumber = number\n\
                    default_md = sha256\ncrl_extensions = extensions\n[extensions]\n\
                    authorityKeyIdentifier = keyid\n";
    for (file, text) in [("authority.cnf", settings), ("index", ""), ("number", "01\n")] {
        std::fs::write(folder.join(file), text).map_err(|error| format!("{file}: {error}"))?;
    }
    let by = ["-config", "authority.cnf", "-cert", "authority.pem", "-keyfile", "authority.key"];
    let write = |list| {
        let list = ["-gencrl", "-crldays", DAYS, "-out", list];
        openssl(folder, &[&["ca"], &list[..], &by[..]].concat())
    };
    write("none-revoked.pem")?;
    let certificate = format!("{name}.pem");
    openssl(folder, &[&["ca", "-revoke", &certificate], &by[..]].concat())?;
    write("revoked.pem")
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
