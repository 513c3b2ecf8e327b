//! Shows an expression as the text of a selector, with the parentheses that it needs.

use super::expression::{Comparison, Expression, Operator};
use super::lexer;
use std::fmt::{self, Display, Formatter};

/// How tightly an expression holds together: an operand that does so less than its place demands is in
/// parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Not,
    Comparison,
    Sum,
    Product,
    Sign,
}

fn binding(expression: &Expression) -> Binding {
    match expression {
        Expression::Or(_) => Binding::Or,
        Expression::And(_) => Binding::And,
        Expression::Not(_) => Binding::Not,
        Expression::Compare { .. }
        | Expression::Between(_)
        | Expression::In(_)
        | Expression::Like { .. }
        | Expression::IsNull { .. } => Binding::Comparison,
        Expression::Arithmetic { steps, .. } => match steps.first() {
            Some(step) if step.operator.is_sum() => Binding::Sum,
            _ => Binding::Product,
        },
        Expression::Sign { .. } | Expression::Literal(_) | Expression::Property(_) => Binding::Sign,
    }
}

/// An operand, at least as tight as its place demands.
struct Operand<'e> {
    expression: &'e Expression,
    at_least: Binding,
}

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if binding(self.expression) < self.at_least {
            write!(f, "({})", self.expression)
        } else {
            self.expression.fmt(f)
        }
    }
}

fn operand(expression: &Expression, at_least: Binding) -> Operand<'_> {
    Operand { expression, at_least }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let value = |expression| operand(expression, Binding::Sum);
        match self {
            Expression::Literal(literal) => literal.fmt(f),
            Expression::Property(name) if lexer::is_plain_name(name) => f.write_str(name),
            Expression::Property(name) => write!(f, "[{}]", name.replace(']', "]]")),
            Expression::Sign { is_minus, operand: signed } => {
                let sign = if *is_minus { '-' } else { '+' };
                write!(f, "{sign}{}", operand(signed, Binding::Sign))
            }
            Expression::Arithmetic { first, steps } => {
                write!(f, "{}", operand(first, binding(self)))?;
                let tighter =
                    if binding(self) == Binding::Sum { Binding::Product } else { Binding::Sign };
                steps.iter().try_for_each(|step| {
                    write!(f, " {} {}", symbol(step.operator), operand(&step.operand, tighter))
                })
            }
            Expression::Compare { comparison, left, right } => {
                write!(f, "{} {} {}", value(left), sign(*comparison), value(right))
            }
            Expression::Between(it) => {
                let not = not(it.is_negated);
                let (low, high) = (value(&it.low), value(&it.high));
                write!(f, "{} {not}BETWEEN {low} AND {high}", value(&it.operand))
            }
            Expression::In(it) => {
                write!(f, "{} {}IN (", value(&it.operand), not(it.is_negated))?;
                let texts = it.texts.iter().map(|text| format!("'{}'", text.replace('\'', "''")));
                let entries: Vec<String> =
                    it.others.iter().map(ToString::to_string).chain(texts).collect();
                write!(f, "{})", entries.join(", "))
            }
            Expression::Like { operand, pattern, is_negated } => {
                write!(f, "{} {}LIKE {pattern}", value(operand), not(*is_negated))
            }
            Expression::IsNull { operand, is_negated } => {
                write!(f, "{} IS {}NULL", value(operand), not(*is_negated))
            }
            Expression::Not(condition) => write!(f, "NOT {}", operand(condition, Binding::Not)),
            Expression::And(conditions) => chain(f, conditions, Binding::Not, " AND "),
            Expression::Or(conditions) => chain(f, conditions, Binding::And, " OR "),
        }
    }
}

fn not(is_negated: bool) -> &'static str {
    if is_negated { "NOT " } else { "" }
}

fn chain(f: &mut Formatter<'_>, of: &[Expression], at_least: Binding, by: &str) -> fmt::Result {
    for (index, condition) in of.iter().enumerate() {
        let by = if index > 0 { by } else { "" };
        write!(f, "{by}{}", operand(condition, at_least))?;
    }
    Ok(())
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

fn symbol(operator: Operator) -> char {
    match operator {
        Operator::Add => '+',
        Operator::Subtract => '-',
        Operator::Multiply => '*',
        Operator::Divide => '/',
        Operator::Remainder => '%',
    }
}
