// Every case of amqplib against the broker at AMQP_URL; exits with 1 if one fails.
'use strict';

require('./basic');
require('./errors');
require('./harness').run();
