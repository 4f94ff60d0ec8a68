package podgroup

import (
	"fmt"
	"math"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// maxPlausible is the highest amount of a resource that a pod may request. In bytes it is 64 TiB; the
// largest instance has 24 TiB of memory. The sum of such amounts over up to 131,072 (2^17) pods does not overflow.
const maxPlausible = math.MaxInt64 >> 17

// unplannable returns why the pod cannot be planned, or "".
func unplannable(p *cluster.Pod) string {
	if p.Unplannable != "" {
		return p.Unplannable
	}
	r := &p.Requests
	for _, n := range [...]int64{r.CPU, r.Memory, r.EphemeralStorage, r.Pods} {
		if n < 0 || n > maxPlausible {
			return implausibleAmount(r)
		}
	}
	for i := range r.Extended {
		if n := r.Extended[i].Value; n < 0 || n > maxPlausible {
			return implausibleAmount(r)
		}
	}
	return ""
}

// implausibleAmount returns a message about the first amount that is negative or above maxPlausible, or "".
func implausibleAmount(r *resources.Amounts) string {
	for _, name := range r.Names() {
		switch n := r.Of(name); {
		case n < 0:
			return fmt.Sprintf("it asks for a negative amount of %s", name)
		case n > maxPlausible:
			return fmt.Sprintf("it asks for %s of %s, more than any instance has", resources.Format(name, n), name)
		}
	}
	return ""
}
