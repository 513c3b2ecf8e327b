module angarium/amqp10-suite

go 1.26.0

require (
	github.com/Azure/go-amqp v1.7.0
	github.com/fortytw2/leaktest v1.3.0
	github.com/google/go-cmp v0.7.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

require suite v0.0.0

replace suite => ../shared/suite
