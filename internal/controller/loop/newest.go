package loop

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// NewestVersions holds each claim as this loop wrote it last. The cache may show an older version for a moment, and
// acting on the older version would repeat a step. All methods are safe for concurrent use; the zero value is empty.
type NewestVersions struct {
	mu     sync.Mutex
	claims map[string]*karpv1.NodeClaim // by name
}

// Note records a claim that the API server returned after a write.
func (n *NewestVersions) Note(claim *karpv1.NodeClaim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.claims == nil {
		n.claims = map[string]*karpv1.NodeClaim{}
	}
	n.claims[claim.Name] = claim
}

// Of returns the newer version: the cached claim, or a copy of the recorded claim.
func (n *NewestVersions) Of(cached *karpv1.NodeClaim) *karpv1.NodeClaim {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, ok := n.claims[cached.Name]
	if !ok {
		return cached
	}
	if known.UID != cached.UID || !isOlder(cached.ResourceVersion, known.ResourceVersion) {
		delete(n.claims, cached.Name)
		return cached
	}
	return known.DeepCopy()
}

// Forget drops the record of the claim with that name and returns its UID; false if there was no record.
func (n *NewestVersions) Forget(name string) (types.UID, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, ok := n.claims[name]
	delete(n.claims, name)
	if !ok {
		return "", false
	}
	return known.UID, true
}

// isOlder reports whether resource version a is older than b. It returns false if the versions cannot be compared, so
// that the cached claim is used. API servers from 1.35 on guarantee that resource versions increase.
func isOlder(a, b string) bool {
	x, err1 := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	return err1 == nil && err2 == nil && x < y
}
