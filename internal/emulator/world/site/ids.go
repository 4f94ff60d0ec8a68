package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// IDs generates IDs, keys and tokens. With the same seed, the same sequence of calls generates the same values.
type IDs struct {
	seed   *string
	serial uint64 // number of generated values
}

// NewIDs returns a generator, which reads the seed at each call.
func NewIDs(seed *string) *IDs { return &IDs{seed: seed} }

// New returns an ID that is unique in the world: the prefix and 17 hexadecimal digits, for example
// "i-0d3adb33f00000001".
func (s *IDs) New(prefix string) string { return prefix + "-0" + s.Hex(prefix, 16) }

// Hex returns n (at most 64) hexadecimal digits that differ on every call.
func (s *IDs) Hex(kind string, n int) string {
	s.serial++
	return Digest(n, *s.seed, kind, fmt.Sprint(s.serial))
}

// UUID returns a UUID that differs on every call.
func (s *IDs) UUID(kind string) string {
	h := s.Hex(kind, 32)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Letters returns n (at most 32) upper-case letters and digits that differ on every call.
func (s *IDs) Letters(kind string, n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	s.serial++
	sum := sha256.Sum256([]byte(*s.seed + "/" + kind + "/" + fmt.Sprint(s.serial)))
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[sum[i]%32]
	}
	return string(b)
}

// Digest returns the first n hexadecimal digits of a hash of the parts.
func Digest(n int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return hex.EncodeToString(sum[:])[:n]
}
