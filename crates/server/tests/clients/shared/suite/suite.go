// Package suite is what the suites in Go share: cases, the loop that runs them, and what they check.
package suite

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	// Patience is the longest wait for anything that must come.
	Patience = 10 * time.Second
	// Silence is how long nothing must come before it counts as "does not come".
	Silence = 200 * time.Millisecond
)

// Case is one case, with the world that it uses.
type Case[W any] struct {
	Name string
	Body func(w W) error
	// A variable of the environment that it needs.
	Needs string
}

// Of is a case that needs nothing.
func Of[W any](name string, body func(w W) error) Case[W] {
	return Case[W]{Name: name, Body: body}
}

// Run runs all cases, or those whose name contains an argument, and ends the process.
func Run[W any](run func(body func(w W) error) error, cases ...[]Case[W]) {
	failed := 0
	for _, list := range cases {
		for _, c := range list {
			if len(os.Args) > 1 && !strings.Contains(c.Name, os.Args[1]) {
				continue
			}
			if c.Needs != "" && os.Getenv(c.Needs) == "" {
				fmt.Printf("skip %s: the environment lacks it\n", c.Name)
				continue
			}
			if err := run(c.Body); err != nil {
				failed++
				fmt.Printf("FAIL %s: %v\n", c.Name, err)
				continue
			}
			fmt.Printf("pass %s\n", c.Name)
		}
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// Name is one that nobody else uses.
func Name(prefix string) string {
	return fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), time.Now().UnixNano())
}

// Equal says what differs.
func Equal[T any](got, expected T) error {
	if fmt.Sprint(got) == fmt.Sprint(expected) {
		return nil
	}
	return fmt.Errorf("got %v instead of %v", got, expected)
}
