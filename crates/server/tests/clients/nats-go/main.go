// Every case of nats.go against the broker at NATS_URL; exits with 1 if one fails.
package main

import "suite"

func main() {
	suite.Run(runCase, messageCases, lifeCases, stopCases)
}
