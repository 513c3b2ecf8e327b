//! What a selector's text says, as a tree in which equal selectors are equal.

use super::pattern::Pattern;
use super::value::Literal;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The comparison that says the same with its sides exchanged.
    pub(super) fn mirrored(self) -> Comparison {
        match self {
            Comparison::Equal | Comparison::NotEqual => self,
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(super) fn is_sum(self) -> bool {
        matches!(self, Operator::Add | Operator::Subtract)
    }
}

/// An operation of a chain, on what the chain has come to before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Step {
    pub(super) operator: Operator,
    pub(super) operand: Expression,
}

/// A value or a condition. Chains of one operator are one node, so that only parentheses, signs and `NOT`
/// make the tree deeper.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Expression {
    Literal(Literal),
    Property(Box<str>),
    /// A sign before what is not a literal.
    Sign {
        is_minus: bool,
        operand: Box<Expression>,
    },
    /// Operations of one precedence, from left to right.
    Arithmetic {
        first: Box<Expression>,
        steps: Box<[Step]>,
    },
    /// A literal is on the right, unless both sides are.
    Compare {
        comparison: Comparison,
        left: Box<Expression>,
        right: Box<Expression>,
    },
    Between(Box<Between>),
    In(Box<In>),
    Like {
        operand: Box<Expression>,
        pattern: Box<Pattern>,
        is_negated: bool,
    },
    IsNull {
        operand: Box<Expression>,
        is_negated: bool,
    },
    Not(Box<Expression>),
    /// Two or more conditions, none of which is an `And`.
    And(Box<[Expression]>),
    /// Two or more conditions, none of which is an `Or`.
    Or(Box<[Expression]>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Between {
    pub(super) operand: Expression,
    pub(super) low: Expression,
    pub(super) high: Expression,
    pub(super) is_negated: bool,
}

/// Whether a value is in a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct In {
    pub(super) operand: Expression,
    /// The texts of the list, sorted.
    pub(super) texts: Box<[Box<str>]>,
    /// The other literals of the list, sorted.
    pub(super) others: Box<[Literal]>,
    pub(super) is_negated: bool,
}

impl Expression {
    /// Bytes beside the node itself.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Expression::Literal(literal) => literal.heap_bytes(),
            Expression::Property(name) => name.len(),
            Expression::Sign { operand, .. } | Expression::IsNull { operand, .. } => {
                operand.bytes()
            }
            Expression::Not(operand) => operand.bytes(),
            Expression::Arithmetic { first, steps } => {
                let steps = steps.iter().map(|step| size_of::<Step>() + step.operand.heap_bytes());
                first.bytes() + steps.sum::<usize>()
            }
            Expression::Compare { left, right, .. } => left.bytes() + right.bytes(),
            Expression::Between(it) => {
                let operands = [&it.operand, &it.low, &it.high];
                size_of::<Between>() + operands.map(Expression::heap_bytes).iter().sum::<usize>()
            }
            Expression::In(it) => {
                let texts = it.texts.iter().map(|text| size_of::<Box<str>>() + text.len());
                let others = size_of::<Literal>() * it.others.len();
                size_of::<In>() + it.operand.heap_bytes() + texts.sum::<usize>() + others
            }
            Expression::Like { operand, pattern, .. } => operand.bytes() + pattern.bytes(),
            Expression::And(conditions) | Expression::Or(conditions) => {
                conditions.iter().map(Expression::bytes).sum()
            }
        }
    }

    /// Bytes of the node with what is below it.
    fn bytes(&self) -> usize {
        size_of::<Expression>() + self.heap_bytes()
    }
}
