// Every case of go-amqp against the broker at AMQP_URL; exits with 1 if one fails.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	failed := 0
	for _, c := range cases {
		if len(os.Args) > 1 && !strings.Contains(c.name, os.Args[1]) {
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
