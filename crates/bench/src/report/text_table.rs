//! Plain tables for terminals by comfy-table: two spaces between columns, no lines, no colours.

use comfy_table::{CellAlignment, Table};

/// Which columns are aligned how, and how far the table is from the left edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) indent: u16,
    /// The first columns, which hold words; those after them hold figures and are aligned to the right.
    pub(super) left_columns: usize,
}

/// The rows as lines; a head is the first of them.
pub(super) fn text_table(layout: Layout, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_left = index < layout.left_columns;
        column.set_cell_alignment(if is_left { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding((if index == 0 { layout.indent } else { 2 }, 0));
    }
    table.trim_fmt() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "rate", "x"], ["bé", "1,000", ""]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        let text = text_table(Layout { indent: 1, left_columns: 1 }, rows);
        assert_eq!(text, " a    rate  x\n bé  1,000\n");
    }
}
