package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"suite"
)

type testCase = suite.Case[*world]

// world is what one case uses; everything it opens is closed, every queue it declares is deleted.
type world struct {
	connections []*amqp.Connection
	queues      []string
}

func url() string {
	if found := os.Getenv("AMQP_URL"); found != "" {
		return found
	}
	return "amqp://guest:guest@127.0.0.1:5672/%2f"
}

func runCase(body func(w *world) error) error {
	w := &world{}
	err := body(w)
	return errors.Join(err, w.close())
}

func (w *world) connect() (*amqp.Connection, error) {
	connection, err := amqp.Dial(url())
	if err == nil {
		w.connections = append(w.connections, connection)
	}
	return connection, err
}

func (w *world) channel() (*amqp.Channel, error) {
	connection, err := w.connect()
	if err != nil {
		return nil, err
	}
	return connection.Channel()
}

// confirming is a channel in confirm mode.
func (w *world) confirming() (*amqp.Channel, error) {
	channel, err := w.channel()
	if err != nil {
		return nil, err
	}
	return channel, channel.Confirm(false)
}

func name() string {
	return suite.Name("g-")
}

func (w *world) queue(channel *amqp.Channel, durable bool) (string, error) {
	queue := name()
	w.queues = append(w.queues, queue)
	_, err := channel.QueueDeclare(queue, durable, false, false, false, nil)
	return queue, err
}

func (w *world) close() error {
	for _, connection := range w.connections {
		connection.Close()
	}
	connection, err := amqp.Dial(url())
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	for _, queue := range w.queues {
		if _, err := channel.QueueDelete(queue, false, false, false); err != nil {
			return err
		}
	}
	return nil
}

// publish publishes to a queue and waits for the confirm.
func publish(channel *amqp.Channel, queue string, message amqp.Publishing) error {
	ctx, cancel := context.WithTimeout(context.Background(), suite.Patience)
	defer cancel()
	confirm, err := channel.PublishWithDeferredConfirm("", queue, false, false, message)
	if err != nil {
		return err
	}
	acked, err := confirm.WaitContext(ctx)
	if err == nil && !acked {
		err = errors.New("was negatively confirmed")
	}
	return err
}

func text(body string) amqp.Publishing {
	return amqp.Publishing{Body: []byte(body)}
}

// take waits for the next delivery.
func take[T any](from <-chan T) (T, error) {
	select {
	case taken, open := <-from:
		if !open {
			return taken, errors.New("the channel closed instead")
		}
		return taken, nil
	case <-time.After(suite.Patience):
		var none T
		return none, fmt.Errorf("waited %v in vain", suite.Patience)
	}
}

func same(expected, found any, what string) error {
	if expected != found {
		return fmt.Errorf("%s: expected %v, found %v", what, expected, found)
	}
	return nil
}

// refused checks that an error is the broker's refusal with that code.
func refused(code int, err error) error {
	var refusal *amqp.Error
	if !errors.As(err, &refusal) {
		return fmt.Errorf("not a refusal: %v", err)
	}
	return same(code, refusal.Code, "reply code")
}
