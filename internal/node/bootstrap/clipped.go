package bootstrap

import (
	"fmt"
	"strings"
)

// mostError is the maximum length, in bytes, of an error that quotes the user's own text.
const mostError = 300

// clipped is an error whose text is cut off, because it may quote long user data.
type clipped struct{ error }

// Error returns the text of the error, cut off after mostError bytes.
func (c clipped) Error() string {
	text := c.error.Error()
	if len(text) <= mostError {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:mostError], ""), len(text))
}

// Unwrap returns the error with its whole text.
func (c clipped) Unwrap() error { return c.error }
