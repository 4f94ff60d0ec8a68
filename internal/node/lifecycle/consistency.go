package lifecycle

import (
	"time"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// CapacityCheckInterval is the interval at which the resources of a ready Node are compared with those in its claim's
// status.
const CapacityCheckInterval = 10 * time.Minute

// Shortfall returns the first resource, in the order of Amounts.Names, of which a Node has less than nine tenths of the
// promised amount, as in Karpenter; empty if there is none. requested are the claim's requests, promised is the
// capacity in the claim's status, and actual is the Node's. Resources that the claim does not request are ignored.
func Shortfall(requested, promised, actual resources.Amounts) string {
	for _, name := range requested.Names() {
		if amount := promised.Of(name); requested.Of(name) > 0 && actual.Of(name) < amount-amount/10 {
			return name
		}
	}
	return ""
}
