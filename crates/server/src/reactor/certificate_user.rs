//! The user's name in a client's certificate.

use crate::settings::CertificateUser;
use x509_parser::extensions::GeneralName;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Attributes whose names are written shortly (RFC 4514 section 3, and those that openssl writes so).
const SHORT_NAMES: [(&str, &str); 11] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// Takes the name out of a certificate that was verified; none: it has no such name.
pub(super) fn user_of(certificate: &[u8], from: CertificateUser) -> Option<String> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = certificate.subject();
    let alternative = |chosen: fn(&GeneralName<'_>) -> Option<String>| {
        let names = certificate.subject_alternative_name().ok()??;
        names.value.general_names.iter().find_map(chosen)
    };
    let found = match from {
        CertificateUser::None => None,
        CertificateUser::CommonName => {
            let name = subject.iter_common_name().next()?;
            name.as_str().ok().map(str::to_owned)
        }
        CertificateUser::DistinguishedName => Some(distinguished_name(subject)),
        CertificateUser::Email => alternative(|name| match name {
            GeneralName::RFC822Name(name) => Some((*name).to_owned()),
            _ => None,
        }),
        CertificateUser::Dns => alternative(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }),
        CertificateUser::Uri => alternative(|name| match name {
            GeneralName::URI(name) => Some((*name).to_owned()),
            _ => None,
        }),
    };
    found.filter(|name| !name.is_empty())
}

/// A subject as text: the most specific part first, parted by commas without blanks (RFC 4514).
fn distinguished_name(subject: &X509Name<'_>) -> String {
    let part = |attributes: Vec<String>| attributes.join("+");
    let mut parts: Vec<String> =
        subject.iter_rdn().map(|rdn| part(rdn.iter().map(attribute).collect())).collect();
    parts.reverse();
    parts.join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let kind = attribute.attr_type().to_id_string();
    let short = SHORT_NAMES.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name);
    match (short, attribute.as_str()) {
        (Some(name), Ok(value)) => format!("{name}={}", escaped(value)),
        (name, _) => {
            let octets = attribute.as_slice().iter().map(|octet| format!("{octet:02x}"));
            format!("{}=#{}", name.unwrap_or(&kind), octets.collect::<String>())
        }
    }
}

/// Escapes what would part a name (RFC 4514 section 2.4).
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for (at, character) in value.char_indices() {
        let is_last = at + character.len_utf8() == value.len();
        let is_special = match character {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => true,
            '#' => at == 0,
            ' ' => at == 0 || is_last,
            _ => false,
        };
        if character == '\0' {
            text.push_str("\\00");
            continue;
        }
        if is_special {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    fn certificate(names: &[(DnType, &str)], alternatives: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.subject_alt_names = alternatives;
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn each_part_of_a_certificate_can_be_the_user() {
        let name = |text: &str| text.try_into().unwrap();
        let full = certificate(
            &[
                (DnType::CountryName, "DE"),
                (DnType::OrganizationName, "Example, Inc."),
                (DnType::CommonName, "ada"),
            ],
            vec![
                SanType::URI(name("spiffe://example/ada")),
                SanType::DnsName(name("ada.example")),
                SanType::DnsName(name("second.example")),
                SanType::Rfc822Name(name("ada@example.com")),
            ],
        );
        let bare = certificate(&[], Vec::new());
        for (from, expected) in [
            (CertificateUser::CommonName, Some("ada")),
            (CertificateUser::DistinguishedName, Some("CN=ada,O=Example\\, Inc.,C=DE")),
            (CertificateUser::Email, Some("ada@example.com")),
            (CertificateUser::Dns, Some("ada.example")),
            (CertificateUser::Uri, Some("spiffe://example/ada")),
            (CertificateUser::None, None),
        ] {
            assert_eq!(user_of(&full, from).as_deref(), expected, "{from:?}");
            assert_eq!(user_of(&bare, from), None, "{from:?}");
        }
        assert_eq!(user_of(b"no certificate", CertificateUser::CommonName), None);
    }

    #[test]
    fn what_would_part_a_name_is_escaped() {
        for (value, expected) in [
            ("plain", "plain"),
            (" a b ", "\\ a b\\ "),
            ("#a#", "\\#a#"),
            ("a,b+c;d<e>f\"g\\h", "a\\,b\\+c\\;d\\<e\\>f\\\"g\\\\h"),
            ("a\0b", "a\\00b"),
            ("ü ", "ü\\ "),
        ] {
            assert_eq!(escaped(value), expected);
        }
    }
}
