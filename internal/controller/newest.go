package controller

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// newest remembers each claim as this loop wrote it last, because the cache may show an older one for a moment. Acting
// on the older one would repeat a step. Its methods may be called at the same time; the zero value remembers nothing.
type newest struct {
	mu     sync.Mutex
	claims map[string]*karpv1.NodeClaim // by name
}

// note remembers a claim as the API server answered.
func (n *newest) note(claim *karpv1.NodeClaim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.claims == nil {
		n.claims = map[string]*karpv1.NodeClaim{}
	}
	n.claims[claim.Name] = claim
}

// of returns the newer of the claim that the cache shows and the one remembered.
func (n *newest) of(cached *karpv1.NodeClaim) *karpv1.NodeClaim {
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

// forget drops the claim of that name and returns its UID.
func (n *newest) forget(name string) (types.UID, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, ok := n.claims[name]
	delete(n.claims, name)
	if !ok {
		return "", false
	}
	return known.UID, true
}

// isOlder compares resource versions, which API servers from 1.35 on promise to count up. Where they cannot be
// compared the cache is believed.
func isOlder(a, b string) bool {
	x, err1 := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	return err1 == nil && err2 == nil && x < y
}
