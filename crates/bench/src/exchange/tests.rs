//! Message encoding, and matching.

use super::order_book::{Book, PRICE_MIN, PRICES, Quote, Taken};
use super::wire::{Kind, Message};

#[test]
fn messages_survive_and_harm_shows() {
    for (kind, number, price) in [
        (Kind::Buy, 1, 1_000),
        (Kind::Sell, u32::MAX, u16::MAX),
        (Kind::Confirmed, 7, 1),
        (Kind::Traded, 8, 2),
        (Kind::Quote, 1_001, 1_003),
        (Kind::Measured, 10_000, 0),
    ] {
        let message = Message { kind, number, price };
        let octets = message.encode();
        assert_eq!(Message::decode(&octets), Some(message));
        for bit in 0..octets.len() * 8 {
            let mut harmed = octets;
            harmed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Message::decode(&harmed), None, "{message:?}, bit {bit}");
        }
        assert_eq!(Message::decode(&octets[1..]), None);
    }
}

#[test]
fn orders_are_matched_at_their_price_in_their_order() {
    let mut book = Book::new();
    let price = PRICE_MIN + 5;
    let taken = |matched, quote: Option<(u16, u16)>| {
        Some(Taken { matched, quote: quote.map(|(bid, ask)| Quote { bid, ask }) })
    };
    let mut take = |number, price, buys| book.take(number, price, buys);
    assert_eq!(take(1, price, true), taken(None, Some((price, 0))));
    assert_eq!(take(2, price, true), taken(None, None));
    assert_eq!(take(3, price + 1, false), taken(None, Some((price, price + 1))));
    assert_eq!(take(4, price, false), taken(Some(1), None));
    assert_eq!(take(5, price, false), taken(Some(2), Some((0, price + 1))));
    assert_eq!(take(6, price, false), taken(None, Some((0, price))));
    for nowhere in [0, PRICE_MIN - 1, PRICE_MIN + PRICES, u16::MAX] {
        assert_eq!(take(7, nowhere, true), None);
    }
}
