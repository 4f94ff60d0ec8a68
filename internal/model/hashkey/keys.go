// Package hashkey encodes values as bytes for keys of maps and hashes.
//
// In: numbers, texts, flags.
// Out: bytes; two sequences of values of the same types have equal bytes only if the values are equal.
// Never: bytes with a meaningful order, or bytes that are stored or sent.
package hashkey

import "encoding/binary"

// Int appends a number.
func Int[N int | int32 | int64](b []byte, n N) []byte { return binary.AppendVarint(b, int64(n)) }

// Text appends texts, each with its length, so that different sequences have different bytes.
func Text(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(Int(b, len(s)), s...)
	}
	return b
}

// Flag appends flags.
func Flag(b []byte, flags ...bool) []byte {
	for _, isSet := range flags {
		if isSet {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}
