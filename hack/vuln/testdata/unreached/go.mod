module example.com/unreached

go 1.26.0

toolchain go1.27.3

// GO-2021-0113, GO-2022-1059: fixed in v0.3.8.
require golang.org/x/text v0.3.6
