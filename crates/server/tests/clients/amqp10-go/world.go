package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/Azure/go-amqp"
	"suite"
)

type testCase = suite.Case[*world]

// world is what one case uses; everything it opens is closed. Its context ends with its suite.Patience.
type world struct {
	context.Context
	connections []*amqp.Conn
}

func url() string {
	if found := os.Getenv("AMQP_URL"); found != "" {
		return found
	}
	return "amqp://guest:guest@127.0.0.1:5672"
}

func runCase(body func(w *world) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*suite.Patience)
	defer cancel()
	w := &world{Context: ctx}
	defer w.close()
	return body(w)
}

func (w *world) connect(options *amqp.ConnOptions) (*amqp.Conn, error) {
	connection, err := amqp.Dial(w, url(), options)
	if err == nil {
		w.connections = append(w.connections, connection)
	}
	return connection, err
}

// session is one on a connection of its own.
func (w *world) session() (*amqp.Session, error) {
	connection, err := w.connect(nil)
	if err != nil {
		return nil, err
	}
	return connection.NewSession(w, nil)
}

func (w *world) close() {
	for _, connection := range w.connections {
		connection.Close()
	}
}

func name() string {
	return suite.Name("go-")
}

// send sends texts one after the other, each when the one before is accepted.
func (w *world) send(session *amqp.Session, address string, texts ...string) error {
	sender, err := session.NewSender(w, address, nil)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if err := sender.Send(w, amqp.NewMessage([]byte(text)), nil); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	return sender.Close(w)
}

// take receives messages without settling them.
func (w *world) take(receiver *amqp.Receiver, count int) ([]*amqp.Message, error) {
	var got []*amqp.Message
	for range count {
		ctx, cancel := context.WithTimeout(w, suite.Patience)
		message, err := receiver.Receive(ctx, nil)
		cancel()
		if err != nil {
			return got, fmt.Errorf("after %d of %d messages: %w", len(got), count, err)
		}
		got = append(got, message)
	}
	return got, nil
}

// texts receives messages and accepts them.
func (w *world) texts(receiver *amqp.Receiver, count int) ([]string, error) {
	var texts []string
	for range count {
		got, err := w.take(receiver, 1)
		if err != nil {
			return texts, err
		}
		if err := receiver.AcceptMessage(w, got[0]); err != nil {
			return texts, err
		}
		texts = append(texts, string(got[0].GetData()))
	}
	return texts, nil
}

func (w *world) quiet(receiver *amqp.Receiver) error {
	ctx, cancel := context.WithTimeout(w, suite.Silence)
	defer cancel()
	if message, err := receiver.Receive(ctx, nil); err == nil {
		return fmt.Errorf("came, and should not: %q", message.GetData())
	}
	return nil
}

// refused asserts that a link is refused with that condition.
func refused(err error, condition amqp.ErrCond) error {
	var told *amqp.Error
	if errors.As(err, &told) && told.Condition == condition {
		return nil
	}
	return fmt.Errorf("not refused with %s: %w", condition, err)
}
