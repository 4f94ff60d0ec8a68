package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Context is what a plan does not say itself: where its prices are from, and which pods have a node on its way.
type Context struct {
	Prices   *Prices   `json:"prices,omitempty"`
	InFlight *InFlight `json:"inFlight,omitempty"` // nil: no pod waits for a NodeClaim
}

// Prices says in words where prices are from.
type Prices struct {
	OnDemand string `json:"onDemand"`
	Spot     string `json:"spot"`
}

// InFlight is the pods that need no new node, because NodeClaims for them are on their way.
type InFlight struct {
	Pods       []string `json:"pods"` // "namespace/name"
	NodeClaims []Flight `json:"nodeClaims"`
}

// Flight is a NodeClaim whose node is not ready for pods yet.
type Flight struct {
	Name       string  `json:"name"`
	NodePool   string  `json:"nodePool,omitempty"`
	Step       string  `json:"step"` // Created, Launched or Registered
	AgeSeconds float64 `json:"ageSeconds"`
}

// largeGap is from which gap on a plan comes with the reason why the bound may be far below it.
const largeGap = 0.10

// text is a line for each thing that the plan does not say.
func (c Context) text(p packing.Plan) string {
	var b strings.Builder
	if p.LowerBound > 0 && p.Price.Dollars()/p.LowerBound.Dollars() > 1+largeGap {
		b.WriteString("The gap is an upper limit: the bound counts fractions of instances, and not every rule that keeps pods apart.\n")
	}
	if c.Prices != nil {
		fmt.Fprintf(&b, "Prices on demand: %s; spot: %s.\n", c.Prices.OnDemand, c.Prices.Spot)
	}
	if f := c.InFlight; f != nil {
		verb, own := "wait", "their"
		if len(f.Pods) == 1 {
			verb = "waits"
		}
		if len(f.NodeClaims) == 1 {
			own = "its"
		}
		fmt.Fprintf(&b, "%s %s for %s on %s way: %s.\n", Count(len(f.Pods), "pod"), verb, Count(len(f.NodeClaims), "NodeClaim"), own, flights(f.NodeClaims))
	}
	return b.String()
}

// mostFlights is how many NodeClaims are named.
const mostFlights = 5

func flights(all []Flight) string {
	var out []string
	for i, f := range all {
		if i == mostFlights {
			out = append(out, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		age := time.Duration(f.AgeSeconds * float64(time.Second)).Truncate(time.Second)
		out = append(out, fmt.Sprintf("%s (%s, %s old)", visible(f.Name), f.Step, age))
	}
	return strings.Join(out, ", ")
}
