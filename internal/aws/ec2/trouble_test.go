package ec2_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestStatusProblems: failed status checks and scheduled events are returned, each once; completed events are not.
func TestStatusProblems(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "uid-1")
	var ids []string
	for _, claim := range []string{"apps-1", "apps-2", "apps-3", "apps-4"} {
		launch, err := d.Launch(t.Context(), s.request(claim, s.choice("m5.large", 0)))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, launch.Instance.ID)
	}
	now := time.Now().UTC().Truncate(time.Second)
	s.change(func(_ *world.Region, w *world.World) {
		w.Advance(now.Add(time.Second)) // the instances run
		w.Impair(now, ids[0], world.InstanceCheck, world.SystemCheck)
		w.Impair(now, ids[1], world.SystemCheck)
		w.ScheduleEvent(now, ids[1], "instance-retirement", "degraded hardware", now.Add(24*time.Hour))
		w.ScheduleEvent(now, ids[2], "system-reboot", "a new host", now.Add(time.Second)) // completed by Advance below
		w.Advance(now.Add(2 * time.Second))
	})
	got, err := d.StatusProblems(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[ec2.StatusProblem]bool{
		{ID: ids[0], Kind: ec2.InstanceCheckFailed, Since: now, Detail: "reachability"}:                                          true,
		{ID: ids[0], Kind: ec2.SystemCheckFailed, Since: now, Detail: "reachability"}:                                            true,
		{ID: ids[1], Kind: ec2.SystemCheckFailed, Since: now, Detail: "reachability"}:                                            true,
		{ID: ids[1], Kind: ec2.EventScheduled, Since: now.Add(24 * time.Hour), Detail: "instance-retirement: degraded hardware"}: true,
	}
	seen := map[ec2.StatusProblem]bool{}
	for i, problem := range got {
		seen[problem] = true
		if i > 0 && got[i-1].ID > problem.ID {
			t.Errorf("the result is not sorted: %+v", got)
		}
	}
	if diff := cmp.Diff(want, seen); diff != "" || len(got) != len(want) {
		t.Errorf("%d problems (-want +got):\n%s", len(got), diff)
	}
}
