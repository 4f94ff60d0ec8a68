package loop

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// NewestVersions holds each claim as this loop wrote it last. The cache may show an older version for a moment, and acting
// on that would repeat a step. All methods are safe for concurrent use; the zero value is empty.
type NewestVersions struct {
	mu     sync.Mutex
	claims map[string]*karpv1.NodeClaim // by name
}

// Note records a claim as the API server returned it.
func (n *NewestVersions) Note(claim *karpv1.NodeClaim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.claims == nil {
		n.claims = map[string]*karpv1.NodeClaim{}
	}
	n.claims[claim.Name] = claim
}

// Of returns the newer of the cached and the recorded claim.
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

// Forget drops the claim with that name and returns its UID.
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

// isOlder compares resource versions, which API servers from 1.35 on guarantee to increase. If they cannot be
// compared the cached claim is used.
func isOlder(a, b string) bool {
	x, err1 := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	return err1 == nil && err2 == nil && x < y
}
