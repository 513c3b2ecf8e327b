module angarium/suite

go 1.21

require github.com/rabbitmq/amqp091-go v1.16.0

require suite v0.0.0

replace suite => ../shared/suite
