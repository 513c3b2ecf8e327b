// Every case of rhea against the broker at AMQP_URL; exits with 1 if one fails.
'use strict';

require('./messages');
require('./credit');
require('./outcomes');
require('./nodes');
require('./links');
require('./errors');
require('./harness').run();
