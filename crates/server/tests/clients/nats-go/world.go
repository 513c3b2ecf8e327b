package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"suite"
)

type testCase = suite.Case[*world]

// world is what one case uses; everything it opens is closed.
type world struct {
	clients []*nats.Conn
	relays  []*relay
	// What clients were told of asynchronously.
	errors chan error
}

func url() string {
	if found := os.Getenv("NATS_URL"); found != "" {
		return found
	}
	return nats.DefaultURL
}

func address() string {
	return strings.TrimPrefix(url(), "nats://")
}

func runCase(body func(w *world) error) error {
	w := &world{errors: make(chan error, 100)}
	defer w.close()
	return body(w)
}

func (w *world) connect(options ...nats.Option) (*nats.Conn, error) {
	return w.connectTo(url(), options...)
}

func (w *world) connectTo(url string, options ...nats.Option) (*nats.Conn, error) {
	keep := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { w.errors <- err })
	first := []nats.Option{keep, nats.Timeout(suite.Patience), nats.NoReconnect()}
	client, err := nats.Connect(url, append(first, options...)...)
	if err == nil {
		w.clients = append(w.clients, client)
	}
	return client, err
}

func (w *world) close() {
	for _, client := range w.clients {
		client.Close()
	}
	for _, relay := range w.relays {
		relay.listener.Close()
		relay.cut()
	}
}

func subject() string {
	return suite.Name("g.")
}

// next takes the payloads of the next messages.
func next(subscription *nats.Subscription, count int) ([]string, error) {
	var got []string
	for range count {
		message, err := subscription.NextMsg(suite.Patience)
		if err != nil {
			return got, fmt.Errorf("after %d of %d messages: %w", len(got), count, err)
		}
		got = append(got, string(message.Data))
	}
	return got, nil
}

func quiet(subscription *nats.Subscription) error {
	if message, err := subscription.NextMsg(suite.Silence); err == nil {
		return fmt.Errorf("came, and should not: %s %q", message.Subject, message.Data)
	}
	return nil
}

// relay passes bytes on until it is told to cut.
type relay struct {
	listener net.Listener
	lock     sync.Mutex
	open     []net.Conn
}

func (w *world) relay() (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener}
	w.relays = append(w.relays, r)
	go func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", address())
			if err != nil {
				here.Close()
				continue
			}
			r.lock.Lock()
			r.open = append(r.open, here, there)
			r.lock.Unlock()
			go func() { io.Copy(there, here); there.Close() }()
			go func() { io.Copy(here, there); here.Close() }()
		}
	}()
	return r, nil
}

func (r *relay) cut() {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, connection := range r.open {
		connection.Close()
	}
	r.open = nil
}

// administer runs a command of the program against the running broker.
func administer(arguments ...string) error {
	return administerWith("", arguments...)
}

// administerWith does so with that line on the standard input.
func administerWith(line string, arguments ...string) error {
	arguments = append(arguments, "--data", os.Getenv("BROKER_TEST_DATA"))
	command := exec.Command(os.Getenv("BROKER_TEST_PROGRAM"), arguments...)
	command.Stdin = strings.NewReader(line)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", arguments, err, output)
	}
	return nil
}
