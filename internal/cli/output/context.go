package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Context has facts that are printed together with a plan: the sources of its prices, and the pods for which nodes are
// being launched.
type Context struct {
	Prices   *Prices   `json:"prices,omitempty"`   // nil: not known
	InFlight *InFlight `json:"inFlight,omitempty"` // nil: no pod waits for a NodeClaim
}

// Prices describes the sources of prices.
type Prices struct {
	OnDemand string `json:"onDemand"` // source of on-demand prices
	Spot     string `json:"spot"`     // source of spot prices
}

// InFlight has the pending pods that the plan does not include, because nodes for them are being launched.
type InFlight struct {
	Pods       []string         `json:"pods"`       // "namespace/name"
	NodeClaims []LaunchingClaim `json:"nodeClaims"` // the NodeClaims that are not Initialized yet, the oldest first
}

// LaunchingClaim is a NodeClaim in InFlight.
type LaunchingClaim struct {
	Name       string  `json:"name"`               // name of the NodeClaim
	NodePool   string  `json:"nodePool,omitempty"` // its NodePool
	Step       string  `json:"step"`               // Created, Launched or Registered
	AgeSeconds float64 `json:"ageSeconds"`         // since the NodeClaim was created
}

// largeGap is the gap between price and lower bound, as a share of the bound, above which the text explains that the
// bound may be too low.
const largeGap = 0.10

func (c Context) text(p packing.Plan) string {
	var b strings.Builder
	if p.LowerBound > 0 && p.Price.Dollars()/p.LowerBound.Dollars() > 1+largeGap {
		b.WriteString("The real gap may be smaller: the bound counts fractions of instances, and ignores some rules that keep pods apart.\n")
	}
	if c.Prices != nil {
		fmt.Fprintf(&b, "On-demand prices: %s. Spot prices: %s.\n", c.Prices.OnDemand, c.Prices.Spot)
	}
	if f := c.InFlight; f != nil {
		verb, possessive := "wait", "their"
		if len(f.Pods) == 1 {
			verb = "waits"
		}
		if len(f.NodeClaims) == 1 {
			possessive = "its"
		}
		fmt.Fprintf(&b, "%s %s for %s on %s way: %s.\n", Count(len(f.Pods), "pod"), verb,
			Count(len(f.NodeClaims), "NodeClaim"), possessive, launchingClaimsText(f.NodeClaims))
	}
	return b.String()
}

// maxLaunchingClaims is the maximum number of NodeClaims in the text.
const maxLaunchingClaims = 5

// launchingClaimsText returns the NodeClaims as text: name, step and age of each.
func launchingClaimsText(all []LaunchingClaim) string {
	var out []string
	for i, c := range all {
		if i == maxLaunchingClaims {
			out = append(out, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		age := time.Duration(c.AgeSeconds * float64(time.Second)).Truncate(time.Second)
		out = append(out, fmt.Sprintf("%s (%s, %s old)", escapeInvisible(c.Name), c.Step, age))
	}
	return strings.Join(out, ", ")
}
