package main

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"suite"
)

var messageCases = []testCase{
	{Name: "messages arrive in their order", Body: ordered},
	{Name: "wildcards stand for tokens", Body: wildcards},
	{Name: "one of a group gets each message", Body: groups},
	{Name: "headers pass as they are", Body: headers},
	{Name: "payloads of all sizes", Body: sizes},
	{Name: "a subscription ends after so many messages", Body: autoUnsubscribe},
	{Name: "requests are answered", Body: requests},
	{Name: "nobody there is told at once", Body: noResponders},
	{Name: "streams are declined", Body: noStreams},
	{Name: "what is no subject is refused", Body: badSubject},
}

func ordered(w *world) error {
	publisher, err := w.connect()
	if err != nil {
		return err
	}
	subscriber, err := w.connect()
	if err != nil {
		return err
	}
	name := subject()
	subscription, err := subscriber.SubscribeSync(name)
	if err != nil {
		return err
	}
	if err := subscriber.Flush(); err != nil {
		return err
	}
	var expected []string
	for number := range 20_000 {
		expected = append(expected, fmt.Sprint(number))
		if err := publisher.Publish(name, []byte(expected[number])); err != nil {
			return err
		}
	}
	got, err := next(subscription, len(expected))
	if err != nil {
		return err
	}
	return suite.Equal(got, expected)
}

func wildcards(w *world) error {
	client, err := w.connect()
	if err != nil {
		return err
	}
	prefix := subject()
	one, _ := client.SubscribeSync(prefix + ".*.end")
	many, _ := client.SubscribeSync(prefix + ".>")
	for _, ending := range []string{".a.end", ".a.b.end", ".a", ""} {
		client.Publish(prefix+ending, []byte(ending))
	}
	got, err := next(one, 1)
	if err := errors.Join(err, suite.Equal(got, []string{".a.end"}), quiet(one)); err != nil {
		return err
	}
	got, err = next(many, 3)
	return errors.Join(err, suite.Equal(got, []string{".a.end", ".a.b.end", ".a"}), quiet(many))
}

func groups(w *world) error {
	name := subject()
	var counts [3]atomic.Int64
	for index := range counts {
		member, err := w.connect()
		if err != nil {
			return err
		}
		member.QueueSubscribe(name, "workers", func(*nats.Msg) { counts[index].Add(1) })
		member.Flush()
	}
	publisher, err := w.connect()
	if err != nil {
		return err
	}
	for range 3_000 {
		publisher.Publish(name, nil)
	}
	publisher.Flush()
	total := func() int64 { return counts[0].Load() + counts[1].Load() + counts[2].Load() }
	for end := time.Now().Add(suite.Patience); total() < 3_000 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if total() != 3_000 || counts[0].Load() == 0 || counts[1].Load() == 0 || counts[2].Load() == 0 {
		return fmt.Errorf("unfair or wrong: %d %d %d", counts[0].Load(), counts[1].Load(), counts[2].Load())
	}
	return nil
}

func headers(w *world) error {
	client, err := w.connect()
	if err != nil {
		return err
	}
	name := subject()
	subscription, _ := client.SubscribeSync(name)
	message := nats.NewMsg(name)
	message.Header.Add("Several", "a")
	message.Header.Add("Several", "b")
	message.Header["lower-case"] = []string{"ä"}
	message.Data = []byte("hi")
	if err := client.PublishMsg(message); err != nil {
		return err
	}
	got, err := subscription.NextMsg(suite.Patience)
	if err != nil {
		return err
	}
	return errors.Join(suite.Equal(got.Header, message.Header), suite.Equal(string(got.Data), "hi"))
}

func sizes(w *world) error {
	client, err := w.connect()
	if err != nil {
		return err
	}
	name := subject()
	subscription, _ := client.SubscribeSync(name)
	for _, size := range []int{0, 1, 4_095, 65_535, 65_537, 300_000, int(client.MaxPayload())} {
		body := bytes.Repeat([]byte{byte(size)}, size)
		if err := client.Publish(name, body); err != nil {
			return err
		}
		message, err := subscription.NextMsg(suite.Patience)
		if err != nil {
			return fmt.Errorf("%d bytes: %w", size, err)
		}
		if !bytes.Equal(message.Data, body) {
			return fmt.Errorf("%d bytes came back changed", size)
		}
	}
	if err := client.Publish(name, make([]byte, client.MaxPayload()+1)); !errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("a payload beyond the limit: %v", err)
	}
	return nil
}

func autoUnsubscribe(w *world) error {
	client, err := w.connect()
	if err != nil {
		return err
	}
	name := subject()
	subscription, _ := client.SubscribeSync(name)
	if err := subscription.AutoUnsubscribe(3); err != nil {
		return err
	}
	for number := range 6 {
		client.Publish(name, []byte(fmt.Sprint(number)))
	}
	got, err := next(subscription, 3)
	if err := errors.Join(err, suite.Equal(got, []string{"0", "1", "2"})); err != nil {
		return err
	}
	if _, err := subscription.NextMsg(suite.Silence); !errors.Is(err, nats.ErrMaxMessages) {
		return fmt.Errorf("after the last one: %v", err)
	}
	return nil
}

func requests(w *world) error {
	service, err := w.connect()
	if err != nil {
		return err
	}
	client, err := w.connect()
	if err != nil {
		return err
	}
	name := subject()
	service.QueueSubscribe(name, "services", func(m *nats.Msg) { m.Respond(append(m.Data, '!')) })
	service.Flush()
	for number := range 1_000 {
		answer, err := client.Request(name, []byte(fmt.Sprint(number)), suite.Patience)
		if err != nil {
			return err
		}
		if err := suite.Equal(string(answer.Data), fmt.Sprint(number)+"!"); err != nil {
			return err
		}
	}
	return nil
}

func noResponders(w *world) error {
	client, err := w.connect()
	if err != nil {
		return err
	}
	if _, err := client.Request(subject(), nil, suite.Patience); !errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("nobody is there: %v", err)
	}
	return nil
}

func noStreams(w *world) error {
	client, err := w.connect()
	if err != nil {
		return err
	}
	streams, err := client.JetStream(nats.MaxWait(suite.Patience))
	if err != nil {
		return err
	}
	if _, err := streams.AccountInfo(); !errors.Is(err, nats.ErrJetStreamNotEnabled) {
		return fmt.Errorf("asked for streams: %v", err)
	}
	_, err = streams.Publish(subject(), nil)
	if !errors.Is(err, nats.ErrNoStreamResponse) && !errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("published to a stream: %v", err)
	}
	return nil
}

func badSubject(w *world) error {
	client, err := w.connect(nats.SkipSubjectValidation())
	if err != nil {
		return err
	}
	if _, err := client.SubscribeSync("a..b"); err != nil && !errors.Is(err, nats.ErrBadSubject) {
		return err
	} else if err != nil {
		// The library knows it itself.
		return nil
	}
	client.Flush()
	select {
	case told := <-w.errors:
		return suite.Equal(told.Error(), "nats: invalid subject")
	case <-time.After(suite.Patience):
		return errors.New("was not told")
	}
}
