// Every case of amqp091-go against the broker at AMQP_URL; exits with 1 if one fails.
package main

import "suite"

func main() {
	suite.Run(runCase, basicCases, errorCases)
}
