package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/cli/connection"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

type clusterFlags struct {
	kubeconfig string // --kubeconfig; empty: the default files
	context    string // --context; empty: the current context

	instead string // input that the command accepts instead of a cluster, for error messages; empty: none
}

// manifestInput is the input that most commands accept instead of a cluster.
const manifestInput = "manifests with -f"

func (c *clusterFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "the kubeconfig `FILE`; without it KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&c.context, "context", "", "the context of the kubeconfig")
}

// apiTimeout is the timeout of one request to the API server, of openKube, and of reading instances from EC2.
const apiTimeout = 30 * time.Second

func (c *clusterFlags) read(ctx context.Context) (snapshot.Objects, error) {
	api, host, err := c.api()
	if err != nil {
		return snapshot.Objects{}, err
	}
	objects, err := (&snapshot.Reader{Cache: api}).Objects(ctx)
	if err != nil {
		return snapshot.Objects{}, withHint(fmt.Errorf("read the cluster at %s: %w", host, err))
	}
	return objects, nil
}

// api returns a client of the cluster, and the address of its API server.
func (c *clusterFlags) api() (client.Client, string, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, "", err
	}
	scheme, err := kubeclient.Scheme()
	if err != nil {
		return nil, "", fmt.Errorf("register the kinds of objects: %w", err)
	}
	api, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", withHint(fmt.Errorf("reach the API server %s: %w", cfg.Host, err))
	}
	return api, cfg.Host, nil
}

func (c *clusterFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		err = connection.KubeconfigProblem(rules.GetLoadingPrecedence(), err)
		hint := "set KUBECONFIG or --kubeconfig"
		if c.instead != "" {
			hint += ", or give " + c.instead
		}
		return nil, fmt.Errorf("find the cluster: %w; %s", err, hint)
	}
	if data := cfg.CAData; len(data) > 0 && !x509.NewCertPool().AppendCertsFromPEM(data) {
		ofCluster := ""
		if selected, ok := c.selectedContext(); ok {
			ofCluster = " of cluster " + selected.Cluster
		}
		return nil, fmt.Errorf("find the cluster: %s: certificate-authority-data%s holds no PEM certificate: %s",
			strings.Join(rules.GetLoadingPrecedence(), " or "), ofCluster, connection.RewriteKubeconfig)
	}
	cfg.Timeout = apiTimeout
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.UserAgent = "joiner"
	return cfg, nil
}

// selectedContext returns the context of the kubeconfig that --context names, by default the current one, and whether
// it exists.
func (c *clusterFlags) selectedContext() (*clientcmdapi.Context, bool) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	raw, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).RawConfig()
	if err != nil {
		return nil, false
	}
	selected, ok := raw.Contexts[cmp.Or(c.context, raw.CurrentContext)]
	return selected, ok
}

// eks returns the name and region of the EKS cluster in the selected context. It parses the cluster's name in the
// kubeconfig: the AWS CLI writes the ARN, eksctl NAME.REGION.eksctl.io. Both results are empty for a name of another
// form.
func (c *clusterFlags) eks() (name, region string) {
	selected, ok := c.selectedContext()
	if !ok {
		return "", ""
	}
	// arn:aws:eks:REGION:ACCOUNT:cluster/NAME
	if parts := strings.SplitN(selected.Cluster, ":", 6); len(parts) == 6 && parts[0] == "arn" && parts[2] == "eks" {
		name, _ = strings.CutPrefix(parts[5], "cluster/")
		return name, parts[3]
	}
	if nameAndRegion, ok := strings.CutSuffix(selected.Cluster, ".eksctl.io"); ok {
		name, region, _ = strings.Cut(nameAndRegion, ".")
	}
	return name, region
}

// withHint appends the hint for an error of the API server to the error. Without a hint it returns err.
func withHint(err error) error {
	hint := kubeclient.Hint(err)
	text, isWithoutText := strings.CutSuffix(err.Error(), ": ")
	if kubeclient.IsUndiscovered(err) { // client-go writes "unknown" instead of the text
		text, isWithoutText = strings.CutSuffix(err.Error(), ": unknown")
	}
	switch {
	case hint == "":
		return err
	case isWithoutText: // the response had no text
		return fmt.Errorf("%s: %s", text, hint)
	}
	return fmt.Errorf("%w; %s", err, hint)
}
