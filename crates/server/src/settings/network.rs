//! Networks of addresses, as `192.0.2.0/24`.

use super::value::SettingValue;
use std::net::IpAddr;

/// One network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    address: IpAddr,
    /// How many leading bits of an address have to be the same.
    bits: u8,
}

/// Some networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Networks(pub Vec<Network>);

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differ = u32::from(own) ^ u32::from(other);
                differ.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differ = u128::from(own) ^ u128::from(other);
                differ.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

impl Networks {
    /// Whether that address is in one of them.
    pub fn have(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.has(address))
    }
}

impl SettingValue for Network {
    const FORMS: &'static [&'static str] = &["ADDR/BITS", "ADDR"];
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected networks such as 192.0.2.0/24, 2001:db8::/32 or 127.0.0.1";
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| EXPECTED)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).ok().filter(|bits| *bits <= most);
        Ok(Network { address, bits: bits.ok_or(EXPECTED)? })
    }
    fn show(&self) -> String {
        format!("{}/{}", self.address, self.bits)
    }
}

impl SettingValue for Networks {
    const FORMS: &'static [&'static str] = &["ADDR/BITS,...", "off"];
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Networks::default());
        }
        let networks = text.split(',').map(|network| Network::parse(network.trim()));
        networks.collect::<Result<_, _>>().map(Networks)
    }
    fn show(&self) -> String {
        let shown: Vec<String> = self.0.iter().map(Network::show).collect();
        if shown.is_empty() { "off".into() } else { shown.join(",") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_a_network_by_its_leading_bits() {
        for (networks, inside, outside) in [
            ("off", &[][..], &["127.0.0.1", "::1"][..]),
            (
                "192.0.2.0/24",
                &["192.0.2.0", "192.0.2.255", "::ffff:192.0.2.7"],
                &["192.0.3.0", "::1"],
            ),
            ("10.0.0.0/9", &["10.127.255.255"], &["10.128.0.0"]),
            ("127.0.0.1", &["127.0.0.1"], &["127.0.0.2"]),
            ("0.0.0.0/0", &["1.2.3.4"], &["::1"]),
            ("2001:db8::/33, ::1", &["2001:db8:7fff::1", "::1"], &["2001:db8:8000::", "::2"]),
            ("::/0", &["::", "fe80::1"], &["1.2.3.4"]),
        ] {
            let networks = Networks::parse(networks).unwrap();
            assert_eq!(Networks::parse(&networks.show()).unwrap(), networks);
            for (addresses, expected) in [(inside, true), (outside, false)] {
                for address in addresses {
                    let shown = format!("{address} in {}", networks.show());
                    assert_eq!(networks.have(address.parse().unwrap()), expected, "{shown}");
                }
            }
        }
        for wrong in
            ["", "here", "1.2.3.4/33", "::/129", "1.2.3.4/", "1.2.3.4/8,", "1.2.3/8", "::/-1"]
        {
            assert!(Networks::parse(wrong).is_err(), "{wrong}");
        }
    }
}
