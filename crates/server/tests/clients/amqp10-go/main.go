// Every case of go-amqp against the broker at AMQP_URL; exits with 1 if one fails.
package main

import "suite"

func main() {
	suite.Run(runCase, cases)
}
