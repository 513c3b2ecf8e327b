package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"suite"
)

var lifeCases = []testCase{
	{Name: "the server says what it is", Body: serverInfo},
	{Name: "draining handles what has arrived", Body: drain},
	{Name: "a client that lost its connection comes back", Body: reconnect},
	{Name: "the public nats-bench gets all of its messages", Needs: "NATS_BENCH", Body: natsBench},
	{Name: "a wrong password is refused", Body: wrongPassword},
	{Name: "rights are checked", Needs: "BROKER_TEST_PROGRAM", Body: rights},
	{Name: "an nkey signs the nonce", Needs: "BROKER_TEST_PROGRAM", Body: nkey},
	{Name: "tls begins after info", Needs: "BROKER_TEST_NATS_TLS_PORT", Body: tlsAfterInfo},
	{Name: "tls begins before info", Needs: "BROKER_TEST_NATS_TLS_PORT", Body: tlsFirst},
	{Name: "a broker of another authority is not trusted", Needs: "BROKER_TEST_NATS_TLS_PORT", Body: untrusted},
	{Name: "a client of another authority is told so", Needs: "BROKER_TEST_NATS_TLS_PORT", Body: stranger},
}

func serverInfo(w *world) error {
	client, err := w.connect()
	if err != nil {
		return err
	}
	if !client.HeadersSupported() || client.MaxPayload() != 1<<20 {
		return fmt.Errorf("headers %v, payloads up to %d", client.HeadersSupported(), client.MaxPayload())
	}
	if id, err := client.GetClientID(); err != nil || id == 0 {
		return fmt.Errorf("client %d: %v", id, err)
	}
	if round, err := client.RTT(); err != nil || round <= 0 {
		return fmt.Errorf("round trip %v: %v", round, err)
	}
	return nil
}

func drain(w *world) error {
	publisher, err := w.connect()
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	client, err := w.connect(nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		return err
	}
	name := subject()
	var seen atomic.Int64
	client.Subscribe(name, func(*nats.Msg) { time.Sleep(time.Millisecond); seen.Add(1) })
	client.Flush()
	for range 200 {
		publisher.Publish(name, nil)
	}
	publisher.Flush()
	client.Flush()
	if err := client.Drain(); err != nil {
		return err
	}
	select {
	case <-closed:
		return suite.Equal(seen.Load(), 200)
	case <-time.After(suite.Patience):
		return errors.New("is still draining")
	}
}

// natsBench runs the program with several publishers and subscribers. It ends once each subscriber has
// as many messages as were published, and says how many.
func natsBench(*world) error {
	const messages, subscribers = 20_000, 5
	patient, end := context.WithTimeout(context.Background(), 6*suite.Patience)
	defer end()
	for _, size := range []int{16, 1024} {
		bench := exec.CommandContext(
			patient, os.Getenv("NATS_BENCH"), "-s", url(), "-np", "4", "-ns", fmt.Sprint(subscribers),
			"-n", fmt.Sprint(messages), "-ms", fmt.Sprint(size), subject(),
		)
		said, err := bench.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		all := strings.Count(string(said), fmt.Sprintf("(%d msgs)", messages))
		if err := suite.Equal(all, subscribers); err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
	}
	return nil
}

func reconnect(w *world) error {
	relay, err := w.relay()
	if err != nil {
		return err
	}
	back := make(chan struct{}, 10)
	client, err := w.connectTo(
		"nats://"+relay.listener.Addr().String(),
		func(options *nats.Options) error { options.AllowReconnect = true; return nil },
		nats.MaxReconnects(1000),
		nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }),
	)
	if err != nil {
		return err
	}
	publisher, err := w.connect()
	if err != nil {
		return err
	}
	name := subject()
	subscription, _ := client.SubscribeSync(name)
	client.Flush()
	for number := range 3 {
		publisher.Publish(name, []byte(fmt.Sprint(number)))
		got, err := next(subscription, 1)
		if err := errors.Join(err, suite.Equal(got, []string{fmt.Sprint(number)})); err != nil {
			return err
		}
		relay.cut()
		select {
		case <-back:
		case <-time.After(suite.Patience):
			return errors.New("does not come back")
		}
		if err := client.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func wrongPassword(w *world) error {
	if _, err := w.connect(nats.UserInfo("guest", "wrong")); !errors.Is(err, nats.ErrAuthorization) {
		return fmt.Errorf("wrong: %v", err)
	}
	_, err := w.connect(nats.UserInfo("guest", "guest"))
	return err
}

func rights(w *world) error {
	user := strings.ReplaceAll(subject(), ".", "-")
	err := errors.Join(
		administerWith("pw", "user", "add", user),
		administer("permission", "set", user, "--write", ".*", "--read", "", "--configure", ""),
	)
	if err != nil {
		return err
	}
	defer administer("user", "delete", user)
	client, err := w.connect(nats.UserInfo(user, "pw"))
	if err != nil {
		return err
	}
	name := subject()
	client.SubscribeSync(name)
	client.Flush()
	select {
	case told := <-w.errors:
		if !errors.Is(told, nats.ErrPermissionViolation) || !strings.Contains(told.Error(), name) {
			return fmt.Errorf("told %v", told)
		}
		return nil
	case <-time.After(suite.Patience):
		return errors.New("was not told")
	}
}

func nkey(w *world) error {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	key, _ := pair.PublicKey()
	err = errors.Join(
		administer("user", "add", key, "--no-password"),
		administer("permission", "set", key),
	)
	if err != nil {
		return err
	}
	defer administer("user", "delete", key)
	client, err := w.connect(nats.Nkey(key, pair.Sign))
	if err != nil {
		return err
	}
	if err := client.Flush(); err != nil {
		return err
	}
	other, _ := nkeys.CreateUser()
	if _, err := w.connect(nats.Nkey(key, other.Sign)); !errors.Is(err, nats.ErrAuthorization) {
		return fmt.Errorf("another's signature: %v", err)
	}
	return nil
}

func authority() nats.Option {
	return nats.RootCAs(filepath.Join(os.Getenv("BROKER_TEST_CERTIFICATES"), "authority.pem"))
}

func roundTrip(w *world, client *nats.Conn) error {
	if _, err := client.TLSConnectionState(); err != nil {
		return err
	}
	name := subject()
	subscription, _ := client.SubscribeSync(name)
	body := strings.Repeat("more than one record ", 10_000)
	client.Publish(name, []byte(body))
	got, err := next(subscription, 1)
	return errors.Join(err, suite.Equal(got, []string{body}))
}

func tlsAfterInfo(w *world) error {
	client, err := w.connectTo("tls://"+address(), authority())
	if err != nil {
		return err
	}
	return roundTrip(w, client)
}

func tlsFirst(w *world) error {
	port := os.Getenv("BROKER_TEST_NATS_TLS_PORT")
	client, err := w.connectTo("tls://127.0.0.1:"+port, authority(), nats.TLSHandshakeFirst())
	if err != nil {
		return err
	}
	return roundTrip(w, client)
}

// stranger shows a certificate that it has signed itself.
func stranger(w *world) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	about := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &about, &about, public, private)
	if err != nil {
		return err
	}
	certificate := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
	show := func(options *nats.Options) error {
		// Among Certificates it would be shown to those alone who say that they trust its authority.
		options.TLSConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &certificate, nil
		}
		return nil
	}
	// What the broker says must not be lost, whatever the client has sent by then.
	for range 20 {
		_, err := w.connectTo("tls://"+address(), authority(), show)
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			return fmt.Errorf("told: %v", err)
		}
	}
	return nil
}

func untrusted(w *world) error {
	_, err := w.connectTo("tls://"+address(), nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	if err == nil {
		return errors.New("a certificate was accepted that nobody vouches for")
	}
	return nil
}
