package consolidation

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/bench/workload"
)

// TestBoth runs both sides on a hundred half-empty nodes. Each side must reduce the price by a third, Joiner must leave
// no pod pending, and the report must include the row.
func TestBoth(t *testing.T) {
	for _, w := range workload.WastefulFleets("") {
		if w.Name != "halved-100" {
			continue
		}
		p := Options{Horizon: 5 * time.Minute, Real: 10 * time.Minute}
		row, err := p.Run(w)
		if err != nil {
			t.Fatal(err)
		}
		for side, o := range map[string]Outcome{"joiner": row.Ours, "upstream": row.Theirs} {
			if o.Price > row.Price*2/3 || o.Moved == 0 || o.Passes == 0 || o.Seconds <= 0 || o.Nodes >= row.Nodes {
				t.Errorf("%s: price from %s to %s, nodes from %d to %d, %d pods moved in %d passes; "+
					"want at most two thirds of the price, fewer nodes and some pods moved",
					side, row.Price, o.Price, row.Nodes, o.Nodes, o.Moved, o.Passes)
			}
			if o.Bound <= 0 || o.Price < o.Bound {
				t.Errorf("%s: price %s and bound %s, want a positive bound and no lower price", side, o.Price, o.Bound)
			}
		}
		if row.Ours.Waiting > 0 {
			t.Errorf("joiner leaves %d pods pending, want none", row.Ours.Waiting)
		}
		report := Report([]Row{row})
		for _, want := range []string{"| `halved-100` ", "| upstream |", "within 5 % of the bound", "no more paid than by upstream"} {
			if !strings.Contains(report, want) {
				t.Errorf("the report lacks %q:\n%s", want, report)
			}
		}
		return
	}
	t.Fatal("fleet halved-100 does not exist")
}
