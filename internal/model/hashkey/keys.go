// Package hashkey encodes values as bytes that differ when the values differ.
//
// In: numbers, texts, flags.
// Out: bytes to look things up by: two rows of values of the same kinds have the same ones only if they are the same.
// Never: an order that means something, or bytes that are kept or sent.
package hashkey

import "encoding/binary"

// Int appends a number.
func Int[N int | int32 | int64](b []byte, n N) []byte { return binary.AppendVarint(b, int64(n)) }

// Text appends texts, each with its length, so that no two rows of them are alike.
func Text(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(Int(b, len(s)), s...)
	}
	return b
}

// Flag appends flags.
func Flag(b []byte, flags ...bool) []byte {
	for _, set := range flags {
		if set {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}
