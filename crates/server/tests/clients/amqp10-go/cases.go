package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
	"suite"
)

var cases = []testCase{
	{Name: "a message arrives as it was sent", Body: roundTrip},
	{Name: "outcomes", Body: outcomes},
	{Name: "a large message both ways in many frames", Body: large},
	{Name: "no credit, no message", Body: manualCredit},
	{Name: "a selector", Body: selector},
	{Name: "a dynamic address", Body: dynamic},
	{Name: "a durable subscription over connections", Body: durable},
	{Name: "an unknown exchange refuses the link only", Body: unknownExchange},
	{Name: "a small limit of sessions", Body: sessions},
	{Name: "senders and receivers in parallel", Body: parallel},
	{Name: "sends without waiting, and their receipts", Body: receipts},
	{Name: "an idle time-out is kept", Body: idle},
	{Name: "a wrong password is refused", Body: wrongPassword},
}

func roundTrip(w *world) error {
	session, err := w.session()
	if err != nil {
		return err
	}
	queue := name()
	sender, err := session.NewSender(w, queue, nil)
	if err != nil {
		return err
	}
	subject, id := "subject", "correlation"
	message := amqp.NewMessage([]byte("body"))
	message.Header = &amqp.MessageHeader{Durable: true, Priority: 7}
	message.Properties = &amqp.MessageProperties{Subject: &subject, CorrelationID: id, MessageID: uint64(7)}
	message.Annotations = amqp.Annotations{"x-opt-own": "a"}
	message.ApplicationProperties = map[string]any{"int": int32(-1), "text": "t", "flag": true, "float": 1.5}
	if err := sender.Send(w, message, nil); err != nil {
		return err
	}
	receiver, err := session.NewReceiver(w, queue, nil)
	if err != nil {
		return err
	}
	messages, err := w.take(receiver, 1)
	if err != nil {
		return err
	}
	got := messages[0]
	return errors.Join(
		suite.Equal(string(got.GetData()), "body"),
		suite.Equal(got.Header.Durable, true),
		suite.Equal(got.Header.Priority, 7),
		suite.Equal(*got.Properties.Subject, subject),
		suite.Equal[any](got.Properties.CorrelationID, id),
		suite.Equal[any](got.Properties.MessageID, uint64(7)),
		suite.Equal[any](got.Annotations["x-opt-own"], "a"),
		suite.Equal[any](got.ApplicationProperties["int"], -1),
		suite.Equal[any](got.ApplicationProperties["text"], "t"),
		suite.Equal[any](got.ApplicationProperties["flag"], true),
		suite.Equal[any](got.ApplicationProperties["float"], 1.5),
		receiver.AcceptMessage(w, got),
	)
}

func outcomes(w *world) error {
	session, err := w.session()
	if err != nil {
		return err
	}
	queue := name()
	if err := w.send(session, queue, "x", "y"); err != nil {
		return err
	}
	receiver, err := session.NewReceiver(w, queue, nil)
	if err != nil {
		return err
	}
	next := func(text string, count uint32) (*amqp.Message, error) {
		got, err := w.take(receiver, 1)
		if err != nil {
			return nil, err
		}
		if err := suite.Equal(string(got[0].GetData()), text); err != nil {
			return nil, err
		}
		var found uint32
		if header := got[0].Header; header != nil {
			found = header.DeliveryCount
		}
		return got[0], suite.Equal(found, count)
	}
	message, err := next("x", 0)
	if err != nil {
		return err
	}
	if err := receiver.ReleaseMessage(w, message); err != nil {
		return err
	}
	if message, err = next("x", 0); err != nil {
		return fmt.Errorf("after released: %w", err)
	}
	failed := &amqp.ModifyMessageOptions{DeliveryFailed: true, Annotations: amqp.Annotations{"x-opt-why": "w"}}
	if err := receiver.ModifyMessage(w, message, failed); err != nil {
		return err
	}
	if message, err = next("x", 1); err != nil {
		return fmt.Errorf("after modified: %w", err)
	}
	if err := suite.Equal[any](message.Annotations["x-opt-why"], "w"); err != nil {
		return err
	}
	if err := receiver.RejectMessage(w, message, nil); err != nil {
		return err
	}
	if message, err = next("y", 0); err != nil {
		return fmt.Errorf("after rejected: %w", err)
	}
	if err := receiver.AcceptMessage(w, message); err != nil {
		return err
	}
	return w.quiet(receiver)
}

func large(w *world) error {
	connection, err := w.connect(&amqp.ConnOptions{MaxFrameSize: 512})
	if err != nil {
		return err
	}
	session, err := connection.NewSession(w, nil)
	if err != nil {
		return err
	}
	queue, body := name(), bytes.Repeat([]byte("large!"), 100_000)
	if err := w.send(session, queue, string(body)); err != nil {
		return err
	}
	receiver, err := session.NewReceiver(w, queue, nil)
	if err != nil {
		return err
	}
	got, err := w.take(receiver, 1)
	if err != nil {
		return err
	}
	if !bytes.Equal(got[0].GetData(), body) {
		return errors.New("the body has changed")
	}
	return receiver.AcceptMessage(w, got[0])
}

func manualCredit(w *world) error {
	session, err := w.session()
	if err != nil {
		return err
	}
	queue := name()
	if err := w.send(session, queue, "1", "2", "3"); err != nil {
		return err
	}
	receiver, err := session.NewReceiver(w, queue, &amqp.ReceiverOptions{Credit: -1})
	if err != nil {
		return err
	}
	if err := w.quiet(receiver); err != nil {
		return err
	}
	if err := receiver.IssueCredit(2); err != nil {
		return err
	}
	texts, err := w.texts(receiver, 2)
	if err := errors.Join(err, suite.Equal(texts, []string{"1", "2"}), w.quiet(receiver)); err != nil {
		return err
	}
	if err := receiver.IssueCredit(5); err != nil {
		return err
	}
	texts, err = w.texts(receiver, 1)
	if err := errors.Join(err, suite.Equal(texts, []string{"3"}), receiver.DrainCredit(w, nil)); err != nil {
		return err
	}
	if err := errors.Join(w.send(session, queue, "4"), w.quiet(receiver)); err != nil {
		return err
	}
	if err := receiver.IssueCredit(1); err != nil {
		return err
	}
	texts, err = w.texts(receiver, 1)
	return errors.Join(err, suite.Equal(texts, []string{"4"}))
}

func selector(w *world) error {
	session, err := w.session()
	if err != nil {
		return err
	}
	queue := name()
	sender, err := session.NewSender(w, queue, nil)
	if err != nil {
		return err
	}
	for number := range 4 {
		message := amqp.NewMessage([]byte(strconv.Itoa(number)))
		message.ApplicationProperties = map[string]any{"number": int64(number)}
		if err := sender.Send(w, message, nil); err != nil {
			return err
		}
	}
	filters := []amqp.LinkFilter{amqp.NewSelectorFilter("number > 1")}
	receiver, err := session.NewReceiver(w, queue, &amqp.ReceiverOptions{Filters: filters, Credit: 10})
	if err != nil {
		return err
	}
	texts, err := w.texts(receiver, 2)
	return errors.Join(err, suite.Equal(texts, []string{"2", "3"}), w.quiet(receiver))
}

func dynamic(w *world) error {
	session, err := w.session()
	if err != nil {
		return err
	}
	receiver, err := session.NewReceiver(w, "", &amqp.ReceiverOptions{DynamicAddress: true})
	if err != nil {
		return err
	}
	if receiver.Address() == "" {
		return errors.New("it has no address")
	}
	other, err := w.session()
	if err != nil {
		return err
	}
	if err := w.send(other, receiver.Address(), "answer"); err != nil {
		return err
	}
	texts, err := w.texts(receiver, 1)
	return errors.Join(err, suite.Equal(texts, []string{"answer"}))
}

func durable(w *world) error {
	topic, container := name(), name()
	open := func() (*amqp.Conn, *amqp.Receiver, error) {
		connection, err := w.connect(&amqp.ConnOptions{ContainerID: container})
		if err != nil {
			return nil, nil, err
		}
		session, err := connection.NewSession(w, nil)
		if err != nil {
			return nil, nil, err
		}
		receiver, err := session.NewReceiver(w, topic, &amqp.ReceiverOptions{
			Name: "inbox", Credit: 10, SourceCapabilities: []string{"topic"},
			SourceDurability: amqp.DurabilityUnsettledState, SourceExpiryPolicy: amqp.ExpiryPolicyNever,
		})
		return connection, receiver, err
	}
	connection, _, err := open()
	if err != nil {
		return err
	}
	connection.Close()
	session, err := w.session()
	if err != nil {
		return err
	}
	to := &amqp.SenderOptions{TargetCapabilities: []string{"topic"}}
	sender, err := session.NewSender(w, topic, to)
	if err != nil {
		return err
	}
	if err := sender.Send(w, amqp.NewMessage([]byte("meanwhile")), nil); err != nil {
		return err
	}
	_, receiver, err := open()
	if err != nil {
		return err
	}
	texts, err := w.texts(receiver, 1)
	return errors.Join(err, suite.Equal(texts, []string{"meanwhile"}), receiver.Close(w))
}

func unknownExchange(w *world) error {
	session, err := w.session()
	if err != nil {
		return err
	}
	_, err = session.NewSender(w, "/exchanges/"+name()+"/key", nil)
	if err := refused(err, amqp.ErrCondNotFound); err != nil {
		return err
	}
	return w.send(session, name(), "the session goes on")
}

func sessions(w *world) error {
	connection, err := w.connect(nil)
	if err != nil {
		return err
	}
	queue := name()
	for number := range 50 {
		session, err := connection.NewSession(w, &amqp.SessionOptions{MaxLinks: 2})
		if err != nil {
			return err
		}
		if err := w.send(session, queue, strconv.Itoa(number)); err != nil {
			return err
		}
		if err := session.Close(w); err != nil {
			return err
		}
	}
	return nil
}

func parallel(w *world) error {
	const links, messages = 4, 250
	queue := name()
	connection, err := w.connect(nil)
	if err != nil {
		return err
	}
	var senders sync.WaitGroup
	failures := make(chan error, 2*links)
	got := make(chan string, links*messages)
	for link := range links {
		session, err := connection.NewSession(w, nil)
		if err != nil {
			return err
		}
		receiver, err := session.NewReceiver(w, queue, &amqp.ReceiverOptions{Credit: 20})
		if err != nil {
			return err
		}
		senders.Go(func() {
			for number := range messages {
				if err := w.send(session, queue, fmt.Sprintf("%d.%d", link, number)); err != nil {
					failures <- err
					return
				}
			}
		})
		go func() {
			for {
				texts, err := w.texts(receiver, 1)
				if err != nil {
					return
				}
				got <- texts[0]
			}
		}()
	}
	var all []string
	for len(all) < links*messages {
		select {
		case text := <-got:
			all = append(all, text)
		case err := <-failures:
			return err
		case <-time.After(suite.Patience):
			return fmt.Errorf("only %d messages came", len(all))
		}
	}
	senders.Wait()
	slices.Sort(all)
	return suite.Equal(len(slices.Compact(all)), links*messages)
}

func receipts(w *world) error {
	session, err := w.session()
	if err != nil {
		return err
	}
	queue := name()
	sender, err := session.NewSender(w, queue, nil)
	if err != nil {
		return err
	}
	var pending []amqp.SendReceipt
	for number := range 200 {
		message := amqp.NewMessage([]byte(strconv.Itoa(number)))
		receipt, err := sender.SendWithReceipt(w, message, nil)
		if err != nil {
			return err
		}
		pending = append(pending, receipt)
	}
	for number, receipt := range pending {
		state, err := receipt.Wait(w)
		if err != nil {
			return err
		}
		if _, isAccepted := state.(*amqp.StateAccepted); !isAccepted {
			return fmt.Errorf("%d: %T", number, state)
		}
	}
	receiver, err := session.NewReceiver(w, queue, &amqp.ReceiverOptions{Credit: 100})
	if err != nil {
		return err
	}
	for number := range pending {
		texts, err := w.texts(receiver, 1)
		if err := errors.Join(err, suite.Equal(texts, []string{strconv.Itoa(number)})); err != nil {
			return err
		}
	}
	return nil
}

func idle(w *world) error {
	connection, err := w.connect(&amqp.ConnOptions{IdleTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	select {
	case <-connection.Done():
		return fmt.Errorf("the connection ended: %w", connection.Err())
	case <-time.After(5 * time.Second):
		return nil
	}
}

func wrongPassword(w *world) error {
	ctx, cancel := context.WithTimeout(w, suite.Patience)
	defer cancel()
	connection, err := amqp.Dial(ctx, strings.Replace(url(), "guest@", "wrong@", 1), nil)
	if err == nil {
		connection.Close()
		return errors.New("it was taken")
	}
	return nil
}
