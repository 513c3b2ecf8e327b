// Every case of stompjs against the broker at BROKER_TEST_STOMP_PORT; exits with 1 if one fails.
'use strict';

require('./cases');
require('./harness').run();
