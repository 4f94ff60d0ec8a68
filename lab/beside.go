package lab

import (
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab/kubelet"
)

// shareAWS makes the lab a second cluster in the AWS of another lab. The two labs share everything in AWS except the
// controller's role.
func (l *Lab) shareAWS(other *Lab) error {
	l.Emulator, l.Endpoint, l.Estate, l.AL2Image = other.Emulator, other.Endpoint, other.Estate, other.AL2Image
	l.instances, l.cloud = other.instances, newCloudController(l)
	l.Role = ControllerRole + "Beside"
	var err error
	l.Emulator.Do(func(w *world.World, now time.Time) {
		err = addRole(now, w.Account(l.Account), l.Role, "pods.eks.amazonaws.com")
	})
	return err
}

// selfManagedSettings returns the settings, as NAME=value, that a controller needs if its cluster is not registered
// with EKS. It returns nil for an EKS cluster.
func (l *Lab) selfManagedSettings() []string {
	if l.Beside == nil {
		return nil
	}
	return []string{"CLUSTER_ENDPOINT=" + l.plane.URL, "CLUSTER_CA_BUNDLE=" + base64.StdEncoding.EncodeToString(l.plane.CA)}
}

// UID returns the cluster's UID: the UID of its namespace kube-system. It distinguishes clusters with the same name.
func (l *Lab) UID() (string, error) {
	l.Roles.granted.mu.Lock()
	defer l.Roles.granted.mu.Unlock()
	if uid := l.Roles.granted.scope.UID; uid != "" {
		return uid, nil
	}
	return "", fmt.Errorf("the UID of cluster %s is not known before the cluster is up", l.Cluster)
}

func (m *instances) addCluster(l *Lab) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clusters = append(m.clusters, l)
}

// removeCluster removes a cluster that is being closed, so that instances can no longer join it.
func (m *instances) removeCluster(l *Lab) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clusters = slices.DeleteFunc(m.clusters, func(other *Lab) bool { return other == l })
}

// fleetOf returns the kubelets of the cluster whose API server has this address. The address comes from an instance's
// user data. For an unknown address, to which no kubelet can connect, fleetOf returns the first lab's kubelets.
func (m *instances) fleetOf(server string) *kubelet.Fleet {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.clusters {
		if l.plane.URL == server {
			return l.fleet
		}
	}
	return m.lab.fleet
}
