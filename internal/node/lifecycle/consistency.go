package lifecycle

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// CheckEvery is how often a node that is ready is held against what was promised of it.
const CheckEvery = 10 * time.Minute

// Shortfall returns the first resource, by name, of those that the claim asks for, of which its Node has less than nine tenths
// of what the claim promised; empty if there is none.
func Shortfall(asked, promised, has resources.Amounts) string {
	for _, name := range asked.Names() {
		if want := promised.Of(name); asked.Of(name) > 0 && has.Of(name) < want-want/10 {
			return name
		}
	}
	return ""
}
