package bootstrap

import (
	"fmt"
	"strings"
)

// mostError is how many bytes of an error that quotes the user's own text are kept.
const mostError = 300

// clipped is an error whose text quotes no more of the user's than is readable.
type clipped struct{ error }

// Error returns the text on one line, cut off where it is too long.
func (c clipped) Error() string {
	text := c.error.Error()
	if len(text) <= mostError {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:mostError], ""), len(text))
}

// Unwrap returns the error itself.
func (c clipped) Unwrap() error { return c.error }
