package sizing

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

const (
	emptyCount = 5                     // number of nodes that become empty, one after the other
	emptyPause = 7 * time.Second       // pause, so that nodes become empty at different times between the controller's scans
	emptyPoll  = 50 * time.Millisecond // interval of checks whether the NodeClaim is being deleted
	emptyLimit = 2 * time.Minute       // time limit for the deletion of a NodeClaim to start
)

// emptyNodes deletes all pods of some copies, one copy after the other. It returns the longest time from deleting a
// node's last pod until its NodeClaim was being deleted.
func (c *testCluster) emptyNodes(ctx context.Context) (time.Duration, error) {
	longest := time.Duration(0)
	for number := range emptyCount {
		app := fmt.Sprintf("app-%05d", number)
		noGrace := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)} // copies have no kubelet that stops pods
		for k := range PodsPerNode {
			if err := c.lab.Kube.CoreV1().Pods(namespace).Delete(ctx, fmt.Sprintf("%s-%02d", app, k), noGrace); err != nil {
				return 0, fmt.Errorf("empty a node: %w", err)
			}
		}
		started := time.Now()
		if err := c.untilDeleted(ctx, c.claimName(number)); err != nil {
			return 0, err
		}
		took := time.Since(started)
		c.say(fmt.Sprintf("  The deletion of an empty node's NodeClaim started after %.1f s", took.Seconds()))
		longest = max(longest, took)
		if err := sleep(ctx, emptyPause); err != nil {
			return 0, err
		}
	}
	return longest, nil
}

// untilDeleted waits until the NodeClaim is being deleted or has been deleted. Meanwhile it prints why the controller
// does not disrupt the node.
func (c *testCluster) untilDeleted(ctx context.Context, name string) error {
	deadline, printed := time.Now().Add(emptyLimit), ""
	for {
		claim := &karpenterv1.NodeClaim{}
		err := c.lab.Client.Get(ctx, types.NamespacedName{Name: name}, claim)
		if apierrors.IsNotFound(err) || err == nil && claim.DeletionTimestamp != nil {
			return nil
		}
		if disruptable, ok := claim.StatusConditions().Find(karpenterv1.ConditionDisruptable); ok && disruptable.Message != printed {
			printed = disruptable.Message
			c.say("  An empty node is not disrupted: " + printed)
		}
		if err != nil || time.Now().After(deadline) {
			return errors.Join(err, fmt.Errorf("the NodeClaim %s of an empty node is not being deleted\n%s", name, c.lab.Evidence(ctx)))
		}
		if err := sleep(ctx, emptyPoll); err != nil {
			return err
		}
	}
}
