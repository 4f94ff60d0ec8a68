package controller

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/kube"
)

// Drip tells at its leisure what nobody waits for. A plan for thousands of pods would otherwise make the API server
// write thousands of events at the moment when it should create NodeClaims. What is too much is left out.
type Drip struct {
	Tell teller

	drops chan drop
}

type drop struct {
	about   client.Object
	reason  kube.Reason
	message string
}

// A drip keeps so many events at most, and tells one in each pause.
const (
	dripKeeps = 2000
	dripPause = 50 * time.Millisecond
)

// NewDrip returns a drip into tell.
func NewDrip(tell teller) *Drip { return &Drip{Tell: tell, drops: make(chan drop, dripKeeps)} }

// Start tells until ctx ends.
func (d *Drip) Start(ctx context.Context) error {
	ticker := time.NewTicker(dripPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		select {
		case e := <-d.drops:
			d.Tell.Tell(e.about, e.reason, e.message)
		default:
		}
	}
}

// Later tells the event when its turn comes.
func (d *Drip) Later(about client.Object, reason kube.Reason, message string) {
	select {
	case d.drops <- drop{about, reason, message}:
	default:
	}
}
