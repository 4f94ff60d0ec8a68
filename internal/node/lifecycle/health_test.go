package lifecycle

import (
	"testing"
	"time"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	hourAgo := ago(time.Hour)
	for name, c := range map[string]struct {
		symptoms []Symptom
		want     HealthProblem
	}{
		"healthy": {[]Symptom{{"Ready", "True", hourAgo}, {"MemoryPressure", "True", hourAgo},
			{"KernelReady", "True", hourAgo}}, HealthProblem{}},
		"not ready":                {[]Symptom{{"Ready", "False", hourAgo}}, HealthProblem{Condition: "Ready", Due: ago(30 * time.Minute)}},
		"Unknown from the kubelet": {[]Symptom{{"Ready", "Unknown", now}}, HealthProblem{Condition: "Ready", Due: now.Add(30 * time.Minute)}},
		"Unknown from the agent":   {[]Symptom{{"KernelReady", "Unknown", hourAgo}}, HealthProblem{}},
		"a GPU is due before Ready": {[]Symptom{{"Ready", "False", ago(15 * time.Minute)},
			{"AcceleratedHardwareReady", "False", now}}, HealthProblem{Condition: "AcceleratedHardwareReady", Due: now.Add(10 * time.Minute)}},
		"due together: the first by condition type": {[]Symptom{{"StorageReady", "False", now}, {"NetworkingReady", "False", now},
			{"ContainerRuntimeReady", "False", now}}, HealthProblem{Condition: "ContainerRuntimeReady", Due: now.Add(30 * time.Minute)}},
	} {
		if got := Diagnose(c.symptoms); got != c.want {
			t.Errorf("%s: problem %+v, want %+v", name, got, c.want)
		}
	}
}

func TestMayRepair(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unhealthy, total int
		want             bool
	}{
		{0, 0, true},
		{1, 1, true},
		{1, 5, true},
		{2, 5, false},
		{2, 6, true}, // a fifth, rounded up
		{2, 10, true},
		{3, 10, false},
		{20, 100, true},
		{21, 100, false},
	} {
		if got := MayRepair(c.unhealthy, c.total); got != c.want {
			t.Errorf("%d of %d nodes are unhealthy: MayRepair returns %t, want %t", c.unhealthy, c.total, got, c.want)
		}
	}
}
