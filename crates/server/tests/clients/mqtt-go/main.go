// Every case of paho.mqtt.golang against the broker at BROKER_TEST_MQTT_PORT; exits with 1 if one fails.
package main

import "suite"

func main() {
	suite.Run(runCase, cases)
}
