package lab

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Price returns the current hourly price of an instance, or zero if the instance type is not offered.
func (l *Lab) Price(i world.Instance) catalog.Price {
	var price catalog.Price
	l.Emulator.Do(func(w *world.World, now time.Time) {
		market := w.Market(l.Region)
		if offered, ok := market.Stock(i.Type); ok {
			price = offered.OnDemand
		}
		if i.Spot {
			if spot := market.SpotPrices(i.Type, i.Zone, now, now); len(spot) > 0 {
				price = spot[len(spot)-1].Price
			}
		}
	})
	return price
}

// AWSCalls returns the number of calls to AWS. total excludes the calls of the lab's own authenticator; byAction
// includes them.
func (l *Lab) AWSCalls() (total int, byAction map[string]int) {
	byAction = l.Emulator.Calls()
	for _, n := range byAction {
		total += n
	}
	return total - int(l.ownCalls.Load()), byAction
}

// countingClient is an HTTP client that counts its requests in calls.
type countingClient struct {
	http.Client
	calls *atomic.Int64
}

// Do counts a request and sends it.
func (c *countingClient) Do(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.Client.Do(r)
}
