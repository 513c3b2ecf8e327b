// Every case of nats.go against the broker at NATS_URL; exits with 1 if one fails.
package main

import (
	"fmt"
	"os"
	"slices"
)

func main() {
	failed := 0
	for _, c := range slices.Concat(messageCases, lifeCases, stopCases) {
		if c.needs != "" && os.Getenv(c.needs) == "" {
			fmt.Printf("skip %s: the environment lacks it\n", c.name)
			continue
		}
		if err := runCase(c.body); err != nil {
			failed++
			fmt.Printf("FAIL %s: %v\n", c.name, err)
			continue
		}
		fmt.Printf("pass %s\n", c.name)
	}
	if failed > 0 {
		os.Exit(1)
	}
}
