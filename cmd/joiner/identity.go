package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// proveIdentity compares the EKS cluster of the configured name with the cluster of the API server, and returns the
// result. If a fact proves that the clusters differ, proveIdentity also emits an event on the NodePools and returns an
// error, so that the process stops before it changes AWS.
func (a *awsSide) proveIdentity(ctx context.Context, facts eks.Facts, kube *kubeSide, log *slog.Logger) (eks.Comparison, error) {
	proof := facts.CompareWith(eks.LocalFacts{CA: authority(kube.config), Issuer: kube.issuer(ctx), Endpoint: kube.config.Host,
		Region: a.identity.Region})
	if !proof.Refuted() {
		if !proof.Proven() && facts.Name != "" {
			log.Warn("it is not proven that the EKS cluster of this name is the cluster of the API server: EKS and the API server have no fact in common that can be compared", "cluster", a.identity.Name,
				"hint", "let the controller's service account read /.well-known/openid-configuration: ClusterRole system:service-account-issuer-discovery")
		}
		return proof, nil
	}
	err := fmt.Errorf("EKS cluster %q in %s is not the cluster at %s, so nothing is changed: %s; correct --cluster-name (CLUSTER_NAME), AWS_REGION or the kubeconfig",
		a.identity.Name, a.identity.Region, kube.config.Host, proof)
	if eventErr := kube.emitOnNodePools(ctx, kubeclient.ReasonWrongCluster, err.Error()); eventErr != nil {
		log.Warn("cannot write events to the NodePools about the wrong cluster name", "error", eventErr.Error())
	}
	return proof, err
}

// issuer returns the issuer of service account tokens, from the API server or else from the controller's own token;
// empty if unknown.
func (k *kubeSide) issuer(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var discovered struct {
		Issuer string `json:"issuer"`
	}
	text, err := k.discovery.RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(ctx)
	if err == nil && json.Unmarshal(text, &discovered) == nil && discovered.Issuer != "" {
		return discovered.Issuer
	}
	return issuerOf(k.config)
}

// issuerOf returns the issuer in the service account token of a client configuration; empty if there is no such token.
func issuerOf(cfg *rest.Config) string {
	parts := strings.Split(bearer(cfg), ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// bearer returns the bearer token of a client configuration; empty if the configuration has other credentials.
func bearer(cfg *rest.Config) string {
	if cfg.BearerTokenFile == "" {
		return cfg.BearerToken
	}
	text, err := os.ReadFile(cfg.BearerTokenFile)
	if err != nil {
		return cfg.BearerToken
	}
	return strings.TrimSpace(string(text))
}

// emitOnNodePools emits an event on each NodePool, because users check the NodePools when no node is launched.
func (k *kubeSide) emitOnNodePools(ctx context.Context, reason kubeclient.Reason, message string) error {
	scheme, err := kubeclient.Scheme()
	if err != nil {
		return err
	}
	live, err := client.New(k.config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var pools karpv1.NodePoolList
	if err := live.List(ctx, &pools); err != nil {
		return err
	}
	for i := range pools.Items {
		if err := kubeclient.WriteEvent(ctx, live, &pools.Items[i], reason, message); err != nil {
			return err
		}
	}
	return nil
}

// setProofMetrics sets the metric of each fact that can prove the cluster's identity: 1 if EKS and the cluster of the
// API server have the same value, else 0.
func (a *awsSide) setProofMetrics(m *metrics.Metrics) {
	for _, mark := range eks.Marks() {
		value := 0.0
		if slices.Contains(a.proof.Same, mark) {
			value = 1
		}
		m.Proven.WithLabelValues(string(mark)).Set(value)
	}
}
