package main

import (
	"errors"
	"fmt"
	"reflect"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The plain way: connect, declare, publish with confirms, get, consume, settle, close.
var basicCases = []testCase{
	{Name: "what is published is got", Body: publishAndGet},
	{Name: "persistent messages are confirmed in any number", Body: confirms},
	{Name: "messages are consumed in order and acked", Body: consume},
	{Name: "nack requeues, reject discards", Body: nack},
	{Name: "headers of every kind arrive", Body: headers},
	{Name: "an unroutable mandatory message is returned", Body: returned},
	{Name: "a topic exchange routes", Body: topic},
	{Name: "a transaction commits", Body: transaction},
	{Name: "a consumer hears that its queue is gone", Body: cancelled},
	{Name: "a body of a megabyte passes", Body: large},
}

func publishAndGet(w *world) error {
	channel, err := w.confirming()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, false)
	if err != nil {
		return err
	}
	if err := publish(channel, queue, text("hello")); err != nil {
		return err
	}
	got, ok, err := channel.Get(queue, false)
	if err != nil || !ok {
		return fmt.Errorf("nothing was got: %v", err)
	}
	_, more, err := channel.Get(queue, true)
	return errors.Join(err, same("hello", string(got.Body), "body"), got.Ack(false), same(false, more, "more"))
}

func confirms(w *world) error {
	channel, err := w.confirming()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, true)
	if err != nil {
		return err
	}
	confirmed := channel.NotifyPublish(make(chan amqp.Confirmation, 500))
	for number := 0; number < 500; number++ {
		message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("x")}
		if err := channel.Publish("", queue, false, false, message); err != nil {
			return err
		}
	}
	for number := uint64(1); number <= 500; number++ {
		confirmation, err := take(confirmed)
		if err != nil {
			return err
		}
		if !confirmation.Ack || confirmation.DeliveryTag != number {
			return fmt.Errorf("confirm %d is %v", number, confirmation)
		}
	}
	found, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	return errors.Join(err, same(500, found.Messages, "messages"))
}

func consume(w *world) error {
	channel, err := w.confirming()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, false)
	if err != nil {
		return err
	}
	if err := channel.Qos(10, 0, false); err != nil {
		return err
	}
	deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for number := 0; number < 100; number++ {
		if err := channel.Publish("", queue, false, false, text(fmt.Sprint(number))); err != nil {
			return err
		}
	}
	for number := 0; number < 100; number++ {
		delivery, err := take(deliveries)
		if err != nil {
			return err
		}
		if err := same(fmt.Sprint(number), string(delivery.Body), "body"); err != nil {
			return err
		}
		if err := delivery.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

func nack(w *world) error {
	channel, err := w.confirming()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, false)
	if err != nil {
		return err
	}
	if err := errors.Join(publish(channel, queue, text("a")), publish(channel, queue, text("b"))); err != nil {
		return err
	}
	first, _, err1 := channel.Get(queue, false)
	second, _, err2 := channel.Get(queue, false)
	if err := errors.Join(err1, err2, second.Reject(false), first.Nack(false, true)); err != nil {
		return err
	}
	again, _, err := channel.Get(queue, true)
	_, more, err2 := channel.Get(queue, true)
	return errors.Join(err, err2, same("a", string(again.Body), "body"),
		same(true, again.Redelivered, "redelivered"), same(false, more, "more"))
}

func headers(w *world) error {
	channel, err := w.confirming()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, false)
	if err != nil {
		return err
	}
	sent := amqp.Table{
		"bool": true, "int8": int8(-8), "int16": int16(-16), "int32": int32(-32), "int64": int64(-64),
		"float32": float32(1.5), "float64": 2.5, "string": "text", "bytes": []byte{0, 255}, "nil": nil,
		"decimal": amqp.Decimal{Scale: 2, Value: 314},
		"list":    []any{int32(1), "two"}, "table": amqp.Table{"inner": int32(4)},
	}
	if err := publish(channel, queue, amqp.Publishing{Headers: sent}); err != nil {
		return err
	}
	got, _, err := channel.Get(queue, true)
	if err != nil {
		return err
	}
	for key, value := range sent {
		if !reflect.DeepEqual(value, got.Headers[key]) {
			return fmt.Errorf("%s: expected %v, found %v", key, value, got.Headers[key])
		}
	}
	return nil
}

func returned(w *world) error {
	channel, err := w.confirming()
	if err != nil {
		return err
	}
	returns := channel.NotifyReturn(make(chan amqp.Return, 1))
	if err := channel.Publish("", name(), true, false, text("nobody")); err != nil {
		return err
	}
	back, err := take(returns)
	return errors.Join(err, same(uint16(312), back.ReplyCode, "code"), same("nobody", string(back.Body), "body"))
}

func topic(w *world) error {
	channel, err := w.confirming()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, false)
	if err != nil {
		return err
	}
	if err := channel.QueueBind(queue, queue+".*", "amq.topic", false, nil); err != nil {
		return err
	}
	for _, key := range []string{queue + ".yes", queue + ".no.no"} {
		confirm, err := channel.PublishWithDeferredConfirm("amq.topic", key, false, false, text(key))
		if err != nil || !confirm.Wait() {
			return fmt.Errorf("was not confirmed: %v", err)
		}
	}
	got, _, err := channel.Get(queue, true)
	_, more, err2 := channel.Get(queue, true)
	return errors.Join(err, err2, same(queue+".yes", got.RoutingKey, "key"), same(false, more, "more"))
}

func transaction(w *world) error {
	channel, err := w.channel()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, true)
	if err != nil {
		return err
	}
	if err := errors.Join(channel.Tx(), channel.Publish("", queue, false, false, text("x"))); err != nil {
		return err
	}
	if err := channel.TxCommit(); err != nil {
		return err
	}
	got, ok, err := channel.Get(queue, false)
	if err != nil || !ok {
		return fmt.Errorf("nothing after the commit: %v", err)
	}
	return errors.Join(got.Ack(false), channel.TxCommit())
}

func cancelled(w *world) error {
	channel, err := w.channel()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, false)
	if err != nil {
		return err
	}
	cancels := channel.NotifyCancel(make(chan string, 1))
	if _, err := channel.Consume(queue, "mine", true, false, false, false, nil); err != nil {
		return err
	}
	other, err := w.channel()
	if err != nil {
		return err
	}
	if _, err := other.QueueDelete(queue, false, false, false); err != nil {
		return err
	}
	tag, err := take(cancels)
	return errors.Join(err, same("mine", tag, "tag"))
}

func large(w *world) error {
	channel, err := w.confirming()
	if err != nil {
		return err
	}
	queue, err := w.queue(channel, false)
	if err != nil {
		return err
	}
	body := make([]byte, 1<<20)
	for index := range body {
		body[index] = byte(index * 7)
	}
	if err := publish(channel, queue, amqp.Publishing{Body: body}); err != nil {
		return err
	}
	got, _, err := channel.Get(queue, true)
	return errors.Join(err, same(string(body), string(got.Body), "body"))
}
