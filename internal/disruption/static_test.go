package disruption

import (
	"strings"
	"testing"
)

func TestMissing(t *testing.T) {
	t.Parallel()
	five, three := 5, 3
	for name, c := range map[string]struct {
		replicas, active, all int
		limit                 *int
		want                  int
		wantLimited           bool
	}{
		"all new":                 {3, 0, 0, nil, 3, false},
		"enough":                  {3, 3, 4, nil, 0, false},
		"too many":                {3, 4, 4, nil, 0, false},
		"within the limit":        {5, 2, 2, &five, 3, false},
		"terminating nodes count": {5, 2, 4, &five, 1, true},
		"the limit is reached":    {5, 3, 3, &three, 0, true},
		"the limit is exceeded":   {5, 4, 4, &three, 0, true},
	} {
		if got, limited := Missing(c.replicas, c.active, c.all, c.limit); got != c.want || limited != c.wantLimited {
			t.Errorf("%s: %d nodes are missing, limited: %t; want %d, %t", name, got, limited, c.want, c.wantLimited)
		}
	}
}

func TestSurplus(t *testing.T) {
	t.Parallel()
	members := []Member{
		{Name: "protected", Launched: true, Joined: true, Protected: true, LifeLeft: 0.1},
		{Name: "busy", Launched: true, Joined: true, Pods: 10, LifeLeft: 1},
		{Name: "old", Launched: true, Joined: true, Pods: 10, LifeLeft: 0.1},
		{Name: "quiet", Launched: true, Joined: true, Pods: 2, LifeLeft: 1},
		{Name: "empty", Launched: true, Joined: true, LifeLeft: 1},
		{Name: "new2"},
		{Name: "new1"},
		{Name: "launched", Launched: true, LifeLeft: 0.5},
	}
	for replicas, want := range map[int]string{
		8: "", 9: "", 7: "new1", 6: "new1 new2", 5: "new1 new2 launched", 4: "new1 new2 launched empty", 3: "new1 new2 launched empty old",
		2: "new1 new2 launched empty old quiet", 1: "new1 new2 launched empty old quiet busy",
		0: "new1 new2 launched empty old quiet busy protected", -1: "new1 new2 launched empty old quiet busy protected",
	} {
		if got := strings.Join(Surplus(members, replicas), " "); got != want {
			t.Errorf("%d replicas: %q are removed, want %q", replicas, got, want)
		}
	}
}
