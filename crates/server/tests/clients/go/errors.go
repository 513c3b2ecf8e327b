package main

import (
	"errors"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What is refused, as amqp091-go shows it.
var errorCases = []testCase{
	{Name: "a missing queue is 404 and ends only its channel", Body: missing},
	{Name: "another declaration of the same name is 406", Body: different},
	{Name: "a missing exchange is 404", Body: missingExchange},
	{Name: "an unknown delivery tag is 406", Body: unknownTag},
	{Name: "a wrong password is refused", Body: password},
}

func missing(w *world) error {
	connection, err := w.connect()
	if err != nil {
		return err
	}
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	_, err = channel.Consume(name(), "", true, false, false, false, nil)
	if err := refused(amqp.NotFound, err); err != nil {
		return err
	}
	next, err := connection.Channel()
	if err != nil {
		return err
	}
	return next.Close()
}

func different(w *world) error {
	channel, err := w.channel()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, false)
	if err != nil {
		return err
	}
	_, err = channel.QueueDeclare(queue, true, false, false, false, nil)
	return refused(amqp.PreconditionFailed, err)
}

func missingExchange(w *world) error {
	channel, err := w.channel()
	if err != nil {
		return err
	}
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	if err := channel.Publish(name(), "k", false, false, text("x")); err != nil {
		return err
	}
	refusal, err := take(closed)
	if err != nil {
		return err
	}
	return refused(amqp.NotFound, refusal)
}

func unknownTag(w *world) error {
	channel, err := w.channel()
	if err != nil {
		return err
	}
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	if err := channel.Ack(77, false); err != nil {
		return err
	}
	refusal, err := take(closed)
	if err != nil {
		return err
	}
	return refused(amqp.PreconditionFailed, refusal)
}

func password(*world) error {
	connection, err := amqp.Dial(strings.Replace(url(), "guest:guest", "guest:wrong", 1))
	if err == nil {
		return errors.Join(errors.New("was let in"), connection.Close())
	}
	return refused(amqp.AccessRefused, err)
}
