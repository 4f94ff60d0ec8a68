package bootstrap

import (
	"fmt"
	"strings"
)

// maxErrorLength is the maximum length, in bytes, of an error that may quote the user's own text.
const maxErrorLength = 300

// clipped is an error whose text is cut off, because it may quote long user data.
type clipped struct{ error }

// Error returns the text of the error, cut off after maxErrorLength bytes.
func (c clipped) Error() string {
	text := c.error.Error()
	if len(text) <= maxErrorLength {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:maxErrorLength], ""), len(text))
}

// Unwrap returns the error with its whole text.
func (c clipped) Unwrap() error { return c.error }
