package lifecycle

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// CheckEvery is the interval at which a ready node is compared with the resources that its claim promised.
const CheckEvery = 10 * time.Minute

// Shortfall returns the first resource, by name, of which a Node has less than nine tenths of the promised amount;
// empty if there is none. asked holds the claim's requests, promised the capacity in the claim's status, and has the
// Node's capacity. Resources that the claim does not request are ignored.
func Shortfall(asked, promised, has resources.Amounts) string {
	for _, name := range asked.Names() {
		if want := promised.Of(name); asked.Of(name) > 0 && has.Of(name) < want-want/10 {
			return name
		}
	}
	return ""
}
