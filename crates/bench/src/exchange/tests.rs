//! Message encoding, and matching.

use super::order_book::{Book, Order, PRICE_MIN, PRICES, Quote, Taken};
use super::wire::Message;

#[test]
fn messages_survive_and_harm_shows() {
    for message in [
        Message::Buy(Order { number: 1, price: 1_000 }),
        Message::Sell(Order { number: u32::MAX, price: u16::MAX }),
        Message::Confirmed(Order { number: 7, price: 1 }),
        Message::Traded(Order { number: 8, price: 2 }),
        Message::Quote(Quote { bid: 1_001, ask: 1_003 }),
        Message::Measured(10_000),
    ] {
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
    let mut take = |number, price, buys| book.take(Order { number, price }, buys);
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
