// Every case of MQTT.js against the broker at BROKER_TEST_MQTT_PORT; exits with 1 if one fails.
'use strict';

require('./messages');
require('./sessions');
require('./harness').run();
