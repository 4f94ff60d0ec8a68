package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestStale: a node is stale if it has been leaving for more than ten minutes, since the start of its move or the
// deletion of its claim, whichever is earlier. Other decisions do not wait for stale nodes.
func TestStale(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		stays   bool          // the node is not leaving
		started time.Duration // how long ago the node's move started; 0: no move
		deleted time.Duration // how long ago the claim was deleted; 0: not deleted
		want    bool
	}{
		"its move has started":                             {started: time.Minute},
		"its move started long ago":                        {started: 11 * time.Minute, want: true},
		"its claim was deleted":                            {deleted: time.Minute},
		"its claim was deleted long ago":                   {deleted: 11 * time.Minute, want: true},
		"its move started long ago, its deletion just now": {started: 11 * time.Minute, deleted: time.Second, want: true},
		"it leaves since an unknown time":                  {},
		"it is not leaving":                                {started: 11 * time.Minute, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
			if c.deleted > 0 {
				claim.DeletionTimestamp = &metav1.Time{Time: now.Add(-c.deleted)}
			}
			s := &disruptor.DisruptionInput{Claims: map[string]*karpv1.NodeClaim{"claim": claim}, In: disruption.Input{Now: now}}
			s.In.Snapshot.Nodes = []cluster.Node{{Name: "node", Claim: "claim", Leaving: !c.stays}}
			if c.started > 0 {
				s.Flights = []*disruptor.InFlightMove{{Mark: nodestate.MoveMark{Started: now.Add(-c.started)}, Leaving: []*karpv1.NodeClaim{claim}}}
			}
			if got := s.StaleNodes()["node"]; got != c.want {
				t.Errorf("the node is stale: %t, want %t", got, c.want)
			}
		})
	}
}
