// Clients that speak their protocols inside a WebSocket, as in browsers.
'use strict';

const { run } = require('./harness');

require('./mqtt');
require('./stomp');
require('./amqp10');
require('./nats');
require('./frames');

run();
