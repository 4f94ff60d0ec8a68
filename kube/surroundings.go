package kube

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/cluster"
)

// surroundings are what a pod's demands refer to besides the pod itself: volumes
// by name. They are made once per snapshot.
type surroundings struct {
	volumes volumes
}

func surroundingsOf(o Objects, view View) surroundings {
	return surroundings{volumes: volumesOf(o, view.Live)}
}

// avoids are the pod's required anti-affinity terms.
func avoids(_ *corev1.Pod, _ surroundings) []cluster.Term { return nil }
