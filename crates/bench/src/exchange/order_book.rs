//! The order book: exact price matching, first come first served. Independent of messages.

use std::collections::VecDeque;

/// The lowest price, and the number of prices.
pub(super) const PRICE_MIN: u16 = 1_000;
pub(super) const PRICES: u16 = 64;

/// The best bid and the best ask; 0 is none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) bid: u16,
    pub(super) ask: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// The number of the order that it matched.
    pub(super) matched: Option<u32>,
    /// The best bid and ask, if one of them changed.
    pub(super) quote: Option<Quote>,
}

/// Waiting orders by price. At one price there are either buyers or sellers.
pub(super) struct Book {
    buyers: Vec<VecDeque<u32>>,
    sellers: Vec<VecDeque<u32>>,
    best: Quote,
}

impl Book {
    pub(super) fn new() -> Book {
        let side = vec![VecDeque::new(); usize::from(PRICES)];
        Book { buyers: side.clone(), sellers: side, best: Quote::default() }
    }

    /// Adds an order; `None` if there is no such price.
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

    fn best(&self) -> Quote {
        let bid = self.buyers.iter().rposition(|queue| !queue.is_empty());
        let ask = self.sellers.iter().position(|queue| !queue.is_empty());
        let price = |index: Option<usize>| index.map_or(0, |index| PRICE_MIN + index as u16);
        Quote { bid: price(bid), ask: price(ask) }
    }
}
