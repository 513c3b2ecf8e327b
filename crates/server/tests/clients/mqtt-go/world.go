package main

import (
	"fmt"
	"os"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"suite"
)

type testCase = suite.Case[*world]

// world is what one case uses; everything it opens is closed.
type world struct {
	clients []*client
}

// client is a connection, with what it gets.
type client struct {
	mqtt.Client
	messages chan mqtt.Message
}

func url() string {
	port := os.Getenv("BROKER_TEST_MQTT_PORT")
	if port == "" {
		port = "1883"
	}
	return "tcp://127.0.0.1:" + port
}

func runCase(body func(w *world) error) error {
	w := &world{}
	defer w.close()
	return body(w)
}

// connect opens a connection of MQTT 3.1.1; a session that is not clean is kept.
func (w *world) connect(name string, clean bool, change func(*mqtt.ClientOptions)) (*client, error) {
	c := &client{messages: make(chan mqtt.Message, 1_000)}
	options := mqtt.NewClientOptions().AddBroker(url()).SetClientID(name).SetCleanSession(clean)
	options.SetProtocolVersion(4).SetAutoReconnect(false).SetConnectTimeout(suite.Patience)
	options.SetDefaultPublishHandler(func(_ mqtt.Client, message mqtt.Message) { c.messages <- message })
	if change != nil {
		change(options)
	}
	c.Client = mqtt.NewClient(options)
	w.clients = append(w.clients, c)
	return c, done(c.Connect())
}

func (w *world) close() {
	for _, c := range w.clients {
		c.Disconnect(0)
	}
}

// done waits for the end of what was begun.
func done(token mqtt.Token) error {
	if !token.WaitTimeout(suite.Patience) {
		return fmt.Errorf("waited in vain for an acknowledgement")
	}
	return token.Error()
}

// next is the next message, which must have this payload.
func (c *client) next(payload string) (mqtt.Message, error) {
	select {
	case message := <-c.messages:
		return message, suite.Equal(string(message.Payload()), payload)
	case <-time.After(suite.Patience):
		return nil, fmt.Errorf("waited in vain for %s", payload)
	}
}

func (c *client) quiet() error {
	select {
	case message := <-c.messages:
		return fmt.Errorf("came, and should not: %s %q", message.Topic(), message.Payload())
	case <-time.After(suite.Silence):
		return nil
	}
}
