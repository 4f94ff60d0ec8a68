package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/kube"
)

// clusterFlags say which cluster is meant.
type clusterFlags struct {
	kubeconfig string
	context    string
}

func (c *clusterFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "the kubeconfig `FILE`; without it KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&c.context, "context", "", "the context of the kubeconfig")
}

// apiPatience is how long the API server may take for one answer.
const apiPatience = 30 * time.Second

// read returns what the cluster holds now.
func (c *clusterFlags) read(ctx context.Context) (kube.Objects, error) {
	cfg, err := c.config()
	if err != nil {
		return kube.Objects{}, err
	}
	scheme, err := kube.Scheme()
	if err != nil {
		return kube.Objects{}, fmt.Errorf("know the kinds of objects: %w", err)
	}
	api, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return kube.Objects{}, hinted(fmt.Errorf("reach the API server %s: %w", cfg.Host, err))
	}
	objects, err := (&kube.Reader{Cache: api}).Objects(ctx)
	if err != nil {
		return kube.Objects{}, hinted(fmt.Errorf("read the cluster at %s: %w", cfg.Host, err))
	}
	return objects, nil
}

func (c *clusterFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		err = KubeconfigProblem(rules.GetLoadingPrecedence(), err)
		return nil, fmt.Errorf("find the cluster: %w; set KUBECONFIG or --kubeconfig, or give manifests with -f", err)
	}
	cfg.Timeout = apiPatience
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.UserAgent = "joiner"
	return cfg, nil
}

// hinted adds what to do to an error of the API server.
func hinted(err error) error {
	if hint := kube.Hint(err); hint != "" {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}
