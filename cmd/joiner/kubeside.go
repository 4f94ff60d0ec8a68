package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-sh/joiner/internal/cli/connection"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// kubeSide has the configuration of the Kubernetes clients, and the facts about the cluster from the API server. Its
// counterpart for AWS is awsSide.
type kubeSide struct {
	config    *rest.Config
	uid       string // UID of the namespace kube-system
	dns       string // address of the Service kube-dns; empty if it cannot be read
	discovery *discovery.DiscoveryClient
	crds      *crdInstaller      // nil: the CRDs are managed by other tools
	missing   missingPermissions // consequences of missing optional permissions

	mu            sync.Mutex // guards the fields below
	version       string     // Kubernetes version, such as "1.33"; empty: not read yet
	versionReadAt time.Time
}

// openCluster connects to the API server, installs missing CRDs if the settings allow it, reads the facts about the
// cluster and checks the controller's permissions.
func openCluster(ctx context.Context, settings config.Settings, log *slog.Logger) (*kubeSide, error) {
	cfg, err := restConfig(settings)
	if err != nil {
		return nil, err
	}
	k := &kubeSide{config: cfg}
	if k.discovery, err = discovery.NewDiscoveryClientForConfig(cfg); err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	err = retry(ctx, log, "reach the API server "+cfg.Host, judgeKube, func(ctx context.Context) error {
		_, err := k.Version(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if settings.ApplyCRDs {
		if k.crds, err = newCRDInstaller(cfg, log); err != nil {
			return nil, err
		}
		if err := retry(ctx, log, "find the kinds of the API", judgeKube, k.crds.applyMissing); err != nil {
			return nil, err
		}
	}
	scheme, err := kubeclient.Scheme()
	if err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	live, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", cfg.Host, err)
	}
	if settings.NodeOverlays {
		if _, err := live.RESTMapper().RESTMapping(schema.GroupKind{Group: karpv1.Group, Kind: "NodeOverlay"}, karpv1alpha1.Version); err != nil {
			return nil, fmt.Errorf("find the kind NodeOverlay, which --feature-gates (FEATURE_GATES) switches on: %w; install its definition, or leave the gate out", err)
		}
	}
	if err := retry(ctx, log, "read the facts of the cluster", judgeKube,
		func(ctx context.Context) error { return k.readFacts(ctx, live) }); err != nil {
		return nil, err
	}
	return k, k.checkPermissions(ctx, settings, log)
}

// restConfig returns the client configuration: from the kubeconfig in the settings, else from the pod's service
// account, else from the user's default kubeconfig.
func restConfig(settings config.Settings) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if settings.Kubeconfig != "" {
		rules.Precedence = filepath.SplitList(settings.Kubeconfig)
	} else if cfg, err := rest.InClusterConfig(); err == nil {
		return setClientOptions(cfg, settings), nil
	} else if !errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("read the pod's service account: %w", err)
	}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w; set --kubeconfig (KUBECONFIG), or run in a pod with a service account",
			connection.KubeconfigProblem(rules.Precedence, err))
	}
	return setClientOptions(cfg, settings), nil
}

func setClientOptions(cfg *rest.Config, settings config.Settings) *rest.Config {
	cfg.QPS, cfg.Burst = float32(settings.KubeQPS), settings.KubeBurst
	cfg.UserAgent = "joiner/" + version()
	return cfg
}

// readFacts reads the facts about the cluster, and checks that the CRDs of NodePool, NodeClaim and EC2NodeClass are
// installed.
func (k *kubeSide) readFacts(ctx context.Context, live client.Client) error {
	for _, kind := range []schema.GroupKind{
		{Group: karpv1.Group, Kind: "NodePool"}, {Group: karpv1.Group, Kind: "NodeClaim"}, {Group: awsv1.Group, Kind: awsv1.Kind},
	} {
		if _, err := live.RESTMapper().RESTMapping(kind, "v1"); err != nil {
			return fmt.Errorf("find the kind %s: %w", kind, err)
		}
	}
	var system corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		return fmt.Errorf("read namespace kube-system, whose UID identifies this cluster: %w", err)
	}
	k.uid = string(system.UID)
	var dns corev1.Service
	if err := live.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}, &dns); err == nil {
		k.dns = dns.Spec.ClusterIP
	}
	return nil
}

const versionTTL = 5 * time.Minute

// Version returns the Kubernetes version of the control plane, such as "1.33". It may be called concurrently.
func (k *kubeSide) Version(ctx context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version != "" && time.Since(k.versionReadAt) < versionTTL {
		return k.version, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var info apiversion.Info
	data, err := k.discovery.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if err != nil {
		return "", fmt.Errorf("ask for the Kubernetes version: %w", err)
	}
	k.version, k.versionReadAt = info.Major+"."+strings.TrimRight(info.Minor, "+"), time.Now()
	return k.version, nil
}

func newManager(kube *kubeSide, settings config.Settings, log *slog.Logger) (ctrl.Manager, error) {
	scheme, err := kubeclient.Scheme()
	if err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	lock, err := newLease(kube.config, settings, log)
	if err != nil {
		return nil, err
	}
	if kube.crds != nil {
		lock.onAcquire = kube.crds.applyOutdated
	}
	shutdownTimeout := 20 * time.Second // less than the 30 s after which Kubernetes kills a pod by default
	manager, err := ctrl.NewManager(kube.config, ctrl.Options{
		Scheme: scheme,
		Cache:  conversion.CacheOptions(),
		Metrics: metricsserver.Options{
			BindAddress:   address(settings, settings.MetricsPort),
			ExtraHandlers: profilingHandlers(settings.Profiling),
		},
		HealthProbeBindAddress:              address(settings, settings.ProbePort),
		LeaderElection:                      settings.LeaderElection,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		GracefulShutdownTimeout:             &shutdownTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("set up: %w", withHint(err))
	}
	lock.recordTo(kube.missing.recorder(manager))
	if kube.crds != nil {
		if err := manager.Add(kube.crds); err != nil {
			return nil, fmt.Errorf("set up: %w", err)
		}
	}
	checkInformers := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !manager.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the informers have not caught up with the API server yet")
		}
		return nil
	}
	if err := errors.Join(manager.AddHealthzCheck("ping", healthz.Ping), manager.AddReadyzCheck("informers", checkInformers)); err != nil {
		return nil, fmt.Errorf("set up probes: %w", err)
	}
	return manager, nil
}

// profilingHandlers returns the handlers of /debug/pprof by path; nil unless isOn.
func profilingHandlers(isOn bool) map[string]http.Handler {
	if !isOn {
		return nil
	}
	return map[string]http.Handler{
		"/debug/pprof/": http.HandlerFunc(pprof.Index), "/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/trace": http.HandlerFunc(pprof.Trace), "/debug/pprof/symbol": http.HandlerFunc(pprof.Symbol),
	}
}
