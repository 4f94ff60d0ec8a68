package evidence

import (
	"testing"

	"github.com/joiner-sh/joiner/diagnosis"
)

func TestSteps(t *testing.T) {
	t.Parallel()
	in := func(key string, values ...string) diagnosis.Requirement {
		return diagnosis.Requirement{Key: key, Operator: "In", Values: values}
	}
	p := diagnosis.Pool{Requirements: []diagnosis.Requirement{
		in("topology.kubernetes.io/zone", "us-east-1a"), in("team", "a"),
		in("karpenter.k8s.aws/instance-family", "m5", "t4g"), in("kubernetes.io/arch", "arm64"), in("karpenter.k8s.aws/instance-cpu", "96"),
	}}
	got := steps(p, "us-east-1")
	if len(got) != 3 || got[0].Name != "karpenter.k8s.aws/instance-family In [m5, t4g]" {
		t.Fatalf("%+v", got)
	}
	if got[0].Left["amd64"] < 8 || got[0].Left["arm64"] < 6 || got[1].Left["amd64"] != 0 || got[1].Left["arm64"] != got[0].Left["arm64"] || len(got[2].Left) != 0 {
		t.Errorf("%+v", got)
	}
	if got := steps(diagnosis.Pool{}, "us-east-1"); len(got) != 1 || got[0].Left["amd64"] < 100 || got[0].Left["arm64"] < 100 {
		t.Errorf("without requirements: %+v", got)
	}
	if got := steps(p, "mars-north-1"); got != nil {
		t.Errorf("of a region that is not known: %+v", got)
	}
}
