package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"suite"
)

// What a broker of the case's own does when it is stopped.
var stopCases = []testCase{
	{
		Name:  "a broker that stops says so and answers on",
		Needs: "BROKER_TEST_PROGRAM",
		Body:  lameDuck(syscall.SIGTERM),
	},
	{
		Name:  "a broker takes nats-server's lame duck signal",
		Needs: "BROKER_TEST_PROGRAM",
		Body:  lameDuck(syscall.SIGUSR2),
	},
}

func lameDuck(signal os.Signal) func(*world) error {
	return func(w *world) error { return stopBy(w, signal) }
}

// Not all of its shards have clients, but all have to know of what those of others do.
func stopBy(w *world, signal os.Signal) error {
	data, err := os.MkdirTemp("", "angarium-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	broker, url, err := startBroker("--data", data, "--shards", "4", "--nats-lame-duck", "60s")
	if err != nil {
		return err
	}
	defer broker.Process.Kill()
	told := make(chan struct{}, 2)
	stops := nats.LameDuckModeHandler(func(*nats.Conn) { told <- struct{}{} })
	asks, err := w.connectTo(url, stops)
	if err != nil {
		return err
	}
	answers, err := w.connectTo(url, stops)
	if err != nil {
		return err
	}
	name := subject()
	subscription, _ := answers.Subscribe(name, func(asked *nats.Msg) { asked.Respond(asked.Data) })
	answers.Flush()

	broker.Process.Signal(signal)
	for range 2 {
		select {
		case <-told:
		case <-time.After(suite.Patience):
			return errors.New("was not told")
		}
	}
	answer, err := asks.Request(name, []byte("still there?"), suite.Patience)
	if err != nil || len(answer.Data) == 0 {
		return fmt.Errorf("a request: %v", err)
	}
	subscription.Unsubscribe()
	if err := answers.FlushTimeout(suite.Patience); err != nil {
		return fmt.Errorf("the end of a subscription: %w", err)
	}
	for _, name := range []string{name, "$QUEUE." + name} {
		if _, err := asks.Request(name, nil, suite.Patience); !errors.Is(err, nats.ErrNoResponders) {
			return fmt.Errorf("a request to %s, which nobody takes: %v", name, err)
		}
	}
	asks.Close()
	answers.Close()
	return ended(broker)
}

// startBroker starts the program with NATS alone, and says where it listens.
func startBroker(arguments ...string) (*exec.Cmd, string, error) {
	nats := []string{"serve", "--http", "off", "--amqp", "off", "--stomp", "off", "--mqtt", "off"}
	nats = append(nats, "--nats", "127.0.0.1:0")
	broker := exec.Command(os.Getenv("BROKER_TEST_PROGRAM"), append(nats, arguments...)...)
	said, err := broker.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := broker.Start(); err != nil {
		return nil, "", err
	}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if address, found := strings.CutPrefix(strings.TrimSpace(lines.Text()), "nats on "); found {
			go io.Copy(io.Discard, said)
			return broker, "nats://" + address, nil
		}
	}
	return nil, "", fmt.Errorf("the broker does not say where it listens: %w", broker.Wait())
}

// ended waits for the end of a broker that was told to stop and has no clients any more.
func ended(broker *exec.Cmd) error {
	end := make(chan error, 1)
	go func() { end <- broker.Wait() }()
	select {
	case err := <-end:
		return err
	case <-time.After(suite.Patience):
		return errors.New("does not end although its clients are gone")
	}
}
