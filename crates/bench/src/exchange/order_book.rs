//! The order book: exact prices, first come first served. Knows no messages.

use std::collections::VecDeque;

/// The lowest price, and how many prices there are.
pub(super) const PRICE_MIN: u16 = 1_000;
pub(super) const PRICES: u16 = 64;

/// What an order led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// The order that it was matched with.
    pub(super) matched: Option<u32>,
    /// The best bid and the best ask, if one of them changed; 0 is none.
    pub(super) quote: Option<(u16, u16)>,
}

/// Orders that wait, by price. At one price there are either buyers or sellers.
#[derive(Debug)]
pub(super) struct Book {
    buyers: Vec<VecDeque<u32>>,
    sellers: Vec<VecDeque<u32>>,
    best: (u16, u16),
}

impl Book {
    pub(super) fn new() -> Book {
        let side = || (0..PRICES).map(|_| VecDeque::new()).collect();
        Book { buyers: side(), sellers: side(), best: (0, 0) }
    }

    /// Takes an order; `None` if there is no such price.
    pub(super) fn take(&mut self, number: u32, price: u16, buys: bool) -> Option<Taken> {
        let index = usize::from(price.checked_sub(PRICE_MIN).filter(|it| *it < PRICES)?);
        let (own, others) = match buys {
            true => (&mut self.buyers, &mut self.sellers),
            false => (&mut self.sellers, &mut self.buyers),
        };
        let matched = others[index].pop_front();
        if matched.is_none() {
            own[index].push_back(number);
        }
        let best = self.best();
        let quote = (best != self.best).then_some(best);
        self.best = best;
        Some(Taken { matched, quote })
    }

    fn best(&self) -> (u16, u16) {
        let bid = self.buyers.iter().rposition(|queue| !queue.is_empty());
        let ask = self.sellers.iter().position(|queue| !queue.is_empty());
        let price = |index: Option<usize>| index.map_or(0, |index| PRICE_MIN + index as u16);
        (price(bid), price(ask))
    }
}
