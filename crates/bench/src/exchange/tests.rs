//! Messages, and what orders lead to.

use super::order_book::{Book, PRICE_MIN, PRICES, Taken};
use super::wire::Message;

#[test]
fn messages_survive_and_harm_shows() {
    for message in [
        Message::Buy(1, 1_000),
        Message::Sell(u32::MAX, u16::MAX),
        Message::Confirmed(7, 1),
        Message::Traded(8, 2),
        Message::Quote(1_001, 1_003),
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
    let taken = |matched, quote| Some(Taken { matched, quote });
    assert_eq!(book.take(1, price, true), taken(None, Some((price, 0))));
    assert_eq!(book.take(2, price, true), taken(None, None));
    assert_eq!(book.take(3, price + 1, false), taken(None, Some((price, price + 1))));
    assert_eq!(book.take(4, price, false), taken(Some(1), None));
    assert_eq!(book.take(5, price, false), taken(Some(2), Some((0, price + 1))));
    assert_eq!(book.take(6, price, false), taken(None, Some((0, price))));
    for nowhere in [0, PRICE_MIN - 1, PRICE_MIN + PRICES, u16::MAX] {
        assert_eq!(book.take(7, nowhere, true), None);
    }
}
