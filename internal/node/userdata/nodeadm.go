package userdata

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

const nodeConfigVersion = "node.eks.aws/v1alpha1"

// nodeConfig is what nodeadm reads of a NodeConfig. Fields that it does not know it ignores.
// Source: nodeadm/api of github.com/awslabs/amazon-eks-ami.
type nodeConfig struct {
	Spec struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority []byte `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
			EnableOutpost        *bool  `json:"enableOutpost"`
			ID                   string `json:"id"`
		} `json:"cluster"`
		Containerd struct {
			Config          string         `json:"config"`
			BaseRuntimeSpec map[string]any `json:"baseRuntimeSpec"`
		} `json:"containerd"`
		Instance map[string]any `json:"instance"`
		Kubelet  struct {
			Config            map[string]any `json:"config"`
			Flags             []string       `json:"flags"`
			MaxPodsExpression string         `json:"maxPodsExpression"`
		} `json:"kubelet"`
		FeatureGates map[string]bool `json:"featureGates"`
	} `json:"spec"`
}

// nodeConfigFields are the fields that it knows, by the path of their table.
var nodeConfigFields = map[string]string{
	"":                           "apiVersion kind metadata spec status",
	"spec":                       "cluster containerd instance kubelet featureGates proxy",
	"spec.cluster":               "name apiServerEndpoint certificateAuthority cidr enableOutpost id",
	"spec.kubelet":               "config flags maxPodsExpression",
	"spec.instance":              "localStorage storage environment network",
	"spec.instance.localStorage": "strategy mountPath disabledMounts",
	"spec.containerd":            "config baseRuntimeSpec",
}

// oneConfig is one NodeConfig of the user data.
type oneConfig struct {
	doc   map[string]any
	spots map[string]Spot // by path: "spec.kubelet.config.maxPods"
	at    Spot
}

// nodeConfigs reads the NodeConfigs that nodeadm merges, in their order.
func (r *reader) nodeConfigs(parts []text) {
	var all []oneConfig
	for _, t := range parts {
		one, ok := r.oneConfig(t)
		if !ok {
			return
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return
	}
	r.overridden(all)
	merged, spots := map[string]any{}, map[string]Spot{}
	for i, one := range all {
		for path, spot := range one.spots {
			if path == "spec.kubelet.flags" || strings.HasPrefix(path, "spec.kubelet.flags.") {
				path = fmt.Sprintf("%d:%s", i, path)
			}
			spots[path] = spot
		}
		merge(merged, one.doc)
	}
	var config nodeConfig
	data, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil { // each was read by itself: they disagree about what a field is
		r.problem(NodeConfigBroken, Certain, NeverJoins, all[len(all)-1].at, "the NodeConfigs cannot be merged: a field is of one kind in one and of another in the next")
		return
	}
	r.addNodeadm(config, all, spots)
}

// addNodeadm notes how nodeadm starts the kubelet.
func (r *reader) addNodeadm(config nodeConfig, all []oneConfig, spots map[string]Spot) {
	cluster := config.Spec.Cluster
	s := start{
		by: byNodeadm, at: all[len(all)-1].at, sure: true, config: config.Spec.Kubelet.Config, spots: map[string]Spot{}, within: spots,
		environment: environmentOf(config.Spec.Instance, spots),
		cluster:     Value{Text: cluster.Name, At: spots["spec.cluster.name"]},
		endpoint:    Value{Text: cluster.APIServerEndpoint, At: spots["spec.cluster.apiServerEndpoint"]},
		ca:          Value{Text: string(cluster.CertificateAuthority), At: spots["spec.cluster.certificateAuthority"]},
	}
	for name := range s.config {
		s.spots[name] = spots["spec.kubelet.config."+name]
	}
	for i, one := range all {
		flags, _ := dig(one.doc, "spec", "kubelet", "flags").([]any)
		for j, f := range flags {
			line, _ := f.(string)
			spot := spots[fmt.Sprintf("%d:spec.kubelet.flags.%d", i, j)]
			for _, w := range words(line) {
				s.flags = append(s.flags, flag{text: w, at: spot})
			}
		}
	}
	for _, field := range []struct {
		name, value string
	}{{"name", cluster.Name}, {"apiServerEndpoint", cluster.APIServerEndpoint}, {"certificateAuthority", string(cluster.CertificateAuthority)}, {"cidr", cluster.CIDR}} {
		if field.value == "" {
			r.problem(ValueMissing, Certain, NeverJoins, s.at, "the NodeConfig has no spec.cluster.%s, and nodeadm ends with an error", field.name).
				with("write all of spec.cluster: name, apiServerEndpoint, certificateAuthority and cidr", "")
			return
		}
	}
	if _, err := netip.ParsePrefix(cluster.CIDR); err != nil {
		r.problem(SettingInvalid, Certain, NeverJoins, spots["spec.cluster.cidr"], "spec.cluster.cidr is no range of addresses, and nodeadm ends with an error").
			with("write the range of the cluster's services, for instance 10.100.0.0/16", "")
		return
	}
	r.starts = append(r.starts, s)
}

// oneConfig reads one NodeConfig as nodeadm does.
func (r *reader) oneConfig(t text) (oneConfig, bool) {
	one := oneConfig{at: t.at, spots: map[string]Spot{}}
	bad := func(spot Spot, format string, args ...any) (oneConfig, bool) {
		r.problem(NodeConfigBroken, Certain, NeverJoins, spot, "is no NodeConfig: "+format, args...)
		return one, false
	}
	if t.vague {
		r.opaque = append(r.opaque, "the NodeConfig at "+t.at.String()+" has words in it that only the instance knows")
		return one, false
	}
	if err := yaml.Unmarshal([]byte(t.body), &one.doc); err != nil {
		return bad(spotOfYAML(err, t.at), "it is no YAML%s", plainYAML(err))
	}
	one.spots = spotsOfYAML(t)
	version, _ := one.doc["apiVersion"].(string)
	kind, _ := one.doc["kind"].(string)
	switch {
	case kind != "NodeConfig":
		return bad(either(one.spots["kind"], t.at), "its kind has to be NodeConfig")
	case version != nodeConfigVersion:
		return bad(either(one.spots["apiVersion"], t.at), "its apiVersion has to be %s", nodeConfigVersion)
	}
	var shape nodeConfig
	data, err := json.Marshal(one.doc)
	if err == nil {
		err = json.Unmarshal(data, &shape)
	}
	if err != nil {
		path, text := shapeError(err)
		return bad(either(one.spots[path], t.at), "%s", text)
	}
	r.unknownFields(one)
	r.judgeNodeadmValues(one, shape)
	r.judgeNodeadmGates(one)
	r.moreDocuments(t)
	return one, true
}

// moreDocuments reports documents behind the first, which nodeadm does not read.
func (r *reader) moreDocuments(t text) {
	seen, n := false, 0
	for line := range strings.Lines(t.body) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "---") && seen:
			spot := Spot{Part: t.at.Part, Line: t.at.Line + n}
			r.problem(SettingUnknown, Likely, JoinsAmiss, spot, "nodeadm reads one document of each part, and ignores what is below this line").
				with("write each NodeConfig as a MIME part of its own", "")
			return
		case line != "" && line[0] != '#' && !strings.HasPrefix(line, "---"):
			seen = true
		}
		n++
	}
}

func either(a, b Spot) Spot {
	if a == (Spot{}) {
		return b
	}
	return a
}

// unknownFields says which fields nodeadm does not know. It ignores them.
func (r *reader) unknownFields(one oneConfig) {
	for _, table := range slices.Sorted(maps.Keys(nodeConfigFields)) {
		here := one.doc
		if table != "" {
			here, _ = dig(one.doc, strings.Split(table, ".")...).(map[string]any)
		}
		known := strings.Fields(nodeConfigFields[table])
		for _, name := range slices.Sorted(maps.Keys(here)) {
			if slices.Contains(known, name) {
				continue
			}
			path := strings.TrimPrefix(table+"."+name, ".")
			p := r.problem(SettingUnknown, Certain, JoinsAmiss, either(one.spots[path], one.at), "nodeadm knows no such field%s%s of a NodeConfig, and ignores it", said(name), within(table))
			if near := nearest(name, known); near != "" {
				p.with("write", near)
			} else {
				p.with("take it out", "")
			}
		}
	}
}

// diskStrategies are the strategies of local storage, of which nodeadm does not mind the case.
var diskStrategies = []string{"RAID0", "RAID10", "Mount", "None"}

// judgeNodeadmValues reports values with which nodeadm fails before the kubelet starts.
func (r *reader) judgeNodeadmValues(one oneConfig, shape nodeConfig) {
	strategy := dig(one.doc, "spec", "instance", "localStorage", "strategy")
	name, isText := strategy.(string)
	isKnown := func(s string) bool { return strings.EqualFold(s, name) }
	if strategy != nil && name != "" && !slices.ContainsFunc(diskStrategies, isKnown) || strategy != nil && !isText {
		p := r.problem(NodeConfigBroken, Likely, NeverJoins, either(one.spots["spec.instance.localStorage.strategy"], one.at),
			"spec.instance.localStorage.strategy has to be one of RAID0, RAID10, Mount, and nodeadm fails on instances with local disks")
		p.with("choose one of them", "")
	}
	if _, ok := decodeTOML(shape.Spec.Containerd.Config); !ok {
		r.problem(NodeConfigBroken, Certain, NeverJoins, either(one.spots["spec.containerd.config"], one.at),
			"spec.containerd.config is no TOML, and nodeadm fails before it starts the kubelet").with("correct it", "")
	}
}

// judgeNodeadmGates reports gates that nodeadm ignores, and what its own gates ask of the cluster.
func (r *reader) judgeNodeadmGates(one oneConfig) {
	gates, _ := dig(one.doc, "spec", "featureGates").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		spot := either(one.spots["spec.featureGates."+name], one.at)
		_, ofKubelet := kubeletGates[name]
		switch {
		case slices.Contains(nodeadmGates, name):
		case ofKubelet:
			r.problem(SettingUnknown, Certain, JoinsAmiss, spot, "%s is a feature gate of the kubelet, and nodeadm ignores it in spec.featureGates", name).
				with("write it into spec.kubelet.config.featureGates", "")
		default:
			p := r.problem(SettingUnknown, Likely, JoinsAmiss, spot, "nodeadm knows no such feature gate%s, and ignores it", said(name))
			p.with("take it out", "")
			if near := nearest(name, nodeadmGates); near != "" {
				p.with("write", near)
			}
		}
	}
	if on, _ := gates["InstanceIdNodeName"].(bool); on {
		r.namedByInstance(either(one.spots["spec.featureGates.InstanceIdNodeName"], one.at), "InstanceIdNodeName names nodes by their instance ID")
	}
}

// namedByInstance reports names of nodes that the usual mapping of a role does not permit.
func (r *reader) namedByInstance(spot Spot, what string) {
	r.problem(OtherName, Likely, NeverJoins, spot,
		"%s, and a kubelet may only register the node of its own user name: access entries of type EC2_LINUX and most rows of aws-auth give it system:node:{{EC2PrivateDNSName}}", what).
		with("map the node role in aws-auth to system:node:{{SessionName}}, or take the setting out", "")
}

func within(table string) string {
	if table == "" {
		return ""
	}
	return " in " + table
}

// nodeadmCall reads a call of nodeadm by a script, whose configuration the script may have written.
func (r *reader) nodeadmCall(c command) {
	for i, w := range c.words {
		source, ok := strings.CutPrefix(w.text, "--config-source=")
		if !ok && (w.text == "-c" || w.text == "--config-source") && i+1 < len(c.words) {
			source, ok = c.words[i+1].text, true
		}
		if path, isFile := strings.CutPrefix(source, "file://"); ok && isFile {
			if t, written := r.files[path]; written {
				r.nodeConfigs([]text{t})
				return
			}
		}
	}
	if slices.ContainsFunc(c.words, func(w word) bool { return w.text == "init" || w.text == "install" }) {
		r.opaque = append(r.opaque, "nodeadm is called at "+c.at.String()+" with a configuration that is not in the user data")
	}
}

// dig returns what stands at a path of tables, nil if there is nothing.
func dig(value any, path ...string) any {
	for _, key := range path {
		table, _ := value.(map[string]any)
		value = table[key]
	}
	return value
}

// merge merges tables key by key. Flags add up, other lists replace each other.
func merge(to, from map[string]any) {
	for key, value := range from {
		switch v := value.(type) {
		case map[string]any:
			old, ok := to[key].(map[string]any)
			if !ok {
				old = map[string]any{}
				to[key] = old
			}
			merge(old, v)
			continue
		case []any:
			if old, ok := to[key].([]any); ok && key == "flags" {
				to[key] = slices.Concat(old, v)
				continue
			}
		}
		to[key] = value
	}
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

// spotOfYAML is where a YAML reader stopped.
func spotOfYAML(err error, at Spot) Spot {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return Spot{Part: at.Part, Line: at.Line + n - 1}
		}
	}
	return at
}

// plainYAML is what a YAML reader says, if it quotes nothing of the text.
func plainYAML(err error) string {
	_, what, ok := strings.Cut(err.Error(), "line ")
	if _, rest, cut := strings.Cut(what, ": "); ok && cut && !strings.ContainsAny(rest, "\"`\n!") {
		return " (" + rest + ")"
	}
	return ""
}

// spotsOfYAML returns the positions of the fields of a document, by path.
func spotsOfYAML(t text) map[string]Spot {
	out := map[string]Spot{}
	var doc yamlv3.Node
	_, err := guarded(func() (any, error) { return nil, yamlv3.Unmarshal([]byte(t.body), &doc) })
	if err == nil && len(doc.Content) == 1 {
		addSpots(doc.Content[0], "", t.at, out)
	}
	return out
}

func addSpots(n *yamlv3.Node, path string, at Spot, out map[string]Spot) {
	if len(out) > 2000 || strings.Count(path, ".") > 20 {
		return
	}
	spot := func(n *yamlv3.Node) Spot { return Spot{Part: at.Part, Line: at.Line + n.Line - 1, Column: n.Column} }
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			child := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			out[child] = spot(n.Content[i])
			addSpots(n.Content[i+1], child, at, out)
		}
	case yamlv3.SequenceNode:
		for i, one := range n.Content {
			child := path + "." + strconv.Itoa(i)
			out[child] = spot(one)
			addSpots(one, child, at, out)
		}
	}
}

// shapeError says which field is of the wrong kind, without its value.
func shapeError(err error) (path, text string) {
	var wrong *json.UnmarshalTypeError
	if !asType(err, &wrong) {
		return "", "a field has a value that it cannot have"
	}
	field := wrong.Field
	for !isTelling(field) && field != "" { // a key of the user's own may be a secret
		field = field[:max(strings.LastIndexByte(field, '.'), 0)]
	}
	kinds := map[string]string{"string": "text", "bool": "true or false", "map": "a table", "struct": "a table", "slice": "a list"}
	want := kinds[wrong.Type.Kind().String()]
	if want == "" {
		want = "of another kind"
	}
	name := field
	if field != wrong.Field {
		name = "an entry of " + field
	}
	return wrong.Field, fmt.Sprintf("%s has to be %s, and is %s", name, want, map[string]string{
		"string": "text", "number": "a number", "bool": "true or false", "object": "a table", "array": "a list",
	}[strings.Fields(wrong.Value + " ")[0]])
}
