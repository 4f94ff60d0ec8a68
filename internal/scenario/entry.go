package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// resourceOf returns the Kubernetes resource that a word of a scenario abbreviates; other words name the resource
// itself.
func resourceOf(word string) string {
	switch word {
	case "mem":
		return resources.Memory
	case "storage":
		return resources.EphemeralStorage
	case "volumes":
		return volumesOfEBS
	}
	return word
}

// volumesOfEBS is the resource that counts volumes of the EBS CSI driver.
const volumesOfEBS = "attachable-volumes-csi-ebs.csi.aws.com"

// wordOf is the inverse of resourceOf.
func wordOf(resource string) string {
	switch resource {
	case resources.Memory:
		return "mem"
	case resources.EphemeralStorage:
		return "storage"
	case volumesOfEBS:
		return "volumes"
	}
	return resource
}

// setAmount sets the amount of one resource from a text such as "cpu=2": word is the part before the equals sign, text
// the part after it.
func setAmount(a *resources.Amounts, word, text string) error {
	resource := resourceOf(word)
	n, err := resources.Parse(resource, text)
	if err != nil {
		return err
	}
	*a = a.With(resource, n)
	return nil
}

// parsePool reads the first line of a pool: "NAME [class=…] [weight=…] …".
func parsePool(words []string) (cluster.Pool, error) {
	p := cluster.Pool{Name: words[0], NodeClass: defaultClass}
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return p, fmt.Errorf("pool %s: %q is not key=value", p.Name, w)
		}
		if err := setPoolAttribute(&p, key, value); err != nil {
			return p, fmt.Errorf("pool %s: %s: %w", p.Name, w, err)
		}
	}
	return p, nil
}

func setPoolAttribute(p *cluster.Pool, key, value string) error {
	switch key {
	case "class":
		p.NodeClass = value
		return nil
	case "weight":
		return setInt(&p.Weight, value)
	case "min-values":
		if value != "best-effort" {
			return errors.New("want best-effort")
		}
		p.RelaxesMinValues = true
		return nil
	case "used:nodes":
		return setInt(&p.Nodes, value)
	case "limit:nodes":
		p.Limits.Nodes = new(int)
		return setInt(p.Limits.Nodes, value)
	}
	if word, ok := strings.CutPrefix(key, "used:"); ok {
		return setAmount(&p.Usage, word, value)
	}
	word, ok := strings.CutPrefix(key, "limit:")
	if !ok {
		return errors.New("want class, weight, min-values, limit:… or used:…")
	}
	n, err := resources.Parse(resourceOf(word), value)
	if err != nil {
		return err
	}
	if p.Limits.Ceiling == nil {
		p.Limits.Ceiling = map[string]int64{}
	}
	p.Limits.Ceiling[resourceOf(word)] = n
	return nil
}

// setInt sets an integer from a text. On error, it sets 0, or the nearest int if the number is too large.
func setInt(to *int, text string) error {
	n, err := strconv.Atoi(text)
	*to = n
	return err
}

// readPoolDetail reads an indented line below a pool. word is the first word of the line. args are the other words, and
// rest is the text of these words.
func readPoolDetail(p *cluster.Pool, word string, args []string, rest string) error {
	switch word {
	case "require":
		r, err := parseRequirement(args)
		p.Requirements = append(p.Requirements, r)
		return err
	case "label":
		return setLabel(&p.Labels, args)
	case "taint":
		return appendTaint(&p.Taints, args)
	case "startup-taint":
		return appendTaint(&p.StartupTaints, args)
	case "unusable":
		p.Unusable = rest
		return nil
	case "closed": // unusable, and the user has nothing to fix
		p.Unusable, p.UnusableByIntent = rest, true
		return nil
	}
	return fmt.Errorf("a pool has no %q: want require, label, taint, startup-taint, unusable or closed", word)
}

// parseNode reads the first line of a node. Its capacity equals the allocatable amounts, except those given as
// capacity:RESOURCE=AMOUNT.
func parseNode(words []string) (cluster.Node, error) {
	n := cluster.Node{Name: words[0], Joined: true, Initialized: true}
	var capacities resources.Amounts
	for _, w := range words[1:] {
		key, value, isPair := strings.Cut(w, "=")
		if err := setNodeAttribute(&n, &capacities, key, value, isPair); err != nil {
			return n, fmt.Errorf("node %s: %s: %w", n.Name, w, err)
		}
	}
	n.Capacity = n.Allocatable
	for _, name := range capacities.Names() {
		n.Capacity = n.Capacity.With(name, capacities.Of(name))
	}
	return n, nil
}

// setNodeAttribute sets the fields of a node from a word in the node's first line: key=value if isPair is true, else
// the flag key.
func setNodeAttribute(n *cluster.Node, capacities *resources.Amounts, key, value string, isPair bool) error {
	switch {
	case key == "leaving" && !isPair:
		n.Leaving = true
		return nil
	case key == "cordoned" && !isPair:
		n.Taints = append(n.Taints, cluster.CordonTaint())
		return nil
	case key == "joining" && !isPair:
		n.Joined, n.Initialized = false, false
		return nil
	case key == "uninitialized" && !isPair:
		n.Initialized = false
		return nil
	case !isPair:
		return errors.New("want leaving, cordoned, joining, uninitialized or key=value")
	}
	switch key {
	case "pool":
		n.Pool = value
		return nil
	case "class":
		n.NodeClass = value
		return nil
	case "claim":
		n.Claim = value
		return nil
	}
	if word, ok := strings.CutPrefix(key, "used:"); ok {
		return setAmount(&n.Requested, word, value)
	}
	if word, ok := strings.CutPrefix(key, "capacity:"); ok {
		return setAmount(capacities, word, value)
	}
	return setAmount(&n.Allocatable, key, value)
}

// readNodeDetail is like readPoolDetail, for a node.
func readNodeDetail(n *cluster.Node, word string, args []string, rest string) error {
	switch word {
	case "label":
		return setLabel(&n.Labels, args)
	case "taint":
		return appendTaint(&n.Taints, args)
	case "port":
		return appendPort(&n.HostPorts, args)
	case "resident":
		return appendResident(&n.Residents, args)
	case "apart": // from the last resident
		return appendAvoidedTerm(n.Residents, rest)
	}
	return fmt.Errorf("a node has no %q: want label, taint, port or resident", word)
}

func parseDaemon(words []string) (cluster.Daemon, error) {
	d := cluster.Daemon{Requests: resources.Amounts{Pods: 1}}
	d.Namespace, d.Name = splitName(words[0])
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if err := setAmount(&d.Requests, key, value); err != nil {
			return d, fmt.Errorf("daemon %s: %w", d.Name, err)
		}
	}
	return d, nil
}

// readDaemonDetail is like readPoolDetail, for a DaemonSet.
func readDaemonDetail(d *cluster.Daemon, word string, args []string, rest string) error {
	switch word {
	case "require", "or":
		return appendRequired(&d.Required, word, args)
	case "tolerate":
		return appendToleration(&d.Tolerations, args)
	case "port":
		return appendPort(&d.HostPorts, args)
	case "pods":
		return setDaemonKind(d, args)
	case "apart":
		if d.Kind == nil {
			return errors.New("apart needs a line \"pods LABELS\" above it in the same daemon")
		}
		return appendTerm(&d.Kind.RequiredAntiAffinity, rest, d.Namespace)
	}
	return fmt.Errorf("a daemon has no %q: want require, or, tolerate, port, pods or apart", word)
}

// parsePod reads the first line of one or more equal pods. It returns the pod, and the number of pods from a word such
// as "x3"; 0 if there is no such word.
func parsePod(words []string) (cluster.Pod, int, error) {
	p, times := cluster.Pod{Requests: resources.Amounts{Pods: 1}}, 0
	p.Namespace, p.Name = splitName(words[0])
	for _, w := range words[1:] {
		key, value, isPair := strings.Cut(w, "=")
		if !isPair && strings.HasPrefix(key, "x") {
			n, err := parseTimes(w)
			if err != nil {
				return p, 0, fmt.Errorf("pod %s: %w", p.Name, err)
			}
			times = n
			continue
		}
		if err := setPodAttribute(&p, key, value); err != nil {
			return p, 0, fmt.Errorf("pod %s: %s: %w", p.Name, w, err)
		}
	}
	return p, times, nil
}

// maxTimes is the maximum number of pods that one line can declare.
const maxTimes = 1_000_000

func parseTimes(word string) (int, error) {
	number, ok := strings.CutPrefix(word, "x")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 || n > maxTimes {
		return 0, fmt.Errorf("%q is not x followed by a number from 1 to %d", word, maxTimes)
	}
	return n, nil
}

func setPodAttribute(p *cluster.Pod, key, value string) error {
	switch key {
	case "priority":
		n, err := strconv.ParseInt(value, 10, 32)
		p.Priority = int32(n)
		return err
	case "owner":
		p.Owner = value
		return nil
	case "node":
		p.Node = value
		return nil
	}
	return setAmount(&p.Requests, key, value)
}

// readPodDetail is like readPoolDetail, for a pod.
func readPodDetail(p *cluster.Pod, word string, args []string, rest string) error {
	switch word {
	case "require", "or":
		return appendRequired(&p.Required, word, args)
	case "prefer":
		return appendPreference(&p.Preferred, args)
	case "label":
		return setLabel(&p.Labels, args)
	case "spread":
		return appendSpread(&p.Spread, rest)
	case "near":
		return appendTerm(&p.Affinity, rest, p.Namespace)
	case "apart":
		return appendTerm(&p.AntiAffinity, rest, p.Namespace)
	case "volume":
		return appendVolume(&p.Volumes, args, p.Namespace)
	case "tolerate":
		return appendToleration(&p.Tolerations, args)
	case "port":
		return appendPort(&p.HostPorts, args)
	case "unplannable":
		p.Unplannable = rest
		return nil
	}
	return fmt.Errorf("a pod has no %q: want label, require, or, prefer, spread, near, apart, tolerate, port, volume or unplannable", word)
}

// splitName splits "namespace/name"; without a slash, the namespace is defaultNamespace.
func splitName(word string) (namespace, name string) {
	namespace, name, ok := strings.Cut(word, "/")
	if !ok {
		return defaultNamespace, word
	}
	return namespace, name
}

// appendRequired reads the line "require KEY OPERATOR VALUES…", which adds a requirement to the last alternative, or
// the line "or", which begins a new alternative.
func appendRequired(to *[]requirements.Requirements, word string, args []string) error {
	if len(*to) == 0 || word == "or" {
		*to = append(*to, requirements.Requirements{})
	}
	if word == "or" {
		if len(args) > 0 {
			return errors.New("or must be the only word on its line")
		}
		return nil
	}
	return narrowByWords((*to)[len(*to)-1], args)
}

// narrowByWords adds the requirement "KEY OPERATOR VALUES…", given as words, to requirements.
func narrowByWords(to requirements.Requirements, args []string) error {
	r, err := parseRequirement(args)
	if err != nil {
		return err
	}
	return narrowByValues(to, r.Key, r.Operator, r.Values...)
}

// narrowByValues adds a requirement to requirements. It returns an error if the requirement is invalid.
func narrowByValues(to requirements.Requirements, key string, operator requirements.Operator, values ...string) error {
	v, ok := requirements.ValuesOf(operator, values...)
	if !ok {
		return fmt.Errorf("invalid operator or values: %s %q", operator, values)
	}
	to.Narrow(key, v)
	return nil
}

// parseRequirement reads "KEY OPERATOR VALUES… [min=N]".
func parseRequirement(args []string) (requirements.Requirement, error) {
	if len(args) < 2 {
		return requirements.Requirement{}, errors.New("want KEY OPERATOR VALUES…")
	}
	r := requirements.Requirement{Key: args[0], Operator: requirements.Operator(args[1])}
	for _, a := range args[2:] {
		if text, ok := strings.CutPrefix(a, "min="); ok {
			if err := setInt(&r.MinValues, text); err != nil {
				return r, err
			}
			continue
		}
		r.Values = append(r.Values, a)
	}
	return r, nil
}

// appendPreference reads "WEIGHT KEY OPERATOR VALUES… [; KEY OPERATOR VALUES…]".
func appendPreference(to *[]cluster.Preference, args []string) error {
	if len(args) == 0 {
		return errors.New("want WEIGHT KEY OPERATOR VALUES…")
	}
	p := cluster.Preference{Requirements: requirements.Requirements{}}
	if err := setInt(&p.Weight, args[0]); err != nil {
		return err
	}
	args = args[1:]
	for len(args) > 0 {
		end := slices.Index(args, ";")
		if end < 0 {
			end = len(args)
		}
		if err := narrowByWords(p.Requirements, args[:end]); err != nil {
			return err
		}
		args = args[min(end+1, len(args)):]
	}
	*to = append(*to, p)
	return nil
}

// setLabel reads "KEY=VALUE" and adds the label.
func setLabel(to *requirements.Labels, args []string) error {
	if len(args) != 1 {
		return errors.New("want KEY=VALUE")
	}
	key, value, ok := strings.Cut(args[0], "=")
	if !ok {
		return fmt.Errorf("%q is not KEY=VALUE", args[0])
	}
	if *to == nil {
		*to = requirements.Labels{}
	}
	(*to)[key] = value
	return nil
}
