package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// renderFlags are the flags of joiner render userdata. Other commands use them to parse user data.
type renderFlags struct {
	files  []string // paths of manifests; empty: the cluster is read
	market marketFlags
	out    format
	live   clusterFlags // the cluster that is read if there are no manifests

	class, pool       string // names of the EC2NodeClass and NodePool; empty: the only one
	instanceType      string
	capacityType      string
	cluster           bootstrap.Cluster // facts about the cluster, for the user data
	reservedENIs      int64
	hasPlaceholder    bool   // at least one fact in cluster is a placeholder
	isNamePlaceholder bool   // the cluster's name is a placeholder
	authority         string // certificate authority read from the cluster, as base64 of PEM; empty: unknown
}

func newRender() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Print the user data of nodes and the controller's IAM policies",
	}
	cmd.AddCommand(newRenderUserData(), newRenderPolicy())
	return cmd
}

func newRenderUserData() *cobra.Command {
	var r renderFlags
	cmd := &cobra.Command{
		Use:   "userdata [-f PATH…] --instance-type TYPE",
		Short: "Render the user data of an EC2NodeClass for an instance type",
		Long: `Prints the user data that an instance of the type gets from an EC2NodeClass, merged
with spec.userData, and the resulting arguments and configuration of the kubelet. It
does not print settings of the AMI itself.

The EC2NodeClass comes from the manifests, or without -f from the cluster of your
kubeconfig. If a NodePool uses the EC2NodeClass, the user data includes the labels and
taints of that NodePool. The AMI comes from the status of the EC2NodeClass, or without
a status from the version that the alias pins.

Facts about the cluster come from flags. A placeholder replaces an omitted fact, and a
note reports that.

Exit status: 0 printed, 2 the user data cannot be generated, for example because it is
larger than EC2 accepts.`,
		Example: `  joiner render userdata --nodepool general --instance-type m7g.large
  joiner render userdata -f nodeclass.yaml --instance-type m7g.large
  kubectl get ec2nodeclasses,nodepools -o yaml | joiner render userdata -f - --nodepool general --instance-type m5.large -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.run(cmd.Context(), Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		},
	}
	r.flags(cmd.Flags())
	registerCompletions(cmd, map[string]cobra.CompletionFunc{
		"context":   r.live.completeContexts,
		"nodepool":  completeFromManifests(&r.files, poolNames, r.live.completeNames(nodePoolResource())),
		"nodeclass": completeFromManifests(&r.files, classNames, r.live.completeNames(nodeClassResource())),
	})
	return cmd
}

func (r *renderFlags) flags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&r.files, "filename", "f", nil,
		"read manifests from this `PATH` (- is standard input) instead of a cluster; may be repeated")
	r.live.instead = manifestInput
	r.live.flags(flags)
	flags.StringVar(&r.instanceType, "instance-type", "", "the instance `TYPE`, for instance m5.large")
	flags.StringVar(&r.class, "nodeclass", "", "the `NAME` of the EC2NodeClass; needed if there are several")
	flags.StringVar(&r.pool, "nodepool", "", "the `NAME` of the NodePool; needed if several use the EC2NodeClass")
	flags.StringVar(&r.capacityType, "capacity-type", catalog.OnDemand, "capacity type of the instance: on-demand, spot or reserved")
	flags.StringVar(&r.cluster.Name, "cluster-name", "", "the `NAME` of the cluster; without it CLUSTER_NAME")
	flags.StringVar(&r.cluster.Endpoint, "cluster-endpoint", "", "the `URL` of the cluster's API server")
	flags.StringVar(&r.cluster.CA, "cluster-ca", "", "the cluster's certificate authority, as `BASE64` of PEM")
	flags.StringVar(&r.cluster.ServiceCIDR, "service-cidr", "", "the `CIDR` of the cluster's services")
	flags.StringVar(&r.cluster.DNS, "cluster-dns", "", "the `ADDRESS` of the cluster's DNS: an IPv6 address if the cluster is an IPv6 cluster")
	flags.Int64Var(&r.reservedENIs, "reserved-enis", 0, "number of network interfaces that carry no pods; the controller's setting is RESERVED_ENIS")
	r.market.flags(flags, fromEmbedded)
	r.out.flag(flags)
}

type renderReport struct {
	NodeClass    string             `json:"nodeClass"`
	NodePool     string             `json:"nodePool,omitempty"`
	InstanceType string             `json:"instanceType"`
	CapacityType string             `json:"capacityType"`
	AMIFamily    string             `json:"amiFamily"`
	Image        string             `json:"image,omitempty"` // ID of the AMI
	MaxPods      int64              `json:"maxPods"`
	Bytes        int                `json:"bytes"` // length of UserData; EC2 accepts at most bootstrap.MaxBytes
	UserData     string             `json:"userData"`
	Kubelet      userdata.Kubelet   `json:"kubelet"`
	Taints       []userdata.Taint   `json:"taints,omitempty"`   // taints that the node registers with, and their origin
	Labels       []userdata.Label   `json:"labels,omitempty"`   // labels that the node registers with, and their origin
	Problems     []userdata.Problem `json:"problems,omitempty"` // none of them fatal
}

func (r *renderFlags) run(ctx context.Context, s Streams) error {
	// 1. Read.
	class, pool, err := r.read(ctx, s)
	if err != nil {
		return err
	}
	r.cluster.Name = cmp.Or(r.cluster.Name, os.Getenv("CLUSTER_NAME"))
	if err := r.completeCluster(); err != nil {
		return err
	}
	typ, err := r.nodeType(ctx, class, s)
	if err != nil {
		return err
	}

	// 2. Render.
	choice := packing.Choice{InstanceType: typ.Name, CapacityType: r.capacityType}
	node, err := conversion.BootstrapNodeOfPool(pool, class, choice, typ.Capacity.Pods)
	if err != nil {
		return err
	}
	image, hasImage := conversion.ImageFor(class, typ.Labels)
	node.Cluster, node.ImageName = r.cluster, image.Name
	if alias, ok := class.Spec.Alias(); !hasImage && ok && alias.Version != awsv1.AliasVersionLatest {
		node.ImageName = strings.ToLower(alias.Family) + "-v" + strings.TrimPrefix(alias.Version, "v")
		hasImage = true
	}
	data, parsed, err := r.renderAndParse(node, userdata.Input{Image: node.ImageName, Arch: typ.Labels[corev1.LabelArchStable]})
	if err != nil {
		return err
	}

	// 3. Print.
	for _, note := range r.notes(class, hasImage, parsed.Problems) {
		fmt.Fprintln(s.Err, "note: "+message.OneLine(note))
	}
	result := renderReport{
		NodeClass: class.Name, InstanceType: typ.Name, CapacityType: r.capacityType, AMIFamily: node.Family, Image: image.ID,
		MaxPods: typ.Capacity.Pods, Bytes: len(data), UserData: string(data), Kubelet: parsed.Kubelet,
		Taints: parsed.Taints, Labels: parsed.Labels, Problems: parsed.Problems,
	}
	if pool != nil {
		result.NodePool = pool.Name
	}
	text, err := result.text()
	if err != nil {
		return err
	}
	return r.out.write(s.Out, func() string { return text }, func() any { return result })
}

// renderAndParse renders the user data of a node, parses it as the instance will, and returns both. The error says why
// the user data cannot be rendered, or why no instance with it can join. in has the image and architecture.
func (r *renderFlags) renderAndParse(node bootstrap.Node, in userdata.Input) ([]byte, userdata.Reading, error) {
	in.Family, in.Own = node.Family, node.UserData
	if !r.isNamePlaceholder {
		in.Cluster = r.cluster.Name
	}
	data, err := bootstrap.UserData(node)
	if err != nil {
		if problem, ok := reading.MergeProblem(in); ok {
			return nil, userdata.Reading{}, errors.New(problem.String())
		}
		return nil, userdata.Reading{}, err
	}
	if node.Family != catalog.Custom { // Joiner adds nothing to Custom user data
		in.Data = data
	}
	parsed := reading.Read(in)
	if fatal, ok := parsed.Fatal(); ok {
		return nil, parsed, errors.New(fatal.String())
	}
	return data, parsed, nil
}

// read returns the EC2NodeClass and the NodePool that the flags select, from the manifests or the cluster. The NodePool
// is nil if none uses the EC2NodeClass.
func (r *renderFlags) read(ctx context.Context, s Streams) (*awsv1.EC2NodeClass, *karpv1.NodePool, error) {
	if r.instanceType == "" {
		return nil, nil, errors.New("name the instance type: --instance-type m5.large")
	}
	m, err := r.objects(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	var pool *karpv1.NodePool
	if r.pool != "" {
		i := slices.IndexFunc(m.Pools, func(p *karpv1.NodePool) bool { return p.Name == r.pool })
		if i < 0 {
			return nil, nil, fmt.Errorf("--nodepool %s: there is no such NodePool %s%s", r.pool,
				r.objectSource(), suggest.Hint(r.pool, poolNames(m)))
		}
		pool = m.Pools[i]
	}
	class, err := r.pickClass(m.Classes, pool)
	if err != nil || pool != nil {
		return class, pool, err
	}
	pool, err = pickPool(m.Pools, class.Name)
	return class, pool, err
}

// pickClass returns the EC2NodeClass that the pool uses. If pool is nil, it returns the EC2NodeClass that --nodeclass
// names or, without --nodeclass, the only one. The error says why there is no such EC2NodeClass.
func (r *renderFlags) pickClass(classes []*awsv1.EC2NodeClass, pool *karpv1.NodePool) (*awsv1.EC2NodeClass, error) {
	name := r.class
	if pool != nil {
		used := nodeClassOf(pool)
		if name != "" && name != used {
			return nil, fmt.Errorf("--nodepool %s uses EC2NodeClass %q, and not %s: leave --nodeclass out", pool.Name, used, name)
		}
		name = used
	}
	var names []string
	for _, c := range classes {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	switch {
	case name != "":
		return nil, fmt.Errorf("there is no EC2NodeClass %s %s%s: add its file with -f", name, r.objectSource(), suggest.Hint(name, names))
	case len(classes) == 0:
		return nil, fmt.Errorf("there is no EC2NodeClass %s: add its file with -f", r.objectSource())
	case len(classes) > 1:
		slices.Sort(names)
		return nil, fmt.Errorf("there are several EC2NodeClasses: choose one with --nodeclass: %s", strings.Join(names, ", "))
	}
	return classes[0], nil
}

// pickPool returns the only NodePool that uses the EC2NodeClass; nil if none does. Several are an error.
func pickPool(pools []*karpv1.NodePool, class string) (*karpv1.NodePool, error) {
	var names []string
	var found *karpv1.NodePool
	for _, p := range pools {
		if nodeClassOf(p) == class {
			names = append(names, p.Name)
			found = p
		}
	}
	if len(names) > 1 {
		slices.Sort(names)
		return nil, fmt.Errorf("several NodePools use EC2NodeClass %s: choose one with --nodepool: %s", class, strings.Join(names, ", "))
	}
	return found, nil
}

// nodeClassOf returns the name of the EC2NodeClass that the pool uses; empty if its node class is of another kind.
func nodeClassOf(pool *karpv1.NodePool) string {
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Kind == awsv1.Kind {
		return ref.Name
	}
	return ""
}

// nodeType returns the instance type that --instance-type names. Its capacity is that of a node with the settings of
// the EC2NodeClass.
func (r *renderFlags) nodeType(ctx context.Context, class *awsv1.EC2NodeClass, s Streams) (catalog.Type, error) {
	if !slices.Contains([]string{catalog.OnDemand, catalog.Spot, catalog.Reserved}, r.capacityType) {
		return catalog.Type{}, fmt.Errorf("--capacity-type %s: want on-demand, spot or reserved%s", r.capacityType,
			suggest.Hint(r.capacityType, []string{catalog.OnDemand, catalog.Spot, catalog.Reserved}))
	}
	settings, err := conversion.Settings(class)
	if err != nil {
		return catalog.Type{}, err
	}
	settings.ReservedENIs = r.reservedENIs
	build, err := r.market.open(ctx, s.Err)
	if err != nil {
		return catalog.Type{}, err
	}
	c, err := build(settings)
	if err != nil {
		return catalog.Type{}, err
	}
	i := slices.IndexFunc(c.Types, func(t catalog.Type) bool { return t.Name == r.instanceType })
	if i < 0 {
		return catalog.Type{}, fmt.Errorf("instance type %s is not offered in %s, or EC2NodeClass %s cannot use it%s: joiner catalog --region %s lists the offered types",
			r.instanceType, c.Region, class.Name, suggest.Hint(r.instanceType, typeNames(c.Types)), c.Region)
	}
	return c.Types[i], nil
}

// notes returns notes for the user: the problems of the user data, and the assumptions of the output.
func (r *renderFlags) notes(class *awsv1.EC2NodeClass, hasImage bool, problems []userdata.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	if r.hasPlaceholder {
		out = append(out, "placeholders replace the facts that you did not set with --cluster-name, --cluster-endpoint, --cluster-ca, --service-cidr and --cluster-dns")
	}
	if !hasImage && class.Spec.ResolvedAMIFamily() == catalog.Bottlerocket && class.Spec.InstanceStorePolicy != nil {
		out = append(out, "the EC2NodeClass has no image in its status: how the local disks are bound depends on the version of the image")
	}
	return out
}

// text returns the output for -o table.
func (r renderReport) text() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "EC2NodeClass %s", r.NodeClass)
	if r.NodePool != "" {
		fmt.Fprintf(&b, ", NodePool %s", r.NodePool)
	}
	fmt.Fprintf(&b, ", %s (%s), %s", r.InstanceType, r.CapacityType, r.AMIFamily)
	if r.Image != "" {
		fmt.Fprintf(&b, ", %s", r.Image)
	}
	fmt.Fprintf(&b, "\n\nUser data, %d of %d bytes:\n\n%s\n", r.Bytes, bootstrap.MaxBytes, strings.TrimRight(r.UserData, "\n"))
	if len(r.Kubelet.Flags) > 0 {
		b.WriteString("\nKubelet arguments:\n\n" + strings.Join(r.Kubelet.Flags, "\n") + "\n")
	}
	if len(r.Kubelet.Config) == 0 {
		return b.String() + r.registrationText(), nil
	}
	data, err := json.Marshal(r.Kubelet.Config)
	if err == nil {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return "", fmt.Errorf("write the kubelet's configuration: %w", err)
	}
	b.WriteString("\nKubelet configuration:\n\n" + string(data))
	return b.String() + r.registrationText(), nil
}

// registrationText returns a line for each taint and label that the node registers with, with its origin; empty if
// there are none.
func (r renderReport) registrationText() string {
	var b strings.Builder
	add := func(kind string, object fmt.Stringer, origin userdata.Position) {
		if b.Len() == 0 {
			b.WriteString("\nThe node registers with:\n\n")
		}
		fmt.Fprintf(&b, "%-5s  %s (%s)\n", kind, object, cmp.Or(origin.String(), "spec.userData"))
	}
	for _, t := range r.Taints {
		add("taint", t.Taint, t.At)
	}
	for _, l := range r.Labels {
		add("label", l, l.At)
	}
	return b.String()
}
