//! Parses a selector's text and refuses what can be neither true nor false for any message.

use super::error::{SelectorError, quoted};
use super::expression::{Between, Comparison, Expression, In, Operator, Step};
use super::lexer::{Keyword, Lexer, Spanned, Token};
use super::number::Number;
use super::pattern::Pattern;
use super::value::Literal;

/// What a selector may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseOptions {
    /// Bytes of a selector's text.
    pub text_bytes_max: usize,
    /// Terms of a selector, as [`Selector::terms`](super::Selector::terms) counts them.
    pub terms_max: usize,
    /// Parentheses, signs and `NOT` within each other. 64 are the most, whatever is given.
    pub depth_max: usize,
    /// Whether a dash is part of a name when it directly follows a letter of it: `group-id` is then a name,
    /// and `group - id` a difference.
    pub dashes_in_names: bool,
}

/// The depth whose recursion fits the stack of any thread: 1 MiB even without optimization.
const DEPTH_MAX: usize = 64;

impl Default for ParseOptions {
    /// 16 KiB, 1,000 terms, 64 levels, no dashes in names.
    fn default() -> ParseOptions {
        ParseOptions {
            text_bytes_max: 16 << 10,
            terms_max: 1000,
            depth_max: DEPTH_MAX,
            dashes_in_names: false,
        }
    }
}

/// Parses a whole selector; returns its condition and how many terms it has.
pub(super) fn parse(
    text: &str,
    options: &ParseOptions,
) -> Result<(Expression, usize), SelectorError> {
    let max = options.text_bytes_max;
    if text.len() > max {
        let problem = format!("the selector has {} bytes, at most {max} are allowed", text.len());
        return Err(SelectorError::new(max, problem));
    }
    let mut lexer = Lexer::new(text, options.dashes_in_names);
    let next = lexer.next()?;
    if next.token == Token::End {
        return Ok((Expression::Literal(Literal::Bool(true)), 1));
    }
    let mut parser = Parser { text, lexer, next, options, depth: 0, terms: 0 };
    let condition = parser.or()?.condition()?;
    match parser.next.token {
        Token::End => Ok((condition, parser.terms)),
        Token::Close => Err(parser.error("this ) closes no parenthesis")),
        Token::Comparison(_) => {
            Err(parser
                .error("a comparison cannot be compared without parentheses, as in (a = b) = c"))
        }
        _ => Err(parser.unexpected("AND, OR or the end")),
    }
}

/// A part of the selector, and where its text begins.
struct Part {
    expression: Expression,
    start: usize,
}

/// What is known of a part before any message is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Condition,
    Number,
    Text,
    /// What the property holds.
    Any,
}

impl Part {
    fn kind(&self) -> Kind {
        match &self.expression {
            Expression::Property(_) => Kind::Any,
            Expression::Literal(Literal::Text(_)) => Kind::Text,
            Expression::Literal(Literal::Exact(_) | Literal::Approximate(_))
            | Expression::Sign { .. }
            | Expression::Arithmetic { .. } => Kind::Number,
            _ => Kind::Condition,
        }
    }

    /// The expression where a value of a kind is called for.
    fn of_kind(self, wanted: Kind, hint: &str) -> Result<Expression, SelectorError> {
        let found = match self.kind() {
            kind if kind == wanted || kind == Kind::Any => return Ok(self.expression),
            Kind::Condition => "a condition",
            Kind::Number => "a number",
            _ => "text",
        };
        Err(SelectorError::new(self.start, format!("{hint}, but this is {found}")))
    }

    fn condition(self) -> Result<Expression, SelectorError> {
        self.of_kind(Kind::Condition, "expected a condition, such as a = 1")
    }

    fn number(self) -> Result<Expression, SelectorError> {
        self.of_kind(Kind::Number, "expected a number or a property")
    }
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The token that is parsed next.
    next: Spanned,
    options: &'t ParseOptions,
    depth: usize,
    terms: usize,
}

impl Parser<'_> {
    fn error(&self, problem: impl Into<String>) -> SelectorError {
        SelectorError::new(self.next.start, problem)
    }

    fn unexpected(&self, expected: &str) -> SelectorError {
        let found = match self.next.token {
            Token::End => "the end of the selector".to_owned(),
            _ => quoted(&self.text[self.next.start..self.next.end]),
        };
        self.error(format!("expected {expected}, but found {found}"))
    }

    fn advance(&mut self) -> Result<Token, SelectorError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next).token)
    }

    /// Goes past the token if it is next.
    fn take(&mut self, token: &Token) -> Result<bool, SelectorError> {
        let is_next = self.next.token == *token;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn take_keyword(&mut self, keyword: Keyword) -> Result<bool, SelectorError> {
        self.take(&Token::Keyword(keyword))
    }

    fn expect(&mut self, token: &Token, name: &str) -> Result<(), SelectorError> {
        if self.take(token)? { Ok(()) } else { Err(self.unexpected(name)) }
    }

    /// Counts terms, of which what begins at `start` consists.
    fn count(&mut self, terms: usize, start: usize) -> Result<(), SelectorError> {
        self.terms += terms;
        let max = self.options.terms_max;
        if self.terms <= max {
            return Ok(());
        }
        let problem =
            format!("the selector has more than {max} terms (values, operators and patterns)");
        Err(SelectorError::new(start, problem))
    }

    /// Parses something one level deeper, whose text begins with the token that is next.
    fn deeper(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Part, SelectorError>,
    ) -> Result<Part, SelectorError> {
        let max = self.options.depth_max.min(DEPTH_MAX);
        if self.depth == max {
            let problem = format!("parentheses, signs and NOT are more than {max} levels deep");
            return Err(self.error(problem));
        }
        self.depth += 1;
        let part = parse(self);
        self.depth -= 1;
        part
    }

    fn or(&mut self) -> Result<Part, SelectorError> {
        self.joined(Keyword::Or, Parser::and)
    }

    fn and(&mut self) -> Result<Part, SelectorError> {
        self.joined(Keyword::And, Parser::not)
    }

    /// Conditions with `AND`, or `OR`, between them. Those in parentheses that are joined by the same belong
    /// to the chain.
    fn joined(
        &mut self,
        by: Keyword,
        operand: fn(&mut Self) -> Result<Part, SelectorError>,
    ) -> Result<Part, SelectorError> {
        let mut part = operand(self)?;
        if self.next.token != Token::Keyword(by) {
            return Ok(part);
        }
        let start = part.start;
        let mut conditions = Vec::new();
        loop {
            match (by, part.condition()?) {
                (Keyword::And, Expression::And(inner)) | (Keyword::Or, Expression::Or(inner)) => {
                    conditions.extend(inner);
                }
                (_, condition) => conditions.push(condition),
            }
            let operator = self.next.start;
            if !self.take_keyword(by)? {
                break;
            }
            self.count(1, operator)?;
            part = operand(self)?;
        }
        let join = if by == Keyword::And { Expression::And } else { Expression::Or };
        Ok(Part { expression: join(conditions.into()), start })
    }

    fn not(&mut self) -> Result<Part, SelectorError> {
        let start = self.next.start;
        if self.next.token != Token::Keyword(Keyword::Not) {
            return self.comparison();
        }
        self.count(1, start)?;
        self.deeper(|parser| {
            parser.advance()?;
            let condition = parser.not()?.condition()?;
            Ok(Part { expression: Expression::Not(condition.into()), start })
        })
    }

    /// A value, and what is asked about it, if anything.
    fn comparison(&mut self) -> Result<Part, SelectorError> {
        let operand = self.sum()?;
        let start = operand.start;
        let expression = match self.next.token {
            Token::Comparison(comparison) => self.compared(operand, comparison)?,
            Token::Keyword(Keyword::Is) => self.is_null(operand)?,
            Token::Keyword(Keyword::Not) => {
                self.advance()?;
                match self.predicate(operand, true)? {
                    Asked::Predicate(expression) => expression,
                    Asked::Nothing(_) => return Err(self.unexpected("IN, LIKE or BETWEEN")),
                }
            }
            _ => match self.predicate(operand, false)? {
                Asked::Predicate(expression) => expression,
                Asked::Nothing(operand) => return Ok(operand),
            },
        };
        self.count(1, start)?;
        Ok(Part { expression, start })
    }

    fn compared(
        &mut self,
        left: Part,
        comparison: Comparison,
    ) -> Result<Expression, SelectorError> {
        self.advance()?;
        let right = self.sum()?;
        let (mut left, mut right) = match comparison {
            Comparison::Equal | Comparison::NotEqual => (left.expression, right.expression),
            _ => {
                let hint = "only numbers have an order";
                (left.of_kind(Kind::Number, hint)?, right.of_kind(Kind::Number, hint)?)
            }
        };
        let is_literal = |it: &Expression| matches!(it, Expression::Literal(_));
        let mut comparison = comparison;
        if is_literal(&left) && !is_literal(&right) {
            std::mem::swap(&mut left, &mut right);
            comparison = comparison.mirrored();
        }
        Ok(Expression::Compare { comparison, left: left.into(), right: right.into() })
    }

    fn is_null(&mut self, operand: Part) -> Result<Expression, SelectorError> {
        self.advance()?;
        let is_negated = self.take_keyword(Keyword::Not)?;
        self.expect(&Token::Keyword(Keyword::Null), "NULL or NOT NULL")?;
        Ok(Expression::IsNull { operand: operand.expression.into(), is_negated })
    }

    /// `IN`, `LIKE` or `BETWEEN`, if one is next.
    fn predicate(&mut self, operand: Part, is_negated: bool) -> Result<Asked, SelectorError> {
        let expression = match self.next.token {
            Token::Keyword(Keyword::In) => self.is_in(operand, is_negated)?,
            Token::Keyword(Keyword::Like) => self.like(operand, is_negated)?,
            Token::Keyword(Keyword::Between) => self.between(operand, is_negated)?,
            _ => return Ok(Asked::Nothing(operand)),
        };
        Ok(Asked::Predicate(expression))
    }

    fn between(&mut self, operand: Part, is_negated: bool) -> Result<Expression, SelectorError> {
        self.advance()?;
        let operand = operand.number()?;
        let low = self.sum()?.number()?;
        self.expect(&Token::Keyword(Keyword::And), "AND and the upper bound of BETWEEN")?;
        let high = self.sum()?.number()?;
        Ok(Expression::Between(Between { operand, low, high, is_negated }.into()))
    }

    fn like(&mut self, operand: Part, is_negated: bool) -> Result<Expression, SelectorError> {
        self.advance()?;
        let operand = operand.of_kind(Kind::Text, "LIKE compares text")?;
        let start = self.next.start;
        let Token::Text(text) = &mut self.next.token else {
            return Err(self.unexpected("a pattern in single quotes"));
        };
        let text = std::mem::take(text);
        self.advance()?;
        let escape = if self.take_keyword(Keyword::Escape)? { Some(self.escape()?) } else { None };
        let pattern = Pattern::new(&text, escape);
        self.count(pattern.weight(), start)?;
        Ok(Expression::Like { operand: operand.into(), pattern: pattern.into(), is_negated })
    }

    fn escape(&mut self) -> Result<char, SelectorError> {
        let expected = "one character in single quotes";
        let Token::Text(text) = &self.next.token else { return Err(self.unexpected(expected)) };
        let mut chars = text.chars();
        let (Some(escape), None) = (chars.next(), chars.next()) else {
            return Err(self.unexpected(expected));
        };
        self.advance()?;
        Ok(escape)
    }

    fn is_in(&mut self, operand: Part, is_negated: bool) -> Result<Expression, SelectorError> {
        self.advance()?;
        self.expect(&Token::Open, "( and the list of IN")?;
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        loop {
            self.count(1, self.next.start)?;
            match self.entry()? {
                Literal::Text(text) => texts.push(text),
                literal => others.push(literal),
            }
            if !self.take(&Token::Comma)? {
                break;
            }
        }
        self.expect(&Token::Close, "a comma or ) behind the list of IN")?;
        let entries = texts.len() + others.len();
        texts.sort();
        texts.dedup();
        others.sort();
        others.dedup();
        self.terms -= entries - texts.len() - others.len();
        let (texts, others) = (texts.into(), others.into());
        Ok(Expression::In(In { operand: operand.expression, texts, others, is_negated }.into()))
    }

    /// A literal, perhaps with a sign.
    fn entry(&mut self) -> Result<Literal, SelectorError> {
        let is_minus = match self.next.token {
            Token::Operator(Operator::Add) => Some(false),
            Token::Operator(Operator::Subtract) => Some(true),
            _ => None,
        };
        let Some(is_minus) = is_minus else {
            return self.literal()?.ok_or_else(|| self.unexpected("text, a number, TRUE or FALSE"));
        };
        self.advance()?;
        self.signed_number(is_minus)?.ok_or_else(|| self.unexpected("a number"))
    }

    fn sum(&mut self) -> Result<Part, SelectorError> {
        self.chain(Parser::product, Operator::is_sum)
    }

    fn product(&mut self) -> Result<Part, SelectorError> {
        self.chain(Parser::sign, |operator| !operator.is_sum())
    }

    /// Operands with operators of one precedence between them.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Result<Part, SelectorError>,
        belongs: fn(Operator) -> bool,
    ) -> Result<Part, SelectorError> {
        let part = operand(self)?;
        let start = part.start;
        let (first, mut steps) = match self.next.token {
            Token::Operator(operator) if belongs(operator) => begin_chain(part.number()?, belongs),
            _ => return Ok(part),
        };
        while let Token::Operator(operator) = self.next.token
            && belongs(operator)
        {
            self.count(1, self.next.start)?;
            self.advance()?;
            steps.push(Step { operator, operand: operand(self)?.number()? });
        }
        Ok(Part { expression: Expression::Arithmetic { first, steps: steps.into() }, start })
    }

    fn sign(&mut self) -> Result<Part, SelectorError> {
        let is_minus = match self.next.token {
            Token::Operator(Operator::Add) => false,
            Token::Operator(Operator::Subtract) => true,
            _ => return self.primary(),
        };
        let start = self.next.start;
        self.deeper(|parser| {
            parser.advance()?;
            if let Some(literal) = parser.signed_number(is_minus)? {
                parser.count(1, start)?;
                return Ok(Part { expression: Expression::Literal(literal), start });
            }
            let expression = match parser.sign()?.number()? {
                Expression::Literal(literal) => Expression::Literal(signed(literal, is_minus)),
                operand => {
                    parser.count(1, start)?;
                    Expression::Sign { is_minus, operand: operand.into() }
                }
            };
            Ok(Part { expression, start })
        })
    }

    /// The number that is next, behind a sign.
    fn signed_number(&mut self, is_minus: bool) -> Result<Option<Literal>, SelectorError> {
        if is_minus && self.take(&Token::Number(Number::ExactMin))? {
            return Ok(Some(Literal::Exact(i64::MIN)));
        }
        if !matches!(self.next.token, Token::Number(_)) {
            return Ok(None);
        }
        Ok(self.literal()?.map(|literal| signed(literal, is_minus)))
    }

    fn primary(&mut self) -> Result<Part, SelectorError> {
        let start = self.next.start;
        if let Some(literal) = self.literal()? {
            self.count(1, start)?;
            return Ok(Part { expression: Expression::Literal(literal), start });
        }
        match &mut self.next.token {
            Token::Name(name) => {
                let expression = Expression::Property(std::mem::take(name));
                self.advance()?;
                self.count(1, start)?;
                Ok(Part { expression, start })
            }
            Token::Open => self.deeper(|parser| {
                parser.advance()?;
                let inner = parser.or()?;
                if parser.next.token == Token::End {
                    return Err(SelectorError::new(start, "this ( has no closing parenthesis"));
                }
                parser.expect(&Token::Close, "AND, OR or )")?;
                Ok(Part { expression: inner.expression, start })
            }),
            Token::Keyword(Keyword::Null) => {
                Err(self.error("NULL cannot be compared with: write IS NULL or IS NOT NULL"))
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    /// The literal that is next, if one is.
    fn literal(&mut self) -> Result<Option<Literal>, SelectorError> {
        let literal = match &mut self.next.token {
            Token::Text(text) => Literal::Text(std::mem::take(text)),
            Token::Number(Number::Exact(number)) => Literal::Exact(*number),
            Token::Number(Number::Approximate(number)) => Literal::Approximate(*number),
            Token::Number(Number::ExactMin) => {
                return Err(self.error("9223372036854775808 needs a minus directly before it"));
            }
            Token::Keyword(Keyword::True) => Literal::Bool(true),
            Token::Keyword(Keyword::False) => Literal::Bool(false),
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(literal))
    }
}

/// What follows a value.
enum Asked {
    Predicate(Expression),
    /// Nothing is asked about the value.
    Nothing(Part),
}

/// A chain's first operand and steps. A chain of the same precedence in parentheses goes on.
fn begin_chain(first: Expression, belongs: fn(Operator) -> bool) -> (Box<Expression>, Vec<Step>) {
    match first {
        Expression::Arithmetic { first, steps }
            if steps.first().is_some_and(|step| belongs(step.operator)) =>
        {
            (first, steps.into())
        }
        first => (first.into(), Vec::new()),
    }
}

/// A number with a sign before it.
fn signed(literal: Literal, is_minus: bool) -> Literal {
    match literal {
        Literal::Exact(number) if is_minus => Literal::Exact(number.wrapping_neg()),
        Literal::Approximate(number) if is_minus => Literal::Approximate(-number),
        literal => literal,
    }
}
