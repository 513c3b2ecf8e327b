//! Values kept in numbered slots that are reused.

/// Values by slot number; iteration goes by slot.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Puts a value into a free slot.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(value);
            return slot;
        }
        self.slots.push(Some(value));
        u32::try_from(self.slots.len() - 1).expect("limits keep slots far below 2^32")
    }

    /// The slot that the next insertion takes.
    pub(crate) fn next_slot(&self) -> u32 {
        match self.free.last() {
            Some(slot) => *slot,
            None => u32::try_from(self.slots.len()).expect("limits keep slots far below 2^32"),
        }
    }

    /// Takes the value out of a slot.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<T> {
        let value = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    /// The value in a slot.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// The value in a slot.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// All slots in use, with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0_u32..).zip(&self.slots).filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }

    /// All slots in use, with their values.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0_u32..).zip(&mut self.slots).filter_map(|(slot, value)| Some((slot, value.as_mut()?)))
    }

    /// How many slots are in use.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
