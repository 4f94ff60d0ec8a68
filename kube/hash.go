package kube

import (
	"fmt"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/drift"
)

// PoolHash returns the drift hash of what a NodePool makes nodes from, with its version: the values of the annotations
// karpv1.AnnotationNodePoolHash and karpv1.AnnotationNodePoolHashVersion.
func PoolHash(pool *karpv1.NodePool) (hash, version string, err error) {
	hash, err = drift.Hash(pool.Spec.Template)
	if err != nil {
		return "", "", fmt.Errorf("hash nodepool %s: %w", pool.Name, err)
	}
	return hash, drift.PoolVersion, nil
}

// ClassHash returns the drift hash of an EC2NodeClass, with its version: the values of the annotations awsv1.AnnotationHash and
// awsv1.AnnotationHashVersion. Authority is the cluster's certificate authority as nodes are given it, in base64.
func ClassHash(class *awsv1.EC2NodeClass, authority string) (hash, version string, err error) {
	hash, err = drift.Hash([]any{class.Spec, class.Spec.ResolvedAMIFamily(), authority})
	if err != nil {
		return "", "", fmt.Errorf("hash ec2nodeclass %s: %w", class.Name, err)
	}
	return hash, drift.ClassVersion, nil
}
