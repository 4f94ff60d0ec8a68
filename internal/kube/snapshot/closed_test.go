package snapshot

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// TestClosedPools: UnusableByIntent is true for a pool that is unusable by intent, false if it needs a fix.
func TestClosedPools(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change   func(*karpv1.NodePool)
		byIntent bool
		why      string // text in Unusable
	}{
		"static":                {func(p *karpv1.NodePool) { p.Spec.Replicas = ptr.To[int64](2) }, true, "it is static"},
		"being deleted":         {func(p *karpv1.NodePool) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, true, "being deleted"},
		"another kind of class": {func(p *karpv1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Kind = "Other" }, true, "another controller"},
		"no class":              {func(p *karpv1.NodePool) { p.Spec.Template.Spec.NodeClassRef = nil }, false, "names no node class"},
		"class missing":         {func(*karpv1.NodePool) {}, false, "does not exist"},
	} {
		p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "a"}
		tt.change(p)
		got := Objects{Pools: []*karpv1.NodePool{p}}.Snapshot(View{Now: time.Now(), Live: true}).Pools[0]
		if got.UnusableByIntent != tt.byIntent || !strings.Contains(got.Unusable, tt.why) {
			t.Errorf("%s: UnusableByIntent %t, Unusable %q, want %t, %q",
				name, got.UnusableByIntent, got.Unusable, tt.byIntent, tt.why)
		}
	}
}
