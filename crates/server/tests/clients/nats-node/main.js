// Every case of nats.js against the broker at NATS_URL; exits with 1 if one fails.
'use strict';

require('./messages');
require('./life');
require('./harness').run();
