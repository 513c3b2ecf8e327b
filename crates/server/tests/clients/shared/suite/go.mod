module suite

go 1.21
