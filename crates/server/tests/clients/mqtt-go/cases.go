package main

import (
	"fmt"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"suite"
)

const many = 500

var cases = []testCase{
	suite.Of("messages of every quality of service arrive", everyQos),
	suite.Of("many exactly once, in their order", manyMessages),
	suite.Of("sessions collect what comes meanwhile", session),
	suite.Of("what was not acknowledged comes again", unacknowledged),
}

func everyQos(w *world) error {
	name := suite.Name("go-")
	c, err := w.connect(name, true, nil)
	if err != nil {
		return err
	}
	if err := done(c.Subscribe(name+"/#", 2, nil)); err != nil {
		return err
	}
	for qos := range byte(3) {
		payload := fmt.Sprint(qos)
		if err := done(c.Publish(name+"/"+payload, qos, false, payload)); err != nil {
			return err
		}
		message, err := c.next(payload)
		if err != nil {
			return err
		}
		if err := suite.Equal(message.Qos(), qos); err != nil {
			return err
		}
	}
	return c.quiet()
}

func manyMessages(w *world) error {
	name := suite.Name("go-")
	c, err := w.connect(name, true, nil)
	if err != nil {
		return err
	}
	publisher, err := w.connect(name+"-p", true, nil)
	if err != nil {
		return err
	}
	if err := done(c.Subscribe(name, 2, nil)); err != nil {
		return err
	}
	var tokens []mqtt.Token
	for number := range many {
		tokens = append(tokens, publisher.Publish(name, 2, false, fmt.Sprint(number)))
	}
	for number, token := range tokens {
		if err := done(token); err != nil {
			return err
		}
		if _, err := c.next(fmt.Sprint(number)); err != nil {
			return err
		}
	}
	return c.quiet()
}

func session(w *world) error {
	name := suite.Name("go-")
	first, err := w.connect(name, false, nil)
	if err != nil {
		return err
	}
	if err := done(first.Subscribe(name, 2, nil)); err != nil {
		return err
	}
	first.Disconnect(0)
	publisher, err := w.connect(name+"-p", true, nil)
	if err != nil {
		return err
	}
	for qos := byte(1); qos < 3; qos++ {
		if err := done(publisher.Publish(name, qos, false, fmt.Sprint(qos))); err != nil {
			return err
		}
	}
	again, err := w.connect(name, false, nil)
	if err != nil {
		return err
	}
	for qos := 1; qos < 3; qos++ {
		if _, err := again.next(fmt.Sprint(qos)); err != nil {
			return err
		}
	}
	return again.quiet()
}

func unacknowledged(w *world) error {
	name := suite.Name("go-")
	first, err := w.connect(name, false, func(it *mqtt.ClientOptions) { it.SetAutoAckDisabled(true) })
	if err != nil {
		return err
	}
	if err := done(first.Subscribe(name, 1, nil)); err != nil {
		return err
	}
	publisher, err := w.connect(name+"-p", true, nil)
	if err != nil {
		return err
	}
	var held []uint16
	for number := range 3 {
		if err := done(publisher.Publish(name, 1, false, fmt.Sprint(number))); err != nil {
			return err
		}
		message, err := first.next(fmt.Sprint(number))
		if err != nil {
			return err
		}
		held = append(held, message.MessageID())
	}
	first.Disconnect(0)
	again, err := w.connect(name, false, nil)
	if err != nil {
		return err
	}
	for number, id := range held {
		message, err := again.next(fmt.Sprint(number))
		if err != nil {
			return err
		}
		got := fmt.Sprint(message.MessageID(), message.Duplicate())
		if err := suite.Equal(got, fmt.Sprint(id, true)); err != nil {
			return err
		}
	}
	return again.quiet()
}
