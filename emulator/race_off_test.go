//go:build !race

package emulator_test

// underRace says that the race detector is on, which makes everything ten times slower.
const underRace = false
